// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/autograd/reduce.hpp>
#include <infty/core/state.hpp>

namespace infty {

/// What a compression is trained by: gradients of the model's own loss do not reach it, for it is
/// read in later segments only [Rae et al. 2020, §3.2].
enum class ReconstructionLoss {
  none,
  attention,      ///< what the segment reads of the vectors is to be read of the compressed ones
  auto_encoding,  ///< the vectors are to be made of the compressed ones by a linear map
};

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
      [a = Unread(a), differences, factor](const Tensor<T, B>& dy) {
        const T *const g = dy.data(), *const e = differences.data();
        const T twice = 2 * factor;
        add_to_grad(a, [=] INFTY_HOST_DEVICE(Index i) { return twice * *g * e[i]; });
      },
      Unread(a));
}

/// How far what a segment reads of compressed vectors, by content, is from what it reads of the
/// vectors themselves: the sum over heads of the mean squared difference
/// [Rae et al. 2020, Algorithm 2, which has the norm in place of its square] -> scalar.
/// @param length  of every row of the compressed vectors; as many rows as are not empty count
/// @param read    read(x, counts) is what L queries in heads of width head_dim read of the last
/// `counts` of the vectors x [B, n, d] of each row, [B, L, H D]; all but x is held constant
template <class T, class B, class Read>
Variable<T, B> attention_reconstruction(const RowSequences<T, B>& vectors,
                                        const Variable<T, B>& compressed, const RowCounts& length,
                                        Index head_dim, Read&& read) {
  const Index rows = std::count_if(length.begin(), length.end(), [](Index n) { return n > 0; });
  const Variable<T, B> wanted = read(Variable<T, B>(vectors.vectors), vectors.length);
  const Index queries = wanted.dim(1);
  return squared_error(read(compressed, length), wanted.value(), RowCounts(length.size(), queries),
                       T(1) / static_cast<T>(rows * queries * head_dim));
}

}  // namespace detail

}  // namespace infty
