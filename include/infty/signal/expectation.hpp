// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>

namespace infty {

namespace detail {

inline Shape appended(const Shape& shape, Index extent) {
  std::vector<Index, PoolAllocator<Index>> extents(shape.begin(), shape.end());
  extents.push_back(extent);
  return Shape(extents.begin(), extents.end());
}

}  // namespace detail

/// All basis functions at all locations: psi_j(t_i).
/// @param t  [...], up to rank 5
/// @return   [..., N]
/// @throws infty::ShapeError if t has rank 6
template <Basis Psi, class B>
Tensor<typename Psi::Scalar, B> evaluate(const Psi& psi, const Tensor<typename Psi::Scalar, B>& t) {
  using T = typename Psi::Scalar;
  Tensor<T, B> out(detail::appended(t.shape(), psi.size()));
  T* const to = out.data();
  const T* const at = t.data();
  const Index n = psi.size();
  B::for_each(out.size(), [=] INFTY_HOST_DEVICE(Index i) { to[i] = psi(i % n, at[i / n]); });
  return out;
}

/// The expectation of every basis function under every density, E_p[psi_j]
/// [Martins et al. 2022, Eq. 6 and 11].
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
  T* const to = out.data();
  const T *const m = mu.data(), *const v = var.data();
  const Index n = psi.size();
  B::for_each(out.size(), [=] INFTY_HOST_DEVICE(Index i) {
    to[i] = D::expectation_gradient(psi, i % n, m[i / n], v[i / n]).value;
  });
  return out;
}

}  // namespace infty
