// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/config.hpp>
#include <infty/core/kernel/attention.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/transpose.hpp>

namespace infty::detail {

/// The right operand of products in cache: row p, padded with zeros, at data + p * stride.
template <class T>
struct Panel {
  const T* data;
  Index stride;
};

/// Elements between two rows of a panel of n columns, so that a tile may begin at any of them.
template <class T>
constexpr Index panel_stride(Index n) {
  return padded<T>(n) + Simd<T>::width;
}

/// A head's columns of x [rows, ...], whose rows are `leading` elements apart, as the panel
/// [D, rows], in `to` of D * panel_stride(rows).
template <class T>
Panel<T> pack_across(Index rows, Index head_dim, const T* x, Index leading, T* to) {
  const Index stride = panel_stride<T>(rows);
  transpose(rows, head_dim, x, leading, to, stride);
  for (Index d = 0; d < head_dim; ++d)
    std::fill(to + d * stride + rows, to + (d + 1) * stride, T(0));
  return {to, stride};
}

/// The same as the panel [rows, D], in `to` of rows * padded(D), for which x itself serves if there
/// is nothing to pad.
template <class T>
Panel<T> pack_along(Index rows, Index head_dim, const T* x, Index leading, T* to) {
  const Index width = padded<T>(head_dim);
  if (width == head_dim) return {x, leading};
  for (Index row = 0; row < rows; ++row) {
    std::copy_n(x + row * leading, head_dim, to + row * width);
    std::fill(to + row * width + head_dim, to + (row + 1) * width, T(0));
  }
  return {to, width};
}

/// to (n, D), rows `leading` apart, += the transpose of from [D, n].
template <class T>
void add_turned(Index n, Index head_dim, const T* from, Index stride, T* to, Index leading) {
  Scratch<T> scratch(n * head_dim);
  T* const along = scratch.data();
  transpose(head_dim, n, from, stride, along, head_dim);
  for (Index i = 0; i < n; ++i)
    for (Index d = 0; d < head_dim; ++d) to[i * leading + d] += along[i * head_dim + d];
}

/// The panels of all heads of x [count / H, rows, H D].
template <class T>
class Panels {
 public:
  /// @param each  elements that one takes
  /// @param pack  pack(rows, D, x, leading, to)
  template <class Pack>
  Panels(const AttentionSize& s, const T* x, Index rows, Index count, Index each, const Pack& pack)
      : Panels(s, x, rows, count, each, pack, [](Index) { return Index{0}; }) {}
  /// The same without the first(i) first rows of panel i.
  template <class Pack, class First>
  Panels(const AttentionSize& s, const T* x, Index rows, Index count, Index each, const Pack& pack,
         const First& first)
      : memory_(count * each), panels_(count) {
    constexpr Index worth = 8192;  // elements, laid out in some 4 µs
    const Index e = s.model(), heads = s.heads, grain = 1 + worth / ((std::max)(each, Index{1}));
    parallel_for(count, grain, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        const Index from = first(i);
        panels_.data()[i] = pack(rows - from, s.head_dim,
                                 x + (i / heads * rows + from) * e + i % heads * s.head_dim, e,
                                 memory_.data() + i * each);
      }
    });
  }
  Panel<T> operator[](Index i) const { return panels_.data()[i]; }

 private:
  Scratch<T> memory_;
  Scratch<Panel<T>> panels_;
};

}  // namespace infty::detail
