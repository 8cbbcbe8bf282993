// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/math.hpp>
#include <infty/core/row.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/gaussian_density.hpp>

namespace infty {

/// The parameters of one density a query and head, from affine maps of its scores K q
/// [Martins et al. 2022, Eq. 9, 10]: mu = sigmoid(w_mu · K q / sqrt(D)) and
/// sigma² = max(softplus(w_var · K q / sqrt(D)), floor). With K = W_K B, both maps are folded into
/// one vector of D numbers a head, Kᵀ w, so that neither keys nor scores are formed.
/// @param queries  [B, Q, H D]
/// @param keys   [B, 2, H D], Kᵀ w_mu and Kᵀ w_var
/// @return         [2, B, H, Q], mu in (0, 1) and sigma² >= floor
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> affine_density(const Variable<T, B>& queries, const Variable<T, B>& keys,
                              Index heads, T floor) {
  require<ShapeError>(queries.shape().rank() == 3 && heads >= 1 && queries.dim(2) % heads == 0 &&
                          keys.shape() == Shape{queries.dim(0), 2, queries.dim(2)},
                      "affine_density", "queries are ", queries.shape(), ", keys ", keys.shape(),
                      ", heads ", heads, ": they must be [B, Q, HD] and [B, 2, HD]");
  const Index batch = queries.dim(0), count = queries.dim(1), e = queries.dim(2), D = e / heads;
  const Index densities = batch * heads * count;
  const T factor = T(1) / std::sqrt(static_cast<T>(D));
  Variable<T, B> y(Tensor<T, B>(Shape{2, batch, heads, count}));
  {
    const T *const q = queries.value().data(), *const f = keys.value().data();
    T* const out = y.value().data();
    detail::for_each_span<B>(
        batch * heads, count, 4 * D * count,
        [=] INFTY_HOST_DEVICE(Index row_and_head, Index begin, Index end) {
          const Index head = row_and_head % heads, row = row_and_head / heads;
          const T* const w = f + row * 2 * e + head * D;
          for (Index query = begin; query < end; ++query) {
            const T* const x = q + (row * count + query) * e + head * D;
            T* const to = out + row_and_head * count + query;
            to[0] = factor * detail::row_sum<T>(D, [=](Index c) { return x[c] * w[c]; });
            to[densities] =
                factor * detail::row_sum<T>(D, [=](Index c) { return x[c] * w[e + c]; });
          }
        });
    // By themselves these two make vector code.
    B::for_each(densities, [=] INFTY_HOST_DEVICE(Index i) { out[i] = math::sigmoid(out[i]); });
    B::for_each(densities, [=] INFTY_HOST_DEVICE(Index i) {
      const T sigma2 = math::softplus(out[densities + i]);
      out[densities + i] = sigma2 > floor ? sigma2 : floor;
    });
  }
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [queries, keys, result, batch, count, e, D, heads, densities, factor,
       floor](const Tensor<T, B>& dy) {
        // d score: mu (1 - mu) and sigmoid = 1 - exp(-softplus), which is 0 at the floor
        Tensor<T, B> scores(dy.shape());
        const T *const d = dy.data(), *const p = result.data();
        T* const ds = scores.data();
        B::for_each(densities, [=] INFTY_HOST_DEVICE(Index i) {
          const T mu = p[i], sigma2 = p[densities + i];
          ds[i] = factor * d[i] * mu * (T(1) - mu);
          ds[densities + i] =
              sigma2 > floor ? factor * d[densities + i] * -std::expm1(-sigma2) : T(0);
        });
        const T *const q = queries.value().data(), *const f = keys.value().data();
        if (queries.requires_grad()) {
          T* const dq = queries.grad().data();
          B::for_each_row(densities, 4 * D, [=] INFTY_HOST_DEVICE(Index i) {
            const Index query = i % count, head = i / count % heads, row = i / count / heads;
            T* const x = dq + (row * count + query) * e + head * D;
            const T* const w = f + row * 2 * e + head * D;
            for (Index c = 0; c < D; ++c) x[c] += ds[i] * w[c] + ds[densities + i] * w[e + c];
          });
        }
        if (keys.requires_grad()) {
          T* const df = keys.grad().data();
          if constexpr (detail::many_threads<B>) {
            // Both maps of a row and head: d scores [2, Q] times its queries [Q, D].
            B::matmul({.m = 2,
                       .n = D,
                       .k = count,
                       .a = {.leading = densities, .outer = heads * count, .inner = count},
                       .b = {.leading = e, .outer = count * e, .inner = D},
                       .c = {.leading = e, .outer = 2 * e, .inner = D},
                       .outer = batch,
                       .inner = heads},
                      T(1), ds, q, T(1), df);
            return;
          }
          B::for_each_row(batch * 2 * heads, count * D, [=] INFTY_HOST_DEVICE(Index i) {
            const Index head = i % heads, map = i / heads % 2, row = i / heads / 2;
            T* const w = df + (row * 2 + map) * e + head * D;
            const T* const weight = ds + map * densities + (row * heads + head) * count;
            for (Index query = 0; query < count; ++query) {
              const T* const x = q + (row * count + query) * e + head * D;
              for (Index c = 0; c < D; ++c) w[c] += weight[query] * x[c];
            }
          });
        }
      },
      queries, keys, result);
}

