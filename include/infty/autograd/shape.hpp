// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/mapped.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

namespace detail {

/// Zeros in `width` elements of each of `rows` rows, `row_size` elements apart.
template <class B, class T>
void zero_rows(Index rows, Index width, T* to, Index row_size) {
  for_each_element<B>(rows, width,
                      [=] INFTY_HOST_DEVICE(Index i, Index j) { to[i * row_size + j] = T(0); });
}

/// For each of `rows` rows: `width` elements from `from` (stride from_row) to `to` (stride to_row),
/// added to what is there if `add`.
template <class B, class T>
void copy_rows(Index rows, Index width, const T* from, Index from_row, T* to, Index to_row,
               bool add = false) {
  if (add)
    for_each_element<B>(rows, width, [=] INFTY_HOST_DEVICE(Index i, Index j) {
      to[i * to_row + j] += from[i * from_row + j];
    });
  else
    for_each_element<B>(rows, width, [=] INFTY_HOST_DEVICE(Index i, Index j) {
      to[i * to_row + j] = from[i * from_row + j];
    });
}

/// A shape with two dimensions exchanged, which [outer, m, between, n, inner] says all of: to
/// [outer, n, between, m, inner].
struct Exchange {
  Index outer, m, between, n, inner;

  /// of two dimensions first <= second
  Exchange(const Shape& shape, Index first, Index second)
      : outer(shape.size(0, first)),
        m(shape[first]),
        between(shape.size(first + 1, second)),
        n(shape[second]),
        inner(shape.size(second + 1, shape.rank())) {}

  /// The way back.
  Exchange back() const {
    Exchange other = *this;
    std::swap(other.m, other.n);
    return other;
  }
};

/// to = from with two dimensions exchanged, added to what is there if `add`.
template <class B, class T>
void exchange_dimensions(const Exchange& x, const T* from, T* to, bool add = false) {
  if (x.inner == 0) return;
  // A row is what stands in one piece: the inner dimensions or, if there are none, one of the two.
  const Index wide = x.inner > 1 ? x.inner : x.m, each = x.inner > 1 ? x.m : 1;
  const Index step = x.inner > 1 ? 1 : x.between * x.n;
  const Index m = x.m, between = x.between, n = x.n, inner = x.inner;
  for_each_element<B>(
      x.outer * n * between * each, wide, [=] INFTY_HOST_DEVICE(Index row, Index column) {
        const Index i = row % each, b = row / each % between, j = row / each / between % n;
        const Index o = row / each / between / n;
        const T x_ij = from[(((o * m + i) * between + b) * n + j) * inner + column * step];
        T& y_ji = to[row * wide + column];
        y_ji = add ? y_ji + x_ij : x_ij;
      });
}

}  // namespace detail

/// x with two dimensions exchanged, a copy, as torch.transpose: [..., m, ..., n, ...] ->
/// [..., n, ..., m, ...]; x itself if the two are one. Negative dimensions count from the end.
/// @throws infty::ShapeError for a dimension that x does not have
template <class T, class B>
Variable<T, B> transpose(const Variable<T, B>& x, Index dim0, Index dim1) {
  const Index rank = x.shape().rank();
  require<ShapeError>(-rank <= dim0 && dim0 < rank && -rank <= dim1 && dim1 < rank, "transpose",
                      "dimensions ", dim0, " and ", dim1, " of ", x.shape());
  const Index a = dim0 < 0 ? dim0 + rank : dim0, b = dim1 < 0 ? dim1 + rank : dim1;
  if (a == b) return x;
  const detail::Exchange exchange(x.shape(), (std::min)(a, b), (std::max)(a, b));
  Variable<T, B> y(Tensor<T, B>(x.shape().with(a, x.dim(b)).with(b, x.dim(a))));
  detail::exchange_dimensions<B>(exchange, x.value().data(), y.value().data());
  return record(
      y,
      [x = Unread(x), exchange](const Tensor<T, B>& dy) {
        const auto to = x.grad_target();
        detail::exchange_dimensions<B>(exchange.back(), dy.data(), to.data, to.add);
      },
      Unread(x));
}

