// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

#include "../support/comparison.hpp"
#include "../support/files.hpp"
#include "cell.hpp"

namespace recall {

/// The runs that are done, kept in a file from which an interrupted comparison goes on.
class Results {
 public:
  /// Reads the file, if there is one. Throws infty::IoError if it is no such file.
  explicit Results(std::filesystem::path path) : path_(std::move(path)) {
    if (!std::filesystem::exists(path_)) return;
    const infty::MappedFile file(path_);
    std::string_view text = file.text();
    for (bool first = true; first || !text.empty(); first = false) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end);
      infty::require<infty::IoError>(!first || line == header, "recall", path_.string(),
                                     " is not what this writes");
      if (!first) cells_.push_back(parsed(line));
      infty::require<infty::IoError>(end != std::string_view::npos, "recall", path_.string(),
                                     ": its last line does not end");
      text.remove_prefix(end + 1);
    }
  }

  const std::vector<Cell>& cells() const { return cells_; }

  /// The run of these, or null.
  const Cell* find(const std::string& task, const std::string& memory, double rate,
                   std::uint64_t seed) const {
    const auto at = std::find_if(cells_.begin(), cells_.end(), [&](const Cell& cell) {
      return cell.key() == std::tie(task, memory, rate, seed);
    });
    return at == cells_.end() ? nullptr : &*at;
  }

  /// Adds a run and writes the file anew. Throws infty::IoError.
  void add(Cell cell) {
    cells_.push_back(std::move(cell));
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << header << '\n';
    // The shortest digits that are read as the same number.
    const auto number = [](double x) { return nlohmann::json(x).dump(); };
    for (const Cell& c : cells_)
      out << c.task << ',' << c.memory << ',' << number(c.rate) << ',' << c.seed << ','
          << c.parameters << ',' << c.bytes << ',' << number(c.loss) << ',' << number(c.validation)
          << ',' << number(c.accuracy) << ',' << number(c.seconds) << '\n';
    support::write_file(path_, out.str());
  }

  /// The rate of all tried with a seed that had the best accuracy on the sequences for choosing.
  double best_rate(const Settings& s, const std::string& task, const std::string& memory) const {
    const Cell* best = nullptr;
    for (const double rate : s.rates) {
      const Cell* const cell = find(task, memory, rate, s.seeds.front());
      if (cell && (!best || cell->validation > best->validation)) best = cell;
    }
    return best ? best->rate : s.rates.front();
  }

 private:
  static constexpr const char* header =
      "task,memory,rate,seed,parameters,bytes,loss,validation,accuracy,seconds";

  Cell parsed(std::string_view line) const {
    std::string_view left = line;
    const auto next = [&left] {
      const std::string_view field = left.substr(0, left.find(','));
      left.remove_prefix(std::min(field.size() + 1, left.size()));
      return field;
    };
    bool good = std::count(line.begin(), line.end(), ',') == 9;
    const auto read = [&]<class T>(T& to) {
      const std::string_view field = next();
      const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), to);
      good = good && error == std::errc() && end == field.data() + field.size();
      if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(to);
    };
    Cell c;
    c.task = next();
    c.memory = next();
    read(c.rate);
    read(c.seed);
    read(c.parameters);
    read(c.bytes);
    read(c.loss);
    read(c.validation);
    read(c.accuracy);
    read(c.seconds);
    infty::require<infty::IoError>(good, "recall", path_.string(), ": ",
                                   infty::detail::printable(line), " is no run");
    return c;
  }

  std::filesystem::path path_;
  std::vector<Cell> cells_;
};

/// `0.123 ± 0.045`: mean and standard deviation, the latter of at least two.
inline std::string mean_and_spread(const std::vector<double>& all) {
  double mean = 0, square = 0;
  for (const double x : all) mean += x / static_cast<double>(all.size());
  for (const double x : all) square += (x - mean) * (x - mean);
  char text[64];
  if (all.size() < 2)
    std::snprintf(text, sizeof text, "%.3f", mean);
  else
    std::snprintf(text, sizeof text, "%.3f ± %.3f", mean,
                  std::sqrt(square / static_cast<double>(all.size() - 1)));
  return text;
}

/// The accuracies of a memory in a task, seed by seed, at the rate that was best for it there.
inline std::vector<double> accuracies(const Settings& s, const std::string& task,
                                      const std::string& memory, const Results& results) {
  std::vector<double> all;
  for (const std::uint64_t seed : s.seeds)
    if (const Cell* const cell =
            results.find(task, memory, results.best_rate(s, task, memory), seed))
      all.push_back(cell->accuracy);
  return all;
}

/// A table in Markdown: a row a memory, a column a task; accuracy, mean and standard deviation over
/// the seeds, at the rate that was best for this memory and task. Behind it, the fixed comparisons.
inline std::string table(const Settings& s, const std::vector<Task>& tasks,
                         const Results& results) {
  std::string out = "| memory | bytes a row |";
  for (const Task& task : tasks) out += ' ' + task.name + " |";
  out += "\n|---|---|";
  for (std::size_t i = 0; i < tasks.size(); ++i) out += "---|";
  out += "\n| (guessing) | |";
  for (const Task& task : tasks) out += ' ' + mean_and_spread({task.chance}) + " |";
  for (const std::string& memory : s.memories) {
    std::string row;
    std::size_t bytes = 0;
    for (const Task& task : tasks) {
      const double rate = results.best_rate(s, task.name, memory);
      const std::vector<double> accuracy = accuracies(s, task.name, memory, results);
      for (const std::uint64_t seed : s.seeds)
        if (const Cell* const cell = results.find(task.name, memory, rate, seed))
          bytes = std::max(bytes, cell->bytes);
      char at[32];
      std::snprintf(at, sizeof at, " (%g) |", rate);
      row += ' ' + (accuracy.empty() ? "-" : mean_and_spread(accuracy)) + at;
    }
    out += "\n| " + memory + " | " + std::to_string(bytes) + " |" + row;
  }
  std::vector<support::Comparison> comparisons;
  for (const Task& task : tasks)
    for (const auto& [memory, reference] : support::fixed_pairs(s.memories))
      comparisons.push_back({task.name, memory, reference,
                             accuracies(s, task.name, memory, results),
                             accuracies(s, task.name, reference, results)});
  return out + '\n' + support::verdicts(comparisons, false);
}

}  // namespace recall
