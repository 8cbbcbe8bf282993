// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/attended_context.hpp>
#include <infty/memory/compression.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/ops/reconstruction.hpp>
#include <infty/memory/past_weights.hpp>
#include <infty/nn/linear_bias.hpp>
#include <infty/nn/local_attention.hpp>
#include <infty/nn/multi_head_attention.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// The constants of a `CompressiveCausalAttention`. Defaults are those of the ∞-former's baseline
/// in language modelling [Martins et al. 2022, §4.2, App. C.2], with segments of 512.
struct CompressiveCausalConfig {
  Index compressed_capacity = 512;  ///< compressed vectors that a row holds (P §4.2)
  Index rate = 4;  ///< c, vectors that become one: 4 (P App. C.2), in dialogue 3 (P App. C.3)
  /// Least number of vectors that are held as they were, in front of the segment. P says "a
  /// compressed memory" and names no other.
  Index capacity = 0;
  /// How a group becomes one: "a CNN" (P §4.1); all but `most_used`.
  Compression compression = Compression::convolution;
  /// Whether the compression is trained by the attention-reconstruction loss (P App. C.2, C.3). If
  /// not, a convolution stays what it was at first.
  bool reconstruction = true;
  /// Slopes of the position bias at first: "a positional bias, based on Press et al. (2021)"
  /// (P §4.2), "attention positional biases" (P §4.3), of which P says no more.
  SlopeStart slopes = SlopeStart::zero;
  bool bias = true;  ///< of the four maps of attention

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    const char* const op = "CompressiveCausalConfig";
    require_at_least(op, "compressed_capacity", compressed_capacity, 0);
    require_at_least(op, "rate", rate, 1);
    require_at_least(op, "capacity", capacity, 0);
    require(compression != Compression::most_used, op,
            "compression is most_used: attention here does not count how often vectors are read");
    require_sizes(op, {{"compressed_capacity", compressed_capacity}});
    require_sizes(op, {{"rate", rate}});
    require_sizes(op, {{"capacity", capacity}});
  }
};

/// What a `CompressiveCausalAttention` remembers.
template <class T, class Backend = EigenBackend>
struct CompressiveCausalState {
  RowSequences<T, Backend> memory;      ///< vectors [batch, capacity + rate - 1, d]
  RowSequences<T, Backend> compressed;  ///< vectors [batch, compressed_capacity, d]

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("compressed", compressed);
  }
};

/// The ∞-former's baseline on GPT-2: "a compressed memory (compressive transformer) with a
/// positional bias, based on Press et al. (2021)" [Martins et al. 2022, §4.2]. Plain causal
/// attention, as `CausalAttention`'s, over compressed vectors of the past and the segment together,
/// one softmax, with a learned linear bias of the distance, which counts a compressed vector as one
/// place. When a segment has been read its vectors, as they came to the layer, leave in groups of
/// c, each of which becomes one [Rae et al. 2020, §3]; what does not fill a group stays as it was
/// and is read so.
///
/// No gradient flows into what is held. The compression learns from a loss of its own,
/// "compression" in the pass, whose gradient reaches its parameters and no others. With slopes of 0
/// a row that remembers nothing is read as by `CausalAttention` with the same maps.
///
/// A pass that is traced is shown how much words read of vectors that are held and of compressed
/// ones, as by `CompressiveMemory`.
template <class T, class Backend>
class CompressiveCausalAttention {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = CompressiveCausalConfig;
  using State = CompressiveCausalState<T, Backend>;
  using Norm = InputNorm<T, Backend>;

  MultiHeadAttention<T, Backend> maps;  ///< of queries, keys, values and answers
  LinearBias<T, Backend> position;      ///< of scores, by the distance
  Compressor<T, Backend> compressor;    ///< makes one vector of `rate`

  /// Makes the layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError if sizes or configuration are not valid
  explicit CompressiveCausalAttention(const Config& config, AttentionSizes sizes,
                                      Random random = Random(0))
      : maps((config.validate(), sizes.validate(), sizes.model_dim), sizes.heads, sizes.head_dim,
             random, config.bias),
        position(sizes.heads, config.slopes),
        compressor(config.compression, config.rate, sizes.model_dim, random.split(4)),
        config_(config),
        sizes_(sizes),
        memory_(sizes.model_dim, config.capacity, config.rate),
        compressed_(sizes.model_dim, config.compressed_capacity) {}

  /// The constants as given.
  const Config& config() const { return config_; }
  /// Most past vectors, compressed or not, that a query sees.
  Index most_seen() const { return memory_.most_held() + compressed_.most_held(); }

