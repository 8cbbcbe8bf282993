// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/memory.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/relative_attention.hpp>

namespace infty {

/// What a layer is told about one call.
template <class M>
struct LayerCall {
  BiasesOf<M> biases;                                              ///< of all layers
  Tensor<typename M::Scalar, typename M::BackendType> encoding{};  ///< as in `Segment`
  double dropout = 0;
  Random* random = nullptr;
  /// As in `Segment`.
  const Variable<typename M::Scalar, typename M::BackendType>* past = nullptr;
  bool renew = true;
};

/// What a layer makes of a segment.
template <class T, class Backend = EigenBackend>
struct LayerOutput {
  Variable<T, Backend> hidden;     ///< [B, L, d]
  Variable<T, Backend> density;    ///< [2, B, H, L] of a long-term read, else empty
  Variable<T, Backend> auxiliary;  ///< a loss of the memory's own, a scalar, else empty
  Variable<T, Backend> past;       ///< [B, M, d] of a memory that renews the past, else empty
};

/// One layer of a transformer with memory M: attention, which is the memory's, and a feed-forward
/// network, each with a residual connection and a layer norm.
///
/// A memory holds the inputs of the layer. With norms in front (`pre_norm`), what memory holds is
/// normalised where it is used, as the segment is.
template <class M>
struct TransformerLayer {
  using T = typename M::Scalar;
  using B = typename M::BackendType;
  using V = Variable<T, B>;
  using State = typename M::State;

  RelativeAttention<T, B> attention;
  LayerNorm<T, B> attention_norm;
  FeedForward<T, B> feed_forward;
  LayerNorm<T, B> feed_forward_norm;
  M memory;
  bool pre_norm;

  /// Parameters drawn from `random`; the configuration must be valid.
  /// @throws infty::ValueError if the memory's is not
  TransformerLayer(const TransformerConfig& config, const typename M::Config& memory_config,
                   Random random)
      : attention(config.model_dim, config.heads, config.resolved_head_dim(), random.split(0)),
        attention_norm(config.model_dim),
        feed_forward(config.model_dim, config.feed_forward, random.split(1)),
        feed_forward_norm(config.model_dim),
        memory(memory_config, config.attention_sizes(), random.split(2)),
        pre_norm(config.pre_norm) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
    see("attention_norm", attention_norm);
    see("feed_forward", feed_forward);
    see("feed_forward_norm", feed_forward_norm);
    see("memory", memory);
  }

  /// x [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError; then the state is as it was
  LayerOutput<T, B> forward(State& state, const V& x, const LayerCall<M>& call) const {
    auto reading = memory.forward(state, segment(x, call));
    Random unused(0);
    Random& random = call.random ? *call.random : unused;
    const double drop = call.random ? call.dropout : 0;
    // A past that was renewed goes the same way as the segment.
    const Index past = reading.past.size() > 0 ? reading.past.dim(1) : 0;
    const V input = past > 0 ? concat(reading.past, x) : x;
    const V read = past > 0 ? concat(reading.past_context, reading.context) : reading.context;
    const V attended = behind(attention_norm, add_dropped(input, read, drop, random));
    const V inner = pre_norm ? feed_forward_norm.forward(attended) : attended;
    const V all =
        behind(feed_forward_norm, feed_forward.add_forward(attended, inner, drop, random));
    return {past > 0 ? narrow(all, past, all.dim(1)) : all, std::move(reading.density),
            std::move(reading.auxiliary), past > 0 ? narrow(all, 0, past) : V()};
  }

  /// What `forward` does to the state and no more: for a layer whose output nobody needs.
  /// @throws infty::ShapeError; then the state is as it was
  void observe(State& state, const V& x, const LayerCall<M>& call) const {
    memory.observe(state, segment(x, call));
  }

 private:
  SegmentOf<M> segment(const V& x, const LayerCall<M>& call) const {
    return {x,         attention, pre_norm ? &attention_norm : nullptr, call.biases, call.encoding,
            call.past, call.renew};
  }

  V behind(const LayerNorm<T, B>& norm, const V& x) const { return pre_norm ? x : norm.forward(x); }
};

}  // namespace infty
