// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "files.hpp"

namespace support {

/// Words as a shell's command line, quoted where a shell would read them otherwise.
inline std::string command_line(const std::vector<std::string>& words) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,/:@%";
  std::string out;
  for (const std::string& word : words) {
    const bool as_it_is = !word.empty() && word.find_first_not_of(plain) == std::string::npos;
    out += (out.empty() ? "" : " ") + (as_it_is ? word : shell_quoted(word));
  }
  return out;
}

/// The command that a program was started by, but for some words, such as what begins anew.
inline std::string command_line(int argc, const char* const* argv,
                                std::initializer_list<std::string_view> without = {}) {
  std::vector<std::string> words;
  for (const std::string_view word : std::vector<std::string_view>(argv, argv + argc))
    if (std::find(without.begin(), without.end(), word) == without.end()) words.emplace_back(word);
  return command_line(words);
}

/// A command on so many ranks.
inline std::string command_on(int ranks, const std::string& command) {
  return (ranks > 1 ? "mpirun -n " + std::to_string(ranks) + ' ' : "") + command;
}

}  // namespace support
