// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include <infty/io/file.hpp>

namespace support {

/// Writes a text file, which replaces an old one when it is complete. Throws infty::IoError.
inline void write_file(const std::filesystem::path& path, std::string_view text) {
  infty::detail::ReplacingFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

/// `text` as one word of a shell's command line.
inline std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

/// Whether a file is a PNG to its end, which one that found no room is not.
inline bool is_whole_png(const std::filesystem::path& path) {
  constexpr std::string_view end = "IEND\xae\x42\x60\x82";
  std::ifstream file(path, std::ios::binary);
  std::string last(end.size(), '\0');
  file.seekg(-static_cast<std::streamoff>(end.size()), std::ios::end);
  return file.read(last.data(), std::ssize(end)) && last == end;
}

/// Runs gnuplot in a folder on NAME.gp; says on standard error why there is no NAME.png where there
/// is none. What gnuplot says is not enough: on a full disk it ends well.
inline bool draw_figure(const std::filesystem::path& folder, const std::string& name = "figure") {
  std::error_code ignored;
  std::filesystem::remove(folder / (name + ".png"), ignored);
  const std::string command = "command -v gnuplot >/dev/null || exit 127; cd " +
                              shell_quoted(std::filesystem::absolute(folder).string()) +
                              " && gnuplot " + name + ".gp";
  if (std::system(command.c_str()) == 0 && is_whole_png(folder / (name + ".png"))) return true;
  std::filesystem::remove(folder / (name + ".png"), ignored);
  std::cerr << "no figure, for gnuplot is missing or failed; with it (Debian: gnuplot-nox): cd "
            << shell_quoted(folder.string()) << " && gnuplot " << name << ".gp\n";
  return false;
}

}  // namespace support