/// The other way to the parameters: the mean and the variance of the mixture of basis functions
/// that softmax(K q / sqrt(D)) weighs (the authors' option; no floor).
/// @param queries  [B, Q, H D]
/// @param keys     [B, N, H D]
/// @param psi      N functions with centres and widths
/// @return         [2, B, H, Q], mu and sigma²
/// @throws infty::ShapeError
template <class T, class B, CentredBasis Psi>
Variable<T, B> moment_density(const Variable<T, B>& queries, const Variable<T, B>& keys,
                              const Psi& psi, Index heads) {
  const Index N = psi.size();
  require<ShapeError>(queries.shape().rank() == 3 && heads >= 1 && queries.dim(2) % heads == 0 &&
                          keys.shape() == Shape{queries.dim(0), N, queries.dim(2)},
                      "moment_density", "queries are ", queries.shape(), ", keys ", keys.shape(),
                      ", heads ", heads, ": they must be [B, Q, HD] and [B, N, HD], N = ", N);
  const Index batch = queries.dim(0), count = queries.dim(1), e = queries.dim(2), D = e / heads;
  const Index densities = batch * heads * count;
  const T factor = T(1) / std::sqrt(static_cast<T>(D));
  // [B, H, Q, N], softmax of the scores
  const auto weights_of = [=](const Tensor<T, B>& q, const Tensor<T, B>& k) {
    Tensor<T, B> weights(Shape{batch, heads, count, N});
    B::matmul({.m = count,
               .n = N,
               .k = D,
               .a = {.leading = e, .outer = count * e, .inner = D},
               .b = {.leading = e, .outer = N * e, .inner = D, .transposed = true},
               .c = {.leading = N, .outer = heads * count * N, .inner = count * N},
               .outer = batch,
               .inner = heads},
              factor, q.data(), k.data(), T(0), weights.data());
    T* const p = weights.data();
    B::for_each_row(densities, 8 * N,
                    [=] INFTY_HOST_DEVICE(Index i) { detail::row_softmax(N, p + i * N); });
    return weights;
  };
  Variable<T, B> y(Tensor<T, B>(Shape{2, batch, heads, count}));
  {
    const auto weights = weights_of(queries.value(), keys.value());
    const T* const p = weights.data();
    T* const out = y.value().data();
    B::for_each_row(densities, 4 * N, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const x = p + i * N;
      const T mu = detail::row_sum<T>(N, [=](Index j) { return x[j] * psi.centre(j); });
      // About the mean: E[c²] - mu² would cancel where the softmax is sharp.
      out[densities + i] = detail::row_sum<T>(N, [=](Index j) {
        const T c = psi.centre(j) - mu, s = psi.width(j);
        return x[j] * (c * c + s * s);
      });
      out[i] = mu;
    });
  }
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [=](const Tensor<T, B>& dy) {
        // d p_j = dmu c_j + dvar ((c_j - mu)² + s_j²) and d score = p (d p - sum p d p) / sqrt(D);
        // dmu's way through the variance is 0, for the mean is where it is least.
        const auto weights = weights_of(queries.value(), keys.value());
        Tensor<T, B> scores(weights.shape());
        const T *const w = weights.data(), *const d = dy.data(), *const m = result.data();
        T* const ds = scores.data();
        B::for_each_row(densities, 8 * N, [=] INFTY_HOST_DEVICE(Index i) {
          const T mu = m[i], dmu = d[i], dvar = d[densities + i];
          T* const out = ds + i * N;
          for (Index j = 0; j < N; ++j) {
            const T c = psi.centre(j), s = psi.width(j);
            out[j] = dmu * c + dvar * ((c - mu) * (c - mu) + s * s);
          }
          const T* const x = w + i * N;
          const T mean = detail::row_sum<T>(N, [=](Index j) { return x[j] * out[j]; });
          for (Index j = 0; j < N; ++j) out[j] = factor * x[j] * (out[j] - mean);
        });
        if (queries.requires_grad())
          B::matmul({.m = count,
                     .n = D,
                     .k = N,
                     .a = {.leading = N, .outer = heads * count * N, .inner = count * N},
                     .b = {.leading = e, .outer = N * e, .inner = D},
                     .c = {.leading = e, .outer = count * e, .inner = D},
                     .outer = batch,
                     .inner = heads},
                    T(1), ds, keys.value().data(), T(1), queries.grad().data());
        if (keys.requires_grad())
          B::matmul({.m = N,
                     .n = D,
                     .k = count,
                     .a = {.leading = N,
                           .outer = heads * count * N,
                           .inner = count * N,
                           .transposed = true},
                     .b = {.leading = e, .outer = count * e, .inner = D},
                     .c = {.leading = e, .outer = N * e, .inner = D},
                     .outer = batch,
                     .inner = heads},
                    T(1), ds, queries.value().data(), T(1), keys.grad().data());
      },
      queries, keys, result);
}

