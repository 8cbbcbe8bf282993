// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "../support/comparison.hpp"
#include "../support/csv.hpp"
#include "comparison_runs.hpp"
#include "evaluation.hpp"

namespace sorting {

/// The accuracies of a model at a length, seed by seed, with the constants that were chosen.
inline std::vector<double> accuracies(const ComparisonSettings& s, const Runs& runs,
                                      const std::string& model, Index length) {
  std::vector<double> all;
  const Try best = best_try(s, runs, model, length);
  for (const std::uint64_t seed : s.compared.seeds)
    if (const Run* const run = find(runs, length, model, best, seed)) all.push_back(run->accuracy);
  return all;
}

/// What can be had without learning: guessing, and counting what `none` and what the others hold.
inline std::vector<Floor> floors_at(const ComparisonSettings& s, Index length) {
  const Settings at = settings_at(s, length, s.base.evaluation_seed);
  const Index held = at.short_term.capacity;
  std::vector<Floor> floors{chance_floor(at)};
  for (const Index window : {held, held + at.memory.basis})
    floors.push_back(counter_floor(at, "counter", std::min(window, length), [](Index) {}));
  return floors;
}

/// Numbers of a comparison, and what is made of them.
class ComparisonReport {
 public:
  ComparisonReport(const ComparisonSettings& settings, const Runs& runs)
      : s_(settings), runs_(runs) {
    for (const Index length : s_.compared.lengths) floors_.push_back(floors_at(s_, length));
  }

  /// In Markdown: a row a model, a column a length; accuracy, mean and standard deviation over the
  /// seeds. Then what was tried, and the comparisons that were fixed beforehand.
  std::string table() const {
    std::string out = "| model | vectors | parameters |", rule = "\n|---|---|---|";
    for (const Index length : s_.compared.lengths) {
      out += ' ' + std::to_string(length) + " |";
      rule += "---|";
    }
    out += rule;
    for (std::size_t i = 0; i < floors_.front().size(); ++i) {
      out += "\n| (" + floor_name(i) + ") | | |";
      for (const auto& floors : floors_)
        out += ' ' + support::mean_and_spread({floors[i].accuracy}) + " |";
    }
    for (const std::string& model : s_.base.models) out += '\n' + row(model);
    return out + '\n' + tried() + verdicts();
  }

  /// The figure's numbers: floors first, then the models, by rising length.
  std::string csv() const {
    support::Csv csv("length,model,accuracy,deviation,seeds,rate,weight");
    for (std::size_t i = 0; i < floors_.front().size(); ++i)
      for (const std::size_t at : order())
        csv.row(s_.compared.lengths[at], '(' + floor_name(i) + ')', floors_[at][i].accuracy, 0, 0,
                0, 0);
    for (const std::string& model : s_.base.models)
      for (const std::size_t at : order()) {
        const Index length = s_.compared.lengths[at];
        const auto all = accuracies(s_, runs_, model, length);
        if (all.empty()) continue;
        const Try best = best_try(s_, runs_, model, length);
        const support::Spread spread = support::spread_of(all);
        csv.row(length, model, spread.mean, spread.deviation, all.size(), best.rate, best.weight);
      }
    return csv.text();
  }

  /// Gnuplot commands that draw lengths.png of lengths.csv.
  std::string figure() const {
    const std::vector<std::string> colours{"#c2410c", "#7c3aed", "#1d4ed8", "#15803d", "#0891b2",
                                           "#be185d", "#a16207", "#4d7c0f", "#111827"};
    const auto& lengths = s_.compared.lengths;
    std::ostringstream gp;
    gp << "set terminal pngcairo size 800,500 font 'sans,11'\nset output 'lengths.png'\n"
          "set datafile separator ','\nset border 3\nset tics nomirror out\n"
          "set title 'Sorting symbols of sequences of several lengths, "
       << s_.compared.seeds.size() << (s_.compared.seeds.size() == 1 ? " seed" : " seeds")
       << "'\nset xlabel 'symbols in a sequence'\nset ylabel 'accuracy under teacher forcing'\n"
          "set logscale x 2\nset xrange ["
       << static_cast<double>(std::ranges::min(lengths)) / 1.2 << ':'
       << static_cast<double>(std::ranges::max(lengths)) * 1.2
       << "]\nset yrange [0:1]\nset xtics (";
    for (std::size_t i = 0; i < lengths.size(); ++i) gp << (i > 0 ? ", " : "") << lengths[i];
    gp << ")\nset key outside right top Left reverse samplen 2\nplot \\\n";
    for (std::size_t i = 0; i < s_.base.models.size(); ++i) {
      const std::string& model = s_.base.models[i];
      gp << "  'lengths.csv' using 1:(strcol(2) eq '" << model
         << "' ? $3 : NaN):4 with yerrorlines lw 2.5 pt 7 lc '" << colours[i % colours.size()]
         << "' title '" << model << "', \\\n";
    }
    for (std::size_t i = 0; i < floors_.front().size(); ++i)
      gp << "  'lengths.csv' using 1:(strcol(2) eq '(" << floor_name(i)
         << ")' ? $3 : NaN) with lines dt " << i + 2 << " lw 1.5 lc '#555555' title '"
         << floor_name(i) << "', \\\n";
    gp << "  NaN notitle\n";
    return gp.str();
  }