  /// Names what is not attention's own "memory.", as a memory beside attention has it.
  template <class Visitor>
  void visit(Visitor&& see) {
    maps.visit(see);
    see("memory.slopes", position.slopes);
    see("memory.compression", compressor.maps);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    return {memory_.make_state(batch), compressed_.make_state(batch)};
  }

  /// Causal attention over the segment and all that is held, which then moves on:
  /// x [B, L, d] -> [B, L, d]. @throws infty::ShapeError, and for memory tokens infty::ValueError;
  /// then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const {
    check(state, x, pass);
    State next = state;
    V y, queries;
    if (pass.answer) y = read(state, x, norm, pass, queries);
    advance(next, x, norm, queries, pass);
    state = std::move(next);
    return y;
  }

 private:
  void check(const State& state, const V& x, const Pass<T, Backend>& pass) const {
    const char* const op = "CompressiveCausalAttention";
    memory_.check(op, state.memory);
    compressed_.check(op, state.compressed);
    const Index batch = state.memory.vectors.dim(0);
    require<ShapeError>(state.compressed.vectors.dim(0) == batch, op, "the state holds vectors ",
                        state.memory.vectors.shape(), " and compressed ones ",
                        state.compressed.vectors.shape(), ": they must be of as many rows");
    detail::require_segment(op, x, batch, sizes_, pass);
    require(pass.before + pass.behind == 0, op, "there are ", pass.before, " and ", pass.behind,
            " memory tokens around the segment: it takes none");
  }

  /// What the segment reads of what is held and itself, and its queries.
  V read(const State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass,
         V& queries) const {
    const Index batch = x.dim(0), length = x.dim(1);
    RowCounts held = state.memory.length;
    for (std::size_t row = 0; row < held.size(); ++row) held[row] += state.compressed.length[row];
    const Index past = *std::max_element(held.begin(), held.end()), all = past + length;
    // A row's compressed vectors stand right before its others, however many these are.
    const V before(detail::right_aligned(state.compressed.vectors, state.memory,
                                         RowCounts(held.size(), 0), held, past));
    const detail::AttendedContext<T, Backend> context(before, x, norm);
    queries = maps.query.forward(context.own());
    const T scale = T(1) / std::sqrt(static_cast<T>(sizes_.head_dim));
    const V scaled = scale * queries, keys = context.mapped(maps.key),
            bias = position.by_distance(all);
    const LocalAttentionOptions<Backend> options{.heads = sizes_.heads,
                                                 .key_heads = sizes_.heads,
                                                 .visible = detail::visible<Backend>(held, past),
                                                 .dropout = pass.attention_dropout,
                                                 .random = pass.random};
    const V heads = local_attention(scaled, keys, context.mapped(maps.value), bias, options);
    if (pass.traced && past > 0)
      detail::show_past_weights(local_attention_weights(scaled, keys, bias, options), past,
                                state.memory.length, memory_.most_held(), state.compressed.length,
                                compressed_.most_held(), pass);
    return maps.out.forward(reshape(heads, Shape{batch, length, sizes_.inner()}));
  }

  /// Takes the segment in, and compresses what leaves for it.
  void advance(State& next, const V& x, const Norm& norm, const V& queries,
               Pass<T, Backend>& pass) const {
    const auto leaving = memory_.write(next.memory, x.value());
    if (leaving.vectors.dim(1) == 0) return;
    RowCounts length = leaving.length;
    for (Index& n : length) n /= config_.rate;
    const bool learns = config_.reconstruction && !compressor.maps.empty();
    V compressed;
    if (learns && pass.wants_losses()) {
      compressed = compressor.forward(V(leaving.vectors));
      const auto seen = [&](const V& some, const RowCounts& count) {
        const V normed = norm.with_constants(some);
        const auto mapped = [&](const Linear<T, Backend>& map) {
          return linear(normed, map.weight.detach(), map.bias.detach());
        };
        return scaled_dot_product_attention<T, Backend>(
            queries.detach(), mapped(maps.key), mapped(maps.value),
            {.heads = sizes_.heads,
             .visible = Tensor<Index, Backend>::from(Shape{some.dim(0)}, count.data())});
      };
      pass.lose("compression", detail::attention_reconstruction(leaving, compressed, length,
                                                                sizes_.head_dim, seen));
    } else {
      const auto guard = no_grad();
      compressed = compressor.forward(V(leaving.vectors));
    }
    compressed_.write(next.compressed, {compressed.value(), length});
  }

  Config config_;
  AttentionSizes sizes_;
  Fifo<T, Backend> memory_, compressed_;
};

}  // namespace infty
