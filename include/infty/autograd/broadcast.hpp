// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <infty/autograd/linear.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/row.hpp>
#include <infty/core/tensor.hpp>

// The rules of NumPy and PyTorch: shapes are aligned at their last dimensions, missing ones count
// as 1, and an extent of 1 is repeated as often as the other tensor wants.
namespace infty::detail {

/// The shape of what is computed of two tensors element by element.
/// @throws infty::ShapeError unless extents are equal where neither is 1
inline Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  const Index rank = (std::max)(a.rank(), b.rank());
  std::array<Index, Shape::max_rank> extents{};
  for (Index i = 1; i <= rank; ++i) {
    const Index m = i <= a.rank() ? a[-i] : 1, n = i <= b.rank() ? b[-i] : 1;
    require<ShapeError>(m == n || m == 1 || n == 1, op, "a is ", a, ", b is ", b,
                        ": extents, counted from the last, must be equal or 1");
    extents[static_cast<std::size_t>(rank - i)] = m == 1 ? n : m;
  }
  return Shape(extents.begin(), extents.begin() + rank);
}

/// Where two tensors have the elements that meet in a third, in as few dimensions as will do: those
/// that both tensors pass, or repeat, in one go are joined. Dimension 0 is the innermost, of
/// `columns`; of what is around it there are `rows`.
struct Broadcast {
  Index rank = 0, rows = 1, columns = 1;
  Index extent[Shape::max_rank] = {};
  Index a[Shape::max_rank] = {}, b[Shape::max_rank] = {};  ///< elements from one to the next

  Broadcast(const Shape& of_a, const Shape& of_b, const Shape& to) {
    Index step_a = 1, step_b = 1;
    for (Index i = 1; i <= to.rank(); ++i) {
      const Index n = to[-i];
      const Index in_a = i <= of_a.rank() ? of_a[-i] : 1, in_b = i <= of_b.rank() ? of_b[-i] : 1;
      const Index by_a = in_a == 1 ? 0 : step_a, by_b = in_b == 1 ? 0 : step_b;
      step_a *= in_a;
      step_b *= in_b;
      if (n == 1) continue;
      const Index last = rank - 1;
      if (rank > 0 && by_a == a[last] * extent[last] && by_b == b[last] * extent[last]) {
        extent[last] *= n;
        continue;
      }
      extent[rank] = n;
      a[rank] = by_a;
      b[rank] = by_b;
      ++rank;
    }
    if (rank > 0) columns = extent[0];
    for (Index i = 1; i < rank; ++i) rows *= extent[i];
  }

  /// Where a row begins in the tensor that has these steps, `a` or `b`.
  INFTY_HOST_DEVICE Index begin(const Index* step, Index row) const {
    Index at = 0;
    for (Index i = 1; i < rank; ++i) {
      at += row % extent[i] * step[i];
      row /= extent[i];
    }
    return at;
  }
};

/// out = f(x, y) of the elements that meet, by element or, as fewer threads do it, by row.
template <class T, class F>
struct Combination {
  Broadcast at;
  F f;
  const T *x, *y;
  T* out;

  INFTY_HOST_DEVICE void operator()(Index row, Index column) const {
    out[row * at.columns + column] =
        f(x[at.begin(at.a, row) + column * at.a[0]], y[at.begin(at.b, row) + column * at.b[0]]);
  }
  INFTY_HOST_DEVICE void operator()(Index row) const {
    const T *const in_x = x + at.begin(at.a, row), *const in_y = y + at.begin(at.b, row);
    T* const to = out + row * at.columns;
    if (at.a[0] == 0) {
      const T all = *in_x;
      for (Index j = 0; j < at.columns; ++j) to[j] = f(all, in_y[j * at.b[0]]);
    } else if (at.b[0] == 0) {
      const T all = *in_y;
      for (Index j = 0; j < at.columns; ++j) to[j] = f(in_x[j], all);
    } else {
      for (Index j = 0; j < at.columns; ++j) to[j] = f(in_x[j], in_y[j]);
    }
  }
};

/// out = f(x, y) of the elements that meet, in the shape `to` of both.
template <class B, class T, class F>
void combine(const Tensor<T, B>& x, const Tensor<T, B>& y, const Shape& to, F f, T* out) {
  const T *const px = x.data(), *const py = y.data();
  if (x.shape() == y.shape()) {
    B::for_each(x.size(), [=] INFTY_HOST_DEVICE(Index i) { out[i] = f(px[i], py[i]); });
    return;
  }
  const Combination<T, F> each{Broadcast(x.shape(), y.shape(), to), f, px, py, out};
  if constexpr (many_threads<B>)
    for_each_element<B>(each.at.rows, each.at.columns, each);
  else
    B::for_each_row(each.at.rows, each.at.columns, each);
}

/// out (outer, inner) = the sums of x (outer, n, inner) over n.
template <class B, class T>
void sum_between(Index outer, Index n, Index inner, const T* x, T* out) {
  if (outer == 1 && inner == 1) {
    B::reduce_into(
        n, T(0), Plus{}, [=] INFTY_HOST_DEVICE(Index i) { return x[i]; }, out);
  } else if (inner == 1) {
    B::for_each_row(outer, n, [=] INFTY_HOST_DEVICE(Index i) {
      out[i] = row_sum<T>(n, [=](Index j) { return x[i * n + j]; });
    });
  } else if (outer == 1) {
    B::fill(out, inner, T(0));
    add_column_sums<B>(n, inner, x, out);
  } else {
    for_each_element<B>(outer, inner, [=] INFTY_HOST_DEVICE(Index i, Index j) {
      T sum = T(0);
      for (Index k = 0; k < n; ++k) sum += x[(i * n + k) * inner + j];
      out[i * inner + j] = sum;
    });
  }
}

/// The sums of x over what was repeated to make a tensor of the given shape as large as x: what a
/// gradient is for such a tensor.
template <class T, class B>
Tensor<T, B> sum_to(const Tensor<T, B>& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  if (x.empty()) return Tensor<T, B>::zeros(shape);
  const Broadcast at(shape, shape, x.shape());
  Tensor<T, B> sums = x;
  Index outer = x.size(), inner = 1;
  for (Index i = 0; i < at.rank; ++i) {
    outer /= at.extent[i];
    if (at.a[i] > 0) {
      inner *= at.extent[i];
    } else {
      Tensor<T, B> fewer(Shape{outer, inner});
      sum_between<B>(outer, at.extent[i], inner, std::as_const(sums).data(), fewer.data());
      sums = fewer;
    }
  }
  return sums.reshape(shape);
}

}  // namespace infty::detail
