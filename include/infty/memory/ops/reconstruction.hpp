// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/autograd/reduce.hpp>
#include <infty/core/row.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/attention.hpp>

namespace infty {

/// What a compression is trained by: gradients of the model's own loss do not reach it, for it is
/// read in later segments only [Rae et al. 2020, §3.2].
enum class ReconstructionLoss {
  none,
  attention,      ///< what the segment reads of the vectors is to be read of the compressed ones
  auto_encoding,  ///< the vectors are to be made of the compressed ones by a linear map
};

namespace detail {

/// Turns rows of scores [H, B, L, E] into the softmaxes of factor * score over the last length[b]
/// of each row; the others become 0.
template <class B, class T>
void softmax_of_last(const AttentionSize& s, const Index* length, T factor, T* scores) {
  const Index keys = s.keys, queries = s.queries, batch = s.batch;
  B::for_each_row(s.heads * batch * queries, 8 * keys, [=] INFTY_HOST_DEVICE(Index row) {
    T* const x = scores + row * keys;
    const Index count = length[row / queries % batch], begin = keys - count;
    for (Index j = 0; j < begin; ++j) x[j] = T(0);
    for (Index j = begin; j < keys; ++j) x[j] *= factor;
    if (count > 0) row_softmax(count, x + begin);
  });
}

/// Turns d weights into d scores in place, ds = p (dp - sum p dp) factor.
template <class B, class T>
void softmax_grad(const AttentionSize& s, const T* weights, T factor, T* grad) {
  const Index keys = s.keys;
  B::for_each_row(s.heads * s.batch * s.queries, 6 * keys, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const p = weights + row * keys;
    T* const d = grad + row * keys;
    const T mean = row_sum<T>(keys, [=](Index j) { return p[j] * d[j]; });
    for (Index j = 0; j < keys; ++j) d[j] = p[j] * (d[j] - mean) * factor;
  });
}

}  // namespace detail

/// Attention by content alone: softmax(q_i · k_j / sqrt(D)) v_j summed over j, for all keys j that
/// the row has, whatever their places.
/// @param q       [B, L, H D]   @param k, v  [B, E, H D]
/// @param length  [B], how many keys a row has, its last; a row without any reads zeros
/// @return        [B, L, H D]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> content_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                                 const Variable<T, B>& v, Index heads, const RowCounts& length) {
  require<ShapeError>(q.shape().rank() == 3 && k.shape().rank() == 3 && k.shape() == v.shape() &&
                          k.dim(0) == q.dim(0) && k.dim(2) == q.dim(2) && heads >= 1 &&
                          q.dim(2) % heads == 0 && static_cast<Index>(length.size()) == q.dim(0),
                      "content_attention", "q is ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
                      ", heads ", heads, ", ", length.size(),
                      " lengths: they must be [B, L, HD], [B, E, HD] twice, B lengths");
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), heads, q.dim(2) / heads};
  const auto lengths = Tensor<Index, B>::from(Shape{s.batch}, length.data());
  const T factor = T(1) / std::sqrt(static_cast<T>(s.head_dim));
  const auto weights_of = [s, lengths, factor](const Tensor<T, B>& queries,
                                               const Tensor<T, B>& keys) {
    Tensor<T, B> weights(Shape{s.heads, s.batch, s.queries, s.keys});
    detail::head_scores<B>(s, queries.data(), keys.data(), weights.data());
    detail::softmax_of_last<B>(s, lengths.data(), factor, weights.data());
    return weights;
  };
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  detail::weigh_values<B>(s, false, weights_of(q.value(), k.value()).data(), v.value().data(), T(0),
                          y.value().data());
  return record(
      y,
      [q, k, v, s, factor, weights_of](const Tensor<T, B>& dy) {
        const auto weights = weights_of(q.value(), k.value());
        if (v.requires_grad())
          detail::weigh_values<B>(s, true, weights.data(), dy.data(), T(1), v.grad().data());
        if (!q.requires_grad() && !k.requires_grad()) return;
        Tensor<T, B> grad(weights.shape());
        detail::head_scores<B>(s, dy.data(), v.value().data(), grad.data());
        detail::softmax_grad<B>(s, weights.data(), factor, grad.data());
        if (k.requires_grad())
          detail::weigh_values<B>(s, true, grad.data(), q.value().data(), T(1), k.grad().data());
        if (q.requires_grad())
          detail::weigh_values<B>(s, false, grad.data(), k.value().data(), T(1), q.grad().data());
      },
      q, k, v);
}

namespace detail {

/// The sum of (a - b)² times `factor`, where b is a constant, over the last length[row] of the
/// vectors [B, n, d] of each row -> scalar.
template <class T, class B>
Variable<T, B> squared_error(const Variable<T, B>& a, const Tensor<T, B>& b,
                             const RowCounts& length, T factor) {
  const Index n = a.dim(1), d = a.dim(2);
  const auto lengths = Tensor<Index, B>::from(Shape{a.dim(0)}, length.data());
  Tensor<T, B> differences(a.shape());
  T* const difference = differences.data();
  const T *const x = a.value().data(), *const y = b.data();
  const Index* const counted = lengths.data();
  B::for_each(a.size(), [=] INFTY_HOST_DEVICE(Index i) {
    const Index vector = i / d;
    difference[i] = vector % n >= n - counted[vector / n] ? x[i] - y[i] : T(0);
  });
  Variable<T, B> total(Tensor<T, B>(Shape{}));
  T* const to = total.value().data();
  B::reduce_into(
      a.size(), T(0), Plus{},
      [=] INFTY_HOST_DEVICE(Index i) { return factor * difference[i] * difference[i]; }, to);
  return record(
      total,
      [a, differences, factor](const Tensor<T, B>& dy) {
        const T *const g = dy.data(), *const e = differences.data();
        const T twice = 2 * factor;
        add_to_grad(a, [=] INFTY_HOST_DEVICE(Index i) { return twice * *g * e[i]; });
      },
      Unread(a));
}

}  // namespace detail

}  // namespace infty
