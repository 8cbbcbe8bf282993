// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/memory/stored_entries.hpp>

namespace infty {

namespace detail {

/// What the kernels of `retrieved_attention` work on: a row of each is a query of a head.
template <class Stored>
struct RetrievedRows {
  EntryPlaces<Stored> at;
  const Index* indices;             ///< [B L H, k]
  Index length, heads, k, columns;  ///< columns: D, or D + 1 with the logarithm behind

  INFTY_HOST_DEVICE Index batch_row(Index row) const { return row / heads / length; }
  INFTY_HOST_DEVICE Index key_head(Index row) const {
    return at.key_heads == 1 ? Index{0} : row % heads;
  }
  INFTY_HOST_DEVICE const Stored* key(Index row, Index j) const {
    return at.key(batch_row(row), key_head(row), indices[row * k + j]);
  }
  INFTY_HOST_DEVICE const Stored* value(Index row, Index j) const {
    return at.value(batch_row(row), key_head(row), indices[row * k + j]);
  }
  /// How many were found.
  INFTY_HOST_DEVICE Index found(Index row) const {
    Index n = 0;
    while (n < k && indices[row * k + n] >= 0) ++n;
    return n;
  }
};

/// y (rows, columns) of queries q (rows, D), and the weights p (rows, k).
template <class B, class T, class Stored>
void attend_to_retrieved(const RetrievedRows<Stored>& r, Index rows, const T* q, T* p, T* y) {
  const Index D = r.at.head_dim;
  B::for_each_row(rows, 4 * r.k * D, [=] INFTY_HOST_DEVICE(Index row) {
    const Index n = r.found(row);
    const T* const query = q + row * D;
    T *const weight = p + row * r.k, *const to = y + row * r.columns;
    for (Index j = 0; j < n; ++j) {
      const Stored* const key = r.key(row, j);
      weight[j] = row_sum<T>(D, [=](Index d) { return query[d] * key[d]; });
    }
    T log_of_sum = -math::infinity<T>;
    if (n > 0) log_of_sum = row_softmax(n, weight);
    for (Index j = n; j < r.k; ++j) weight[j] = T(0);
    for (Index d = 0; d < D; ++d) to[d] = T(0);
    for (Index j = 0; j < n; ++j) {
      const Stored* const value = r.value(row, j);
      const T w = weight[j];
      for (Index d = 0; d < D; ++d) to[d] += w * value[d];
    }
    if (r.columns > D) to[D] = log_of_sum;
  });
}

/// dq (rows, D) = or += sum of ds_j key_j with ds_j = p_j (dy · v_j - mean + d log), the mean over
/// the found by their weights p. @param ds  (rows, k), to work in
template <class B, class T, class Stored>
void attend_to_retrieved_backward(const RetrievedRows<Stored>& r, Index rows, const T* p,
                                  const T* dy, T* ds, GradTarget<T> target) {
  const Index D = r.at.head_dim;
  T* const to = target.data;
  const bool add = target.add;
  B::for_each_row(rows, 4 * r.k * D, [=] INFTY_HOST_DEVICE(Index row) {
    const Index n = r.found(row);
    const T *const weight = p + row * r.k, *const out = dy + row * r.columns;
    T *const score = ds + row * r.k, *const dq = to + row * D;
    T mean = T(0);
    for (Index j = 0; j < n; ++j) {
      const Stored* const value = r.value(row, j);
      score[j] = row_sum<T>(D, [=](Index d) { return out[d] * value[d]; });
      mean += weight[j] * score[j];
    }
    const T log_of_sum = r.columns > D ? out[D] : T(0);
    if (!add)
      for (Index d = 0; d < D; ++d) dq[d] = T(0);
    for (Index j = 0; j < n; ++j) {
      const Stored* const key = r.key(row, j);
      const T s = weight[j] * (score[j] - mean + log_of_sum);
      for (Index d = 0; d < D; ++d) dq[d] += s * key[d];
    }
  });
}

}  // namespace detail

/// What each query reads of the entries that were found for it: the average of their values by
/// softmax(q · key), zeros where none was found. The gradient goes to the queries, and stops at
/// what is stored [Wu et al. 2022, §3.1].
/// @param q        [B, L, H D]
/// @param indices  [B, L, H, k], as `nearest` returns them
/// @param log_sum  whether the logarithm of the softmax's denominator stands behind each answer,
/// -infinity where none was found; a gradient flows through it, too
/// @return         [B, L, H, D] or [B, L, H, D + 1]
/// @throws infty::ShapeError
template <class T, class B, class Stored>
Variable<T, B> retrieved_attention(const Variable<T, B>& q,
                                   const StoredEntries<T, B, Stored>& stored,
                                   const Tensor<Index, B>& indices, bool log_sum = false) {
  const Index D = stored.head_dim, heads = indices.rank() == 4 ? indices.dim(2) : 0;
  const Index batch = static_cast<Index>(stored.count.size());
  const Index length = q.shape().rank() == 3 ? q.dim(1) : 0;
  require<ShapeError>(q.shape() == Shape{batch, length, heads * D} && heads >= 1 &&
                          indices.shape() == Shape{batch, length, heads, indices.dim(-1)} &&
                          (stored.key_heads == 1 || stored.key_heads == heads),
                      "retrieved_attention", "q is ", q.shape(), ", indices are ", indices.shape(),
                      ", the keys ", batch, " rows of ", stored.key_heads, " heads of ", D,
                      ": they must be [B, L, H D] and [B, L, H, k]");
  const Index k = indices.dim(3), rows = batch * length * heads;
  Variable<T, B> y(Tensor<T, B>(Shape{batch, length, heads, D + (log_sum ? 1 : 0)}));
  Tensor<T, B> weights(indices.shape());
  const detail::RetrievedRows<Stored> all{stored.places(), indices.data(), length, heads, k,
                                          y.dim(3)};
  detail::attend_to_retrieved<B>(all, rows, q.value().data(), weights.data(), y.value().data());
  return record(
      y,
      [q = Unread(q), stored, indices, weights, all, rows](const Tensor<T, B>& dy) {
        Tensor<T, B> scores(weights.shape());
        detail::attend_to_retrieved_backward<B>(all, rows, weights.data(), dy.data(), scores.data(),
                                                q.grad_target());
      },
      Unread(q), indices, weights);
}

}  // namespace infty
