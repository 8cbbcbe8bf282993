// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/memory.hpp>
#include <infty/nn/look_ahead_attention.hpp>

namespace infty {

/// Constants of a `LaMemo`.
struct LaMemoConfig {
  /// Vectors that a row holds at most. 150 on WikiText-103, as long as a segment; 512 on enwik8 and
  /// text8 [Ji et al. 2022].
  Index capacity = 150;

  /// @throws infty::ValueError unless capacity >= 0 and at most `largest_size`
  void validate() const {
    require(capacity >= 0, "LaMemoConfig", "capacity is ", capacity, ": it must be >= 0");
    require_sizes("LaMemoConfig", {{"capacity", capacity}});
  }
};

/// What all layers of a LaMemo model share, [H, D] each and zeros at first: the biases of the
/// content scores and of the position scores to the left, as in the Transformer-XL, and those of
/// the position scores to the right. Distances have one encoding, whichever way they go, and the
/// two biases tell the ways apart [Ji et al. 2022, disentangled relative positions].
template <class T, class Backend = EigenBackend>
struct LaMemoBiases {
  Variable<T, Backend> content, position, future;

  LaMemoBiases() = default;

  explicit LaMemoBiases(const AttentionSizes& sizes)
      : content(zeros(sizes)), position(zeros(sizes)), future(zeros(sizes)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("content_bias", content);
    see("position_bias", position);
    see("future_bias", future);
  }

 private:
  static Variable<T, Backend> zeros(const AttentionSizes& sizes) {
    return {Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true};
  }
};

/// What a LaMemo holds of the vectors that it remembers, the latest last.
template <class T, class Backend>
struct LaMemoState {
  RowSequences<T, Backend> input;  ///< [batch, capacity, d] in the first layer, empty elsewhere
  Tensor<T, Backend> context;      ///< [batch, capacity, H D], what each has read by attention
  Tensor<T, Backend> log_sum;      ///< [batch, capacity, H], the logarithm of its denominator
  RowCounts held;                  ///< [batch], how many vectors there are
  RowCounts unseen;                ///< [batch], the latest of them, which none has looked ahead at

  template <class Visitor>
  void visit(Visitor&& see) {
    see("input", input);
    see("context", context);
    see("log_sum", log_sum);
    see("held", held);
    see("unseen", unseen);
  }
};

/// Look-ahead memory [Ji et al. 2022]: vectors of the past, which a Transformer-XL keeps as they
/// were, look ahead at what has come since. With every segment each of them attends to the vectors
/// on its right up to the segment's first (the new ones only: what lay further to the left it has
/// seen), and what it reads is averaged with what it had read, by the two denominators. It then
/// goes through the rest of the layer, and the segment attends to it in the layer above. So all
/// that is held is the inputs of the first layer and what each vector has read in each layer; no
/// gradient flows into these. A token costs a pass of all remembered vectors through the layers, so
/// segments should not be much shorter than the memory.
///
/// The authors' program takes the number of new vectors to be the current segment's length. That is
/// the same for segments of one length; for others it would pass vectors over or see them twice.
template <class T, class Backend>
class LaMemo {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = LaMemoConfig;
  using State = LaMemoState<T, Backend>;
  using Biases = LaMemoBiases<T, Backend>;
  using Reading = MemoryReading<T, Backend>;
  using SegmentType = Segment<T, Backend, Biases>;
  using V = Variable<T, Backend>;

  LaMemo() = default;

  /// No parameters of its own: nothing is drawn. @throws infty::ValueError for sizes or a
  /// configuration that cannot be
  LaMemo(Config config, AttentionSizes sizes, Random) : config_(config), sizes_(sizes) {
    config_.validate();
    sizes_.validate();
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&&) {}

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index = 0) const {
    require(batch >= 1, "LaMemo::make_state", "batch is ", batch, ": it must be >= 1");
    const auto zeros = [&](Index length, Index width) {
      return Tensor<T, Backend>::zeros(Shape{batch, length, width});
    };
    const RowCounts none(static_cast<std::size_t>(batch), 0);
    return {{zeros(0, sizes_.model_dim), none},
            zeros(config_.capacity, sizes_.inner()),
            zeros(config_.capacity, sizes_.heads),
            none,
            none};
  }

  /// Attends to the past and the segment, renews the past, and moves the state on.
  /// @throws infty::ShapeError if the state or the renewed past from the layer below do not fit;
  /// then the state is as it was
  Reading forward(State& state, const SegmentType& segment) const {
    Reading reading;
    advance("LaMemo::forward", state, segment, reading, true);
    return reading;
  }

  /// Moves the state on as `forward` does, and returns the vectors that it let go.
  RowSequences<T, Backend> observe(State& state, const SegmentType& segment) const {
    const auto guard = no_grad();
    Reading reading;
    advance("LaMemo::observe", state, segment, reading, false);
    return std::move(reading.leaving);
  }

  /// Most past vectors that queries see.
  Index reach() const { return config_.capacity; }

  /// Multiplications and additions of the products of `forward` behind a full memory, where the
  /// past is renewed.
  double flops(Index batch, Index length) const {
    const Index past = config_.capacity, e = sizes_.inner();
    const auto attention = [&](Index queries, Index keys) {
      return AttentionSize{batch, queries, keys, sizes_.heads, sizes_.head_dim};
    };
    return detail::projected_attention_flops(sizes_.model_dim, attention(length, past + length)) +
           static_cast<double>(batch) * detail::product_flops(past, 2 * e, sizes_.model_dim) +
           detail::attention_flops(attention(std::min(length, past), past));
  }

