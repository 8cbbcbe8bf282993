// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/attended_context.hpp>
#include <infty/memory/attention_cache.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/older_vectors.hpp>
#include <infty/memory/token_groups.hpp>

namespace infty {

/// The constants of a short-term memory. The default is that of the ∞-former's sorting experiment
/// [Martins et al. 2022, §4.1].
struct ShortTermConfig {
  Index capacity = 1024;  ///< least number of vectors that a row holds once it has seen so many
  /// Vectors leave in groups of so many, and stay readable until then; 0 stands for 1, or in front
  /// of a long-term memory for the capacity, where there is one.
  Index stride = 0;

  /// The same with its stride resolved, in front of a long-term memory or, with 1, of none.
  ShortTermConfig resolved(bool long_term) const {
    const Index group = std::max<Index>(capacity, 1);
    return {capacity, !long_term ? 1 : stride > 0 ? stride : group};
  }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("ShortTermConfig", "capacity", capacity, 0);
    require_at_least("ShortTermConfig", "stride", stride, 0);
    require_sizes("ShortTermConfig", {{"capacity", capacity}});
    require_sizes("ShortTermConfig", {{"stride", stride}});
  }
};

/// What a short-term memory remembers: the last inputs of its layer.
template <class T, class Backend>
struct ShortTermState {
  RowSequences<T, Backend> recent;  ///< vectors [batch, capacity + stride - 1, d]
  /// Projected keys and values, kept while no gradient is recorded; not part of what is remembered.
  detail::AttentionCache<T, Backend> cache = {};
  detail::RoomBehind<T, Backend> room = {};  ///< for the next vectors; not remembered either

  template <class Visitor>
  void visit(Visitor&& see) {
    see("recent", recent);
  }
};

