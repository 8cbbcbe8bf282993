// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

#include "files.hpp"
#include "settings.hpp"

namespace support {

/// The runs of a comparison that are finished, kept in a CSV file from which one that was stopped
/// goes on: a line for each, whose fields are those of each_field(Run&, see), texts and numbers
/// (json.hpp), without commas. Run::key() says which run it is.
template <class Run>
class FinishedRuns {
 public:
  /// Reads the file, if there is one. Throws infty::IoError if it is no such file.
  FinishedRuns(std::string program, std::filesystem::path path)
      : program_(std::move(program)), path_(std::move(path)) {
    if (!std::filesystem::exists(path_)) return;
    const infty::MappedFile file(path_);
    std::string_view text = file.text();
    for (bool first = true; first || !text.empty(); first = false) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      infty::require<infty::IoError>(!first || line == header(), program_, path_.string(),
                                     " is not what this writes");
      if (!first) all_.push_back(parsed(line));
      infty::require<infty::IoError>(end != std::string_view::npos, program_, path_.string(),
                                     ": its last line does not end");
      text.remove_prefix(end + 1);
    }
  }

  const std::vector<Run>& all() const { return all_; }

  /// The run of this key, or null.
  template <class Key>
  const Run* find(const Key& key) const {
    const auto at =
        std::find_if(all_.begin(), all_.end(), [&](const Run& run) { return run.key() == key; });
    return at == all_.end() ? nullptr : &*at;
  }

  /// Adds a run and writes the file anew. Throws infty::IoError.
  void add(Run run) {
    all_.push_back(std::move(run));
    std::string out = header();
    for (Run& one : all_) {
      out += '\n';
      bool first = true;
      each_field(one, [&]<class T>(const char*, const T& field) {
        if (!std::exchange(first, false)) out += ',';
        // Of a number the shortest digits that are read as the same.
        if constexpr (std::same_as<T, std::string>)
          out += field;
        else
          out += nlohmann::json(field).dump();
      });
    }
    write_file(path_, out + '\n');
  }

 private:
  static std::string header() {
    std::string out;
    Run run;
    each_field(run, [&](const char* name, const auto&) {
      out += (out.empty() ? "" : ",") + std::string(name);
    });
    return out;
  }

  Run parsed(std::string_view line) const {
    std::string_view left = line;
    std::ptrdiff_t fields = 0;
    bool good = true;
    Run run;
    each_field(run, [&]<class T>(const char*, T& to) {
      const std::string_view field = left.substr(0, left.find(','));
      left.remove_prefix(std::min(field.size() + 1, left.size()));
      ++fields;
      if constexpr (std::same_as<T, std::string>) {
        to = field;
      } else {
        const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), to);
        good = good && error == std::errc() && end == field.data() + field.size();
        if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(to);
      }
    });
    good = good && std::count(line.begin(), line.end(), ',') == fields - 1;
    infty::require<infty::IoError>(good, program_, path_.string(), ": ",
                                   infty::detail::printable(line), " is no run");
    return run;
  }

  std::string program_;
  std::filesystem::path path_;
  std::vector<Run> all_;
};

/// Throws infty::ValueError that names the first setting that differs from those of the comparison
/// in the folder, if there is one, but for those of `free`, which say what is compared: of that
/// there may be more or less than the last time.
template <class Settings>
void require_same_settings(const char* program, const Settings& settings,
                           const std::filesystem::path& folder, const std::set<std::string>& free) {
  const auto path = folder / "settings.json";
  if (!std::filesystem::exists(path)) return;
  const auto wanted = to_json(settings);
  const auto there = to_json(settings_from<Settings>(read_json(path), path.string()));
  for (const auto& [name, value] : wanted.items())
    infty::require(free.contains(name) || there.at(name) == value, program, folder.string(),
                   " holds a comparison with --", name, ' ', there.at(name).dump(), ", not ",
                   value.dump(), ": give another --out");
}

}  // namespace support
