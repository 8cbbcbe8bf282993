// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/file.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

#include "../support/files.hpp"
#include "../support/json.hpp"
#include "cell.hpp"

namespace recall {

/// The runs that are done, each in a file of its own, RUN.json in a folder, where those that are
/// not have their checkpoints, RUN.safetensors. Whoever does a run writes its file.
class Results {
 public:
  /// Reads all that is there. Throws infty::IoError for a file that is not what this writes.
  explicit Results(std::filesystem::path folder) : folder_(std::move(folder)) {
    if (!std::filesystem::exists(folder_)) return;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    for (const auto& file : files) take(file);
  }

  /// What is done of this, or null.
  const Cell* find(const Run& run) const {
    const auto at = cells_.find(run.name());
    return at == cells_.end() ? nullptr : &at->second;
  }

  /// Takes up a run that has been done. Throws infty::IoError if it has not.
  void add(const Run& run) { take(path(run, ".json")); }

  /// All of them, sorted by their names.
  const std::map<std::string, Cell>& cells() const { return cells_; }

  std::filesystem::path path(const Run& run, const char* extension) const {
    return folder_ / (run.name() + extension);
  }

  /// Makes the folder, and removes from it what killed processes have left there of no use.
  void clean() const {
    std::filesystem::create_directories(folder_);
    std::vector<std::filesystem::path> useless;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename().string();
      const auto of = name.substr(0, name.find(infty::detail::ReplacingFile::infix));
      if (infty::detail::is_unfinished(name, of)) useless.push_back(entry.path());
    }
    for (const auto& [name, cell] : cells_) useless.push_back(folder_ / (name + ".safetensors"));
    for (const auto& file : useless) std::filesystem::remove(file);
  }

  /// The rate, of all that were tried with the first seed, that had the best accuracy on the
  /// sequences for choosing, at the size of the table.
  double best_rate(const Settings& s, const std::string& task, const std::string& memory) const {
    const Cell* best = nullptr;
    for (const double rate : s.rates) {
      const Cell* const cell = find({task, memory, s.bytes, rate, s.seeds.front()});
      if (cell && (!best || cell->validation > best->validation)) best = cell;
    }
    return best ? best->run.rate : s.rates.front();
  }

  /// Whether a rate can be chosen: all of them have been tried.
  bool all_rates(const Settings& s, const std::string& task, const std::string& memory) const {
    return std::all_of(s.rates.begin(), s.rates.end(), [&](double rate) {
      return find({task, memory, s.bytes, rate, s.seeds.front()}) != nullptr;
    });
  }

  /// The runs of all seeds that are done, with the rate that was best.
  std::vector<const Cell*> seeds(const Settings& s, const std::string& task,
                                 const std::string& memory, Index bytes) const {
    std::vector<const Cell*> all;
    const double rate = best_rate(s, task, memory);
    for (const std::uint64_t seed : s.seeds)
      if (const Cell* const cell = find({task, memory, bytes, rate, seed})) all.push_back(cell);
    return all;
  }

 private:
  void take(const std::filesystem::path& file) {
    const std::string name = file.stem().string();
    Cell cell = support::parse<Cell>(infty::MappedFile(file).text(), file.string());
    infty::require<infty::IoError>(cell.run.name() == name, "recall", file.string(), " is the run ",
                                   infty::detail::printable(cell.run.name()));
    cells_.insert_or_assign(name, std::move(cell));
  }

  std::filesystem::path folder_;
  std::map<std::string, Cell> cells_;
};

/// Writes what has come of a run, which is done from then on. Throws infty::IoError.
inline void write(const Results& results, const Cell& cell) {
  support::write_file(results.path(cell.run, ".json"), support::json_of(cell).dump(1) + '\n');
}

}  // namespace recall
