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
#include <infty/memory/lamemo_config.hpp>
#include <infty/memory/memory.hpp>
#include <infty/memory/past_weights.hpp>
#include <infty/memory/renewed_past.hpp>
#include <infty/nn/look_ahead_attention.hpp>
#include <infty/nn/relative_attention.hpp>

namespace infty {

/// What a LaMemo layer holds of the vectors that it remembers, the latest last.
template <class T, class Backend>
struct LaMemoState {
  /// [batch, capacity, H D], what each has read by attention; without interpolation of width 0
  Tensor<T, Backend> context;
  /// [batch, capacity, H], the logarithm of its denominator; without either option of width 0
  Tensor<T, Backend> log_sum;
  RowCounts held;    ///< [batch], how many vectors there are
  RowCounts unseen;  ///< [batch], the latest of them, which none has looked ahead at

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
///
/// A pass that is traced is shown "alpha", [batch, M, H], by every layer behind M > 0 vectors: the
/// share that what a vector had read keeps (Eq. 11), of the vectors at places 0, ..., M - 1, the
/// oldest first. Of a row that holds fewer than M, the last ones count. Where there is an answer,
/// it is shown how much words read of the past before that, "past_weights" [batch, H, words,
/// capacity], the latest vector at the last place.
template <class T, class Backend>
class LaMemo {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = LaMemoConfig;
  using State = LaMemoState<T, Backend>;
  using V = Variable<T, Backend>;
  using Norm = InputNorm<T, Backend>;
  /// What a stack of such layers stands in, to hold their inputs.
  template <class Stack>
  using Around = RenewedPast<Stack>;

  RelativeAttention<T, Backend> attention;  ///< of segment and past, to both sides
  V future_bias;  ///< [H, D], zeros at first; siblings share it. Empty where it has no use

  /// Makes the memory of a layer, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError for sizes or a configuration that cannot be
  explicit LaMemo(Config config, AttentionSizes sizes, Random random = Random(0))
      : attention((config.validate(), sizes), random.split(0)), config_(config), sizes_(sizes) {
    if (config.has_future_bias())
      future_bias = V(Tensor<T, Backend>::zeros(Shape{sizes.heads, sizes.head_dim}), true);
  }

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
    if (config_.has_future_bias()) see("future_bias", future_bias);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index = 0) const {
    require_rows("LaMemo::make_state", batch);
    const auto zeros = [&](Index width) {
      return Tensor<T, Backend>::zeros(Shape{batch, config_.capacity, width});
    };
    const RowCounts none(static_cast<std::size_t>(batch), 0);
    return {zeros(context_width()), zeros(sums_width()), none, none};
  }

  /// Attends to the past, which stands in front, and to the segment; renews the past, and moves the
  /// state on.
  /// @param x  [B, M + L, d], the renewed past and the segment: M = pass.before is what the row
  /// with
  ///           most holds
  /// @return   [B, M + L, d], or [B, L, d] where nobody wants the past's answers
  /// @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const {
    return attend(state, x, norm, pass).context;
  }

  /// What `forward` does, with the queries of the segment and the vectors that are let go.
  Attended<T, Backend> attend(State& state, const V& x, const Norm& norm,
                              Pass<T, Backend>& pass) const {
    const Index past = check(state, x, pass), K = x.dim(1), L = K - past;
    std::optional<NoGrad> no_answer;
    if (!pass.answer) no_answer.emplace();
    const V seen = norm(x);
    const V keys = attention.key.forward(seen), values = attention.value.forward(seen);
    const auto encoding = attention.encoding(config_.capacity + L);
    const Index longest = encoding.dim(0);
    const V positions = attention.position.forward(V(encoding.slice(longest - K, longest)));
    Tensor<T, Backend> log_sum;
    Attended<T, Backend> attended;
    attended.queries = queries(narrow(seen, past, K));
    const auto visible = detail::visible<Backend>(state.held, past);
    const V context =
        relative_attention(attended.queries, keys, values, positions, attention.content_bias,
                           attention.position_bias, visible, sums_width() > 0 ? &log_sum : nullptr);
    V& answer = attended.context;
    if (pass.answer) answer = attention.out.forward(context);
    if (pass.traced && pass.answer && past > 0)
      detail::show_past_weights(
          "past_weights",
          detail::weights_by_row(attention.weights(attended.queries, keys, positions, visible)),
          RowCounts(state.held.size(), past), state.held, config_.capacity, pass);

    auto had_read = read_before(state, past);
    if (past > 0) {
      const bool renew = pass.answer && pass.answer_before;
      std::optional<NoGrad> guard;
      if (!renew) guard.emplace();
      const V renewed = look_ahead(state, seen, keys, values, positions, had_read, pass);
      had_read.context = renewed.value();
      if (renew) answer = concat(attention.out.forward(renewed), answer);
    }
    const RowCounts held = state.held;
    state = moved_on(state, had_read, context.value(), log_sum);
    attended.leaving = let_go(x.value(), past, held, state.held);
    return attended;
  }

  /// The queries of vectors as attention sees them, [B, L, d] -> [B, L, H D].
  V queries(const V& x) const { return attention.query.forward(x); }

