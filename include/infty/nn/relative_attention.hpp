// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/distance_table.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// Multi-head attention over a segment and the memory before it, with relative positions
/// [Dai et al. 2019, §3.3]. Heads H of head_dim D; the maps have no bias.
template <class T, class Backend>
struct RelativeAttention {
  using V = Variable<T, Backend>;

  Linear<T, Backend> query, key, value;  ///< d -> H D
  Linear<T, Backend> position;           ///< d -> H D, of the distances' encodings
  Linear<T, Backend> out;                ///< H D -> d
  V content_bias;   ///< u, [H, D], of the content scores: zeros at first; siblings share it
  V position_bias;  ///< w, [H, D], of the position scores: zeros at first; siblings share it
  DistanceTable<T, Backend> distances;  ///< shared as well

  RelativeAttention() = default;

  /// Makes the five maps, with weights drawn as `Linear` draws them; the biases are zeros.
  /// @throws infty::ValueError unless all sizes are >= 1, their product at most `largest_size`, and
  /// d even
  RelativeAttention(const AttentionSizes& sizes, Random random)
      : query((sizes.validate(), sizes.model_dim), sizes.inner(), random.split(0), false),
        key(sizes.model_dim, sizes.inner(), random.split(1), false),
        value(sizes.model_dim, sizes.inner(), random.split(2), false),
        position(sizes.model_dim, sizes.inner(), random.split(3), false),
        out(sizes.inner(), sizes.model_dim, random.split(4), false),
        content_bias(Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true),
        position_bias(Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true) {
    require(sizes.model_dim % 2 == 0, "RelativeAttention", "model_dim is ", sizes.model_dim,
            ": it must be even, for the encoding of distances");
  }

  /// The attention of another layer of the same model: maps of its own, and what layers share.
  RelativeAttention sibling(Random random) const {
    RelativeAttention other({query.weight.dim(1), content_bias.dim(0), content_bias.dim(1)},
                            random);
    other.content_bias = content_bias;
    other.position_bias = position_bias;
    other.distances = distances;
    return other;
  }

  /// Encodings of at least `longest` distances -> [>= longest, d], the last row that of distance 0.
  Tensor<T, Backend> encoding(Index longest) const {
    return distances.reaching(longest, query.weight.dim(1));
  }

  /// What the heads read, before `out`.
  /// @param queries    [B, L, H D], `query.forward` of the segment
  /// @param keys       [B, K, H D], those of the memory and the segment; values as well
  /// @param positions  [K, H D], `position.forward` of the encodings of distances
  /// @param visible    [B] or empty, as in `relative_attention`
  /// @return           [B, L, H D]
  /// @throws infty::ShapeError
  V read(const V& queries, const V& keys, const V& values, const V& positions,
         const Tensor<Index, Backend>& visible) const {
    return relative_attention(queries, keys, values, positions, content_bias, position_bias,
                              visible);
  }

  /// What `read` averages values by, for those who look; no gradient flows through it. Parameters
  /// as there. @return  (H, B, L, K), of which a query's sum to one
  Tensor<T, Backend> weights(const V& queries, const V& keys, const V& positions,
                             const Tensor<Index, Backend>& visible) const {
    const AttentionSize s{queries.dim(0), queries.dim(1), keys.dim(1), content_bias.dim(0),
                          content_bias.dim(1)};
    const auto in = detail::attention_inputs(queries, keys, keys, positions, content_bias,
                                             position_bias, visible);
    return detail::attention_weights(s, in, detail::add_bias<Backend>(s, in.q, in.u),
                                     detail::add_bias<Backend>(s, in.q, in.w));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("key", key);
    see("value", value);
    see("position", position);
    see("out", out);
    see("content_bias", content_bias);
    see("position_bias", position_bias);
  }
};

}  // namespace infty
