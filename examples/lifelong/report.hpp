// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "../support/comparison.hpp"
#include "../support/csv.hpp"
#include "../support/files.hpp"
#include "run.hpp"

namespace lifelong {

/// The runs that are done, in a folder.
using Results = support::FinishedRuns<Cell>;

/// Those of a method, all orders of a seed behind those of the seed before.
inline std::vector<const Cell*> cells_of(const Settings& s, const Results& results,
                                         const std::string& method) {
  std::vector<const Cell*> all;
  for (const std::uint64_t seed : s.seeds)
    for (const Index order : s.orders)
      if (const Cell* const cell = results.find(Run{method, order, seed}.name()))
        all.push_back(cell);
  return all;
}

/// A number of each run; only of one task where it is by task.
template <class F>
std::vector<double> numbers(const std::vector<const Cell*>& cells, F&& f) {
  std::vector<double> all;
  for (const Cell* const cell : cells) all.push_back(f(*cell));
  return all;
}

/// The mean of a number over the orders of each seed: what is compared.
inline std::vector<double> by_seed(const Settings& s, const std::vector<const Cell*>& cells) {
  std::vector<double> all;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i % s.orders.size() == 0) all.push_back(0);
    all.back() += cells[i]->accuracy / static_cast<double>(s.orders.size());
  }
  return all;
}

/// What the papers say is better than what, fixed beforehand: of mean accuracy.
inline std::vector<std::pair<std::string, std::string>> fixed_pairs(const Settings& s) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"ewc", "sequential"},       {"a-gem", "sequential"},      {"replay", "sequential"},
      {"mbpa", "sequential"},      {"mbpa++", "replay"},         {"mbpa++", "mbpa"},
      {"mbpa++", "mbpa++-random"}, {"meta-mbpa", "mbpa++"},      {"oml-er", "replay"},
      {"maml-er", "replay"},       {"anml-er", "replay"},        {"multitask", "meta-mbpa"},
      {"mbpa++-once", "mbpa++"},   {"meta-mbpa", "mbpa++-once"}, {"meta-mbpa-each", "mbpa++"}};
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto has = [&](const std::string& name) {
    return std::find(s.methods.begin(), s.methods.end(), name) != s.methods.end();
  };
  for (const auto& pair : all)
    if (has(pair.first) && has(pair.second)) pairs.push_back(pair);
  return pairs;
}

/// A table in Markdown: a row a method; accuracy behind the whole stream, by places of the tasks in
/// it and their mean, forgetting, what is known of a task before it comes, and the memory. Means
/// and standard deviations over orders and seeds, of the memory the means alone. Nothing is
/// forgotten nor known ahead where all tasks are learned at once. Behind it the comparisons.
inline std::string table(const Settings& s, Index tasks, Index classes, const Results& results) {
  std::string out = "| method | mean |", rule = "|---|---|";
  for (Index t = 1; t <= tasks; ++t) {
    out += " task " + std::to_string(t) + " |";
    rule += "---|";
  }
  out += " forgetting | ahead | examples held | their bytes |\n" + rule +
         "---|---|---|---|\n| (guessing) | " +
         support::mean_and_spread({1 / static_cast<double>(classes)}) + " |";
  for (Index t = 0; t < tasks + 4; ++t) out += " |";
  for (const std::string& method : s.methods) {
    const auto cells = cells_of(s, results, method);
    if (cells.empty()) continue;
    const auto column = [&](auto&& f) {
      out += ' ' + support::mean_and_spread(numbers(cells, f)) + " |";
    };
    out += "\n| " + method + " |";
    column([](const Cell& cell) { return cell.accuracy; });
    for (std::size_t t = 0; t < static_cast<std::size_t>(tasks); ++t)
      column([t](const Cell& cell) { return cell.matrix.at(cell.matrix.size() - 1).at(t); });
    if (method == "multitask") {
      out += " | |";
    } else {
      column([](const Cell& cell) { return cell.forgetting; });
      column([](const Cell& cell) { return cell.ahead; });
    }
    for (const Index Cell::*count : {&Cell::held, &Cell::bytes})
      out += ' ' +
             std::to_string(std::llround(support::spread_of(numbers(cells,
                                                                    [count](const Cell& cell) {
                                                                      return static_cast<double>(
                                                                          cell.*count);
                                                                    }))
                                             .mean)) +
             " |";
  }
  out += '\n';
  std::vector<support::Comparison> comparisons;
  for (const auto& [method, reference] : fixed_pairs(s)) {
    const auto of = cells_of(s, results, method), against = cells_of(s, results, reference);
    const std::size_t all = s.seeds.size() * s.orders.size();
    if (of.size() < all || against.size() < all) return out + support::no_verdicts;
    comparisons.push_back({"accuracy", method, reference, by_seed(s, of), by_seed(s, against)});
  }
  return out + support::verdicts(comparisons, false);
}

