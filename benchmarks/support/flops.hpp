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
  double write() const { return carry() + each(3 * product_flops(length, dim, dim) + fit()); }
  /// A B, which a first write does without.
  double carry() const { return each(product_flops(basis, dim, basis)); }
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

/// B rows of L tokens through a layer of a transformer, behind so many vectors of short-term
/// memory, forward and, if asked for, backward; the long-term memory beside it is not counted.
inline double layer_flops(const TransformerConfig& c, Index batch, Index length, Index memory,
                          bool backward) {
  const Index d = c.model_dim, e = c.heads * c.resolved_head_dim();
  const Index rows = batch * length, keys = memory + length;
  // Queries and output, keys and values, the two maps of the feed-forward network, and those of the
  // encodings of distances, one for all rows. No gradient goes to the short-term memory.
  const double own = product_flops(rows, 2 * e + 2 * c.feed_forward, d);
  const double shared = product_flops(batch * keys, 2 * e, d) + product_flops(keys, e, d);
  const AttentionFlops attention{{batch, length, keys, c.heads, c.resolved_head_dim()}};
  const double forward = own + shared + attention.forward();
  if (!backward) return forward;
  return forward + 2 * own + shared + product_flops(rows, 2 * e, d) + attention.backward();
}

/// A training step of the sorting experiment: `observed` >= 2 segments of `length` tokens, as many
/// as the short-term memory holds, that move the memories on; then `answer` tokens that are learned
/// from. The last layer's answer to the former is not needed. A segment's vectors reach the
/// long-term memory two segments later; no gradient goes to what they were made from.
inline double training_step_flops(const TransformerConfig& c, Index batch, Index length,
                                  Index observed, Index answer) {
  const Index d = c.model_dim, e = c.heads * c.resolved_head_dim();
  double flops = 3 * product_flops(batch * answer, c.vocabulary, d);
  for (Index layer = 0; layer < c.layers; ++layer) {
    flops += layer_flops(c, batch, answer, length, true);
    const bool answers = layer + 1 < c.layers;
    for (Index segment = 0; answers && segment < observed; ++segment)
      flops += layer_flops(c, batch, length, segment == 0 ? 0 : length, false);
    if (!c.long_term) continue;
    const LongTermFlops of_segment{batch, length, c.long_term->basis, d, e};
    const LongTermFlops of_answer{batch, answer, c.long_term->basis, d, e};
    flops += static_cast<double>(observed - 1) * of_segment.write() - of_segment.carry() +
             (answers ? static_cast<double>(observed - 2) * of_segment.read() : 0) +
             of_segment.write_backward() - 3 * product_flops(batch * length, d, d) +
             of_answer.read() + of_answer.read_backward();
  }
  return flops;
}

/// One token of every row behind full memories, of which keys and values may be kept: its own maps,
/// its pairs, and the read of values that are kept, too.
inline double token_flops(const TransformerConfig& c, Index batch) {
  const Index d = c.model_dim, e = c.heads * c.resolved_head_dim();
  const AttentionFlops attention{{batch, 1, c.short_term + 1, c.heads, c.resolved_head_dim()}};
  const Index basis = c.long_term ? c.long_term->basis : 0;
  return static_cast<double>(c.layers) *
             (product_flops(batch, 4 * e + 2 * c.feed_forward, d) + attention.forward() +
              product_flops(batch, e, basis) + product_flops(batch, e, d)) +
         product_flops(batch, c.vocabulary, d);
}

}  // namespace infty::bench
