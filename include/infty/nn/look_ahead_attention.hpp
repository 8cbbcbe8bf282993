// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/row.hpp>
#include <infty/core/verify.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/memory_interpolation.hpp>

namespace infty {

namespace detail {

// Below, AttentionSize counts M past vectors as queries and W keys, those at places M - W + 1 to M.
// Query i, at place i, sees the keys to its right: key c, at distance M - W + 1 + c - i, if that is
// >= 1 and if the key is among the last `visible` ones.

/// The first key that query i of row b sees.
template <class T>
INFTY_HOST_DEVICE Index first_ahead(const AttentionSize& s, const AttentionInputs<T>& in, Index b,
                                    Index i) {
  const Index right = s.keys + i - s.queries;
  const Index begin = in.visible && s.keys - in.visible[b] > right ? s.keys - in.visible[b] : right;
  // A row that holds nothing has queries too, which nobody uses.
  return begin < 0 ? 0 : begin >= s.keys ? s.keys - 1 : begin;
}

/// Queries [first, first + count) and the distances at which keys stand before them: as many as
/// `distances` from the longest one, M - first, down. Their products with all distances up to M
/// would take memory in the square of M.
struct AheadBlock {
  Index first, count, distances;
};

/// Calls f(block) for blocks of all queries.
template <class F>
void for_each_ahead_block(const AttentionSize& s, F f) {
  const Index most = std::max<Index>(s.keys, 64);
  for (Index first = 0; first < s.queries; first += most) {
    const Index count = (std::min)(most, s.queries - first), last = first + count - 1;
    const Index shortest = std::max<Index>(1, s.queries - s.keys + 1 - last);
    f(AheadBlock{first, count, s.queries - first - shortest + 1});
  }
}

/// scores (H, B, M, W) of one block += (q + w) r, where column c of by_distance (H, B, count,
/// distances) stands for distance M - first - c.
template <class T, class B>
void add_ahead_positions(const AttentionSize& s, const AttentionInputs<T>& in,
                         const AheadBlock& block, Tensor<T, B>& scores) {
  const Index e = s.model(), rows = s.batch * block.count;
  const auto qw = add_bias<B>(s, in.q, in.w, block.first, block.count);
  Tensor<T, B> by_distance(Shape{s.heads, rows, block.distances});
  B::matmul({.m = rows,
             .n = block.distances,
             .k = s.head_dim,
             .a = {.leading = e, .inner = s.head_dim},
             .b = {.leading = e, .inner = s.head_dim, .transposed = true},
             .c = {.leading = block.distances, .inner = rows * block.distances},
             .inner = s.heads},
            T(1), qw.data(), in.r + block.first * e, T(0), by_distance.data());
  T* const to = scores.data();
  const T* const from = by_distance.data();
  B::for_each_row(s.heads * rows, 2 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = row % block.count, b = row / block.count % s.batch;
    T* const x = to + (row / block.count * s.queries + block.first + i) * s.keys;
    const T* const distant = from + row * block.distances + i + s.keys - 1;
    for (Index c = first_ahead(s, in, b, block.first + i); c < s.keys; ++c) x[c] += distant[-c];
  });
}

/// The weights (H, B, M, W) of the keys, zero for those that a query does not see, and the
/// logarithms of their denominators, log_sum (B, M, H), unless that is null.
template <class T, class B>
Tensor<T, B> ahead_weights(const AttentionSize& s, const AttentionInputs<T>& in,
                           const Tensor<T, B>& qu, T* log_sum) {
  Tensor<T, B> weights(Shape{s.heads, s.batch, s.queries, s.keys});
  head_scores<B>(s, qu.data(), in.k, weights.data());
  for_each_ahead_block(
      s, [&](const AheadBlock& block) { add_ahead_positions(s, in, block, weights); });
  T* const p = weights.data();
  const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
  B::for_each_row(s.heads * s.batch * s.queries, 8 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = row % s.queries, b = row / s.queries % s.batch,
                head = row / s.queries / s.batch;
    const Index begin = first_ahead(s, in, b, i);
    T* const x = p + row * s.keys;
    for (Index c = 0; c < begin; ++c) x[c] = T(0);
    for (Index c = begin; c < s.keys; ++c) x[c] *= factor;
    const T log_of_sum = row_softmax(s.keys - begin, x + begin);
    if (log_sum) log_sum[(b * s.queries + i) * s.heads + head] = log_of_sum;
  });
  return weights;
}

