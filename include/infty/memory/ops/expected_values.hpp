// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/autograd/tape.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/kernel/expectation.hpp>
#include <infty/core/pool.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>

namespace infty {

/// The composition that defines `expected_values` and its gradient, from primitives, over
/// materialised expectations [B, H, Q, N]. It runs on every backend and is the oracle of the fused
/// kernels that a backend may bring.
template <class D, class B>
struct ComposedExpectation {
  template <class Own = B>
  using Kernel = typename Own::template FusedExpectation<D>;

  /// out [B, Q, H D] = sum over j of E_p[psi_j] values [B, N, H D], or is added to; density
  /// [2, B, H, Q].
  template <class T, class Psi>
  static void forward(const ReadSize& s, const Psi& psi, const T* density, const T* values,
                      T* out) {
    const auto r = expectations(s, psi, density);
    B::matmul(product(s, false), T(1), r.data(), values, T(s.adds ? 1 : 0), out);
  }

  /// Adds to d_density and to d_values, where they are not null.
  template <class T, class Psi>
  static void backward(const ReadSize& s, const Psi& psi, const T* density, const T* values,
                       const T* d_out, T* d_density, T* d_values) {
    const Index e = s.heads * s.head_dim, n = s.batch * s.heads * s.queries, N = s.basis;
    if (d_values) {
      const auto r = expectations(s, psi, density);
      B::matmul(product(s, true), T(1), r.data(), d_out, T(1), d_values);
    }
    if (!d_density) return;
    Tensor<T, B> dr(Shape{s.batch, s.heads, s.queries, N});
    B::matmul({.m = s.queries,
               .n = N,
               .k = s.head_dim,
               .a = {.leading = e, .outer = s.queries * e, .inner = s.head_dim},
               .b = {.leading = e, .outer = N * e, .inner = s.head_dim, .transposed = true},
               .c = {.leading = N, .outer = s.heads * s.queries * N, .inner = s.queries * N},
               .outer = s.batch,
               .inner = s.heads},
              T(1), d_out, values, T(0), dr.data());
    const T* const d = dr.data();
    B::for_each_row(n, 16 * N, [=] INFTY_HOST_DEVICE(Index i) {
      T d_mu = 0, d_var = 0;
      for (Index j = 0; j < N; ++j) {
        const Expectation<T> at = D::expectation_gradient(psi, j, density[i], density[n + i]);
        d_mu += d[i * N + j] * at.d_mu;
        d_var += d[i * N + j] * at.d_var;
      }
      d_density[i] += d_mu;
      d_density[n + i] += d_var;
    });
  }

  /// E_p[psi_j] of every density and basis function, [B, H, Q, N].
  template <class T, class Psi>
  static Tensor<T, B> expectations(const ReadSize& s, const Psi& psi, const T* density) {
    Tensor<T, B> r(Shape{s.batch, s.heads, s.queries, s.basis});
    T* const to = r.data();
    const Index n = s.batch * s.heads * s.queries, N = s.basis;
    B::for_each(n * N, [=] INFTY_HOST_DEVICE(Index i) {
      const Index at = i / N;
      to[i] = D::expectation_gradient(psi, i % N, density[at], density[n + at]).value;
    });
    return r;
  }

 private:
  /// r [Q, N] times values [N, D], or its transpose times d_out [Q, D].
  static Matmul product(const ReadSize& s, bool transposed) {
    const Index e = s.heads * s.head_dim;
    const Index m = transposed ? s.basis : s.queries, k = transposed ? s.queries : s.basis;
    return {.m = m,
            .n = s.head_dim,
            .k = k,
            .a = {.leading = s.basis,
                  .outer = s.heads * s.queries * s.basis,
                  .inner = s.queries * s.basis,
                  .transposed = transposed},
            .b = {.leading = e, .outer = k * e, .inner = s.head_dim},
            .c = {.leading = e, .outer = m * e, .inner = s.head_dim},
            .outer = s.batch,
            .inner = s.heads};
  }
};

/// What every query reads: the expectation of the value signal V(t) under its density. The signal
/// is a sum of parts, Vᵀ psi(t) each, so that this is the sum over all their functions of
/// E_p[psi_j] V_j [Martins et al. 2022, Eq. 6, 11].
/// @param functions   psi of each part, one or more
/// @param density     [2, B, H, Q], mu and sigma² > 0
/// @param values      V of each part, [B, N, H D]
/// @param skip_tails  as in `ReadSize`
/// @return            [B, Q, H D]
/// @throws infty::ShapeError
template <class D, class T, class B, class Psi>
  requires DensityOver<D, Psi>
Variable<T, B> expected_values(const PoolVector<Psi>& functions, const Variable<T, B>& density,
                               const PoolVector<Variable<T, B>>& values, bool skip_tails = true) {
  using Kernel = detail::chosen_t<ComposedExpectation<D, B>>;
  require<ShapeError>(!values.empty() && values.size() == functions.size(), "expected_values",
                      values.size(), " values for ", functions.size(),
                      " bases: there must be one for each, and at least one");
  PoolVector<ReadSize> sizes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Shape& shape = values[i].shape();
    const Index N = functions[i].size();
    require<ShapeError>(density.shape().rank() == 4 && density.dim(0) == 2 && shape.rank() == 3 &&
                            shape[0] == density.dim(1) && shape[1] == N && density.dim(2) >= 1 &&
                            shape[2] % density.dim(2) == 0 && shape[2] == values.front().shape()[2],
                        "expected_values", "density is ", density.shape(), ", values are ", shape,
                        ": they must be [2, B, H, Q] and [B, N, HD], N = ", N);
    sizes.push_back({.batch = density.dim(1),
                     .queries = density.dim(3),
                     .basis = N,
                     .heads = density.dim(2),
                     .head_dim = shape[2] / density.dim(2),
                     .skip_tails = skip_tails,
                     .adds = i > 0});
  }
  Variable<T, B> y(Tensor<T, B>(Shape{density.dim(1), density.dim(3), values.front().dim(2)}));
  for (std::size_t i = 0; i < values.size(); ++i)
    Kernel::forward(sizes[i], functions[i], density.value().data(), values[i].value().data(),
                    y.value().data());
  return record(
      y,
      [functions, density, values, sizes](const Tensor<T, B>& dy) {
        for (std::size_t i = 0; i < values.size(); ++i)
          Kernel::backward(sizes[i], functions[i], density.value().data(), values[i].value().data(),
                           dy.data(), density.requires_grad() ? density.grad().data() : nullptr,
                           values[i].requires_grad() ? values[i].grad().data() : nullptr);
      },
      density, values);
}

/// Computes the same of a signal that is one part. @throws infty::ShapeError
template <class D, class T, class B, class Psi>
  requires DensityOver<D, Psi>
Variable<T, B> expected_values(const Psi& psi, const Variable<T, B>& density,
                               const Variable<T, B>& values, bool skip_tails = true) {
  return expected_values<D>(PoolVector<Psi>{psi}, density, PoolVector<Variable<T, B>>{values},
                            skip_tails);
}

}  // namespace infty