/// A table in Markdown of what methods cost: milliseconds a question, and seconds of a whole run.
inline std::string costs(const Settings& s, const Results& results) {
  std::string out = "| method | a question, ms | a run, s |\n|---|---|---|\n";
  for (const std::string& method : s.methods) {
    const auto cells = cells_of(s, results, method);
    if (cells.empty()) continue;
    out += "| " + method + " | " +
           support::mean_and_spread(
               numbers(cells, [](const Cell& c) { return 1000 * c.question_seconds; })) +
           " | " +
           support::mean_and_spread(numbers(cells, [](const Cell& c) { return c.seconds; })) +
           " |\n";
  }
  return out;
}

/// The data of the figure: mean accuracy by method, behind which task, of which task.
inline std::string matrix_csv(const Settings& s, const Results& results) {
  support::Csv csv("method,behind,task,accuracy");
  for (const std::string& method : s.methods) {
    const auto cells = cells_of(s, results, method);
    if (cells.empty()) continue;
    const std::size_t n = cells.front()->tasks.size();
    for (std::size_t t = 0; t < n; ++t)
      for (std::size_t j = 0; j < n; ++j)
        csv.row(method, t + 1, j + 1, support::spread_of(numbers(cells, [&](const Cell& c) {
                                        return c.matrix.at(t).at(j);
                                      })).mean);
  }
  return csv.text();
}

/// Writes matrix.csv and matrix.gp and draws matrix.png: a square a method, a row for each task
/// that was learned, from below, and a column for each that is asked about. Throws infty::IoError.
inline void draw_matrix(const Settings& s, Index tasks, const Results& results,
                        const std::filesystem::path& folder) {
  std::vector<std::string> shown;
  for (const std::string& method : s.methods)
    if (!cells_of(s, results, method).empty()) shown.push_back(method);
  if (shown.empty()) return;
  const std::size_t columns = std::min<std::size_t>(4, shown.size()),
                    rows = (shown.size() + columns - 1) / columns;
  const auto number = [](auto n) { return std::to_string(n); };
  const std::string last = number(tasks) + ".5";
  std::string out =
      "set terminal pngcairo size " + number(320 * columns) + ',' + number(300 * rows) +
      " font 'sans,10'\nset output 'matrix.png'\nset datafile separator ','\n"
      "set datafile missing NaN\nset palette defined (0 '#f7fbff', .5 '#6baed6', 1 '#08306b')\n"
      "set cbrange [0:1]\nset xrange [.5:" +
      last + "]\nset yrange [.5:" + last +
      "]\nset xtics 1 out nomirror\nset ytics 1 out nomirror\nset size square\n"
      "set xlabel 'asked about task'\nset ylabel 'behind task'\nunset key\n"
      "set style fill solid 1 noborder\n"
      "set multiplot layout " +
      number(rows) + ',' + number(columns) + '\n';
  for (const std::string& method : shown)
    out += "set title '" + method +
           "' noenhanced\nplot 'matrix.csv' skip 1 using 3:2:(.5):(.5):(strcol(1) eq '" + method +
           "' ? $4 : NaN) with boxxyerror lc palette, '' skip 1 using 3:2:(strcol(1) eq '" +
           method + "' ? sprintf('%.2f', $4) : '') with labels tc rgb '#d94801'\n";
  support::write_file(folder / "matrix.csv", matrix_csv(s, results));
  support::write_file(folder / "matrix.gp", out + "unset multiplot\n");
  support::draw_figure(folder, "matrix");
}

}  // namespace lifelong