  /// Multiplications and additions of the products of `forward` behind a full memory, where the
  /// past is renewed.
  double flops(Index batch, Index length) const {
    const Index past = config_.capacity, e = sizes_.inner();
    const auto size = [&](Index queries, Index keys) {
      return AttentionSize{batch, queries, keys, sizes_.heads, sizes_.head_dim};
    };
    const double map = detail::product_flops(past, e, sizes_.model_dim);
    const double maps = static_cast<double>(batch) * map;  // of all rows
    const double kept =
        detail::projected_attention_flops(sizes_.model_dim, size(length, past + length)) + maps;
    if (!config_.look_ahead) return kept;
    return kept + maps + detail::attention_flops(size((std::min)(length, past), past)) +
           (config_.has_future_bias() ? 0 : map);  // distances to the right have their own
  }

 private:
  /// Widths of what the state holds: no more than the next segment needs.
  Index context_width() const { return config_.interpolation ? sizes_.inner() : 0; }
  Index sums_width() const {
    return config_.interpolation && config_.look_ahead ? sizes_.heads : 0;
  }

  /// What the past of `past` vectors has read until now, as far as that counts.
  RunningAttention<T, Backend> read_before(const State& state, Index past) const {
    if (!config_.interpolation)
      return RunningAttention<T, Backend>::nothing(static_cast<Index>(state.held.size()), past,
                                                   sizes_.heads, sizes_.head_dim);
    return {latest(state.context, past), latest(state.log_sum, past)};
  }

  /// What the past has read by now, [B, M, H D], from what all vectors are, [B, M + L, d], and
  /// their keys and values. Brings the denominators of `had_read` up to now, too.
  V look_ahead(const State& state, const V& seen, const V& keys, const V& values,
               const V& positions, RunningAttention<T, Backend>& had_read,
               Pass<T, Backend>& pass) const {
    const Index past = had_read.context.dim(1);
    if (!config_.look_ahead) {
      const Shape each{seen.dim(0), past, sizes_.heads};
      if (pass.traced) pass.show("alpha", V(Tensor<T, Backend>::full(each, T(1))));
      return V(had_read.context);
    }
    const bool disentangled = config_.has_future_bias();
    const Index ahead = *std::max_element(state.unseen.begin(), state.unseen.end());
    const Index first = past - ahead + 1;
    Tensor<T, Backend> share;
    const V read = look_ahead_attention(
        attention.query.forward(narrow(seen, 0, past)), narrow(keys, first, past + 1),
        narrow(values, first, past + 1), disentangled ? positions : to_the_right(past),
        attention.content_bias, disentangled ? future_bias : attention.position_bias, had_read,
        detail::visible<Backend>(state.unseen, ahead), &had_read.log_sum,
        pass.traced ? &share : nullptr);
    if (pass.traced) pass.show("alpha", V(share));
    return read;
  }

  /// The projected encodings of the distances -longest, ..., 0.
  V to_the_right(Index longest) const {
    const auto encoding = attention.encoding(longest + 1);
    const Index all = encoding.dim(0);
    return attention.position.forward(V(negated_distances(encoding.slice(all - longest - 1, all))));
  }

  /// The state with what the past and the L vectors of the segment have read.
  State moved_on(const State& state, const RunningAttention<T, Backend>& renewed,
                 const Tensor<T, Backend>& context, const Tensor<T, Backend>& log_sum) const {
    const auto rows = state.held.size();
    const Index L = context.dim(1);
    State next = state;
    const RowCounts none(rows, 0), added(rows, L);
    for (std::size_t row = 0; row < rows; ++row) {
      next.held[row] = (std::min)(config_.capacity, state.held[row] + L);
      next.unseen[row] = (std::min)(next.held[row], L);
    }
    const auto kept = [&](const Tensor<T, Backend>& old, const Tensor<T, Backend>& x) {
      return detail::right_aligned(old, {x, added}, none, next.held, config_.capacity);
    };
    if (context_width() > 0) next.context = kept(renewed.context, context);
    if (sums_width() > 0) next.log_sum = kept(renewed.log_sum, log_sum);
    return next;
  }

  /// What of x [B, M + L, d], the past and the segment, each row does not hold any more.
  static RowSequences<T, Backend> let_go(const Tensor<T, Backend>& x, Index past,
                                         const RowCounts& before, const RowCounts& after) {
    const Index L = x.dim(1) - past;
    RowCounts leave(before.size()), added(before.size(), L);
    for (std::size_t row = 0; row < leave.size(); ++row) leave[row] = before[row] + L - after[row];
    return {detail::right_aligned(narrow(V(x), 0, past).value(),
                                  {narrow(V(x), past, x.dim(1)).value(), added}, after, leave,
                                  *std::max_element(leave.begin(), leave.end())),
            leave};
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
    require<ShapeError>(batch >= 1, op, "the segment is ", x.shape(), ": it must have a row");
    const auto rows = static_cast<std::size_t>(batch);
    const Shape context{batch, C, context_width()}, log_sum{batch, C, sums_width()};
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
      past = (std::max)(past, n);
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
