// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "../support/csv.hpp"
#include "../support/files.hpp"
#include "report.hpp"

// The figure of accuracy against the bytes of a state.

namespace recall {

/// Its data: a line for every task, memory and size of which there are runs, with how many.
inline std::string curves_csv(const Settings& s, const std::vector<Task>& tasks,
                              const Results& results) {
  support::Csv csv("task,memory,bytes,state_bytes,parameters,accuracy,deviation,seeds");
  for (const Task& task : tasks) {
    if (!in_curves(s, task)) continue;
    for (const std::string& memory : s.memories)
      for (const Index bytes : budgets(s, tasks)) {
        const auto cells = results.seeds(s, task.name, memory, bytes);
        if (cells.empty()) continue;
        const support::Spread spread = support::spread_of(accuracies(cells));
        csv.row(task.name, memory, bytes, cells.front()->bytes, cells.front()->parameters,
                spread.mean, spread.deviation, cells.size());
      }
  }
  return csv.text();
}

/// Memories that are drawn together; each part of the figure has the Transformer-XL for comparison.
struct Family {
  std::string title;
  std::vector<std::string> memories;
};

inline std::vector<Family> families(const Settings& s) {
  std::vector<Family> all{{"the line of the ∞-former", {}},
                          {"other memories beside attention", {}},
                          {"in the place of attention", {}},
                          {"memory tokens and lookups", {}}};
  const auto has = [](const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  };
  for (const std::string& memory : s.memories) {
    if (!has_sizes(memory) || memory == "xl") continue;
    const bool line = has(support::memory_names, memory) || support::is_infty(memory);
    const std::size_t at = line                                     ? 0
                           : has(support::all_memory_names, memory) ? 1
                           : has(support::mixer_names, memory)      ? 2
                                                                    : 3;
    all[at].memories.push_back(memory);
  }
  std::erase_if(all, [](const Family& family) { return family.memories.empty(); });
  if (all.empty()) all.push_back({"", {}});
  return all;
}

/// Gnuplot commands that draw curves.png of curves.csv: a row a task, a column a family. Grey are
/// the Transformer-XL, guessing, no memory, and the whole sequence at once.
inline std::string curves_figure(const Settings& s, const std::vector<Task>& tasks,
                                 const Results& results) {
  const auto columns = families(s);
  std::vector<const Task*> rows;
  for (const Task& task : tasks)
    if (in_curves(s, task)) rows.push_back(&task);
  const auto number = [](auto n) { return std::to_string(n); };
  // Room for the longest list of names below each, so that all panels are of one height.
  std::size_t names = 0;
  for (const Family& family : columns) names = std::max(names, family.memories.size());
  std::string tics;
  for (const Index bytes : budgets(s, tasks))
    tics += (tics.empty() ? "'" : ", '") +
            (bytes % 1024 == 0 ? number(bytes / 1024) : number(bytes) + " B") + "' " +
            number(bytes);
  std::string out =
      "set terminal pngcairo size " + number(std::max<std::size_t>(640, 420 * columns.size())) +
      ',' + number(540 * rows.size()) +
      " font 'sans,10'\nset output 'curves.png'\nset datafile separator ','\n"
      "set datafile missing NaN\nset border 3\nset tics nomirror out\nset grid y lc '#dddddd'\n"
      "set logscale x\nset yrange [0:1.02]\nset xlabel 'KiB of a row'\n"
      "set ylabel 'accuracy'\nset key bmargin center horizontal samplen 2\nset bmargin " +
      number(names + 9) +
      "\n"
      "of(task, memory) = strcol(1) eq task && strcol(2) eq memory ? $6 : NaN\n"
      "set xtics (" +
      tics + ")\nset multiplot layout " + number(rows.size()) + ',' + number(columns.size()) + '\n';
  for (const Task* const task : rows)
    for (const Family& family : columns) {
      out += "set title '" + task->name + ": " + family.title + "'\nplot " + number(task->chance) +
             " with lines dt 3 lc '#888888' title 'guessing'";
      const auto level = [&](const std::string& memory, const char* dash, const std::string& what) {
        const auto cells = results.seeds(s, task->name, memory, s.bytes);
        if (!cells.empty())
          out += ", \\\n  " + number(support::spread_of(accuracies(cells)).mean) +
                 " with lines dt " + dash + " lc '#888888' title '" + what + "'";
      };
      level("none", "2", "no memory");
      level(control, "4", "the whole sequence at once");
      int colour = 0;
      const auto curve = [&](const std::string& memory, const std::string& style) {
        // What is left out at all sizes has no points, of which gnuplot makes an error.
        if (std::ranges::all_of(budgets(s, tasks), [&](Index bytes) {
              return results.seeds(s, task->name, memory, bytes).empty();
            }))
          return;
        const std::string of = "(of('" + task->name + "','" + memory + "'))";
        out += ", \\\n  'curves.csv' skip 1 using 4:" + of + ":7 with yerrorbars " + style +
               " notitle, '' skip 1 using 4:" + of + " with linespoints " + style + " title '" +
               memory + "'";
      };
      if (std::find(s.memories.begin(), s.memories.end(), "xl") != s.memories.end())
        curve("xl", "pt 7 ps .6 lw 2 lc '#888888'");
      for (const std::string& memory : family.memories) {
        ++colour;
        curve(memory, "pt 7 ps .6 lw 2 lc " + number(colour));
      }
      out += '\n';
    }
  return out + "unset multiplot\n";
}

/// Writes curves.csv and curves.gp and draws curves.png. Throws infty::IoError.
inline void draw_curves(const Settings& s, const std::vector<Task>& tasks, const Results& results,
                        const std::filesystem::path& folder) {
  support::write_file(folder / "curves.csv", curves_csv(s, tasks, results));
  support::write_file(folder / "curves.gp", curves_figure(s, tasks, results));
  support::draw_figure(folder, "curves");
}

}  // namespace recall
