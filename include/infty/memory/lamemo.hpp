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
#include <infty/memory/renewed_past.hpp>
#include <infty/nn/look_ahead_attention.hpp>
#include <infty/nn/relative_attention.hpp>

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

/// What a LaMemo layer holds of the vectors that it remembers, the latest last.
template <class T, class Backend>
struct LaMemoState {
  Tensor<T, Backend> context;  ///< [batch, capacity, H D], what each has read by attention
  Tensor<T, Backend> log_sum;  ///< [batch, capacity, H], the logarithm of its denominator
  RowCounts held;              ///< [batch], how many vectors there are
  RowCounts unseen;            ///< [batch], the latest of them, which none has looked ahead at

  template <class Visitor>
  void visit(Visitor&& see) {
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
/// goes through the rest of the layer, and the segment attends to it in the layer above: the stack
/// stands inside a `RenewedPast`, which holds the inputs of the first layer. So all that is held
/// besides is what each vector has read in each layer; no gradient flows into these. A token costs
/// a pass of all remembered vectors through the layers, so segments should not be much shorter than
/// the memory.
///
/// The authors' program takes the number of new vectors to be the current segment's length. That is
/// the same for segments of one length; for others it would pass vectors over or see them twice.
///
/// Distances have one encoding, whichever way they go. The content scores and the position scores
/// to the left have the biases of the attention, the position scores to the right one of their own:
/// these tell the ways apart [Ji et al. 2022, disentangled relative positions].
template <class T, class Backend>
class LaMemo {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = LaMemoConfig;
  using State = LaMemoState<T, Backend>;
  using V = Variable<T, Backend>;
  using Norm = InputNorm<T, Backend>;
  template <class Stack>
  using Around = RenewedPast<Stack>;

  RelativeAttention<T, Backend> attention;
  V future_bias;  ///< [H, D], zeros at first; siblings share it

  /// @throws infty::ValueError for sizes or a configuration that cannot be
  explicit LaMemo(Config config, AttentionSizes sizes, Random random = Random(0))
      : attention((config.validate(), sizes), random.split(0)),
        future_bias(Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true),
        config_(config),
        sizes_(sizes) {}

  /// The memory of another layer of the same model, which shares the biases and what else attention
  /// shares.
  LaMemo sibling(Random random) const {
    LaMemo other = *this;
    other.attention = attention.sibling(random.split(0));
    return other;
  }

  /// The constants as given.
  const Config& config() const { return config_; }
  /// Vectors that a row holds at most.
  Index capacity() const { return config_.capacity; }
  /// d.
  Index model_dim() const { return sizes_.model_dim; }

  template <class Visitor>
  void visit(Visitor&& see) {
    attention.visit(see);
    see("future_bias", future_bias);
  }

  /// A state of fresh rows. @throws infty::ValueError unless batch >= 1
  State make_state(Index batch, Index = 0) const {
    require(batch >= 1, "LaMemo::make_state", "batch is ", batch, ": it must be >= 1");
    const auto zeros = [&](Index width) {
      return Tensor<T, Backend>::zeros(Shape{batch, config_.capacity, width});
    };
    const RowCounts none(static_cast<std::size_t>(batch), 0);
    return {zeros(sizes_.inner()), zeros(sizes_.heads), none, none};
  }

  /// Attends to the past, which stands in front, and to the segment; renews the past, and moves the
  /// state on.
  /// @param x  [B, M + L, d], the renewed past and the segment: M = pass.before is what the row
  /// with
  ///           most holds
  /// @return   [B, M + L, d], or [B, L, d] where nobody wants the past's answers
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const {
    const Index past = check(state, x, pass), K = x.dim(1), L = K - past;
    std::optional<NoGrad> no_answer;
    if (!pass.answer) no_answer.emplace();
    const V seen = norm(x);
    const V keys = attention.key.forward(seen), values = attention.value.forward(seen);
    const auto encoding = attention.encoding(config_.capacity + L);
    const Index longest = encoding.dim(0);
    const V positions = attention.position.forward(V(encoding.slice(longest - K, longest)));
    Tensor<T, Backend> log_sum;
    const V context =
        relative_attention(attention.query.forward(narrow(seen, past, K)), keys, values, positions,
                           attention.content_bias, attention.position_bias,
                           detail::visible<Backend>(state.held, past), &log_sum);
    V answer;
    if (pass.answer) answer = attention.out.forward(context);

    RunningAttention<T, Backend> renewed = {latest(state.context, past),
                                            latest(state.log_sum, past)};
    if (past > 0) {
      const bool renew = pass.answer && pass.answer_before;
      std::optional<NoGrad> guard;
      if (!renew) guard.emplace();
      const Index ahead = *std::max_element(state.unseen.begin(), state.unseen.end());
      const Index first = past - ahead + 1;
      const V read = look_ahead_attention(
          attention.query.forward(narrow(seen, 0, past)), narrow(keys, first, past + 1),
          narrow(values, first, past + 1), positions, attention.content_bias, future_bias, renewed,
          detail::visible<Backend>(state.unseen, ahead), &renewed.log_sum);
      renewed.context = read.value();
      if (renew) answer = concat(attention.out.forward(read), answer);
    }
    state = moved_on(state, renewed, context.value(), log_sum);
    return answer;
  }

  /// Multiplications and additions of the products of `forward` behind a full memory, where the
  /// past is renewed.
  double flops(Index batch, Index length) const {
    const Index past = config_.capacity, e = sizes_.inner();
    const auto size = [&](Index queries, Index keys) {
      return AttentionSize{batch, queries, keys, sizes_.heads, sizes_.head_dim};
    };
    return detail::projected_attention_flops(sizes_.model_dim, size(length, past + length)) +
           static_cast<double>(batch) * detail::product_flops(past, 2 * e, sizes_.model_dim) +
           detail::attention_flops(size(std::min(length, past), past));
  }

 private:
  /// The state with what the past and the L vectors of the segment have read.
  State moved_on(const State& state, const RunningAttention<T, Backend>& renewed,
                 const Tensor<T, Backend>& context, const Tensor<T, Backend>& log_sum) const {
    const auto rows = state.held.size();
    const Index L = context.dim(1);
    State next{{}, {}, state.held, state.held};
    const RowCounts none(rows, 0), added(rows, L);
    for (std::size_t row = 0; row < rows; ++row) {
      next.held[row] = std::min(config_.capacity, state.held[row] + L);
      next.unseen[row] = std::min(next.held[row], L);
    }
    const auto kept = [&](const Tensor<T, Backend>& old, const Tensor<T, Backend>& x) {
      return detail::right_aligned(old, {x, added}, none, next.held, config_.capacity);
    };
    next.context = kept(renewed.context, context);
    next.log_sum = kept(renewed.log_sum, log_sum);
    return next;
  }

  /// The last `count` vectors of every row of x [B, capacity, width].
  static Tensor<T, Backend> latest(const Tensor<T, Backend>& x, Index count) {
    return narrow(V(x), x.dim(1) - count, x.dim(1)).value();
  }

  /// M, the most vectors that a row holds. @throws infty::ShapeError
  Index check(const State& state, const V& x, const Pass<T, Backend>& pass) const {
    const char* const op = "LaMemo::forward";
    detail::require_segment(op, x, static_cast<Index>(state.held.size()), sizes_, pass);
    const Index batch = x.dim(0), C = config_.capacity;
    const auto rows = static_cast<std::size_t>(batch);
    const Shape context{batch, C, sizes_.inner()}, log_sum{batch, C, sizes_.heads};
    require<ShapeError>(state.context.shape() == context && state.log_sum.shape() == log_sum &&
                            state.unseen.size() == rows,
                        op, "the state holds ", state.context.shape(), " and ",
                        state.log_sum.shape(), " of ", state.held.size(), " and ",
                        state.unseen.size(), " rows: another memory made it, ours are ", context,
                        " and ", log_sum);
    Index past = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const Index n = state.held[row], ahead = state.unseen[row];
      require<ShapeError>(0 <= n && n <= C && std::min<Index>(n, 1) <= ahead && ahead <= n, op,
                          "row ", row, " holds ", n, " vectors, ", ahead,
                          " of them unseen: they must be <= ", C,
                          " and <= the former, and >= 1 unless there are none");
      past = std::max(past, n);
    }
    require<ShapeError>(
        pass.before == past && pass.behind == 0 && x.dim(1) > past, op, "of ", x.dim(1),
        " vectors ", pass.before, " are the past and ", pass.behind,
        " are memory tokens behind: the state holds ", past,
        " vectors, which must stand in front of at least one (RenewedPast does that)");
    return past;
  }

  Config config_;
  AttentionSizes sizes_;
};

}  // namespace infty
