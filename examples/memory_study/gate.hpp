// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <infty/core/error.hpp>

#include "../support/csv.hpp"

namespace memory_study {

/// How often a gate has which value, in even bins of [0, 1].
class GateHistogram {
 public:
  explicit GateHistogram(infty::Index bins) : counts_(static_cast<std::size_t>(bins)) {}

  /// Adds values. Throws infty::ValueError for one that is none of a gate.
  void add(const std::vector<float>& values) {
    const auto bins = static_cast<double>(counts_.size());
    for (const float value : values) {
      const double g = value;
      infty::require(g >= 0 && g <= 1, "memory_study", "a gate is ", g, ": it must lie in [0, 1]");
      ++counts_[std::min(counts_.size() - 1, static_cast<std::size_t>(g * bins))];
      sum_ += g;
      ++all_;
    }
  }

  double all() const { return all_; }
  double mean() const { return sum_ / all_; }

  /// The shares of the bins.
  std::string csv() const {
    support::Csv out("from,to,share");
    const auto bins = static_cast<double>(counts_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i)
      out.row(static_cast<double>(i) / bins, static_cast<double>(i + 1) / bins, counts_[i] / all_);
    return out.text();
  }

  /// Gnuplot commands that draw NAME.png of NAME.csv, where `one` is what a gate of 1 stands for.
  static std::string figure(const std::string& name, const std::string& title,
                            const std::string& one) {
    return "set terminal pngcairo size 800,460 font 'sans,11'\nset output '" + name +
           ".png'\nset datafile separator ','\nset border 3\nset tics nomirror out\n"
           "set grid y lc '#e7e5e4'\nset xrange [0:1]\nset yrange [0:*]\nunset key\nset title '" +
           title + "'\nset xlabel 'gate: " + one +
           "'\nset ylabel 'share of the words'\nset style fill solid .8 noborder\nplot '" + name +
           ".csv' skip 1 using (($1+$2)/2):3:($2-$1) with boxes lc '#c2410c'\n";
  }

 private:
  std::vector<double> counts_;
  double sum_ = 0, all_ = 0;
};

}  // namespace memory_study
