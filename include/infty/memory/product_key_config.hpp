// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// What becomes of the sum of values that a product-key memory has read, y, behind it.
enum class ProductKeyOutput {
  sum,         ///< nothing [Lample et al. 2019]
  linear,      ///< W₂ y + b₂, for values of a width of their own [Berges et al. 2024]
  silu_gated,  ///< W₂ (y ⊙ silu(W₁ x + b₁)) + b₂, "Memory+" [Berges et al. 2024, §3.3]
};

/// Constants of a product-key memory. Defaults are those of Lample et al. 2019, §4, and of their
/// program (XLM); `presets::memory_plus` has those of Berges et al. 2024.
struct ProductKeyConfig {
  Index sub_keys = 512;  ///< n, keys of each half; there are n² slots [§4]
  Index heads = 4;       ///< whose sums are added; each has keys of its own [§4]
  Index k = 32;          ///< slots that a head reads [§4]
  Index key_dim = 512;   ///< of a head's query, both halves together, even [§3.1; XLM: 256]
  Index value_dim = 0;   ///< width of the values; 0: that of the model
  /// Widths of the query network's hidden layers, each with a ReLU behind it; none: one linear map.
  std::vector<Index> query_hidden = {};
  bool query_batch_norm = true;      ///< behind every map of the query network [§3.2]
  double batch_norm_momentum = .1;   ///< share of a batch in the running statistics (PyTorch's)
  double batch_norm_epsilon = 1e-5;  ///< added to the variance (PyTorch's)
  double input_dropout = 0;          ///< of what the query network sees, in [0, 1) [XLM]
  double query_dropout = 0;          ///< of the queries, in [0, 1) [XLM]
  double value_dropout = 0;          ///< of the sum of values, in [0, 1) [XLM]
  double key_bound = 0;              ///< keys are drawn from ±this; 0: 1 / √(key_dim / 2) [XLM]
  ProductKeyOutput output = ProductKeyOutput::sum;  ///< what becomes of the sum
  bool gate = false;  ///< times sigmoid(w · x + b), a number a place [Berges et al., program]
  bool row_gradients = true;  ///< the values' gradient, and Adam's step, are by rows: see `Adam`

  /// Checks all constants.
  /// @throws infty::ValueError that names the first that is out of its range
  void validate() const {
    constexpr const char* op = "ProductKeyConfig";
    require_at_least(op, "sub_keys", sub_keys, 1);
    require_at_least(op, "heads", heads, 1);
    require_at_least(op, "k", k, 1);
    require(k <= sub_keys, op, "k is ", k, ", sub_keys is ", sub_keys,
            ": a head finds its k among the best k of either half, so k must be at most sub_keys");
    require_at_least(op, "key_dim", key_dim, 2);
    require(key_dim % 2 == 0, op, "key_dim is ", key_dim,
            ": it must be even, for it is halved between the two sets of keys");
    require_at_least(op, "value_dim", value_dim, 0);
    require_sizes(op, {{"sub_keys", sub_keys}, {"sub_keys", sub_keys}, {"value_dim", value_dim}});
    require_sizes(op, {{"heads", heads}, {"sub_keys", sub_keys}, {"key_dim", key_dim}});
    require_sizes(op, {{"heads", heads}, {"k", k}});
    Index before = 1;
    for (const Index width : query_hidden) {
      require_at_least(op, "query_hidden", width, 1);
      require_sizes(op, {{"query_hidden", width}, {"the one before", before}});
      before = width;
    }
    require_sizes(op,
                  {{"heads", heads}, {"key_dim", key_dim}, {"the last of query_hidden", before}});
    require(math::is_finite(batch_norm_momentum) && batch_norm_momentum >= 0 &&
                batch_norm_momentum <= 1,
            op, "batch_norm_momentum is ", batch_norm_momentum, ": it must lie in [0, 1]");
    require(math::is_finite(batch_norm_epsilon) && batch_norm_epsilon >= 1e-30, op,
            "batch_norm_epsilon is ", batch_norm_epsilon, ": it must be finite and at least 1e-30");
    const auto dropout = [&](const char* name, double value) {
      require(math::is_finite(value) && value >= 0 && value < 1, op, name, " is ", value,
              ": it must lie in [0, 1)");
    };
    dropout("input_dropout", input_dropout);
    dropout("query_dropout", query_dropout);
    dropout("value_dropout", value_dropout);
    require_within(op, "key_bound", key_bound, 0, largest_constant);
  }

  /// Slots of the table, n².
  Index slots() const { return sub_keys * sub_keys; }
};

}  // namespace infty
