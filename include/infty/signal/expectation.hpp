// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>

namespace infty {

namespace detail {

inline Shape appended(const Shape& shape, Index extent) {
  PoolVector<Index> extents(shape.begin(), shape.end());
  extents.push_back(extent);
  return Shape(extents.begin(), extents.end());
}

/// to[i, j] = f(i, j), element by element.
template <class T, class F>
struct ToMatrix {
  T* to;
  Index columns;
  F f;
  INFTY_HOST_DEVICE void operator()(Index i, Index j) const { to[i * columns + j] = f(i, j); }
};

/// to(i, j) = f(i, j) for a band of rows, a column at a time: with j fixed, what of f depends on it
/// stays in registers, and a compiler turns the loop over the rows into vector code. Columns go
/// through a tile, so that they are written along memory.
template <class T, class F>
struct ToBandOfMatrix {
  static constexpr Index tile = 16;

  T* to;
  Index rows, columns;
  F f;
  INFTY_HOST_DEVICE void operator()(Index band) const {
    const Index begin = band * tile, high = rows - begin < tile ? rows - begin : tile;
    const F of = f;
    for (Index first = 0; first < columns; first += tile) {
      const Index wide = columns - first < tile ? columns - first : tile;
      T value[tile][tile];
      for (Index j = 0; j < wide; ++j)
        for (Index i = 0; i < high; ++i) value[j][i] = of(begin + i, first + j);
      for (Index i = 0; i < high; ++i)
        for (Index j = 0; j < wide; ++j) to[(begin + i) * columns + first + j] = value[j][i];
    }
  }
};

/// to (rows, columns) = f(row, column).
template <class B, class T, class F>
void fill_matrix(Index rows, Index columns, T* to, F f) {
  if constexpr (many_threads<B>) {
    for_each_element<B>(rows, columns, ToMatrix<T, F>{to, columns, f});
  } else {
    constexpr Index tile = ToBandOfMatrix<T, F>::tile;
    B::for_each_row((rows + tile - 1) / tile, 8 * tile * columns,
                    ToBandOfMatrix<T, F>{to, rows, columns, f});
  }
}

}  // namespace detail

/// Evaluates all basis functions at all locations: psi_j(t_i).
/// @param t  [...], up to rank 5
/// @return   [..., N]
/// @throws infty::ShapeError if t has rank 6
template <Basis Psi, class B>
Tensor<typename Psi::Scalar, B> evaluate(const Psi& psi, const Tensor<typename Psi::Scalar, B>& t) {
  using T = typename Psi::Scalar;
  Tensor<T, B> out(detail::appended(t.shape(), psi.size()));
  const T* const at = t.data();
  detail::fill_matrix<B>(t.size(), psi.size(), out.data(),
                         [=] INFTY_HOST_DEVICE(Index i, Index j) { return psi(j, at[i]); });
  return out;
}

/// Computes the expectation of every basis function under every density, E_p[psi_j] [Martins et al.
/// 2022, Eq. 6 and 11].
/// @param mu, var  [...], one density each, var > 0
/// @return         [..., N]
/// @throws infty::ShapeError if mu and var differ in shape or have rank 6
template <class D, Basis Psi, class B>
  requires DensityOver<D, Psi>
Tensor<typename Psi::Scalar, B> expectation(D, const Psi& psi,
                                            const Tensor<typename Psi::Scalar, B>& mu,
                                            const Tensor<typename Psi::Scalar, B>& var) {
  using T = typename Psi::Scalar;
  require<ShapeError>(mu.shape() == var.shape(), "expectation", "mu is ", mu.shape(), ", var is ",
                      var.shape(), ": they must have one shape");
  Tensor<T, B> out(detail::appended(mu.shape(), psi.size()));
  const T *const m = mu.data(), *const v = var.data();
  detail::fill_matrix<B>(mu.size(), psi.size(), out.data(),
                         [=] INFTY_HOST_DEVICE(Index i, Index j) {
                           return D::expectation_gradient(psi, j, m[i], v[i]).value;
                         });
  return out;
}

}  // namespace infty
