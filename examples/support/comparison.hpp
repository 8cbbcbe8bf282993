// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <infty/metrics/paired_difference.hpp>

#include "decimal.hpp"

namespace support {

/// A comparison that was fixed before anything was measured: a memory against a reference, by the
/// same seeds in the same order.
struct Comparison {
  std::string what;  ///< is measured
  std::string memory, reference;
  std::vector<double> of_memory = {}, of_reference = {};
};

/// A mean and a standard deviation; the latter is 0 of less than two.
struct Spread {
  double mean = 0, deviation = 0;
};

inline Spread spread_of(const std::vector<double>& all) {
  Spread out;
  double square = 0;
  for (const double x : all) out.mean += x / static_cast<double>(all.size());
  for (const double x : all) square += (x - out.mean) * (x - out.mean);
  if (all.size() > 1) out.deviation = std::sqrt(square / static_cast<double>(all.size() - 1));
  return out;
}

/// `0.123 ± 0.045`: mean and standard deviation, the latter of at least two.
inline std::string mean_and_spread(const std::vector<double>& all) {
  const Spread spread = spread_of(all);
  const std::string mean = decimal(spread.mean, 3);
  return all.size() < 2 ? mean : mean + " ± " + decimal(spread.deviation, 3);
}

/// Which of these memories are compared, in that order: each with none, and all others with the
/// Transformer-XL's.
inline std::vector<std::pair<std::string, std::string>> fixed_pairs(
    const std::vector<std::string>& memories) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string reference : {"none", "xl"}) {
    if (std::find(memories.begin(), memories.end(), reference) == memories.end()) continue;
    for (const std::string& memory : memories)
      if (memory != "none" && memory != reference) pairs.emplace_back(memory, reference);
  }
  return pairs;
}

/// What stands for the comparisons while runs of them are missing.
inline constexpr const char* no_verdicts =
    "\nRuns are missing: before they are done there is no verdict.\n";

/// The comparisons in Markdown, behind an empty line: differences by seed, intervals that hold for
/// all of them together, and what they tell. Empty if there are none.
/// @param less_is_better  whether less of what is measured is
inline std::string verdicts(const std::vector<Comparison>& all, bool less_is_better) {
  if (all.empty()) return "";
  constexpr double error_rate = .05;
  const auto count = static_cast<infty::Index>(all.size());
  const auto seeds = static_cast<infty::Index>(all.front().of_memory.size());
  const auto number = [](double x) {
    // A literal in front of a string makes GCC 12 warn of what it has inlined, with -O3.
    return std::string(std::signbit(x) ? "" : "+") + decimal(x, 4);
  };
  std::string rows;
  for (const Comparison& one : all) {
    const auto found = infty::paired_difference(one.of_memory, one.of_reference, count, error_rate);
    std::string by_seed;
    for (std::size_t i = 0; i < one.of_memory.size(); ++i)
      by_seed += (i > 0 ? ", " : "") + number(one.of_memory[i] - one.of_reference[i]);
    const bool better = less_is_better ? found.mean < 0 : found.mean > 0;
    rows += "| " + one.what + " | " + one.memory + " - " + one.reference + " | " + by_seed + " | " +
            number(found.mean) + " | " +
            (seeds < 3 ? "none" : '[' + number(found.low) + ", " + number(found.high) + ']') +
            " | " +
            (seeds < 3 ? "no verdict: " + std::to_string(seeds) + (seeds == 1 ? " seed" : " seeds")
             : found.decided() ? one.memory + (better ? " is better" : " is worse")
                               : "no verdict") +
            " |\n";
  }
  std::string text =
      "\n| measured | difference | by seed | mean | interval | |\n|---|---|---|---|---|---|\n" +
      rows + '\n';
  if (seeds < 3) return text + "Fewer than three seeds tell nothing apart.\n";
  char factor[32];
  std::snprintf(factor, sizeof factor, "%.3g",
                infty::student_bound(1 - error_rate / static_cast<double>(count), seeds - 1));
  return text +
         "The comparisons were fixed beforehand and are paired by seed. Each interval is the "
         "mean ± " +
         factor + " standard errors (Student's t, " + std::to_string(seeds - 1) +
         " degrees of freedom), so that all " + std::to_string(count) +
         " hold together with 95 %: of equal memories, 5 % of such tables at most tell any apart "
         "(Bonferroni). More seeds make them narrower.\n";
}

}  // namespace support
