// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/gather.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/kernel/top_k.hpp>

namespace infty {

/// The largest elements of the last dimension, the largest first, and where they stood.
template <class T, class B>
struct TopK {
  Variable<T, B> values;     ///< [..., k]
  Tensor<Index, B> indices;  ///< [..., k]
};

namespace detail {

/// The composition that defines a row of `top_k`, by a heap. It runs on every backend.
template <class B>
struct ComposedTopK {
  template <class Own = B>
  using Kernel = typename Own::FusedTopK;

  template <class T>
  INFTY_HOST_DEVICE static void row(Index n, Index k, const T* x, Index* out) {
    row_top_k(n, k, x, out);
  }
};

/// A row by the backend's kernel or the composition. No backend brings one that a device runs.
template <class B, class T>
INFTY_HOST_DEVICE void chosen_row_top_k(Index n, Index k, const T* x, Index* out) {
#if defined(__CUDA_ARCH__)
  ComposedTopK<B>::row(n, k, x, out);
#else
  chosen_t<ComposedTopK<B>>::row(n, k, x, out);
#endif
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
    detail::chosen_row_top_k<B>(n, k, x + i * n, to + i * k);
  });
  return {detail::gather_known(scores, indices), indices};
}

}  // namespace infty
