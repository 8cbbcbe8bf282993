// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/math.hpp>

namespace infty {

/// The constants of an `Engram`, a lookup of vectors by hashed n-grams [DeepSeek 2026, "Conditional
/// Memory via Scalable Lookup"]. Defaults are those of the authors' program engram_demo_v1.py,
/// class EngramConfig, where the comment says nothing else.
struct EngramConfig {
  /// The compressed id of every token, as `compressed_vocabulary` finds it: tokens that a reader
  /// takes for the same word share one. Ids are small numbers from 0.
  std::vector<Index> lookup = {};
  Index pad = 2;        ///< the token that stands at places in front of the first
  Index max_ngram = 3;  ///< N: the last 2, ..., N tokens are looked up at each place
  Index heads = 8;      ///< tables of each n, with hashes of their own
  Index width = 512;    ///< of what is found for each n, its heads side by side
  /// Rows of a table of each n; it has the next prime number of them that no other table has.
  std::vector<Index> table_sizes = {646400, 646400};
  Index layer = 1;  ///< this layer's number in the model, which its multipliers are drawn by
  /// All layers of the model that have tables: they take primes one after the other, in this order.
  /// Empty: this one alone.
  std::vector<Index> layers = {};
  Index seed = 0;  ///< of the multipliers
  /// Odd multipliers of the hashes, from the current token's backwards; empty: drawn from seed and
  /// layer as the program does.
  std::vector<Index> multipliers = {};
  Index kernel = 4;    ///< taps of the convolution
  Index dilation = 0;  ///< places between these; 0: max_ngram, as in the program
  Index branches =
      1;  ///< of the residual stream, each with keys and norms of its own; the paper: 4
  /// The gate is sigmoid(√|s| sign s), as in the program; if not, sigmoid(s), as the paper prints.
  bool gate_root = false;
  double gate_floor = 1e-6;  ///< least |s| under that root
  double gate_epsilon = 0;   ///< of the norms in the gate; 0: the scalar's smallest step at 1
  double epsilon = 1e-5;     ///< of the norm in front of the convolution
  /// The convolution's taps are drawn, as in the program; if not, they begin as zeros, as in the
  /// paper, and nothing but the gated values is added.
  bool draw_taps = false;

  /// How many different compressed ids there are: the largest and 1; 0 without any.
  Index compressed() const {
    return lookup.empty() ? 0 : *std::max_element(lookup.begin(), lookup.end()) + 1;
  }
  /// Tables in all.
  Index tables() const { return (max_ngram - 1) * heads; }
  /// Places between the taps of the convolution.
  Index step() const { return dilation > 0 ? dilation : max_ngram; }
  /// Places before the current one that the convolution sees.
  Index reach() const { return (kernel - 1) * step(); }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    constexpr const char* op = "EngramConfig";
    // A state holds ids as numbers of a float, and a hash multiplies them.
    constexpr Index most_ids = (Index{1} << 24) - 2, most_tables = Index{1} << 16,
                    most_rows = Index{1} << 32, most_layers = Index{1} << 10;
    require(!lookup.empty(), op, "lookup is empty: it must have the compressed id of every token");
    for (const Index id : lookup)
      require(0 <= id && id < most_ids, op, "lookup has ", id, ": ids must lie in [0, ", most_ids,
              ")");
    const auto vocabulary = static_cast<Index>(lookup.size());
    require(0 <= pad && pad < vocabulary, op, "pad is ", pad, ": it must be one of the ",
            vocabulary, " tokens of lookup");
    require(2 <= max_ngram && max_ngram <= most_tables, op, "max_ngram is ", max_ngram,
            ": it must be 2 to ", most_tables);
    require(1 <= heads && heads <= most_tables / (max_ngram - 1), op, "heads is ", heads,
            ", max_ngram ", max_ngram, ": there must be 1 to ", most_tables, " tables");
    require_at_least(op, "width", width, 1);
    require(width % heads == 0, op, "width is ", width, ", heads ", heads,
            ": heads must divide width");
    require(static_cast<Index>(table_sizes.size()) == max_ngram - 1, op, "table_sizes has ",
            table_sizes.size(), " numbers, max_ngram is ", max_ngram,
            ": there must be one for n = 2, ..., max_ngram");
    for (const Index size : table_sizes)
      require(1 <= size && size <= most_rows, op, "table_sizes has ", size, ": sizes must be 1 to ",
              most_rows);
    require_at_least(op, "layer", layer, 0);
    require_at_least(op, "seed", seed, 0);
    require(checked_multiply(layer, 10007).has_value() &&
                checked_add(*checked_multiply(layer, 10007), seed).has_value(),
            op, "layer is ", layer, ", seed ", seed, ": seed + 10007 layer must be a number");
    require(static_cast<Index>(layers.size()) <= most_layers, op, "layers has ", layers.size(),
            " numbers: there must be at most ", most_layers);
    require(layers.empty() || std::count(layers.begin(), layers.end(), layer) == 1, op,
            "layers does not have layer, which is ", layer, ", once");
    require(multipliers.empty() || static_cast<Index>(multipliers.size()) == max_ngram, op,
            "multipliers has ", multipliers.size(), " numbers, max_ngram is ", max_ngram,
            ": there must be as many, or none");
    const Index most = (std::numeric_limits<Index>::max)() / compressed();
    for (const Index m : multipliers)
      require(m > 0 && m % 2 == 1 && m <= most, op, "multipliers has ", m,
              ": they must be odd and 1 to ", most, ", so that products with ids are numbers");
    require_at_least(op, "kernel", kernel, 1);
    require_at_least(op, "dilation", dilation, 0);
    require_sizes(op, {{"kernel", kernel}, {"dilation", step()}});
    require_at_least(op, "branches", branches, 1);
    require_sizes(op, {{"branches", branches}});
    require_sizes(op, {{"width", width}, {"max_ngram", max_ngram}});
    require_within(op, "gate_floor", gate_floor, least_divisor, largest_constant);
    if (gate_epsilon != 0)
      require_within(op, "gate_epsilon", gate_epsilon, least_divisor, largest_constant);
    require_within(op, "epsilon", epsilon, least_divisor, largest_constant);
  }
};

}  // namespace infty
