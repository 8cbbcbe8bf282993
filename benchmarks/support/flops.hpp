// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/flops.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_config.hpp>

/// What there is to compute, as the memories themselves count it (infty/memory/flops.hpp), and what
/// the backward pass and a whole model add.
namespace infty::bench {

using infty::detail::attention_flops, infty::detail::product_flops;

/// A long-term memory that takes in and is asked by rows of vectors, with the way back.
struct LongTermFlops : infty::detail::LongTermFlops {
  /// The gate's weights and its input; the fit's input. Nothing goes back to the old coefficients.
  double write_backward() const { return each(2 * gate() + fit()); }
  /// Both factors of each of the three products.
  double read_backward() const { return 2 * read(); }
};

/// Attention with relative positions: forward three products, backward both factors of each.
struct AttentionFlops {
  AttentionSize size;

  double forward() const { return attention_flops(size); }
  double backward() const { return 2 * attention_flops(size); }
};

/// B rows of L tokens through a layer of a transformer, behind so many vectors of short-term
/// memory, forward and, if asked for, backward; the long-term memory beside it is not counted.
inline double layer_flops(const TransformerConfig& c, Index batch, Index length, Index memory,
                          bool backward) {
  const Index d = c.model_dim, e = c.attention_sizes().inner();
  const Index rows = batch * length, keys = memory + length;
  const AttentionSize size{batch, length, keys, c.heads, c.resolved_head_dim()};
  const double feed_forward = product_flops(rows, 2 * c.feed_forward, d);
  const double projected = infty::detail::projected_attention_flops(d, size);
  if (!backward) return feed_forward + projected;
  // Both factors of every product; but no gradient goes to the short-term memory, nor to the
  // encodings of distances.
  const double keys_of_segment = product_flops(rows, 2 * e, d);
  const double shared = product_flops(batch * keys, 2 * e, d) + product_flops(keys, e, d);
  return 3 * feed_forward + 3 * projected - shared + keys_of_segment;
}

/// A training step of the sorting experiment: `observed` >= 2 segments of `length` tokens, as many
/// as the short-term memory holds, that move the memories on; then `answer` tokens that are learned
/// from. The last layer's answer to the former is not needed. A segment's vectors reach the
/// long-term memory two segments later; no gradient goes to what they were made from.
inline double training_step_flops(const TransformerConfig& c, const InftyConfig& memory,
                                  Index batch, Index length, Index observed, Index answer) {
  const Index d = c.model_dim, e = c.attention_sizes().inner();
  double flops = 3 * product_flops(batch * answer, c.vocabulary, d);
  for (Index layer = 0; layer < c.layers; ++layer) {
    flops += layer_flops(c, batch, answer, length, true);
    const bool answers = layer + 1 < c.layers;
    for (Index segment = 0; answers && segment < observed; ++segment)
      flops += layer_flops(c, batch, length, segment == 0 ? 0 : length, false);
    if (!memory.memory) continue;
    const Index basis = memory.memory->basis;
    const LongTermFlops of_segment{{batch, length, basis, d, e}};
    const LongTermFlops of_answer{{batch, answer, basis, d, e}};
    flops += static_cast<double>(observed - 1) * of_segment.write() - of_segment.carry() +
             (answers ? static_cast<double>(observed - 2) * of_segment.read() : 0) +
             of_segment.write_backward() - of_segment.each(of_segment.gate()) + of_answer.read() +
             of_answer.read_backward();
  }
  return flops;
}

/// One token of every row behind full memories, of which keys and values may be kept: its own maps,
/// its pairs, and the read of values that are kept, too.
inline double token_flops(const TransformerConfig& c, const InftyConfig& memory, Index batch) {
  const Index d = c.model_dim, e = c.attention_sizes().inner();
  const double pairs =
      attention_flops({batch, 1, memory.attention.capacity + 1, c.heads, c.resolved_head_dim()});
  const Index basis = memory.memory ? memory.memory->basis : 0;
  return static_cast<double>(c.layers) *
             (product_flops(batch, 4 * e + 2 * c.feed_forward, d) + pairs +
              product_flops(batch, e, basis) + product_flops(batch, e, d)) +
         product_flops(batch, c.vocabulary, d);
}

}  // namespace infty::bench
