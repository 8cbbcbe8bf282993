// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/kernel/attention.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/math.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

namespace detail {

/// scores (H, B, L, K) = a_h b_hᵀ for a (B, L, H D) and b (B, K, H D).
template <class B, class T>
void head_scores(const AttentionSize& s, const T* a, const T* b, T* scores) {
  const Index e = s.model(), lk = s.queries * s.keys;
  B::matmul({.m = s.queries,
             .n = s.keys,
             .k = s.head_dim,
             .a = {.leading = e, .outer = s.queries * e, .inner = s.head_dim},
             .b = {.leading = e, .outer = s.keys * e, .inner = s.head_dim, .transposed = true},
             .c = {.leading = s.keys, .outer = lk, .inner = s.batch * lk},
             .outer = s.batch,
             .inner = s.heads},
            T(1), a, b, T(0), scores);
}

/// out (B, L, H D) = weights_h v_h + beta out for weights (H, B, L, K) and v (B, K, H D); with
/// `transposed`, out (B, K, H D) = weights_hᵀ v_h + beta out for v (B, L, H D).
template <class B, class T>
void weigh_values(const AttentionSize& s, bool transposed, const T* weights, const T* v, T beta,
                  T* out) {
  const Index e = s.model(), lk = s.queries * s.keys;
  const Index rows = transposed ? s.keys : s.queries, inner = transposed ? s.queries : s.keys;
  B::matmul({.m = rows,
             .n = s.head_dim,
             .k = inner,
             .a = {.leading = s.keys, .outer = lk, .inner = s.batch * lk, .transposed = transposed},
             .b = {.leading = e, .outer = inner * e, .inner = s.head_dim},
             .c = {.leading = e, .outer = rows * e, .inner = s.head_dim},
             .outer = s.batch,
             .inner = s.heads},
            T(1), weights, v, beta, out);
}

/// y (B, count, H D) = x + bias (H D) for the queries [first, first + count) of x (B, L, H D).
template <class B, class T>
Tensor<T, B> add_bias(const AttentionSize& s, const T* x, const T* bias, Index first, Index count) {
  Tensor<T, B> y(Shape{s.batch, count, s.model()});
  const Index e = s.model(), queries = s.queries;
  T* const py = y.data();
  B::for_each_row(s.batch * count, e, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const from = x + (row / count * queries + first + row % count) * e;
    for (Index j = 0; j < e; ++j) py[row * e + j] = from[j] + bias[j];
  });
  return y;
}
template <class B, class T>
Tensor<T, B> add_bias(const AttentionSize& s, const T* x, const T* bias) {
  return add_bias<B>(s, x, bias, 0, s.queries);
}

/// (q + w) rᵀ of all queries and `distances` rows of r, (H, B, L, distances).
template <class T, class B>
Tensor<T, B> distance_scores(const AttentionSize& s, const AttentionInputs<T>& in, Index distances,
                             const Tensor<T, B>& qw) {
  Tensor<T, B> scores(Shape{s.heads, s.batch, s.queries, distances});
  const Index e = s.model(), rows = s.batch * s.queries;
  B::matmul({.m = rows,
             .n = distances,
             .k = s.head_dim,
             .a = {.leading = e, .inner = s.head_dim},
             .b = {.leading = e, .inner = s.head_dim, .transposed = true},
             .c = {.leading = distances, .inner = rows * distances},
             .inner = s.heads},
            T(1), qw.data(), in.r, T(0), scores.data());
  return scores;
}

