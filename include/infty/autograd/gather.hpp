// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/verify.hpp>

namespace infty {

namespace detail {

/// `gather` of indices that are known to lie in [0, n) or were reported: those that do not read 0.
template <class T, class B>
Variable<T, B> gather_known(const Variable<T, B>& x, const Tensor<Index, B>& indices) {
  const Index n = x.dim(-1), k = indices.dim(-1), rows = k > 0 ? indices.size() / k : 0;
  Variable<T, B> y((Tensor<T, B>(indices.shape())));
  const T* const from = x.value().data();
  const Index* const index = indices.data();
  T* const to = y.value().data();
  for_each_element<B>(rows, k, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    const Index at = index[i * k + j];
    to[i * k + j] = at >= 0 && at < n ? from[i * n + at] : T(0);
  });
  return record(
      y,
      [x = Unread(x), indices, n, k, rows](const Tensor<T, B>& dy) {
        const Index* const known = indices.data();
        const T* const d = dy.data();
        T* const dx = x.grad().data();
        // A row in one thread: an index may come twice.
        B::for_each_row(rows, k, [=] INFTY_HOST_DEVICE(Index i) {
          for (Index j = i * k; j < (i + 1) * k; ++j)
            if (known[j] >= 0 && known[j] < n) dx[i * n + known[j]] += d[j];
        });
      },
      Unread(x), indices);
}

}  // namespace detail

/// Elements of the last dimension by their places, y[..., j] = x[..., indices[..., j]], as
/// torch.gather: [..., n] and [..., k] -> [..., k].
/// @throws infty::ShapeError unless all but the last extents are equal; infty::ValueError for an
/// index outside [0, n)
template <class T, class B>
Variable<T, B> gather(const Variable<T, B>& x, const Tensor<Index, B>& indices) {
  require<ShapeError>(x.shape().rank() >= 1 && indices.rank() == x.shape().rank() &&
                          x.shape().with(-1, 0) == indices.shape().with(-1, 0),
                      "gather", "x is ", x.shape(), ", indices are ", indices.shape(),
                      ": they may differ in the last dimension only");
  const Index* const index = indices.data();
  const Index n = x.dim(-1);
  detail::verify<B>(
      indices.size(), [=] INFTY_HOST_DEVICE(Index i) { return index[i] < 0 || index[i] >= n; },
      [indices, n](Index wrong) {
        raise<ValueError>("gather", "index ",
                          indices.reshape(Shape{indices.size()}).slice(wrong, wrong + 1).item(),
                          " at place ", wrong, ": indices must lie in [0, ", n, ")");
      });
  return detail::gather_known(x, indices);
}

}  // namespace infty
