// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/file.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

#include "csv.hpp"
#include "farm.hpp"
#include "files.hpp"
#include "json.hpp"
#include "progress_line.hpp"
#include "settings.hpp"

namespace support {

/// `copy-100-xl-16384-0.003-1`: what tells a run from all others of a folder, for files.
template <class... Fields>
std::string run_name(const Fields&... fields) {
  std::string name;
  const auto add = [&](const auto& field) {
    if (!name.empty()) name += '-';
    if constexpr (requires { name + field; })
      name += field;
    else
      name += nlohmann::json(field).dump();
  };
  (add(fields), ...);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                           (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '+';
        return !plain;
      },
      '-');
  return name;
}

/// The runs of a comparison that are done, each in a file of its own, NAME.json in a folder, where
/// those that are not have their checkpoints, NAME.safetensors. Whoever does a run writes its file.
/// What has come of one is a struct that json.hpp reads, with its name() by `run_name`, and its
/// `seconds` of computing.
template <class Result>
class FinishedRuns {
 public:
  /// Reads all that is there. Throws infty::IoError for a file that is not what this writes.
  FinishedRuns(std::string program, std::filesystem::path folder)
      : program_(std::move(program)), folder_(std::move(folder)) {
    if (!std::filesystem::exists(folder_)) return;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    for (const auto& file : files) take(file);
  }

  const std::string& program() const { return program_; }

  /// What has come of the run of this name, or null.
  const Result* find(const std::string& name) const {
    const auto at = all_.find(name);
    return at == all_.end() ? nullptr : &at->second;
  }

  /// All of them, sorted by their names.
  const std::map<std::string, Result>& all() const { return all_; }

  /// Where the training of a run is saved until it is done.
  std::filesystem::path checkpoint(const std::string& name) const {
    return folder_ / (name + ".safetensors");
  }

  /// Writes what has come of a run, which is done from then on, and removes its checkpoint. Throws
  /// infty::IoError.
  void write(const Result& result) const {
    write_file(file(result.name()), json_of(result).dump(1) + '\n');
    std::filesystem::remove(checkpoint(result.name()));
  }

  /// Takes up a run that another process has written. Throws infty::IoError if none has.
  void add(const std::string& name) { take(file(name)); }

  /// Takes up a run that another process writes, and returns whether it is done.
  bool look_for(const std::string& name) {
    if (!all_.contains(name) && std::filesystem::exists(file(name))) take(file(name));
    return all_.contains(name);
  }

  /// Makes the folder.
  void make() const { std::filesystem::create_directories(folder_); }

  /// Makes the folder, and removes from it what killed processes have left there of no use.
  void clean() const {
    make();
    std::vector<std::filesystem::path> useless;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      const auto of = name.substr(0, name.find(infty::detail::ReplacingFile::infix));
      const auto kind = entry.path().extension();
      const bool left = kind == ".left" || kind == ".here";  // of a rank, the last time
      if (left || infty::detail::is_unfinished(name, of)) useless.push_back(entry.path());
    }
    for (const auto& [name, result] : all_) useless.push_back(checkpoint(name));
    for (const auto& path : useless) std::filesystem::remove(path);
  }

  /// Seconds of computing, of all of them.
  double seconds() const {
    double sum = 0;
    for (const auto& [name, result] : all_) sum += result.seconds;
    return sum;
  }

 private:
  std::filesystem::path file(const std::string& name) const { return folder_ / (name + ".json"); }

  void take(const std::filesystem::path& file) {
    const std::string name = file.stem().string();
    Result result = parse<Result>(infty::MappedFile(file).text(), file.string());
    infty::require<infty::IoError>(result.name() == name, program_, file.string(), " is the run ",
                                   infty::detail::printable(result.name()));
    all_.insert_or_assign(name, std::move(result));
  }

  std::string program_;
  std::filesystem::path folder_;
  std::map<std::string, Result> all_;
};

namespace detail {

/// Calls see(name, field) for every text and number, also those of structs in it; not for lists.
template <class T, class See>
void each_plain_field(T& value, See&& see) {
  each_field(value, [&]<class Field>(const char* name, Field& field) {
    if constexpr (HasFields<Field>)
      each_plain_field(field, see);
    else if constexpr (std::same_as<Field, std::string> || std::is_arithmetic_v<Field>)
      see(name, field);
  });
}

}  // namespace detail

/// All runs that are done, a line each, for tables: texts and numbers, without lists.
template <class Result>
std::string runs_csv(const FinishedRuns<Result>& runs) {
  std::string header;
  Result none;
  detail::each_plain_field(none, [&](const char* name, const auto&) {
    header += (header.empty() ? "" : ",") + std::string(name);
  });
  Csv csv(header);
  for (const auto& [name, result] : runs.all()) {
    csv.line();
    Result copy = result;
    detail::each_plain_field(copy, [&](const char*, const auto& field) { csv.field(field); });
  }
  return csv.text();
}

/// Does the runs of these names by the farm, so many at once: what make(i, done) returns is
/// written and taken up, and done(steps) tells how many more steps are done. Calls stepped(i,
/// steps) for these, and ended(i) where a run has ended. Says of one that fails why, and puts its
/// name into `failed`. Where a signal came, all that were going on are saved.
template <class Result, class Make, class Stepped, class Ended>
void do_runs(FinishedRuns<Result>& runs, const std::vector<std::string>& names, Index at_once,
             ProgressLine& line, std::set<std::string>& failed, Make&& make, Stepped&& stepped,
             Ended&& ended) {
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < names.size(); ++i)
    jobs.push_back(
        [&make, &runs, i](const std::function<void(Index)>& done) { runs.write(make(i, done)); });
  farm(jobs, at_once, stepped, [&](std::size_t i, const std::string& why) {
    if (why.empty()) {
      runs.add(names[i]);
    } else {
      failed.insert(names[i]);
      line.clear();
      std::fprintf(stderr, "%s: the run %s: %s\n", runs.program().c_str(), names[i].c_str(),
                   why.c_str());
    }
    ended(i);
  });
}

/// Says how many runs failed, if any did; whether none did.
inline bool none_failed(const char* program, std::size_t failed) {
  if (failed > 0)
    std::fprintf(stderr, "%s: runs that failed: %zu; the same command tries them again\n", program,
                 failed);
  return failed == 0;
}

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