/// Adds what the scores' gradients (H, B, M, W) of one block mean for r, w and q.
template <class T, class B>
void ahead_positions_grad(const AttentionSize& s, const AttentionInputs<T>& in,
                          const AheadBlock& block, const Tensor<T, B>& scores,
                          const AttentionGradients<T>& to) {
  const Index e = s.model(), rows = s.batch * block.count;
  Tensor<T, B> by_distance(Shape{s.heads, rows, block.distances});
  {
    const T* const from = scores.data();
    T* const out = by_distance.data();
    B::for_each_row(s.heads * rows, 2 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
      const Index i = row % block.count, b = row / block.count % s.batch;
      const T* const x = from + (row / block.count * s.queries + block.first + i) * s.keys;
      T* const distant = out + row * block.distances;
      for (Index c = 0; c < block.distances; ++c) distant[c] = T(0);
      for (Index c = first_ahead(s, in, b, block.first + i); c < s.keys; ++c)
        distant[i + s.keys - 1 - c] = x[c];
    });
  }
  if (to.r) {
    const auto qw = add_bias<B>(s, in.q, in.w, block.first, block.count);
    B::matmul(
        {.m = block.distances,
         .n = s.head_dim,
         .k = rows,
         .a = {.leading = block.distances, .inner = rows * block.distances, .transposed = true},
         .b = {.leading = e, .inner = s.head_dim},
         .c = {.leading = e, .inner = s.head_dim},
         .inner = s.heads},
        T(1), by_distance.data(), qw.data(), T(1), to.r + block.first * e);
  }
  if (!to.w && !to.q) return;
  Tensor<T, B> position(Shape{s.batch, block.count, e});  // d(q + w)
  B::matmul({.m = rows,
             .n = s.head_dim,
             .k = block.distances,
             .a = {.leading = block.distances, .inner = rows * block.distances},
             .b = {.leading = e, .inner = s.head_dim},
             .c = {.leading = e, .inner = s.head_dim},
             .inner = s.heads},
            T(1), by_distance.data(), in.r + block.first * e, T(0), position.data());
  if (to.w) add_column_sums<B>(rows, e, position.data(), to.w);
  if (to.q)
    for (Index b = 0; b < s.batch; ++b)
      copy_rows<B>(block.count, e, position.data() + b * block.count * e, e,
                   to.q + (b * s.queries + block.first) * e, e, true);
}

/// From the gradients of what was read ahead, d_context (B, M, H D), and of the logarithms of the
/// denominators, d_log_sum (B, M, H). Adds to the gradients that are not null.
template <class T, class B>
void ahead_backward(const AttentionSize& s, const AttentionInputs<T>& in,
                    const Tensor<T, B>& d_context, const Tensor<T, B>& d_log_sum,
                    const AttentionGradients<T>& to) {
  const auto qu = add_bias<B>(s, in.q, in.u);
  const Tensor<T, B> weights = ahead_weights(s, in, qu, static_cast<T*>(nullptr));
  if (to.v) weigh_values<B>(s, true, weights.data(), d_context.data(), T(1), to.v);
  Tensor<T, B> scores(weights.shape());
  head_scores<B>(s, d_context.data(), in.v, scores.data());
  {
    // d score = p (dp - sum p dp + d log_sum)
    const T *const p = weights.data(), *const d_log = d_log_sum.data();
    T* const d = scores.data();
    const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
    B::for_each_row(s.heads * s.batch * s.queries, 6 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
      const Index i = row % s.queries, b = row / s.queries % s.batch,
                  head = row / s.queries / s.batch;
      const Index begin = first_ahead(s, in, b, i);
      const T* const w = p + row * s.keys;
      T* const dw = d + row * s.keys;
      const T mean =
          row_sum<T>(s.keys - begin, [=](Index c) { return w[begin + c] * dw[begin + c]; });
      const T shift = d_log[(b * s.queries + i) * s.heads + head] - mean;
      for (Index c = 0; c < begin; ++c) dw[c] = T(0);
      for (Index c = begin; c < s.keys; ++c) dw[c] = w[c] * (dw[c] + shift) * factor;
    });
  }
  if (to.k) weigh_values<B>(s, true, scores.data(), qu.data(), T(1), to.k);
  if (to.u || to.q) {
    Tensor<T, B> content(qu.shape());  // d(q + u)
    weigh_values<B>(s, false, scores.data(), in.k, T(0), content.data());
    if (to.u) add_column_sums<B>(s.batch * s.queries, s.model(), content.data(), to.u);
    if (to.q) {
      const T* const dq = content.data();
      T* const out = to.q;
      B::for_each(content.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] += dq[i]; });
    }
  }
  for_each_ahead_block(
      s, [&](const AheadBlock& block) { ahead_positions_grad(s, in, block, scores, to); });
}

}  // namespace detail

