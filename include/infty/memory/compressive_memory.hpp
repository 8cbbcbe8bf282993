// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/attention_cache.hpp>
#include <infty/memory/compression.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/ops/reconstruction.hpp>

namespace infty {

/// The constants of a `CompressiveMemory`. Defaults are those of the paper's WikiText-103
/// [Rae et al. 2020, §5.2], with segments of 512.
struct CompressiveConfig {
  Index capacity = 512;             ///< least number of vectors that a row holds as they were
  Index compressed_capacity = 512;  ///< and of compressed ones, once it has seen so many
  Index rate = 4;                   ///< c, vectors that become one
  Compression compression = Compression::convolution;
  /// Ignored where the compression has nothing to learn.
  ReconstructionLoss loss = ReconstructionLoss::attention;
  /// Compressed vectors leave in groups of so many, and stay readable until then; 0 stands for 1,
  /// or in front of a long-term memory for compressed_capacity, where there is one.
  Index stride = 0;

  /// The same with its stride resolved, in front of a long-term memory or, with 1, of none.
  CompressiveConfig resolved(bool long_term) const {
    CompressiveConfig config = *this;
    if (!long_term)
      config.stride = 1;
    else if (stride == 0)
      config.stride = std::max<Index>(compressed_capacity, 1);
    return config;
  }

  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("CompressiveConfig", "capacity", capacity, 0);
    require_at_least("CompressiveConfig", "compressed_capacity", compressed_capacity, 0);
    require_at_least("CompressiveConfig", "rate", rate, 1);
    require_at_least("CompressiveConfig", "stride", stride, 0);
    require_sizes("CompressiveConfig", {{"capacity", capacity}});
    require_sizes("CompressiveConfig", {{"compressed_capacity", compressed_capacity}});
    require_sizes("CompressiveConfig", {{"rate", rate}});
    require_sizes("CompressiveConfig", {{"stride", stride}});
  }
};

namespace detail {

/// What a compressive memory keeps for attention: see memory/attention_cache.hpp.
template <class T, class Backend>
struct CompressiveCache {
  HeldKeys<T, Backend> memory, compressed;
  HeldPositions<T, Backend> positions;
};

}  // namespace detail

/// What a compressive memory remembers.
template <class T, class Backend>
struct CompressiveState {
  RowSequences<T, Backend> memory;      ///< vectors [batch, capacity + rate - 1, d]
  RowSequences<T, Backend> compressed;  ///< vectors [batch, compressed_capacity + stride - 1, d]
  /// [batch, capacity + rate - 1, 2] with `most_used`, else [batch, 0, 2]: the attention that each
  /// vector of the memory has got, a mean over heads summed over queries, and the number of these.
  Tensor<T, Backend> usage;
  detail::CompressiveCache<T, Backend> cache = {};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("compressed", compressed);
    see("usage", usage);
  }
};

namespace detail {

/// Adds to the usage of the last `count` of each row's vectors the attention that they got: means
/// over heads and sums over queries of weights [H, B, L, K], whose columns before the last L end in
/// these vectors.
template <class T, class B>
void add_usage(const AttentionSize& s, const Tensor<T, B>& weights, const RowCounts& count,
               Tensor<T, B>& usage) {
  const auto counts = Tensor<Index, B>::from(Shape{s.batch}, count.data());
  const Index* const held = counts.data();
  const T* const p = weights.data();
  T* const to = usage.data();
  const Index most = usage.dim(1), batch = s.batch, queries = s.queries, keys = s.keys,
              heads = s.heads;
  B::for_each_row(batch * most, heads * queries, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / most, back = most - at % most;  // 1 for the last vector
    if (back > held[row]) return;
    T sum = T(0);
    for (Index head = 0; head < heads; ++head)
      for (Index i = 0; i < queries; ++i)
        sum += p[((head * batch + row) * queries + i) * keys + keys - queries - back];
    to[2 * at] += sum / static_cast<T>(heads);
    to[2 * at + 1] += static_cast<T>(queries);
  });
}

}  // namespace detail