/// The attention weights (H, B, L, K): softmax over the keys that a query may see of
/// ((q + u) kᵀ + (q + w) rᵀ shifted) / sqrt(D). Row L - 1 - i + j of r stands for the distance of
/// query i and key j. The logarithms of the denominators go to log_sum (B, L, H) unless that is
/// null.
template <class B, class T>
Tensor<T, B> attention_weights(const AttentionSize& s, const AttentionInputs<T>& in,
                               const Tensor<T, B>& qu, const Tensor<T, B>& qw,
                               T* log_sum = nullptr) {
  Tensor<T, B> weights(Shape{s.heads, s.batch, s.queries, s.keys});
  head_scores<B>(s, qu.data(), in.k, weights.data());
  const Index distances = s.distances();
  const Tensor<T, B> distance = distance_scores(s, in, distances, qw);
  T* const p = weights.data();
  const T* const by_distance = distance.data();
  const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
  const Index keys = s.keys, queries = s.queries, batch = s.batch, heads = s.heads;
  B::for_each_row(heads * batch * queries, 8 * keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = row % queries, b = row / queries % batch;
    const Index begin = in.first_key(s, b), count = in.end_key(s, b, i) - begin;
    T* const x = p + row * keys + begin;
    const T* const shifted = by_distance + row * distances + begin + (queries - 1 - i);
    for (Index j = 0; j < count; ++j) x[j] = factor * (x[j] + shifted[j]);
    const T log_of_sum = row_softmax(count, x);
    if (log_sum) log_sum[row % (batch * queries) * heads + row / (batch * queries)] = log_of_sum;
    for (Index j = 0; j < begin; ++j) p[row * keys + j] = T(0);
    for (Index j = begin + count; j < keys; ++j) p[row * keys + j] = T(0);
  });
  return weights;
}

/// A part of weights (H, B, L, K), of the queries [first, first + queries) and the keys
/// [first_key, first_key + keys) -> (B, H, queries, keys).
template <class T, class B>
Tensor<T, B> weights_by_row(const Tensor<T, B>& weights, Index first, Index queries,
                            Index first_key, Index keys) {
  const Index heads = weights.dim(0), batch = weights.dim(1), L = weights.dim(2),
              K = weights.dim(3);
  Tensor<T, B> out(Shape{batch, heads, queries, keys});
  const T* const from = weights.data();
  T* const to = out.data();
  B::for_each_row(batch * heads * queries, keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = first + row % queries, head = row / queries % heads, b = row / queries / heads;
    const T* const x = from + ((head * batch + b) * L + i) * K + first_key;
    for (Index j = 0; j < keys; ++j) to[row * keys + j] = x[j];
  });
  return out;
}
/// The same of all.
template <class T, class B>
Tensor<T, B> weights_by_row(const Tensor<T, B>& weights) {
  return weights_by_row(weights, 0, weights.dim(2), 0, weights.dim(3));
}

/// Turns d weights into d scores in place, ds = p (dp - sum p dp + d_log_sum) / sqrt(D), and
/// writes the same numbers by distance into `distance` (H, B, L, distances).
/// @param d_log_sum  the gradient of the denominators' logarithms (B, L, H), or null
template <class T, class B>
void attention_scores_grad(const AttentionSize& s, const Tensor<T, B>& weights, const T* d_log_sum,
                           Tensor<T, B>& grad, Tensor<T, B>& distance) {
  const T* const p = weights.data();
  T *const d = grad.data(), *const by_distance = distance.data();
  const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
  const Index keys = s.keys, queries = s.queries, distances = s.distances(), heads = s.heads,
              places = s.batch * queries;
  B::for_each_row(heads * places, 6 * keys, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const w = p + row * keys;
    T *const dw = d + row * keys, *const out = by_distance + row * distances;
    const Index shift = queries - 1 - row % queries;
    const Index count = distances - shift < keys ? distances - shift : keys;
    T mean = row_sum<T>(count, [=](Index j) { return w[j] * dw[j]; });
    if (d_log_sum) mean -= d_log_sum[row % places * heads + row / places];
    for (Index j = 0; j < count; ++j) dw[j] = w[j] * (dw[j] - mean) * factor;
    for (Index j = count; j < keys; ++j) dw[j] = T(0);
    for (Index j = 0; j < shift; ++j) out[j] = T(0);
    for (Index j = 0; j < count; ++j) out[j + shift] = dw[j];
    for (Index j = shift + count; j < distances; ++j) out[j] = T(0);
  });
}

