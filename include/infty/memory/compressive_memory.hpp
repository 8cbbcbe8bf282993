// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/memory/attended_context.hpp>
#include <infty/memory/compressive_state.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/past_weights.hpp>
#include <infty/nn/plain_attention.hpp>

namespace infty {

/// The memory of the Compressive Transformer [Rae et al. 2020]: the last vectors, first in, first
/// out, as a short-term memory has them; what leaves these is compressed, c vectors to one, and
/// goes to a second queue. Attention runs over compressed vectors, vectors and the segment, one
/// behind the other, with relative distances by their places in that row. Vectors leave in groups
/// of c, so that each group is compressed as a whole, whatever the lengths of segments.
///
/// No gradient flows into what is held, which are inputs as they were; memory tokens are not among
/// them. What the compression learns, it learns from a loss of its own, "compression" in the pass,
/// whose gradient reaches the compression's parameters and no others; it needs no weight beside the
/// model's loss, for an optimiser such as Adam, which divides a gradient by its size.
///
/// A pass that is traced is shown how much words read of vectors that are held and of compressed
/// ones, "past_weights" and "compressed_weights" [batch, H, words, places], the latest at the last
/// place, in shares of all that they read; nothing of those of which there are none.
template <class T, class Backend>
class CompressiveMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = CompressiveConfig;
  using State = CompressiveState<T, Backend>;
  using Norm = InputNorm<T, Backend>;

  RelativeAttention<T, Backend> attention;  ///< over compressed vectors, vectors and segment
  Compressor<T, Backend> compressor;        ///< makes one vector of `rate`
  Linear<T, Backend> decoder;               ///< d -> c d, of the auto-encoding loss; else empty