 private:
  /// All of `forward`; with `answer` also the outputs.
  void advance(const char* op, State& state, const SegmentType& segment, Reading& reading,
               bool answer) const {
    const Index past = check(op, state, segment), L = segment.length(), K = past + L;
    const auto& attention = segment.attention;
    const auto& biases = segment.biases;
    const V vectors = remembered(state, segment, past);  // [B, M, d]
    const V seen = segment.normed(concat(vectors, segment.x));
    const V keys = attention.key.forward(seen), values = attention.value.forward(seen);
    const Index longest = segment.encoding.dim(0);
    const V positions = attention.position.forward(V(segment.encoding.slice(longest - K, longest)));
    reading.queries = attention.query.forward(narrow(seen, past, K));
    Tensor<T, Backend> log_sum;
    const V context =
        relative_attention(reading.queries, keys, values, positions, biases.content,
                           biases.position, detail::visible<Backend>(state.held, past), &log_sum);
    if (answer) reading.context = attention.out.forward(context);

    RunningAttention<T, Backend> renewed = {latest(state.context, past),
                                            latest(state.log_sum, past)};
    if (past > 0) {
      const bool renew = answer && segment.renew;
      std::optional<NoGrad> guard;
      if (!renew) guard.emplace();
      const Index ahead = *std::max_element(state.unseen.begin(), state.unseen.end());
      const Index first = past - ahead + 1;
      const V read = look_ahead_attention(
          attention.query.forward(narrow(seen, 0, past)), narrow(keys, first, past + 1),
          narrow(values, first, past + 1), positions, biases.content, biases.future, renewed,
          detail::visible<Backend>(state.unseen, ahead), &renewed.log_sum);
      renewed.context = read.value();
      if (renew) {
        reading.past = vectors;
        reading.past_context = attention.out.forward(read);
      }
    }

    const auto rows = state.held.size();
    State next{state.input, {}, {}, state.held, state.held};
    RowCounts leave(rows), none(rows, 0), added(rows, L);
    for (std::size_t row = 0; row < rows; ++row) {
      next.held[row] = std::min(config_.capacity, state.held[row] + L);
      next.unseen[row] = std::min(next.held[row], L);
      leave[row] = state.held[row] + L - next.held[row];
    }
    const auto kept = [&](const Tensor<T, Backend>& old, const Tensor<T, Backend>& x) {
      return detail::right_aligned(old, {x, added}, none, next.held, config_.capacity);
    };
    next.context = kept(renewed.context, context.value());
    next.log_sum = kept(renewed.log_sum, log_sum);
    if (!segment.past) next.input = {kept(vectors.value(), segment.x.value()), next.held};
    reading.leaving = {detail::right_aligned(vectors.value(), {segment.x.value(), added}, next.held,
                                             leave, *std::max_element(leave.begin(), leave.end())),
                       leave};
    state = std::move(next);
  }

  /// The last `count` vectors of every row of x [B, capacity, width].
  static Tensor<T, Backend> latest(const Tensor<T, Backend>& x, Index count) {
    return narrow(V(x), x.dim(1) - count, x.dim(1)).value();
  }

  /// [B, M, d]: as the layer below has renewed them; in the first layer, which has none below, the
  /// inputs.
  V remembered(const State& state, const SegmentType& segment, Index past) const {
    if (past == 0) return V(Tensor<T, Backend>(Shape{segment.x.dim(0), 0, sizes_.model_dim}));
    return segment.past ? *segment.past : V(latest(state.input.vectors, past));
  }

  /// M, the most vectors that a row holds. @throws infty::ShapeError
  Index check(const char* op, const State& state, const SegmentType& segment) const {
    const V& x = segment.x;
    require<ShapeError>(x.shape().rank() == 3 && x.dim(1) >= 1 && x.dim(2) == sizes_.model_dim, op,
                        "x is ", x.shape(), ": it must be [B, L, ", sizes_.model_dim, "], L >= 1");
    const Index batch = x.dim(0), C = config_.capacity, longest = C + x.dim(1);
    const auto rows = static_cast<std::size_t>(batch);
    const Shape context{batch, C, sizes_.inner()}, log_sum{batch, C, sizes_.heads};
    require<ShapeError>(state.context.shape() == context && state.log_sum.shape() == log_sum &&
                            state.held.size() == rows && state.unseen.size() == rows,
                        op, "the state holds ", state.context.shape(), " and ",
                        state.log_sum.shape(), " of ", state.held.size(), " and ",
                        state.unseen.size(), " rows: another memory made it, ours are ", context,
                        " and ", log_sum);
    detail::checked_rows(op, state);
    Index past = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const Index n = state.held[row], ahead = state.unseen[row];
      require<ShapeError>(0 <= n && n <= C && std::min<Index>(n, 1) <= ahead && ahead <= n, op,
                          "row ", row, " holds ", n, " vectors, ", ahead,
                          " of them unseen: they must be <= ", C,
                          " and <= the former, and >= 1 unless there are none");
      past = std::max(past, n);
    }
    if (past > 0) {
      const Shape expected{batch, segment.past ? past : C, sizes_.model_dim};
      const Shape& vectors = segment.past ? segment.past->shape() : state.input.vectors.shape();
      require<ShapeError>(vectors == expected, op,
                          segment.past ? "the renewed past is " : "inputs of this layer are ",
                          vectors, ": they must be ", expected);
    }
    require<ShapeError>(segment.encoding.rank() == 2 && segment.encoding.dim(0) >= longest, op,
                        "encoding is ", segment.encoding.shape(), ": it must be [>= ", longest,
                        ", ", sizes_.model_dim, "]");
    return past;
  }

  Config config_;
  AttentionSizes sizes_;
};

}  // namespace infty
