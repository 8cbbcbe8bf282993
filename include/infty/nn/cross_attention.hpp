// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/nn/cached_attention.hpp>

namespace infty {

/// The constants of a `CrossAttention`.
struct CrossAttentionConfig {
  bool bias = true;  ///< of all four maps
};

/// Attention of a decoder to what an encoder has made of a source [Vaswani et al. 2017, §3.2.3],
/// whose keys and values are computed once, when the source is set.
template <class T, class Backend = EigenBackend>
struct CrossAttention {
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = CrossAttentionConfig;
  using State = HeldKeysAndValues<T, Backend>;

  MultiHeadAttention<T, Backend> maps;  ///< of queries, the source's keys and values, and answers

  CrossAttention() = default;

  /// Makes the four maps, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless the sizes are valid
  explicit CrossAttention(Config config, AttentionSizes sizes, Random random = Random(0))
      : maps((sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim, random,
             config.bias) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    maps.visit(see);
  }

  /// A state of rows without a source. @throws infty::ValueError unless 1 <= batch <=
  /// `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    return detail::no_keys<T, Backend>("CrossAttention::make_state", batch, maps.key.weight.dim(0));
  }

  /// Takes a source in, in place of the one before. @param source  [B, S, d]
  /// @param length  how many vectors of it, the last ones, each row has
  /// @throws infty::ShapeError; then the state is as it was
  void set_source(State& state, const V& source, const RowCounts& length) const {
    State next{maps.key.forward(source), maps.value.forward(source), length};
    detail::require_keys("CrossAttention::set_source", next, source, maps.key.weight.dim(0));
    require<ShapeError>(state.length.size() == length.size(), "CrossAttention::set_source",
                        "the source is ", source.shape(), ", the state has ", state.length.size(),
                        " rows");
    state = std::move(next);
  }

  /// What vectors read in the source: [B, L, d] -> [B, L, d]; a row with an empty source reads
  /// zeros. @throws infty::ShapeError, also where no source was set
  V attend(const State& state, const V& x) const {
    detail::require_keys("CrossAttention", state, x, maps.key.weight.dim(0));
    const Index all = state.keys.dim(1);
    require<ShapeError>(all >= 1, "CrossAttention", "there is no source: set_source takes it in");
    return maps.out.forward(scaled_dot_product_attention(
        maps.query.forward(x), state.keys, state.values,
        {.heads = maps.heads, .visible = detail::visible<Backend>(state.length, all)}));
  }
};

}  // namespace infty
