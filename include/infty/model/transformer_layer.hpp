// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/attention_cache.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/relative_attention.hpp>

namespace infty {

/// A layer's long-term memory and what has left its short-term memory since it was last written.
template <class T, class Backend = EigenBackend>
struct LayerPast {
  RowSequences<T, Backend> leaving;  ///< is written first thing in the next segment
  LongTermState<T, Backend> memory;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("leaving", leaving);
    see("memory", memory);
  }
};

/// What one layer remembers.
template <class T, class Backend = EigenBackend>
struct LayerState {
  ShortTermState<T, Backend> short_term;
  std::optional<LayerPast<T, Backend>> long_term;
  detail::AttentionCache<T, Backend> cache = {};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("short_term", short_term);
    see("long_term", long_term);
  }
};

/// What a layer is told about one call.
template <class T, class Backend = EigenBackend>
struct LayerCall {
  Variable<T, Backend> content_bias, position_bias;  ///< u and w, [H, D]
  Tensor<T, Backend> encoding;                       ///< [>= K, d], last row is distance 0
  double dropout = 0;
  Random* random = nullptr;
};

/// One layer of the ∞-former: attention over the segment and the short-term memory, plus what the
/// long-term memory gives the same queries, Z = Z_T + Z_LTM   [Martins et al. 2022, Eq. 12], then a
/// feed-forward network, each with a residual connection and a layer norm.
///
/// A memory holds the inputs of the layer. With norms in front (`pre_norm`), what memory holds is
/// normalised where it is used, as the segment is.
template <class T, class Density, class Backend>
struct TransformerLayer {
  using V = Variable<T, Backend>;

  RelativeAttention<T, Backend> attention;
  LayerNorm<T, Backend> attention_norm;
  FeedForward<T, Backend> feed_forward;
  LayerNorm<T, Backend> feed_forward_norm;
  ShortTermMemory<T, Backend> short_term;
  std::optional<LongTermMemory<T, Density, Backend>> long_term;
  bool pre_norm;

  /// Parameters drawn from `random`; the configuration must be valid.
  TransformerLayer(const TransformerConfig& config, Random random)
      : attention(config.model_dim, config.heads, config.resolved_head_dim(), random.split(0)),
        attention_norm(config.model_dim),
        feed_forward(config.model_dim, config.feed_forward, random.split(1)),
        feed_forward_norm(config.model_dim),
        short_term(config.model_dim, config.short_term, config.resolved_stride()),
        pre_norm(config.pre_norm) {
    if (config.long_term) long_term.emplace(config.resolved_long_term(), random.split(2));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("attention", attention);
    see("attention_norm", attention_norm);
    see("feed_forward", feed_forward);
    see("feed_forward_norm", feed_forward_norm);
    see("long_term", long_term);
  }

  /// A state of fresh rows; row i draws the random numbers of stream `first_stream` + i.
  LayerState<T, Backend> make_state(Index batch, Index first_stream) const {
    LayerState<T, Backend> state{short_term.make_state(batch), {}};
    if (long_term)
      state.long_term.emplace(
          LayerPast<T, Backend>{{Tensor<T, Backend>::zeros(Shape{batch, 0, short_term.model_dim()}),
                                 RowCounts(static_cast<std::size_t>(batch), 0)},
                                long_term->make_state(batch, first_stream)});
    return state;
  }

  /// x [B, L, d] -> [B, L, d], moving the state on; the densities of the long-term read, if there
  /// was one, go to `density`.
  V forward(LayerState<T, Backend>& state, const V& x, const LayerCall<T, Backend>& call,
            V* density) const {
    write_leaving(state);
    const RowCounts held = state.short_term.recent.length;
    const Index memory = *std::max_element(held.begin(), held.end());
    const bool recorded = Tape::active() != nullptr;
    V queries;
    V z = attention.out.forward(recorded ? attend(state.short_term, memory, x, call, queries)
                                         : attend_cached(state, memory, x, call, queries));
    if (long_term) {
      const auto reading = long_term->attend(state.long_term->memory, queries);
      if (density) *density = reading.density;
      z = z + reading.context;
    }
    remember(state, x.value());
    if (recorded)
      state.cache = {};  // a backward pass needs the memory more
    else
      state.cache.remember(short_term, held, state.short_term);
    Random unused(0);
    Random& random = call.random ? *call.random : unused;
    const double drop = call.random ? call.dropout : 0;
    const V attended = behind(attention_norm, add_dropped(x, z, drop, random));
    const V inner = pre_norm ? feed_forward_norm.forward(attended) : attended;
    return behind(feed_forward_norm, feed_forward.add_forward(attended, inner, drop, random));
  }

