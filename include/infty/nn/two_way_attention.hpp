// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/token_rules.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

namespace detail {

// Below, r has a row for each of the K + L - 1 ways that a key can lie from a query: the distances
// K - 1, ..., 0 and then the keys ahead by 1, ..., L - 1. The row of query i and key j is
// j + L - 1 - i. Shifted, the first key ahead has none, and those behind it that row of the next
// query.

/// The weights (H, B, L, K) of all keys that a row sees.
template <class T, class B>
Tensor<T, B> two_way_weights(const AttentionSize& s, const AttentionInputs<T>& in, bool shifted,
                             const Tensor<T, B>& qu, const Tensor<T, B>& qw) {
  Tensor<T, B> weights(Shape{s.heads, s.batch, s.queries, s.keys});
  head_scores<B>(s, qu.data(), in.k, weights.data());
  const Index ways = s.keys + s.queries - 1;
  const Tensor<T, B> distance = distance_scores(s, in, ways, qw);
  T* const p = weights.data();
  const T* const by_distance = distance.data();
  const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
  B::for_each_row(s.heads * s.batch * s.queries, 8 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = row % s.queries, at = s.memory() + i;
    const Index begin = in.first_key(s, row / s.queries % s.batch);
    T* const x = p + row * s.keys;
    const T* const own = by_distance + row * ways + s.queries - 1 - i;
    for (Index j = 0; j < begin; ++j) x[j] = T(0);
    for (Index j = begin; j < s.keys; ++j) {
      const T place = !shifted || j <= at ? own[j] : j == at + 1 ? T(0) : own[ways + j];
      x[j] = factor * (x[j] + place);
    }
    row_softmax(s.keys - begin, x + begin);
  });
  return weights;
}

/// The same of what `two_way_attention` is given.
template <class T, class B>
Tensor<T, B> two_way_weights(const Variable<T, B>& q, const Variable<T, B>& k,
                             const Variable<T, B>& r, const Variable<T, B>& u,
                             const Variable<T, B>& w, AheadPositions ahead,
                             const Tensor<Index, B>& visible) {
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), u.dim(0), u.dim(1)};
  const auto in = attention_inputs(q, k, k, r, u, w, visible);
  return two_way_weights(s, in, ahead == AheadPositions::shifted, add_bias<B>(s, in.q, in.u),
                         add_bias<B>(s, in.q, in.w));
}

/// Turns d weights into d scores in place, ds = p (dp - sum p dp) / sqrt(D), and returns the same
/// numbers by rows of r, (H, B, L, K + L - 1).
template <class T, class B>
Tensor<T, B> two_way_scores_grad(const AttentionSize& s, bool shifted, const Tensor<T, B>& weights,
                                 Tensor<T, B>& grad) {
  const Index ways = s.keys + s.queries - 1;
  Tensor<T, B> distance(weights.shape().with(3, ways));
  const T* const p = weights.data();
  T *const d = grad.data(), *const by_distance = distance.data();
  const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
  const Index rows = s.heads * s.batch * s.queries;
  B::for_each_row(rows, 4 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const w = p + row * s.keys;
    T* const dw = d + row * s.keys;
    const T mean = row_sum<T>(s.keys, [=](Index j) { return w[j] * dw[j]; });
    for (Index j = 0; j < s.keys; ++j) dw[j] = w[j] * (dw[j] - mean) * factor;
  });
  B::for_each_row(rows, 2 * ways, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = row % s.queries, at = s.memory() + i, shift = s.queries - 1 - i;
    const T* const dw = d + row * s.keys;
    T* const out = by_distance + row * ways;
    for (Index c = 0; c < ways; ++c) {
      const Index j = c - shift;
      out[c] = j >= 0 && j < s.keys && (!shifted || j <= at) ? dw[j] : T(0);
    }
    if (!shifted || i == 0) return;
    const T* const before = dw - s.keys;  // the query in front, whose keys ahead are shifted here
    for (Index j = at + 1; j < s.keys; ++j) out[j + shift + 1] += before[j];
  });
  return distance;
}

}  // namespace detail