 private:
  /// The places of the lengths by rising length.
  std::vector<std::size_t> order() const {
    std::vector<std::size_t> places(s_.compared.lengths.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    std::ranges::sort(places, {}, [&](std::size_t i) { return s_.compared.lengths[i]; });
    return places;
  }

  /// Where all lengths have more symbols than it counts, the floor's own name.
  std::string floor_name(std::size_t i) const {
    const auto longest =
        std::ranges::max_element(s_.compared.lengths) - s_.compared.lengths.begin();
    return floors_[static_cast<std::size_t>(longest)][i].what;
  }

  std::string row(const std::string& model) const {
    std::string out;
    Index least = 0, most = 0;
    for (const Index length : s_.compared.lengths) {
      const Try best = best_try(s_, runs_, model, length);
      const auto all = accuracies(s_, runs_, model, length);
      out += ' ' + (all.empty() ? "-" : support::mean_and_spread(all));
      if (best.rate > 0)
        out += " (" + std::to_string(best.rate) + ", " + nlohmann::json(best.weight).dump() + ')';
      out += " |";
      for (const std::uint64_t seed : s_.compared.seeds)
        if (const Run* const run = find(runs_, length, model, best, seed)) {
          least = least == 0 ? run->parameters : std::min(least, run->parameters);
          most = std::max(most, run->parameters);
        }
    }
    const Index vectors = chosen_model(s_.base, model).memory_length;
    return "| " + model + " | " + std::to_string(vectors) + " | " +
           (least == most ? "" : std::to_string(least) + " to ") + std::to_string(most) + " |" +
           out;
  }

  /// What a choice was made of, if there was any.
  std::string tried() const {
    std::string rows;
    for (const std::string& model : s_.base.models)
      for (const Index length : s_.compared.lengths) {
        const auto tries = tries_of(s_, model, length);
        for (const Try& one : tries)
          if (const Run* const run = find(runs_, length, model, one, s_.compared.seeds.front());
              run && tries.size() > 1)
            rows += "\n| " + std::to_string(length) + " | " + std::to_string(one.rate) + " | " +
                    nlohmann::json(one.weight).dump() + " | " +
                    support::mean_and_spread({run->validation}) + " | " +
                    support::mean_and_spread({run->accuracy}) + " |";
      }
    if (rows.empty()) return "";
    return "\nCompressive Transformers, seed " + std::to_string(s_.compared.seeds.front()) +
           ": the best on the sequences for choosing is taken; above, its rate and weight in "
           "brackets.\n\n| length | rate | weight of the reconstruction | for choosing | others "
           "|\n|---|---|---|---|---|" +
           rows + '\n';
  }

  /// Of the comparisons that were fixed beforehand, when all their runs are done.
  std::string verdicts() const {
    std::vector<support::Comparison> all;
    for (const Index length : s_.compared.lengths)
      for (const auto& [model, reference] : support::fixed_pairs(s_.base.models)) {
        all.push_back({"length " + std::to_string(length), model, reference,
                       accuracies(s_, runs_, model, length),
                       accuracies(s_, runs_, reference, length)});
        const std::size_t seeds = s_.compared.seeds.size();
        if (all.back().of_memory.size() != seeds || all.back().of_reference.size() != seeds ||
            !all_tried(s_, runs_, model, length) || !all_tried(s_, runs_, reference, length))
          return support::no_verdicts;
      }
    return support::verdicts(all, false);
  }

  const ComparisonSettings& s_;
  const Runs& runs_;
  std::vector<std::vector<Floor>> floors_;  ///< of each length
};

}  // namespace sorting
