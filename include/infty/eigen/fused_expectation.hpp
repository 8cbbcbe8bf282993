// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/pool.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/parallel.hpp>

namespace infty::detail {

/// Scratch memory of one task.
template <class T>
class Scratch {
 public:
  explicit Scratch(Index n) : bytes_(static_cast<std::size_t>(n) * sizeof(T)) {
    data_ = static_cast<T*>(HostPool::instance().allocate(bytes_));
  }
  ~Scratch() { HostPool::instance().release(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* data() { return data_; }

 private:
  std::size_t bytes_;
  T* data_;
};

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
        for (Index j = 0; j < N; ++j)
          for (Index i = 0; i < count; ++i) r[j * tile + i] = D::expectation(psi, j, mu[i], var[i]);
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
            T *const d_mu = d_density + job * s.queries + first, *const d_var = d_mu + n;
            for (Index j = 0; j < N; ++j)
              for (Index i = 0; i < count; ++i) {
                const auto at = D::expectation_gradient(psi, j, mu[i], var[i]);
                r[j * tile + i] = at.value;
                d_mu[i] += dr[j * tile + i] * at.d_mu;
                d_var[i] += dr[j * tile + i] * at.d_var;
              }
          } else {
            for (Index j = 0; j < N; ++j)
              for (Index i = 0; i < count; ++i)
                r[j * tile + i] = D::expectation(psi, j, mu[i], var[i]);
          }
          if (d_values)
            Strided<T>(d_values + row * N * e + column, N, s.head_dim, Eigen::OuterStride<>(e))
                .noalias() += expected * dz;
        }
      }
    });
  }
};

}  // namespace infty::detail