/// Computes look-ahead attention with memory interpolation [Ji et al. 2022, Eq. 7-12]: vectors of
/// the past read the keys to their right that they have not seen yet, and what they read is
/// averaged with what they had read, by the denominators of the two softmaxes. Query i of M weighs
/// the key at place p > i, of the places M - W + 1, ..., M, by softmax(((q_i + u) · k_p + (q_i + w)
/// · r_(p - i)) / sqrt(D)). Place M is the first behind the past. No gradient flows to what had
/// been read; behind `RunningAttention::nothing` it is look-ahead attention alone (Eq. 9).
/// @param q        [B, M, H D]   @param k, v  [B, W, H D], 1 <= W <= M
/// @param r        [R, H D], R > M, projected encodings of the distances R - 1, ..., 0
/// @param u, w     [H, D], the biases of the content scores and of the position scores to the right
/// @param past     what the queries have read until now
/// @param visible  [B], how many of the keys (the last ones) a row may see, in [0, W]; empty for
/// all. A query that could see none sees the last one
/// @param log_sum  where not null, receives the logarithms of the denominators by now, [B, M, H]
/// @param share    where not null, receives the shares of what had been read, α [B, M, H] (Eq. 11)
/// @return         [B, M, H D], what the queries have read by now
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError for `visible` out of its
/// range
template <class T, class B>
Variable<T, B> look_ahead_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                                    const Variable<T, B>& v, const Variable<T, B>& r,
                                    const Variable<T, B>& u, const Variable<T, B>& w,
                                    const RunningAttention<T, B>& past,
                                    const Tensor<Index, B>& visible = {},
                                    Tensor<T, B>* log_sum = nullptr,
                                    Tensor<T, B>* share = nullptr) {
  const bool shaped = q.shape().rank() == 3 && k.shape().rank() == 3 && u.shape().rank() == 2 &&
                      r.shape().rank() == 2;
  require<ShapeError>(shaped && k.shape() == v.shape() && u.shape() == w.shape() &&
                          k.dim(0) == q.dim(0) && k.dim(1) >= 1 && k.dim(1) <= q.dim(1) &&
                          k.dim(2) == q.dim(2) && r.dim(0) > q.dim(1) && r.dim(1) == q.dim(2) &&
                          u.size() == q.dim(2),
                      "look_ahead_attention", "q is ", q.shape(), ", k ", k.shape(), ", v ",
                      v.shape(), ", r ", r.shape(), ", u ", u.shape(), ", w ", w.shape(),
                      ": they must be [B, M, HD], [B, W, HD] twice, [R, HD], [H, D] twice, 1 <= W "
                      "<= M < R");
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), u.dim(0), u.dim(1)};
  require<ShapeError>(
      past.context.shape() == q.shape() && past.log_sum.shape() == q.shape().with(2, s.heads),
      "look_ahead_attention", "past is ", past.context.shape(), " and ", past.log_sum.shape(),
      ", q is ", q.shape(), ": past must be [B, M, HD] and [B, M, H]");
  require<ShapeError>(visible.empty() || visible.shape() == Shape{s.batch}, "look_ahead_attention",
                      "visible is ", visible.shape(), ": it must be [B] or empty");
  const Index *const seen = visible.data(), most = s.keys;
  detail::verify<B>(
      visible.size(), [=] INFTY_HOST_DEVICE(Index i) { return seen[i] < 0 || seen[i] > most; },
      [visible, most](Index row) {
        raise<ValueError>("look_ahead_attention", "visible is ", visible.slice(row, row + 1).item(),
                          " for row ", row, ": it must lie in [0, ", most, "]");
      });
  const Index longest = (r.dim(0) - 1 - s.queries) * s.model();  // where distance M stands in r
  Tensor<T, B> fresh(q.shape()), fresh_log(past.log_sum.shape()), logs(past.log_sum.shape());
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  {
    auto in = detail::attention_inputs(q, k, v, r, u, w, visible);
    in.r += longest;
    const auto qu = detail::add_bias<B>(s, in.q, in.u);
    const auto weights = detail::ahead_weights(s, in, qu, fresh_log.data());
    detail::weigh_values<B>(s, false, weights.data(), in.v, T(0), fresh.data());
  }
  if (share) *share = Tensor<T, B>(logs.shape());
  detail::interpolate(s, past, fresh.data(), fresh_log.data(), y.value().data(), logs.data(),
                      share ? share->data() : nullptr);
  const auto result = record(
      y,
      [q, k, v, r, u, w, past, visible, s, longest, fresh, fresh_log](const Tensor<T, B>& dy) {
        const auto grad = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        Tensor<T, B> d_fresh(fresh.shape()), d_log(fresh_log.shape());
        detail::interpolate_grad(s, past, fresh.data(), fresh_log.data(), dy.data(), d_fresh.data(),
                                 d_log.data());
        auto in = detail::attention_inputs(q, k, v, r, u, w, visible);
        AttentionGradients<T> to{grad(q), grad(k), grad(v), grad(r), grad(u), grad(w)};
        in.r += longest;
        if (to.r) to.r += longest;
        detail::ahead_backward(s, in, d_fresh, d_log, to);
      },
      q, k, v, r, u, w, past.context, past.log_sum, visible);
  if (log_sum) *log_sum = logs;  // last, as it may be that of `past`
  return result;
}

}  // namespace infty