/// The same elements under another shape; shares the value. @throws infty::ShapeError
template <class T, class B>
Variable<T, B> reshape(const Variable<T, B>& x, Shape shape) {
  return record(
      Variable<T, B>(x.value().reshape(shape)),
      [x = Unread(x)](const Tensor<T, B>& dy) { detail::add_to_grad(x, dy); }, Unread(x));
}

/// Puts a and b one behind the other along dimension 1: [n, La, ...] and [n, Lb, ...] -> [n, La+Lb,
/// ...], a copy; one of them itself if the other is empty there.
/// @throws infty::ShapeError unless all other extents are equal
template <class T, class B>
Variable<T, B> concat(const Variable<T, B>& a, const Variable<T, B>& b) {
  require<ShapeError>(a.shape().rank() >= 2 && a.shape().rank() == b.shape().rank() &&
                          a.shape().with(1, 0) == b.shape().with(1, 0),
                      "concat", "a is ", a.shape(), ", b is ", b.shape(),
                      ": they may differ in dimension 1 only");
  if (a.dim(1) == 0) return b;
  if (b.dim(1) == 0) return a;
  const Index rows = a.dim(0), wa = a.shape().size(1, a.shape().rank()),
              wb = b.shape().size(1, b.shape().rank());
  Variable<T, B> y(Tensor<T, B>(a.shape().with(1, a.dim(1) + b.dim(1))));
  T* const out = y.value().data();
  detail::copy_rows<B>(rows, wa, a.value().data(), wa, out, wa + wb);
  detail::copy_rows<B>(rows, wb, b.value().data(), wb, out + wa, wa + wb);
  return record(
      y,
      [a = Unread(a), b = Unread(b), rows, wa, wb](const Tensor<T, B>& dy) {
        if (a.requires_grad()) {
          const auto to = a.grad_target();
          detail::copy_rows<B>(rows, wa, dy.data(), wa + wb, to.data, wa, to.add);
        }
        if (b.requires_grad()) {
          const auto to = b.grad_target();
          detail::copy_rows<B>(rows, wb, dy.data() + wa, wa + wb, to.data, wb, to.add);
        }
      },
      Unread(a), Unread(b));
}

/// Takes entries [begin, end) of dimension 1: [n, L, ...] -> [n, end - begin, ...], a copy; x
/// itself if these are all.
/// @throws infty::ShapeError if the range does not lie in [0, L]
template <class T, class B>
Variable<T, B> narrow(const Variable<T, B>& x, Index begin, Index end) {
  require<ShapeError>(x.shape().rank() >= 2 && 0 <= begin && begin <= end && end <= x.dim(1),
                      "narrow", "[", begin, ", ", end, ") of dimension 1 of ", x.shape());
  if (end - begin == x.dim(1)) return x;
  const Index rows = x.dim(0), inner = x.shape().size(2, x.shape().rank());
  const Index from = x.dim(1) * inner, to = (end - begin) * inner, offset = begin * inner;
  Variable<T, B> y(Tensor<T, B>(x.shape().with(1, end - begin)));
  detail::copy_rows<B>(rows, to, x.value().data() + offset, from, y.value().data(), to);
  return record(
      y,
      [x = Unread(x), rows, from, to, offset](const Tensor<T, B>& dy) {
        detail::copy_rows<B>(rows, to, dy.data(), to, x.grad().data() + offset, from, true);
      },
      Unread(x));
}

namespace detail {

/// [B, L, H D] -> [B, H, L, D], a copy.
template <class T, class B>
Variable<T, B> by_head(const Variable<T, B>& x, Index heads) {
  return transpose(reshape(x, Shape{x.dim(0), x.dim(1), heads, x.dim(2) / heads}), 1, 2);
}

/// [B, H, L, D] -> [B, L, H D], a copy.
template <class T, class B>
Variable<T, B> side_by_side(const Variable<T, B>& x) {
  return reshape(transpose(x, 1, 2), Shape{x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

}  // namespace detail

}  // namespace infty