/// The memory of the Compressive Transformer [Rae et al. 2020]: the last vectors, first in, first
/// out, as a short-term memory has them; what leaves these is compressed, c vectors to one, and
/// goes to a second queue. Attention runs over compressed vectors, vectors and the segment, one
/// behind the other, with relative distances by their places in that row. Vectors leave in groups
/// of c, so that each group is compressed as a whole, whatever the lengths of segments.
///
/// No gradient flows into what is held. What the compression learns, it learns from a loss of its
/// own, `MemoryReading::auxiliary`, whose gradient reaches the compression's parameters and no
/// others; it needs no weight beside the model's loss, for an optimiser such as Adam, which divides
/// a gradient by its size.
template <class T, class Backend>
class CompressiveMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = CompressiveConfig;
  using State = CompressiveState<T, Backend>;

  Compressor<T, Backend> compressor;
  Linear<T, Backend> decoder;  ///< d -> c d, of the auto-encoding loss; else empty

  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit CompressiveMemory(CompressiveConfig config, AttentionSizes sizes,
                             Random random = Random(0))
      : compressor((sizes.validate(), config.validate(), config.compression), config.rate,
                   sizes.model_dim, random.split(0)),
        config_(config),
        sizes_(sizes),
        memory_(sizes.model_dim, config.capacity, config.rate),
        compressed_(sizes.model_dim, config.compressed_capacity, std::max<Index>(config.stride, 1)),
        usage_(2, config.capacity, config.rate) {
    if (loss() == ReconstructionLoss::auto_encoding)
      decoder = Linear<T, Backend>(sizes.model_dim, config.rate * sizes.model_dim, random.split(1));
  }

  /// The constants as given.
  const Config& config() const { return config_; }
  /// Most past vectors, compressed or not, that a query sees.
  Index reach() const { return memory_.most_held() + compressed_.most_held(); }
  /// Vectors that become one.
  Index rate() const { return config_.rate; }
  /// Compressed vectors leave in groups of so many.
  Index stride() const { return compressed_.stride(); }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("compression", compressor.maps);
    if (decoder.weight.size() > 0) see("decoder", decoder);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index = 0) const {
    return {memory_.make_state(batch), compressed_.make_state(batch),
            Tensor<T, Backend>::zeros(Shape{batch, most_used() ? memory_.most_held() : 0, 2})};
  }

  /// Causal attention over the segment and all that is held, which then moves on.
  /// @throws infty::ShapeError; then the state is as it was
  MemoryReading<T, Backend> forward(State& state, const Segment<T, Backend>& segment) const {
    check(state, segment);
    const auto seen = look(state, segment);
    MemoryReading<T, Backend> reading;
    reading.queries = seen.queries;
    reading.context = segment.attention.out.forward(
        relative_attention(seen.queries, seen.keys, seen.values, seen.positions,
                           segment.biases.content, segment.biases.position, seen.visible));
    State next = state;
    if (most_used()) next.usage = used(state, segment, seen);
    advance(next, segment, seen, reading);
    if (Tape::active()) next.cache = {};  // a backward pass needs the memory more
    state = std::move(next);
    return reading;
  }

  /// What `forward` does to the state and no more; returns the compressed vectors that leave.
  /// @throws infty::ShapeError; then the state is as it was
  RowSequences<T, Backend> observe(State& state, const Segment<T, Backend>& segment) const {
    const auto guard = no_grad();
    check(state, segment);
    MemoryReading<T, Backend> reading;
    const auto seen = most_used() ? look(state, segment) : Seen{};
    State next = state;
    if (most_used()) next.usage = used(state, segment, seen);
    advance(next, segment, seen, reading);
    state = std::move(next);
    return std::move(reading.leaving);
  }

  /// Of `forward` behind full memories: see memory/flops.hpp. What only training computes, the
  /// compression's loss, does not count.
  double flops(Index batch, Index length) const {
    const double groups = static_cast<double>(length) / static_cast<double>(config_.rate);
    return detail::projected_attention_flops(
               sizes_.model_dim, {batch, length, reach() + length, sizes_.heads, sizes_.head_dim}) +
           groups * compressor.flops(batch);
  }

 private:
  /// What the segment's queries attend to: M vectors of the past and itself, K in all.
  struct Seen {
    V queries, keys, values, positions;             ///< [B, L, H D], [B, K, H D] twice, [K, H D]
    Tensor<Index, Backend> visible;                 ///< as in `relative_attention`
    RowSequences<T, Backend> own_keys, own_values;  ///< the segment's, to be kept without a tape
  };

  bool most_used() const { return config_.compression == Compression::most_used; }

  ReconstructionLoss loss() const {
    return compressor.maps.empty() ? ReconstructionLoss::none : config_.loss;
  }

  void check(const State& state, const Segment<T, Backend>& segment) const {
    memory_.check("CompressiveMemory", state.memory);
    compressed_.check("CompressiveMemory", state.compressed);
    const Index batch = state.memory.vectors.dim(0);
    require<ShapeError>(
        state.compressed.vectors.dim(0) == batch &&
            state.usage.shape() == Shape{batch, most_used() ? memory_.most_held() : 0, 2},
        "CompressiveMemory", "the state holds compressed vectors ",
        state.compressed.vectors.shape(), " and usage ", state.usage.shape(),
        ": another memory made it, ours are [", batch, ", ", compressed_.most_held(), ", ",
        sizes_.model_dim, "] and [", batch, ", ", most_used() ? memory_.most_held() : 0, ", 2]");
    require<ShapeError>(segment.x.shape() == Shape{batch, segment.length(), sizes_.model_dim},
                        "CompressiveMemory", "the segment is ", segment.x.shape(), ": it must be [",
                        batch, ", L, ", sizes_.model_dim, "]");
  }

  /// With keys and values of what is held from the last call, unless a tape records.
  Seen look(State& state, const Segment<T, Backend>& segment) const {
    RowCounts held = state.memory.length;
    for (std::size_t row = 0; row < held.size(); ++row) held[row] += state.compressed.length[row];
    const Index past = most_of(held), K = past + segment.length();
    const auto& attention = segment.attention;
    // A row's compressed vectors stand right before its others, however many these are.
    const auto joined = [&](const Tensor<T, Backend>& compressed,
                            const Tensor<T, Backend>& memory) {
      return V(detail::right_aligned(compressed, {memory, state.memory.length},
                                     RowCounts(held.size(), 0), held, past));
    };
    Seen seen;
    seen.visible = detail::visible<Backend>(held, past);
    if (Tape::active()) {
      const V context =
          segment.normed(concat(joined(state.compressed.vectors, state.memory.vectors), segment.x));
      const Index longest = segment.encoding.dim(0);
      seen.queries = attention.query.forward(segment.norm ? narrow(context, past, K) : segment.x);
      seen.keys = attention.key.forward(context);
      seen.values = attention.value.forward(context);
      seen.positions = attention.position.forward(V(segment.encoding.slice(longest - K, longest)));
      return seen;
    }
    auto& [memory, compressed, positions] = state.cache;
    memory.hold(state.memory, most_of(state.memory.length), segment);
    compressed.hold(state.compressed, most_of(state.compressed.length), segment);
    const V normed = segment.normed(segment.x);
    const RowCounts length(held.size(), segment.length());
    seen.own_keys = {attention.key.forward(normed).value(), length};
    seen.own_values = {attention.value.forward(normed).value(), length};
    seen.queries = attention.query.forward(normed);
    seen.keys = concat(joined(compressed.keys(), memory.keys()), V(seen.own_keys.vectors));
    seen.values = concat(joined(compressed.values(), memory.values()), V(seen.own_values.vectors));
    seen.positions = positions.last(K, segment.encoding, attention);
    return seen;
  }

  static Index most_of(const RowCounts& counts) {
    return *std::max_element(counts.begin(), counts.end());
  }

  /// The usage of the memory's vectors with what this segment makes of them.
  Tensor<T, Backend> used(const State& state, const Segment<T, Backend>& segment,
                          const Seen& seen) const {
    const AttentionSize s{seen.queries.dim(0), seen.queries.dim(1), seen.keys.dim(1), sizes_.heads,
                          sizes_.head_dim};
    const auto in =
        detail::attention_inputs(seen.queries, seen.keys, seen.values, seen.positions,
                                 segment.biases.content, segment.biases.position, seen.visible);
    const auto qu = detail::add_bias<Backend>(s, in.q, in.u),
               qw = detail::add_bias<Backend>(s, in.q, in.w);
    auto usage = state.usage.clone();
    detail::add_usage(s, detail::attention_weights(s, in, qu, qw), state.memory.length, usage);
    return usage;
  }

  /// Takes the segment in and compresses what leaves the memory for it.
  void advance(State& next, const Segment<T, Backend>& segment, const Seen& seen,
               MemoryReading<T, Backend>& reading) const {
    const Index batch = segment.x.dim(0);
    const bool keep = !seen.own_keys.vectors.empty();
    RowCounts held = next.memory.length;
    const auto leaving = memory_.write(next.memory, segment.x.value());
    if (keep) next.cache.memory.move(memory_, held, seen.own_keys, seen.own_values, next.memory);
    RowSequences<T, Backend> usage;
    if (most_used()) {
      RowSequences<T, Backend> state{next.usage, held};
      usage = usage_.write(state, Tensor<T, Backend>::zeros(Shape{batch, segment.length(), 2}));
      next.usage = state.vectors;
    }
    if (leaving.vectors.dim(1) == 0) {
      reading.leaving = {Tensor<T, Backend>::zeros(Shape{batch, 0, sizes_.model_dim}),
                         RowCounts(static_cast<std::size_t>(batch), 0)};
      return;
    }
    RowCounts length = leaving.length;
    for (Index& n : length) n /= config_.rate;
    V compressed;
    if (most_used()) {
      compressed = V(detail::most_used(leaving, usage.vectors, config_.rate));
    } else if (Tape::active() && loss() != ReconstructionLoss::none) {
      compressed = compressor.forward(V(leaving.vectors));
      reading.auxiliary = loss() == ReconstructionLoss::attention
                              ? attention_loss(segment, seen.queries, leaving, compressed, length)
                              : auto_encoding_loss(leaving, compressed);
    } else {
      const auto guard = no_grad();
      compressed = compressor.forward(V(leaving.vectors));
    }
    held = next.compressed.length;
    reading.leaving = compressed_.write(next.compressed, {compressed.value(), length});
    if (!keep) return;
    const V normed = segment.normed(compressed);
    next.cache.compressed.move(
        compressed_, held, {segment.attention.key.forward(normed).value(), length},
        {segment.attention.value.forward(normed).value(), length}, next.compressed);
  }

  /// How far what the segment reads of compressed vectors, by content, is from what it reads of the
  /// vectors themselves: the sum over heads of the mean squared difference
  /// [Rae et al. 2020, Algorithm 2, which has the norm in place of its square]. All but the
  /// compressed vectors is held constant.
  V attention_loss(const Segment<T, Backend>& segment, const V& queries,
                   const RowSequences<T, Backend>& vectors, const V& compressed,
                   const RowCounts& length) const {
    const auto read = [&](const V& x, const RowCounts& count) {
      const V seen = segment.norm
                         ? layer_norm(x, segment.norm->weight.detach(), segment.norm->bias.detach())
                         : x;
      return content_attention(
          queries.detach(), linear(seen, segment.attention.key.weight.detach()),
          linear(seen, segment.attention.value.weight.detach()), sizes_.heads, count);
    };
    const Index rows = std::count_if(length.begin(), length.end(), [](Index n) { return n > 0; });
    const V wanted = read(V(vectors.vectors), vectors.length);
    return detail::squared_error(read(compressed, length), wanted.value(),
                                 RowCounts(length.size(), segment.length()),
                                 T(1) / static_cast<T>(rows * segment.length() * sizes_.head_dim));
  }

  /// The mean squared difference between vectors and what is made of the compressed ones.
  V auto_encoding_loss(const RowSequences<T, Backend>& vectors, const V& compressed) const {
    Index count = 0;
    for (const Index n : vectors.length) count += n;
    return detail::squared_error(reshape(decoder.forward(compressed), vectors.vectors.shape()),
                                 vectors.vectors, vectors.length,
                                 T(1) / static_cast<T>(count * sizes_.model_dim));
  }

  CompressiveConfig config_;
  AttentionSizes sizes_;
  Fifo<T, Backend> memory_, compressed_, usage_;
};

}  // namespace infty