/// The short-term memory (STM) of Transformer-XL: attention over the segment and the last vectors
/// of every row, first in, first out, by their distance [Dai et al. 2019, §3.2, 3.3]. No gradient
/// flows into what it holds, which are its inputs as they were; memory tokens are among them where
/// the pass says so. A pass that is traced is shown how much words read of what is held,
/// "past_weights" [batch, H, words, places], the latest vector at the last place, unless nothing
/// is; and where there are memory tokens, how much words read of those in front, "tokens_read"
/// [batch, H, words, tokens], and those behind of the words, "words_read"
/// [batch, H, tokens, words], in shares of all that they read.
template <class T, class Backend>
class ShortTermMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = ShortTermConfig;
  using State = ShortTermState<T, Backend>;
  using Norm = InputNorm<T, Backend>;

  /// Whether a pass may put vectors in front of those that it holds.
  static constexpr bool reads_older = true;

  RelativeAttention<T, Backend> attention;  ///< over segment and memory, by their distance

  /// Makes the memory of a layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit ShortTermMemory(ShortTermConfig config, AttentionSizes sizes, Random random = Random(0))
      : ShortTermMemory(config, sizes, RelativeAttention<T, Backend>(sizes, random.split(0))) {}

  /// The memory of another layer of the same model, which shares what attention shares.
  ShortTermMemory sibling(Random random) const {
    return ShortTermMemory(config_, sizes_, attention.sibling(random.split(0)));
  }

  /// What holds the vectors.
  const Fifo<T, Backend>& fifo() const { return fifo_; }
  /// Vectors leave in groups of so many.
  Index stride() const { return fifo_.stride(); }

  template <class Visitor>
  void visit(Visitor&& see) {
    attention.visit(see);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index = 0) const { return {fifo_.make_state(batch)}; }

  /// Causal attention over the segment and the vectors before it, which then go out as the segment
  /// comes in: x [B, L, d] -> [B, L, d].
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const {
    return attend(state, x, norm, pass).context;
  }

  /// What `forward` does, with the queries and the vectors that went out.
  Attended<T, Backend> attend(State& state, const V& x, const Norm& norm,
                              Pass<T, Backend>& pass) const {
    fifo_.check("ShortTermMemory", state.recent);
    detail::require_segment("ShortTermMemory", x, state.recent.vectors.dim(0), sizes_, pass);
    const Index begin = pass.tokens.held ? 0 : pass.before;
    const Index end = pass.tokens.held ? x.dim(1) : x.dim(1) - pass.behind;
    const bool recorded = Tape::active() != nullptr;
    Attended<T, Backend> attended;
    if (pass.answer) {
      const detail::InFront<T, Backend> front("ShortTermMemory", pass.older, state.recent.length,
                                              sizes_.model_dim);
      const auto encoding = attention.encoding(fifo_.most_held() + front.most() + x.dim(1));
      attended.context = attention.out.forward(
          recorded ? read(state, front, x, norm, encoding, pass, attended.queries)
                   : read_cached(state, front, x, norm, encoding, pass, attended.queries));
    }
    attended.leaving = fifo_.write(state.recent, narrow(x, begin, end).value(), &state.room);
    if (recorded)
      state.cache = {};  // a backward pass needs the memory more
    else if (pass.answer)
      state.cache.remember(state.recent, begin, end);
    return attended;
  }

  /// The queries of vectors as attention sees them, [B, L, d] -> [B, L, H D].
  V queries(const V& x) const { return attention.query.forward(x); }

  /// Of `forward` behind a full memory: see memory/flops.hpp.
  double flops(Index batch, Index length) const {
    return detail::projected_attention_flops(
        sizes_.model_dim,
        {batch, length, fifo_.most_held() + length, sizes_.heads, sizes_.head_dim});
  }

 private:
  ShortTermMemory(const ShortTermConfig& config, const AttentionSizes& sizes,
                  RelativeAttention<T, Backend> maps)
      : attention(std::move(maps)),
        config_((config.validate(), config)),
        sizes_(sizes),
        fifo_(sizes.model_dim, config.capacity, std::max<Index>(config.stride, 1)) {}

  /// What the heads read from the segment and the vectors before it, and the queries.
  V read(const State& state, const detail::InFront<T, Backend>& front, const V& x, const Norm& norm,
         const Tensor<T, Backend>& encoding, Pass<T, Backend>& pass, V& queries) const {
    const V vectors(state.recent.vectors);
    const Index most = vectors.dim(1), memory = front.memory(), longest = encoding.dim(0),
                K = front.places() + x.dim(1);
    detail::AttendedContext<T, Backend> context(narrow(vectors, most - memory, most), x, norm);
    queries = attention.query.forward(context.own());
    if (front.any()) context.put(front);
    const V keys = context.mapped(attention.key), values = context.mapped(attention.value);
    return detail::read_groups(attention, queries, keys, values,
                               attention.position.forward(V(encoding.slice(longest - K, longest))),
                               front.held(), fifo_.most_held() + front.most(), pass);
  }

  /// The same where no gradient is recorded, with keys and values of the memory from the last call.
  V read_cached(State& state, const detail::InFront<T, Backend>& front, const V& x,
                const Norm& norm, const Tensor<T, Backend>& encoding, Pass<T, Backend>& pass,
                V& queries) const {
    const V normed = norm(x);
    queries = attention.query.forward(normed);
    const Index memory = front.memory();
    auto context = state.cache.extend(state.recent, memory, attention, norm, normed, encoding,
                                      front.places() - memory);
    if (front.any()) {
      context.keys = front.place(attention.key.forward(front.older()), context.keys);
      context.values = front.place(attention.value.forward(front.older()), context.values);
    }
    return detail::read_groups(attention, queries, context.keys, context.values, context.positions,
                               front.held(), fifo_.most_held() + front.most(), pass);
  }

  ShortTermConfig config_;
  AttentionSizes sizes_;
  Fifo<T, Backend> fifo_;
};

}  // namespace infty
