// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "settings.hpp"

namespace sorting {

/// What a comparison of models at several lengths has beside the settings of one model.
struct Compared {
  std::vector<Index> lengths;
  std::vector<std::uint64_t> seeds{1, 2, 3};
  std::vector<Index> compression_rates{2, 6, 12};
  std::vector<double> auxiliary_weights{1, 0};
};

/// Calls see(group, name, field, help) for every one.
template <class See>
void each_setting(Compared& c, See&& see) {
  const char* const group = "Comparing models at several lengths";
  see(group, "lengths", c.lengths,
      "compares the models at these; where xl or compressive is one of them, at 500,1000,2000");
  see(group, "seeds", c.seeds, "of weights and sequences; `compressive` is chosen by the first");
  see(group, "compression-rates", c.compression_rates,
      "of `compressive`, tried in this order until one makes room for the length");
  see(group, "auxiliary-weights", c.auxiliary_weights,
      "of its reconstruction loss, each tried with each rate");
}

/// Everything that decides which numbers come out of a comparison. The defaults are an eighth of
/// the paper's sizes and lengths [Martins et al. 2022, §4.1] with the demo's transformer, and as
/// many symbols as the highest rate has vectors, so that answers make some be compressed.
struct ComparisonSettings {
  Settings base = [] {
    Settings s;
    s.models = {"infty", "sticky", "xl", "compressive", "none"};
    s.task.symbols = 12;
    s.segment = 128;
    s.short_term.capacity = 128;
    s.memory.basis = 128;
    s.memory.widths = {.02, .1};
    s.memory.samples = 128;
    s.steps = 1200;
    return s;
  }();
  Compared compared{.lengths = {500, 1000, 2000}};
};

/// What a comparison has none of, for it is of one length, one seed or another kind of model.
inline const std::set<std::string_view> of_one_length{"seed",    "length", "functions",
                                                      "density", "sticky", "evaluation-seed",
                                                      "bins",    "shards", "reduce"};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(ComparisonSettings& s, See&& see) {
  each_setting(s.base, [&](const char* group, const char* name, auto& field, const char* help,
                           const auto&... choices) {
    if (!of_one_length.contains(name)) see(group, name, field, help, choices...);
  });
  each_setting(s.compared, see);
}

/// Whether these are settings of a comparison.
inline bool is_comparison(const Settings& s, const Compared& compared) {
  return !compared.lengths.empty() || std::ranges::any_of(s.models, is_compared_only);
}

/// The settings of one of the lengths and seeds.
inline Settings settings_at(const ComparisonSettings& s, Index length, std::uint64_t seed) {
  Settings at = s.base;
  at.task.length = length;
  at.seed = seed;
  return at;
}

/// Throws infty::ValueError that names the first setting out of its range, or what needs more
/// memory than there is.
inline void validate(const ComparisonSettings& settings) {
  support::validate_ranges("sorting", settings);
  const Compared& c = settings.compared;
  support::require_some_once("sorting", "lengths", c.lengths);
  support::require_some_once("sorting", "seeds", c.seeds);
  support::require_some_once("sorting", "compression-rates", c.compression_rates);
  support::require_some_once("sorting", "auxiliary-weights", c.auxiliary_weights);
  support::require_memory("sorting", settings, [](const ComparisonSettings& s) {
    const auto rate = std::ranges::max(s.compared.compression_rates);
    double most = 0;
    for (const Index length : s.compared.lengths)
      for (const std::string& name : s.base.models)
        most = std::max(most, bytes_of(settings_at(s, length, 0), name, rate));
    return most;
  });
  for (const Index length : c.lengths) check(settings_at(settings, length, 0));
}

}  // namespace sorting
