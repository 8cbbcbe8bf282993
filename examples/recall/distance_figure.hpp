// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "../support/files.hpp"
#include "curves.hpp"
#include "distances.hpp"
#include "report.hpp"

// The figure of accuracy against distance: for how long a fact is known.

namespace recall {

/// Answers at every distance, those of all seeds together; at the size of the table and the rate
/// that was best at the distances of training.
inline std::vector<DistancePoint> distances_of(const Settings& s, const Task& task,
                                               const std::string& memory, const Results& results) {
  std::vector<DistancePoint> points;
  const std::set<Index> rising(task.distances.begin(), task.distances.end());
  for (const Index distance : rising) {
    DistancePoint sum{.distance = distance};
    for (const DistancePoint& point : points_at(s, task, memory, results, distance)) {
      sum.right += point.right;
      sum.asked += point.asked;
    }
    if (sum.asked > 0) points.push_back(sum);
  }
  return points;
}

/// What the files of a task with distances are called.
inline std::string far_name(const Task& task) { return support::run_name(task.name); }

/// Its data: a line for every memory and distance, with Wilson's interval of 95 % for questions
/// that are independent, as those of one seed are; seeds differ by more.
inline std::string distances_csv(const Settings& s, const Task& task, const Results& results) {
  support::Csv csv("task,memory,distance,right,asked,accuracy,low,high,seeds");
  for (const std::string& memory : s.memories)
    for (const DistancePoint& point : distances_of(s, task, memory, results)) {
      const Interval interval = wilson(point.right, point.asked);
      csv.row(task.name, memory, point.distance, point.right, point.asked,
              static_cast<double>(point.right) / static_cast<double>(point.asked), interval.low,
              interval.high, results.seeds(s, task.name, memory, s.bytes).size());
    }
  return csv.text();
}

/// Gnuplot commands that draw NAME.png of NAME.csv: a part for every family of memories, with the
/// Transformer-XL, guessing, and the furthest distance of training for comparison.
inline std::string distance_figure(const Settings& s, const Task& task, const Results& results) {
  const auto columns = families(s);
  const auto number = [](auto n) { return std::to_string(n); };
  const std::string name = far_name(task), data = "'" + name + ".csv'";
  const bool needle = task.name == "needle";
  const std::string trained = number(std::max<Index>(1, needle ? s.needle_trained : task.length));
  std::string out =
      "set terminal pngcairo size " + number(std::max<std::size_t>(640, 420 * columns.size())) +
      ",420 font 'sans,10'\nset output '" + name +
      ".png'\nset datafile separator ','\n"
      "set datafile missing NaN\nset border 3\nset tics nomirror out\nset grid y lc '#dddddd'\n"
      "set logscale x 2\nset format x '%.0b%B'\nset xtics rotate by -45\nset yrange [0:1.02]\n"
      "set xlabel '" +
      (needle ? "tokens between facts and question" : "symbols in a sequence") +
      "'\nset ylabel 'accuracy'\nset key outside right center samplen 2\nset arrow from first " +
      trained + ",graph 0 to first " + trained +
      ",graph 1 nohead dt 3 lc '#888888'\n"
      "of(memory) = strcol(2) eq memory ? $6 : NaN\n"
      "set multiplot layout 1," +
      number(columns.size()) + '\n';
  const auto has = [&](const std::string& memory) {
    return std::find(s.memories.begin(), s.memories.end(), memory) != s.memories.end() &&
           !distances_of(s, task, memory, results).empty();
  };
  for (const Family& family : columns) {
    out += "set title '" + task.name + (family.title.empty() ? "" : ": " + family.title) +
           "'\nplot " + number(task.chance) + " with lines dt 3 lc '#888888' title 'guessing'";
    const auto curve = [&](const std::string& memory, const std::string& style) {
      if (!has(memory)) return;
      const std::string of = "(of('" + memory + "'))";
      out += ", \\\n  " + data + " skip 1 using ($3 > 0 ? $3 : 1):" + of + ":7:8 with yerrorbars " +
             style + " notitle, '' skip 1 using ($3 > 0 ? $3 : 1):" + of + " with linespoints " +
             style + " title '" + memory + "'";
    };
    curve(control, "pt 6 ps .6 lw 2 dt 2 lc '#888888'");
    curve("xl", "pt 7 ps .6 lw 2 lc '#888888'");
    int colour = 0;
    for (const std::string& memory : family.memories)
      curve(memory, "pt 7 ps .6 lw 2 lc " + number(++colour));
    out += '\n';
  }
  return out + "unset multiplot\n";
}

/// Writes NAME.csv and NAME.gp and draws NAME.png of every task with distances: `needle`, and
/// `sorting-128` where sorting is tested at other lengths. Throws infty::IoError.
inline void draw_distances(const Settings& s, const std::vector<Task>& tasks,
                           const Results& results, const std::filesystem::path& folder) {
  for (const Task& task : tasks) {
    if (task.distances.empty()) continue;
    const std::string name = far_name(task);
    support::write_file(folder / (name + ".csv"), distances_csv(s, task, results));
    support::write_file(folder / (name + ".gp"), distance_figure(s, task, results));
    support::draw_figure(folder, name);
  }
}

}  // namespace recall
