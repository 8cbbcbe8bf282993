// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/gather.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// The largest elements of the last dimension, the largest first, and where they stood.
template <class T, class B>
struct TopK {
  Variable<T, B> values;     ///< [..., k]
  Tensor<Index, B> indices;  ///< [..., k]
};

namespace detail {

/// Whether x[i] comes before x[j]: the larger one, and of equal ones that with the lower index. NaN
/// is larger than any number, as in PyTorch.
template <class T>
INFTY_HOST_DEVICE bool comes_before(const T* x, Index i, Index j) {
  const bool i_is_nan = math::is_nan_at(x + i), j_is_nan = math::is_nan_at(x + j);
  if (i_is_nan || j_is_nan) return i_is_nan && (!j_is_nan || i < j);
  return x[i] > x[j] || (x[i] == x[j] && i < j);
}

/// Lets the root of a heap of k indices sink to where none below it comes after it: the one that
/// comes last is on top.
template <class T>
INFTY_HOST_DEVICE void sink(const T* x, Index root, Index k, Index* heap) {
  const Index moved = heap[root];
  for (Index child; (child = 2 * root + 1) < k; root = child) {
    if (child + 1 < k && comes_before(x, heap[child], heap[child + 1])) ++child;
    if (!comes_before(x, moved, heap[child])) break;
    heap[root] = heap[child];
  }
  heap[root] = moved;
}

/// The indices of the first k <= n of x (n) in the order of `comes_before`, in n log k steps.
template <class T>
INFTY_HOST_DEVICE void row_top_k(Index n, Index k, const T* x, Index* out) {
  if (k == 0) return;
  for (Index i = 0; i < k; ++i) out[i] = i;
  for (Index root = k / 2; root-- > 0;) sink(x, root, k, out);
  for (Index i = k; i < n; ++i) {
    if (!comes_before(x, i, out[0])) continue;
    out[0] = i;
    sink(x, Index{0}, k, out);
  }
  for (Index last = k - 1; last > 0; --last) {
    const Index top = out[0];
    out[0] = out[last];
    out[last] = top;
    sink(x, Index{0}, last, out);
  }
}

}  // namespace detail

/// The k largest of the last dimension, [..., n] -> [..., k], the largest first, as torch.topk. Of
/// equal ones those with lower indices come first, on every backend; NaN counts as the largest.
/// Gradients flow to what was selected.
/// @throws infty::ShapeError for a scalar; infty::ValueError unless 0 <= k <= n
template <class T, class B>
TopK<T, B> top_k(const Variable<T, B>& scores, Index k) {
  require<ShapeError>(scores.shape().rank() >= 1, "top_k", "scores are ", scores.shape(),
                      ": they must have a dimension");
  const Index n = scores.dim(-1), rows = n > 0 ? scores.size() / n : 0;
  require(0 <= k && k <= n, "top_k", "k is ", k, ", scores are ", scores.shape(),
          ": k must lie in [0, ", n, "]");
  Tensor<Index, B> indices(scores.shape().with(-1, k));
  const T* const x = scores.value().data();
  Index* const to = indices.data();
  B::for_each_row(rows, 4 * n, [=] INFTY_HOST_DEVICE(Index i) {
    detail::row_top_k(n, k, x + i * n, to + i * k);
  });
  return {detail::gather_known(scores, indices), indices};
}

}  // namespace infty