  /// What `forward` does to the state and no more: for a layer whose output nobody needs.
  void observe(LayerState<T, Backend>& state, const V& x) const {
    write_leaving(state);
    if (long_term && long_term->config().resampling != Resampling::even)
      long_term->read(state.long_term->memory,
                      attention.query.forward(pre_norm ? attention_norm.forward(x) : x));
    remember(state, x.value());
  }

 private:
  /// What the heads read from the segment and the short-term memory, and the queries.
  V attend(const ShortTermState<T, Backend>& past, Index memory, const V& x,
           const LayerCall<T, Backend>& call, V& queries) const {
    const V vectors(past.recent.vectors);
    const Index most = short_term.most_held(), K = memory + x.dim(1),
                longest = call.encoding.dim(0);
    V context = concat(narrow(vectors, most - memory, most), x);  // [B, K, d]
    if (pre_norm) context = attention_norm.forward(context);
    queries = attention.query.forward(pre_norm ? narrow(context, memory, K) : x);
    return attention.read(queries, context, call.content_bias, call.position_bias,
                          call.encoding.slice(longest - K, longest),
                          visible(past.recent.length, memory));
  }

  /// The same where no gradient is recorded, with keys and values of the memory from the last call.
  V attend_cached(LayerState<T, Backend>& state, Index memory, const V& x,
                  const LayerCall<T, Backend>& call, V& queries) const {
    const auto seen = [this](const V& y) { return pre_norm ? attention_norm.forward(y) : y; };
    const V segment = seen(x);
    queries = attention.query.forward(segment);
    const auto context = state.cache.extend(state.short_term, memory, seen, segment, call.encoding,
                                            attention, attention_norm);
    return relative_attention(queries, context.keys, context.values, context.positions,
                              call.content_bias, call.position_bias,
                              visible(state.short_term.recent.length, memory));
  }

  V behind(const LayerNorm<T, Backend>& norm, const V& x) const {
    return pre_norm ? x : norm.forward(x);
  }

  /// Writes what has left the short-term memory, here and not when it left, so that the gradient of
  /// this segment's loss reaches the gate.
  void write_leaving(LayerState<T, Backend>& state) const {
    if (!long_term) return;
    auto& past = *state.long_term;
    if (past.leaving.vectors.dim(1) == 0) return;
    V vectors(past.leaving.vectors);
    if (pre_norm) vectors = mask(attention_norm.forward(vectors), past.leaving.length);
    long_term->write(past.memory, vectors, past.leaving.length);
    past.leaving.vectors = Tensor<T, Backend>(past.leaving.vectors.shape().with(1, 0));
    std::fill(past.leaving.length.begin(), past.leaving.length.end(), 0);
  }

  void remember(LayerState<T, Backend>& state, const Tensor<T, Backend>& x) const {
    auto leaving = short_term.write(state.short_term, x);
    if (state.long_term) state.long_term->leaving = std::move(leaving);
  }

  /// Zeros again in front of the shorter rows, where the norm's bias has come in.
  static V mask(const V& x, const RowCounts& length) {
    const Index L = x.dim(1), d = x.dim(2);
    bool full = true;
    for (const Index n : length) full = full && n == L;
    if (full) return x;
    auto keep = Tensor<T, Backend>::zeros(x.shape());
    for (std::size_t row = 0; row < length.size(); ++row)
      Backend::fill(keep.data() + ((static_cast<Index>(row) + 1) * L - length[row]) * d,
                    length[row] * d, T(1));
    return multiply(x, V(keep));
  }

  /// How many of the memory's last vectors each row may see; empty if all rows see all.
  static Tensor<Index, Backend> visible(const RowCounts& held, Index memory) {
    if (std::all_of(held.begin(), held.end(), [=](Index n) { return n == memory; })) return {};
    return Tensor<Index, Backend>::from(Shape{static_cast<Index>(held.size())}, held.data());
  }
};

}  // namespace infty