  /// Makes the memory of a layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit CompressiveMemory(CompressiveConfig config, AttentionSizes sizes,
                             Random random = Random(0))
      : CompressiveMemory(config, sizes, random,
                          RelativeAttention<T, Backend>(sizes, random.split(0))) {}

  /// The memory of another layer of the same model, which shares what attention shares.
  CompressiveMemory sibling(Random random) const {
    return CompressiveMemory(config_, sizes_, random, attention.sibling(random.split(0)));
  }

  /// The constants as given.
  const Config& config() const { return config_; }
  /// Most past vectors, compressed or not, that a query sees.
  Index most_seen() const { return memory_.most_held() + compressed_.most_held(); }
  /// Vectors that become one.
  Index rate() const { return config_.rate; }
  /// Compressed vectors leave in groups of so many.
  Index stride() const { return compressed_.stride(); }

  template <class Visitor>
  void visit(Visitor&& see) {
    attention.visit(see);
    see("compression", compressor.maps);
    if (decoder.weight.size() > 0) see("decoder", decoder);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index = 0) const {
    return {memory_.make_state(batch), compressed_.make_state(batch),
            Tensor<T, Backend>::zeros(Shape{batch, most_used() ? memory_.most_held() : 0, 2})};
  }

  /// Causal attention over the segment and all that is held, which then moves on:
  /// x [B, L, d] -> [B, L, d]. @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const {
    return attend(state, x, norm, pass).context;
  }

  /// What `forward` does, with the queries and the compressed vectors that leave.
  Attended<T, Backend> attend(State& state, const V& x, const Norm& norm,
                              Pass<T, Backend>& pass) const {
    check(state, x, pass);
    require_causal_tokens("CompressiveMemory", pass);
    const Words words{narrow(x, pass.before, x.dim(1) - pass.behind), pass.before};
    Attended<T, Backend> attended;
    const bool look_at_it = pass.answer || most_used();
    std::optional<NoGrad> guard;
    if (!pass.answer) guard.emplace();
    const Seen seen = look_at_it ? look(state, x, norm) : Seen{};
    if (pass.answer) {
      attended.queries = seen.queries;
      attended.context = attention.out.forward(
          attention.read(seen.queries, seen.keys, seen.values, seen.positions, seen.visible));
      if (pass.traced && words.x.dim(1) > 0) show_past(state, seen, words, pass);
    }
    State next = state;
    if (most_used()) next.usage = used(state, seen);
    attended.leaving = advance(next, words, norm, seen, pass);
    if (Tape::active()) next.cache = {};  // a backward pass needs the memory more
    state = std::move(next);
    return attended;
  }

  /// The queries of vectors as attention sees them, [B, L, d] -> [B, L, H D].
  V queries(const V& x) const { return attention.query.forward(x); }

  /// Of `forward` behind full memories: see memory/flops.hpp. What only training computes, the
  /// compression's loss, does not count.
  double flops(Index batch, Index length) const {
    const double groups = static_cast<double>(length) / static_cast<double>(config_.rate);
    return detail::projected_attention_flops(sizes_.model_dim, {batch, length, most_seen() + length,
                                                                sizes_.heads, sizes_.head_dim}) +
           groups * compressor.flops(batch);
  }

 private:
  CompressiveMemory(const CompressiveConfig& config, const AttentionSizes& sizes,
                    const Random& random, RelativeAttention<T, Backend> maps)
      : attention(std::move(maps)),
        compressor((config.validate(), config.compression), config.rate, sizes.model_dim,
                   random.split(2).split(0)),
        config_(config),
        sizes_(sizes),
        memory_(sizes.model_dim, config.capacity, config.rate),
        compressed_(sizes.model_dim, config.compressed_capacity, std::max<Index>(config.stride, 1)),
        usage_(2, config.capacity, config.rate) {
    if (loss() == ReconstructionLoss::auto_encoding)
      decoder = Linear<T, Backend>(sizes.model_dim, config.rate * sizes.model_dim,
                                   random.split(2).split(1));
  }

  /// The vectors of a segment that are no memory tokens, and how many of these stand in front.
  struct Words {
    V x;
    Index before;
  };

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

  void check(const State& state, const V& x, const Pass<T, Backend>& pass) const {
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
    detail::require_segment("CompressiveMemory", x, batch, sizes_, pass);
  }

  /// With keys and values of what is held from the last call, unless a tape records.
  Seen look(State& state, const V& x, const Norm& norm) const {
    RowCounts held = state.memory.length;
    for (std::size_t row = 0; row < held.size(); ++row) held[row] += state.compressed.length[row];
    const Index past = detail::most_of(held), K = past + x.dim(1);
    const auto encoding = attention.encoding(most_seen() + x.dim(1));
    const Index longest = encoding.dim(0);
    // A row's compressed vectors stand right before its others, however many these are.
    const auto joined = [&](const Tensor<T, Backend>& compressed,
                            const Tensor<T, Backend>& memory) {
      return V(detail::right_aligned(compressed, {memory, state.memory.length},
                                     RowCounts(held.size(), 0), held, past));
    };
    Seen seen;
    seen.visible = detail::visible<Backend>(held, past);
    if (Tape::active()) {
      const detail::AttendedContext<T, Backend> context(
          joined(state.compressed.vectors, state.memory.vectors), x, norm);
      seen.queries = attention.query.forward(context.own());
      seen.keys = context.mapped(attention.key);
      seen.values = context.mapped(attention.value);
      seen.positions = attention.position.forward(V(encoding.slice(longest - K, longest)));
      return seen;
    }
    auto& [memory, compressed, positions] = state.cache;
    memory.hold(state.memory, detail::most_of(state.memory.length), attention, norm);
    compressed.hold(state.compressed, detail::most_of(state.compressed.length), attention, norm);
    const V normed = norm(x);
    const RowCounts length(held.size(), x.dim(1));
    seen.own_keys = {attention.key.forward(normed).value(), length};
    seen.own_values = {attention.value.forward(normed).value(), length};
    seen.queries = attention.query.forward(normed);
    seen.keys = concat(joined(compressed.keys(), memory.keys()), V(seen.own_keys.vectors));
    seen.values = concat(joined(compressed.values(), memory.values()), V(seen.own_values.vectors));
    seen.positions = positions.last(K, encoding, attention);
    return seen;
  }

  /// Shows what words read of all that is held, by its kind.
  void show_past(const State& state, const Seen& seen, const Words& words,
                 Pass<T, Backend>& pass) const {
    const Index past = seen.keys.dim(1) - seen.queries.dim(1);
    if (past == 0) return;
    const auto weights = detail::weights_by_row(
        attention.weights(seen.queries, seen.keys, seen.positions, seen.visible), words.before,
        words.x.dim(1), 0, past);
    detail::show_past_weights(weights, past, state.memory.length, memory_.most_held(),
                              state.compressed.length, compressed_.most_held(), pass);
  }

  /// The usage of the memory's vectors with what this segment makes of them.
  Tensor<T, Backend> used(const State& state, const Seen& seen) const {
    const AttentionSize s{seen.queries.dim(0), seen.queries.dim(1), seen.keys.dim(1), sizes_.heads,
                          sizes_.head_dim};
    const auto in =
        detail::attention_inputs(seen.queries, seen.keys, seen.values, seen.positions,
                                 attention.content_bias, attention.position_bias, seen.visible);
    const auto qu = detail::add_bias<Backend>(s, in.q, in.u),
               qw = detail::add_bias<Backend>(s, in.q, in.w);
    auto usage = state.usage.clone();
    detail::add_usage(s, detail::attention_weights(s, in, qu, qw), state.memory.length, usage);
    return usage;
  }

  /// Takes the segment's words in and compresses what leaves the memory for them; what leaves for
  /// good.
  RowSequences<T, Backend> advance(State& next, const Words& words, const Norm& norm,
                                   const Seen& seen, Pass<T, Backend>& pass) const {
    const Index batch = words.x.dim(0), length_of_words = words.x.dim(1);
    const bool keep = !seen.own_keys.vectors.empty();
    RowCounts held = next.memory.length;
    const auto leaving = memory_.write(next.memory, words.x.value());
    if (keep)
      next.cache.memory.move(memory_, held, of_words(seen.own_keys, words),
                             of_words(seen.own_values, words), next.memory);
    RowSequences<T, Backend> usage;
    if (most_used()) {
      RowSequences<T, Backend> state{next.usage, held};
      usage = usage_.write(state, Tensor<T, Backend>::zeros(Shape{batch, length_of_words, 2}));
      next.usage = state.vectors;
    }
    if (leaving.vectors.dim(1) == 0) {
      return {Tensor<T, Backend>::zeros(Shape{batch, 0, sizes_.model_dim}),
              RowCounts(static_cast<std::size_t>(batch), 0)};
    }
    RowCounts length = leaving.length;
    for (Index& n : length) n /= config_.rate;
    V compressed;
    if (most_used()) {
      compressed = V(detail::most_used(leaving, usage.vectors, config_.rate));
    } else if ((Tape::active() || pass.wants_losses()) && loss() != ReconstructionLoss::none) {
      compressed = compressor.forward(V(leaving.vectors));
      pass.lose("compression", loss() == ReconstructionLoss::attention
                                   ? attention_loss(norm, seen.queries, leaving, compressed, length)
                                   : auto_encoding_loss(leaving, compressed));
    } else {
      const auto guard = no_grad();
      compressed = compressor.forward(V(leaving.vectors));
    }
    held = next.compressed.length;
    auto out = compressed_.write(next.compressed, {compressed.value(), length});
    if (!keep) return out;
    const V normed = norm(compressed);
    next.cache.compressed.move(compressed_, held, {attention.key.forward(normed).value(), length},
                               {attention.value.forward(normed).value(), length}, next.compressed);
    return out;
  }

  /// What belongs to the segment's words.
  static RowSequences<T, Backend> of_words(const RowSequences<T, Backend>& all,
                                           const Words& words) {
    const Index begin = words.before, count = words.x.dim(1);
    return {narrow(V(all.vectors), begin, begin + count).value(),
            RowCounts(all.length.size(), count)};
  }

  /// See `attention_reconstruction`.
  V attention_loss(const Norm& norm, const V& queries, const RowSequences<T, Backend>& vectors,
                   const V& compressed, const RowCounts& length) const {
    const auto read = [&](const V& x, const RowCounts& count) {
      const V seen = norm.with_constants(x);
      return scaled_dot_product_attention<T, Backend>(
          queries.detach(), linear(seen, attention.key.weight.detach()),
          linear(seen, attention.value.weight.detach()),
          {.heads = sizes_.heads,
           .visible = Tensor<Index, Backend>::from(Shape{x.dim(0)}, count.data())});
    };
    return detail::attention_reconstruction(vectors, compressed, length, sizes_.head_dim, read);
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
