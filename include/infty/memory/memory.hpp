// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <type_traits>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/relative_attention.hpp>

namespace infty {

/// Sizes of the attention that a memory stands in.
struct AttentionSizes {
  Index model_dim = 300;  ///< d
  Index heads = 6;        ///< H
  Index head_dim = 50;    ///< D

  /// H D, of all heads.
  Index inner() const { return heads * head_dim; }

  /// @throws infty::ValueError unless all are >= 1, and their product at most `largest_size`
  void validate() const {
    require(model_dim >= 1 && heads >= 1 && head_dim >= 1, "AttentionSizes", "model_dim is ",
            model_dim, ", heads ", heads, ", head_dim ", head_dim, ": they must be >= 1");
    require_sizes("AttentionSizes",
                  {{"model_dim", model_dim}, {"heads", heads}, {"head_dim", head_dim}});
  }
};

/// The biases u and w of the content and of the position scores [Dai et al. 2019, §3.3], which all
/// layers of a model share: zeros at first. A memory whose layers share more brings a struct of its
/// own, `M::Biases`, with these two in it.
template <class T, class Backend = EigenBackend>
struct AttentionBiases {
  Variable<T, Backend> content, position;  ///< [H, D]

  AttentionBiases() = default;

  explicit AttentionBiases(const AttentionSizes& sizes)
      : content(Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true),
        position(Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("content_bias", content);
    see("position_bias", position);
  }
};

/// What a layer hands to its memory: a segment, and the layer's own projections to attend with.
template <class T, class Backend = EigenBackend, class Biases = AttentionBiases<T, Backend>>
struct Segment {
  using V = Variable<T, Backend>;

  const V& x;                                      ///< [B, L, d], the input: what is remembered
  const RelativeAttention<T, Backend>& attention;  ///< query, key, value, position and out
  const LayerNorm<T, Backend>*
      norm;                     ///< of vectors where they are attended; null where x is normed
  const Biases& biases;         ///< of all layers
  Tensor<T, Backend> encoding;  ///< [>= reach + L, d], `distance_encoding`: last row is distance 0
  /// [B, M, d], vectors of the past as the layer below has renewed them with this segment, for a
  /// memory that does so; null in the first layer.
  const V* past = nullptr;
  bool renew = true;  ///< whether there is a layer above, which such a memory renews its past for

  /// L.
  Index length() const { return x.dim(1); }
  /// Vectors [..., d] as attention sees them: normed in a layer with its norms in front.
  V normed(const V& vectors) const { return norm ? norm->forward(vectors) : vectors; }
  /// The segment's queries, [B, L, H D].
  V queries() const { return attention.query.forward(normed(x)); }
};

/// What a memory makes of a segment. Only `context` has to be there.
template <class T, class Backend = EigenBackend>
struct MemoryReading {
  Variable<T, Backend> context;      ///< [B, L, d], behind `attention.out`: is added to the input
  Variable<T, Backend> queries;      ///< [B, L, H D], for a long-term memory behind this one
  Variable<T, Backend> density;      ///< [2, B, H, L] of a long-term read
  Variable<T, Backend> auxiliary;    ///< a scalar: a loss of the memory's own
  RowSequences<T, Backend> leaving;  ///< vectors let go with this segment
  Variable<T, Backend> past;  ///< [B, M, d], vectors of the past that go through the layer too
  Variable<T, Backend> past_context;  ///< [B, M, d], as `context`: is added to them
};

namespace detail {

template <class M>
struct ChosenBiases {
  using type = AttentionBiases<typename M::Scalar, typename M::BackendType>;
};
template <class M>
  requires requires { typename M::Biases; }
struct ChosenBiases<M> {
  using type = typename M::Biases;
};

}  // namespace detail

/// The biases that layers with memory M share: `M::Biases` if there is such a type.
template <class M>
using BiasesOf = typename detail::ChosenBiases<M>::type;

/// The segment that a layer hands to memory M.
template <class M>
using SegmentOf = Segment<typename M::Scalar, typename M::BackendType, BiasesOf<M>>;

/// A model's memory: it stands in a layer of a transformer in place of plain self-attention, reads
/// while it writes a segment, and keeps what it remembers in a state that the caller owns. It is a
/// layer, whose parameters, if any, are found by `visit`.
///
/// - `M(Config, AttentionSizes, Random)` throws infty::ValueError for what cannot be. `Config` is a
///   struct outside of the class, so that it is the same for every backend.
/// - `make_state(batch, first_stream)` is a state of fresh rows; row i draws its random numbers, if
///   it draws any, from stream `first_stream` + i. The state names its members by `visit`, see
///   core/state.hpp: from that come copying, resetting rows, saving and loading.
/// - `forward(state, segment)` reads the segment, each place seeing those up to itself and what the
///   state remembers, and moves the state on, with and without an active tape.
/// - `observe(state, segment)` moves the state on as `forward` does, without an answer.
/// - `reach()` is the number of past vectors, at most, that queries tell apart by their distance.
/// - `flops(batch, length)` counts the multiplications and additions of the products in `forward`
///   behind a full memory.
template <class M>
concept Memory =
    Layer<M> && Layer<typename M::State> && std::copyable<typename M::State> &&
    std::default_initializable<typename M::State> &&
    std::default_initializable<typename M::Config> &&
    std::constructible_from<M, typename M::Config, AttentionSizes, Random> &&
    std::constructible_from<BiasesOf<M>, const AttentionSizes&> && Layer<BiasesOf<M>> &&
    requires(const M& memory, typename M::State& state, const SegmentOf<M>& segment, Index n) {
      { memory.make_state(n, n) } -> std::same_as<typename M::State>;
      {
        memory.forward(state, segment)
      } -> std::same_as<MemoryReading<typename M::Scalar, typename M::BackendType>>;
      {
        memory.observe(state, segment)
      } -> std::same_as<RowSequences<typename M::Scalar, typename M::BackendType>>;
      { memory.reach() } -> std::convertible_to<Index>;
      { memory.flops(n, n) } -> std::convertible_to<double>;
    };

}  // namespace infty
