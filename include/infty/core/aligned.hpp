// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// A copy that is right-aligned in dimension 1 of extent `length`, of sequences.
template <class T, class B>
Tensor<T, B> aligned(const Tensor<T, B>& x, Index length) {
  if (x.dim(1) == length) return x;
  const Index rows = x.dim(0);
  auto y = Tensor<T, B>::zeros(x.shape().with(1, length));
  const Index inner = x.shape().size(2, x.rank()), from = x.dim(1) * inner, to = length * inner;
  const Index width = (std::min)(from, to);
  T* const out = y.data();
  for (Index row = 0; row < rows; ++row)
    B::copy(out + (row + 1) * to - width, x.data() + (row + 1) * from - width, width);
  return y;
}

/// A copy of x with others in the places of dimension 0 from `at` on. With a `length` >= 0 both are
/// sequences, and are made so long.
template <class T, class B>
Tensor<T, B> with_rows(const Tensor<T, B>& x, Index at, const Tensor<T, B>& rows, Index length) {
  const auto as_long = [&](const Tensor<T, B>& from) {
    return length < 0 ? from : aligned(from, length);
  };
  auto joined = as_long(x).clone();
  joined.slice(at, at + rows.dim(0)).copy_from(as_long(rows));
  return joined;
}

}  // namespace infty::detail
