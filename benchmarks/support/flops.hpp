// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/attention.hpp>

/// What there is to compute, in one place. Only products that the mathematics asks for count,
/// a multiplication and an addition each: nothing that is computed twice, no exponentials, and all
/// of a dense product even where a kernel leaves out terms that are lost in rounding.
namespace infty::bench {

/// (m, k) times (k, n).
inline double product_flops(Index m, Index n, Index k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

/// A long-term memory that takes in and is asked by B rows of L vectors: N basis functions, width d
/// of the vectors and e of all heads.
struct LongTermFlops {
  Index batch, length, basis, dim, inner;

  /// The gate's convolution of width 3, A B and Gᵀ X of a later write.
  double write() const {
    return each(3 * product_flops(length, dim, dim) + product_flops(basis, dim, basis) + fit());
  }
  /// Values, expectations times values, output.
  double read() const { return each(values() + expectation() + output()); }
  /// The gate's weights and its input; the fit's input. Nothing goes back to the old coefficients.
  double write_backward() const { return each(6 * product_flops(length, dim, dim) + fit()); }
  /// Both factors of each of the three products.
  double read_backward() const { return 2 * read(); }

 private:
  double each(double flops) const { return static_cast<double>(batch) * flops; }
  double fit() const { return product_flops(basis, dim, length); }
  double values() const { return product_flops(basis, inner, dim); }
  double expectation() const { return product_flops(length, inner, basis); }
  double output() const { return product_flops(length, dim, inner); }
};

/// Attention with relative positions, by the pairs of a query and a key that it may see: forward
/// the scores by content and by position, and the values; backward both factors of these three.
struct AttentionFlops {
  AttentionSize size;

  double forward() const { return 3 * product(); }
  double backward() const { return 6 * product(); }

 private:
  double product() const {
    const auto l = static_cast<double>(size.queries), m = static_cast<double>(size.memory());
    return 2.0 * static_cast<double>(size.batch * size.model()) * (l * m + l * (l + 1) / 2);
  }
};

/// One segment of B rows of L tokens through a layer of a transformer whose short-term memory is
/// full and whose long-term memory, if there is one, takes in as many vectors as come.
inline double layer_flops(const TransformerConfig& c, Index batch, Index length, bool backward) {
  const Index d = c.model_dim, e = c.heads * c.resolved_head_dim();
  const Index rows = batch * length, context = batch * (c.short_term + length);
  // Queries and output; keys and values, with no way back into the short-term memory; the two maps
  // of the feed-forward network. Encodings of positions are mapped once for all rows.
  const double maps = 2 * product_flops(rows, e, d) + 2 * product_flops(context, e, d) +
                      2 * product_flops(rows, c.feed_forward, d) +
                      product_flops(c.short_term + length, e, d);
  const double back = 4 * product_flops(rows, e, d) + 2 * product_flops(context, e, d) +
                      2 * product_flops(rows, e, d) + 4 * product_flops(rows, c.feed_forward, d) +
                      product_flops(c.short_term + length, e, d);
  const AttentionFlops attention{
      {batch, length, c.short_term + length, c.heads, c.resolved_head_dim()}};
  double flops = maps + attention.forward() + (backward ? back + attention.backward() : 0);
  if (c.long_term) {
    const LongTermFlops memory{batch, length, c.long_term->basis, d, e};
    flops += memory.write() + memory.read();
    // What is written comes from the segment before, where no gradient goes.
    if (backward)
      flops += memory.write_backward() - 3 * product_flops(rows, d, d) + memory.read_backward();
  }
  return flops;
}

/// A training step of the sorting experiment: `observed` segments that move the memories on, for
/// which the last layer's answer is not needed, then a segment that is learned from.
inline double training_step_flops(const TransformerConfig& c, Index batch, Index length,
                                  Index observed) {
  const auto layers = static_cast<double>(c.layers);
  const double write =
      c.long_term ? LongTermFlops{batch, length, c.long_term->basis, c.model_dim, 0}.write() : 0;
  return static_cast<double>(observed) *
             ((layers - 1) * layer_flops(c, batch, length, false) + write) +
         layers * layer_flops(c, batch, length, true) +
         3 * product_flops(batch * length, c.vocabulary, c.model_dim);
}

}  // namespace infty::bench
