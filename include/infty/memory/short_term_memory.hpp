// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/attention_cache.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>

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
  detail::AttentionCache<T, Backend> cache = {};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("recent", recent);
  }
};

/// The short-term memory (STM) of Transformer-XL: the last vectors of every row, first in, first
/// out, attended to together with the segment by their distance [Dai et al. 2019, §3.2, 3.3]. It
/// has no parameters, and no gradient flows into what it holds.
template <class T, class Backend>
class ShortTermMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = ShortTermConfig;
  using State = ShortTermState<T, Backend>;

  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit ShortTermMemory(ShortTermConfig config, AttentionSizes sizes, Random = Random(0))
      : sizes_((sizes.validate(), config.validate(), sizes)),
        fifo_(sizes.model_dim, config.capacity, std::max<Index>(config.stride, 1)) {}

  /// What holds the vectors.
  const Fifo<T, Backend>& fifo() const { return fifo_; }
  /// Vectors leave in groups of so many.
  Index stride() const { return fifo_.stride(); }
  /// Most past vectors that a query sees, capacity + stride - 1.
  Index reach() const { return fifo_.most_held(); }

  template <class Visitor>
  void visit(Visitor&&) {}

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index = 0) const { return {fifo_.make_state(batch)}; }

  /// Causal attention over the segment and the vectors before it, which then go out as the segment
  /// comes in. @throws infty::ShapeError; then the state is as it was
  MemoryReading<T, Backend> forward(State& state, const Segment<T, Backend>& segment) const {
    fifo_.check("ShortTermMemory", state.recent);
    const RowCounts held = state.recent.length;
    const Index memory = *std::max_element(held.begin(), held.end());
    const bool recorded = Tape::active() != nullptr;
    MemoryReading<T, Backend> reading;
    reading.context = segment.attention.out.forward(
        recorded ? attend(state.recent, memory, segment, reading.queries)
                 : attend_cached(state, memory, segment, reading.queries));
    reading.leaving = fifo_.write(state.recent, segment.x.value());
    if (recorded)
      state.cache = {};  // a backward pass needs the memory more
    else
      state.cache.remember(fifo_, held, state.recent);
    return reading;
  }

  /// What `forward` does to the state and no more; returns the vectors that leave.
  /// @throws infty::ShapeError; then the state is as it was
  RowSequences<T, Backend> observe(State& state, const Segment<T, Backend>& segment) const {
    return fifo_.write(state.recent, segment.x.value());
  }

  /// Of `forward` behind a full memory: see memory/flops.hpp.
  double flops(Index batch, Index length) const {
    return detail::projected_attention_flops(
        sizes_.model_dim, {batch, length, reach() + length, sizes_.heads, sizes_.head_dim});
  }

 private:
  /// What the heads read from the segment and the vectors before it, and the queries.
  V attend(const RowSequences<T, Backend>& past, Index memory, const Segment<T, Backend>& segment,
           V& queries) const {
    const V vectors(past.vectors);
    const Index most = vectors.dim(1), K = memory + segment.length(),
                longest = segment.encoding.dim(0);
    // Normed at once, where it is normed.
    const V context = segment.normed(concat(narrow(vectors, most - memory, most), segment.x));
    queries =
        segment.attention.query.forward(segment.norm ? narrow(context, memory, K) : segment.x);
    return segment.attention.read(queries, context, segment.biases.content, segment.biases.position,
                                  segment.encoding.slice(longest - K, longest),
                                  detail::visible<Backend>(past.length, memory));
  }

  /// The same where no gradient is recorded, with keys and values of the memory from the last call.
  V attend_cached(State& state, Index memory, const Segment<T, Backend>& segment,
                  V& queries) const {
    const V normed = segment.normed(segment.x);
    queries = segment.attention.query.forward(normed);
    const auto context = state.cache.extend(state.recent, memory, segment, normed);
    return relative_attention(queries, context.keys, context.values, context.positions,
                              segment.biases.content, segment.biases.position,
                              detail::visible<Backend>(state.recent.length, memory));
  }

  AttentionSizes sizes_;
  Fifo<T, Backend> fifo_;
};

}  // namespace infty
