// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// The expectation of the value signal by tiles of queries: the expectations of a tile, [N, tile],
/// stay in cache and are never written out. Rows, heads and, going forward, tiles in parallel.
template <class D>
struct FusedExpectation {
  static constexpr Index tile = 64;

  template <class Size, class T, class Psi>
  static void forward(const Size& s, const Psi& psi, const T* density, const T* values, T* out) {
    const Index e = s.heads * s.head_dim, n = s.batch * s.heads * s.queries, N = s.basis;
    const Index tiles = (s.queries + tile - 1) / tile;
    parallel_for(s.batch * s.heads * tiles, 1, [&](Index begin, Index end) {
      const OneThread guard;
      Scratch<T> scratch(N * tile);
      T* const r = scratch.data();
      for (Index job = begin; job < end; ++job) {
        const Index head = job / tiles % s.heads, row = job / tiles / s.heads;
        const Index first = job % tiles * tile, count = std::min(tile, s.queries - first);
        const T* const mu = density + (row * s.heads + head) * s.queries + first;
        const T* const var = mu + n;
        expectations(psi, mu, var, N, count, r);
        const ConstStrided<T> expected(r, N, count, Eigen::OuterStride<>(tile));
        const ConstStrided<T> v(values + row * N * e + head * s.head_dim, N, s.head_dim,
                                Eigen::OuterStride<>(e));
        Strided<T>(out + (row * s.queries + first) * e + head * s.head_dim, count, s.head_dim,
                   Eigen::OuterStride<>(e))
            .noalias() = expected.transpose() * v;
      }
    });
  }

  template <class Size, class T, class Psi>
  static void backward(const Size& s, const Psi& psi, const T* density, const T* values,
                       const T* d_out, T* d_density, T* d_values) {
    const Index e = s.heads * s.head_dim, n = s.batch * s.heads * s.queries, N = s.basis;
    // Tiles of one row and head add to the same values: they run one after the other.
    parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
      const OneThread guard;
      Scratch<T> scratch(2 * N * tile);
      T *const r = scratch.data(), *const dr = r + N * tile;
      for (Index job = begin; job < end; ++job) {
        const Index head = job % s.heads, row = job / s.heads;
        const Index column = head * s.head_dim;
        const ConstStrided<T> v(values + row * N * e + column, N, s.head_dim,
                                Eigen::OuterStride<>(e));
        for (Index first = 0; first < s.queries; first += tile) {
          const Index count = std::min(tile, s.queries - first);
          const T* const mu = density + job * s.queries + first;
          const T* const var = mu + n;
          const ConstStrided<T> dz(d_out + (row * s.queries + first) * e + column, count,
                                   s.head_dim, Eigen::OuterStride<>(e));
          Strided<T> expected(r, N, count, Eigen::OuterStride<>(tile));
          if (d_density) {
            Strided<T>(dr, N, count, Eigen::OuterStride<>(tile)).noalias() = v * dz.transpose();
            T* const d_mu = d_density + job * s.queries + first;
            gradients(psi, mu, var, N, count, dr, r, d_mu, d_mu + n);
          } else {
            expectations(psi, mu, var, N, count, r);
          }
          if (d_values)
            Strided<T>(d_values + row * N * e + column, N, s.head_dim, Eigen::OuterStride<>(e))
                .noalias() += expected * dz;
        }
      }
    });
  }

 private:
  // One basis function at a time over the queries of a tile: its centre and width stay in
  // registers and the compiler turns the inner loop into vector code. For that, psi and the
  // densities are copied to where no output can lie over them.
  template <class T, class Psi>
  static void expectations(Psi psi, const T* mu, const T* var, Index N, Index count, T* r) {
    T m[tile], v[tile];
    std::copy_n(mu, count, m);
    std::copy_n(var, count, v);
    for (Index j = 0; j < N; ++j)
      for (Index i = 0; i < count; ++i)
        r[j * tile + i] = D::expectation_gradient(psi, j, m[i], v[i]).value;
  }

  template <class T, class Psi>
  static void gradients(Psi psi, const T* mu, const T* var, Index N, Index count, const T* dr, T* r,
                        T* d_mu, T* d_var) {
    T m[tile], v[tile], dm[tile] = {}, dv[tile] = {};
    std::copy_n(mu, count, m);
    std::copy_n(var, count, v);
    for (Index j = 0; j < N; ++j)
      for (Index i = 0; i < count; ++i) {
        const auto at = D::expectation_gradient(psi, j, m[i], v[i]);
        const T d = dr[j * tile + i];
        r[j * tile + i] = at.value;
        dm[i] += d * at.d_mu;
        dv[i] += d * at.d_var;
      }
    for (Index i = 0; i < count; ++i) {
      d_mu[i] += dm[i];
      d_var[i] += dv[i];
    }
  }
};

}  // namespace infty::detail