/// The divergence of every density from its prior of width sigma0 [Martins et al. 2022, Eq. 20,
/// 21], as the density says: `D::divergence`.
/// @param density  [2, B, H, Q], mu and sigma²
/// @return         [B, H, Q], >= 0
/// @throws infty::ShapeError
template <DensityWithPrior D, class T, class B>
Variable<T, B> divergence(const Variable<T, B>& density, T sigma0) {
  require<ShapeError>(density.shape().rank() == 4 && density.dim(0) == 2, "divergence",
                      "density is ", density.shape(), ": it must be [2, B, H, Q]");
  const Index n = density.size() / 2;
  Variable<T, B> y(Tensor<T, B>(Shape{density.dim(1), density.dim(2), density.dim(3)}));
  const T *const mu = density.value().data(), *const var = mu + n;
  T* const out = y.value().data();
  B::for_each(
      n, [=] INFTY_HOST_DEVICE(Index i) { out[i] = D::divergence(mu[i], var[i], sigma0).value; });
  return record(
      y,
      [density, n, sigma0](const Tensor<T, B>& dy) {
        const T *const m = density.value().data(), *const v = m + n, *const d = dy.data();
        T *const dm = density.grad().data(), *const dv = dm + n;
        B::for_each(n, [=] INFTY_HOST_DEVICE(Index i) {
          const Expectation<T> at = D::divergence(m[i], v[i], sigma0);
          dm[i] += d[i] * at.d_mu;
          dv[i] += d[i] * at.d_var;
        });
      },
      density);
}

/// What draws the means of densities to mu0: (mu - mu0)² / (2 sigma0²), the part of the divergence
/// of two Gaussians that the paper leaves out, and the authors' GPT-2 program as released does not.
/// @param density  [2, B, H, Q], mu and sigma²
/// @return         [B, H, Q], >= 0
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> mean_divergence(const Variable<T, B>& density, T mu0, T sigma0) {
  require<ShapeError>(density.shape().rank() == 4 && density.dim(0) == 2, "mean_divergence",
                      "density is ", density.shape(), ": it must be [2, B, H, Q]");
  const Index n = density.size() / 2;
  const T weight = T(1) / (sigma0 * sigma0);
  Variable<T, B> y(Tensor<T, B>(Shape{density.dim(1), density.dim(2), density.dim(3)}));
  const T* const mu = density.value().data();
  T* const out = y.value().data();
  B::for_each(n, [=] INFTY_HOST_DEVICE(Index i) {
    out[i] = T(0.5) * weight * (mu[i] - mu0) * (mu[i] - mu0);
  });
  return record(
      y,
      [density, n, mu0, weight](const Tensor<T, B>& dy) {
        const T *const m = density.value().data(), *const d = dy.data();
        T* const dm = density.grad().data();
        B::for_each(n, [=] INFTY_HOST_DEVICE(Index i) { dm[i] += d[i] * weight * (m[i] - mu0); });
      },
      density);
}

/// The divergence of Gaussians, whatever the density that reads: what the authors' programs use for
/// every density. @see divergence
template <class T, class B>
Variable<T, B> kl(const Variable<T, B>& density, T sigma0) {
  return divergence<GaussianDensity>(density, sigma0);
}

}  // namespace infty