/// Computes attention with relative positions where every query sees every key, those ahead of it
/// too: query i of the L last of K places weighs key j by
/// softmax(((q_i + u) · k_j + (q_i + w) · r_(i, j)) / sqrt(D)) and reads the sum of values. What
/// `relative_attention` is for keys behind the query, for memory tokens that see each other both
/// ways [Burtsev et al. 2020]. Shifted, the first key ahead of a query has no position term, and
/// the e-th has (q_(i + 1) + w) · r of e keys ahead, as the relative shift of Transformer-XL's
/// program has it. A key or value that is not finite may reach queries of its row that do not see
/// it.
/// @param q        [B, L, H D]   @param k, v  [B, K, H D], K >= L >= 1: what is not seen both ways
/// first
/// @param r        [K + L - 1, H D], projected encodings of the distances K - 1, ..., 0 and then of
/// the keys ahead by 1, ..., L - 1
/// @param u, w     [H, D], the biases of the content and of the position scores
/// @param ahead    how keys ahead are placed
/// @param visible  [B], how many of the K - L first keys (the last ones of these) a row may see, in
/// [0, K - L]; empty for all
/// @return         [B, L, H D]
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError for `visible` out of its
/// range
template <class T, class B>
Variable<T, B> two_way_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                                 const Variable<T, B>& v, const Variable<T, B>& r,
                                 const Variable<T, B>& u, const Variable<T, B>& w,
                                 AheadPositions ahead = AheadPositions::distance,
                                 const Tensor<Index, B>& visible = {}) {
  const char* const op = "two_way_attention";
  const bool shaped = q.shape().rank() == 3 && k.shape().rank() == 3 && u.shape().rank() == 2 &&
                      r.shape().rank() == 2;
  require<ShapeError>(shaped && k.shape() == v.shape() && u.shape() == w.shape() &&
                          k.dim(0) == q.dim(0) && q.dim(1) >= 1 && k.dim(1) >= q.dim(1) &&
                          k.dim(2) == q.dim(2) && r.dim(0) == k.dim(1) + q.dim(1) - 1 &&
                          r.dim(1) == q.dim(2) && u.size() == q.dim(2),
                      op, "q is ", q.shape(), ", k ", k.shape(), ", v ", v.shape(), ", r ",
                      r.shape(), ", u ", u.shape(), ", w ", w.shape(),
                      ": they must be [B, L, HD], [B, K, HD] twice, [K + L - 1, HD], [H, D] twice, "
                      "K >= L >= 1");
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), u.dim(0), u.dim(1)};
  detail::require_visible(op, visible, s.batch, s.memory());
  const bool shifted = ahead == AheadPositions::shifted;
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  {
    const auto in = detail::attention_inputs(q, k, v, r, u, w, visible);
    const auto qu = detail::add_bias<B>(s, in.q, in.u), qw = detail::add_bias<B>(s, in.q, in.w);
    const auto weights = detail::two_way_weights(s, in, shifted, qu, qw);
    detail::weigh_values<B>(s, false, weights.data(), in.v, T(0), y.value().data());
  }
  return record(
      y,
      [q, k, v, r, u, w, visible, s, shifted](const Tensor<T, B>& dy) {
        const auto grad = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        const AttentionGradients<T> to{grad(q), grad(k), grad(v), grad(r), grad(u), grad(w)};
        const auto in = detail::attention_inputs(q, k, v, r, u, w, visible);
        const auto qu = detail::add_bias<B>(s, in.q, in.u), qw = detail::add_bias<B>(s, in.q, in.w);
        const auto weights = detail::two_way_weights(s, in, shifted, qu, qw);
        if (to.v) detail::weigh_values<B>(s, true, weights.data(), dy.data(), T(1), to.v);
        Tensor<T, B> scores(weights.shape());
        detail::head_scores<B>(s, dy.data(), in.v, scores.data());
        const auto distance = detail::two_way_scores_grad(s, shifted, weights, scores);
        detail::add_score_gradients(s, in, s.keys + s.queries - 1, qu, qw, scores, distance, to);
      },
      q, k, v, r, u, w, visible);
}

}  // namespace infty