/// Adds what the gradients of the scores mean for k, r, u, w and q.
/// @param distances  rows of r
/// @param scores     (H, B, L, K)
/// @param distance   (H, B, L, distances), the same by rows of r
template <class T, class B>
void add_score_gradients(const AttentionSize& s, const AttentionInputs<T>& in, Index distances,
                         const Tensor<T, B>& qu, const Tensor<T, B>& qw, const Tensor<T, B>& scores,
                         const Tensor<T, B>& distance, const AttentionGradients<T>& to) {
  if (to.k) weigh_values<B>(s, true, scores.data(), qu.data(), T(1), to.k);
  const Index e = s.model(), rows = s.batch * s.queries;
  if (to.r)
    B::matmul({.m = distances,
               .n = s.head_dim,
               .k = rows,
               .a = {.leading = distances, .inner = rows * distances, .transposed = true},
               .b = {.leading = e, .inner = s.head_dim},
               .c = {.leading = e, .inner = s.head_dim},
               .inner = s.heads},
              T(1), distance.data(), qw.data(), T(1), to.r);
  // d(q + u) and d(q + w), which are dq in two parts.
  Tensor<T, B> content(qu.shape()), position(qu.shape());
  weigh_values<B>(s, false, scores.data(), in.k, T(0), content.data());
  B::matmul({.m = rows,
             .n = s.head_dim,
             .k = distances,
             .a = {.leading = distances, .inner = rows * distances},
             .b = {.leading = e, .inner = s.head_dim},
             .c = {.leading = e, .inner = s.head_dim},
             .inner = s.heads},
            T(1), distance.data(), in.r, T(0), position.data());
  if (to.u) add_column_sums<B>(rows, e, content.data(), to.u);
  if (to.w) add_column_sums<B>(rows, e, position.data(), to.w);
  if (to.q) {
    const T *const a = content.data(), *const b = position.data();
    T* const dq = to.q;
    B::for_each(rows * e, [=] INFTY_HOST_DEVICE(Index i) { dq[i] += a[i] + b[i]; });
  }
}

}  // namespace detail

/// The composition that defines `relative_attention` and its gradient, from primitives, over
/// materialised weights [H, B, L, K]. It runs on every backend and is the oracle of the fused
/// kernels that a backend may bring.
template <class B>
struct ComposedAttention {
  /// Whether `backward` reads `y` and `log_sum`; if not, both may be null there, and log_sum in
  /// `forward`.
  static constexpr bool keeps_result = false;

  template <class Own = B>
  using Kernel = typename Own::FusedAttention;

  /// y [B, L, H D], and the logarithm of every softmax's denominator, log_sum [B, L, H].
  template <class T>
  static void forward(const AttentionSize& s, const AttentionInputs<T>& in, T* y, T* log_sum) {
    const auto qu = detail::add_bias<B>(s, in.q, in.u), qw = detail::add_bias<B>(s, in.q, in.w);
    const auto weights = detail::attention_weights(s, in, qu, qw, log_sum);
    detail::weigh_values<B>(s, false, weights.data(), in.v, T(0), y);
  }

  /// Adds to the gradients that are not null. d_log_sum [B, L, H] is the gradient of log_sum, null
  /// where nothing reads it.
  template <class T>
  static void backward(const AttentionSize& s, const AttentionInputs<T>& in, const T* y,
                       const T* log_sum, const T* dy, const AttentionGradients<T>& to,
                       const T* d_log_sum = nullptr) {
    (void)y;
    (void)log_sum;
    const auto qu = detail::add_bias<B>(s, in.q, in.u), qw = detail::add_bias<B>(s, in.q, in.w);
    const auto weights = detail::attention_weights(s, in, qu, qw);
    if (to.v) detail::weigh_values<B>(s, true, weights.data(), dy, T(1), to.v);
    Tensor<T, B> grad(weights.shape()), distance(weights.shape().with(3, s.distances()));
    detail::head_scores<B>(s, dy, in.v, grad.data());
    detail::attention_scores_grad(s, weights, d_log_sum, grad, distance);
    detail::add_score_gradients(s, in, s.distances(), qu, qw, grad, distance, to);
  }
};

