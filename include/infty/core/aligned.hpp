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

}  // namespace infty::detail