namespace detail {

template <class T, class B>
AttentionInputs<T> attention_inputs(const Variable<T, B>& q, const Variable<T, B>& k,
                                    const Variable<T, B>& v, const Variable<T, B>& r,
                                    const Variable<T, B>& u, const Variable<T, B>& w,
                                    const Tensor<Index, B>& visible) {
  return {q.value().data(),
          k.value().data(),
          v.value().data(),
          r.value().data(),
          u.value().data(),
          w.value().data(),
          visible.empty() ? nullptr : visible.data()};
}

}  // namespace detail

/// Computes causal attention with relative positions, the scores of Transformer-XL [Dai et al.
/// 2019, §3.3]: query i, at place M + i behind M = K - L memory vectors, weighs key j <= M + i by
/// softmax(((q_i + u) · k_j + (q_i + w) · r_(M + i - j)) / sqrt(D)) and reads the sum of values.
/// One that is not finite may reach queries of its row that do not see it.
/// @param q        [B, L, H D]   @param k, v  [B, K, H D], K >= L: memory first
/// @param r        [K, H D], projected encodings of the distances K - 1, ..., 0
/// @param u, w     [H, D], the biases of the content and of the position scores
/// @param visible  [B], how many of the M memory vectors (the last ones) a row may see, in [0, M];
/// empty for all
/// @param log_sum  where not null, receives the logarithms of the denominators, [B, L, H]
/// @return         [B, L, H D]
/// @throws infty::ShapeError if the shapes do not fit
/// @throws infty::ValueError if a row is to see fewer than none, or more than all
template <class T, class B>
Variable<T, B> relative_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                                  const Variable<T, B>& v, const Variable<T, B>& r,
                                  const Variable<T, B>& u, const Variable<T, B>& w,
                                  const Tensor<Index, B>& visible = {},
                                  Tensor<T, B>* log_sum = nullptr) {
  const bool shaped = q.shape().rank() == 3 && k.shape().rank() == 3 && u.shape().rank() == 2 &&
                      r.shape().rank() == 2;
  require<ShapeError>(shaped && k.shape() == v.shape() && u.shape() == w.shape() &&
                          k.dim(0) == q.dim(0) && k.dim(1) >= q.dim(1) && k.dim(2) == q.dim(2) &&
                          r.dim(0) == k.dim(1) && r.dim(1) == q.dim(2) && u.size() == q.dim(2),
                      "relative_attention", "q is ", q.shape(), ", k ", k.shape(), ", v ",
                      v.shape(), ", r ", r.shape(), ", u ", u.shape(), ", w ", w.shape(),
                      ": they must be [B, L, HD], [B, K, HD] twice, [K, HD], [H, D] twice, K >= L");
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), u.dim(0), u.dim(1)};
  detail::require_visible("relative_attention", visible, s.batch, s.memory());
  using Kernel = detail::chosen_t<ComposedAttention<B>>;
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  Tensor<T, B> log_sums, result;
  if (Kernel::keeps_result || log_sum) log_sums = Tensor<T, B>(Shape{s.batch, s.queries, s.heads});
  if constexpr (Kernel::keeps_result) result = y.value();
  Kernel::forward(s, detail::attention_inputs(q, k, v, r, u, w, visible), y.value().data(),
                  log_sums.data());
  if (log_sum) *log_sum = log_sums;
  return record(
      y,
      [q, k, v, r, u, w, visible, s, result, log_sums](const Tensor<T, B>& dy) {
        const auto grad = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        Kernel::backward(
            s, detail::attention_inputs(q, k, v, r, u, w, visible), result.data(), log_sums.data(),
            dy.data(), AttentionGradients<T>{grad(q), grad(k), grad(v), grad(r), grad(u), grad(w)});
      },
      q, k, v, r, u, w, visible, result, log_sums);
}

}  // namespace infty
