// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/matmul.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/row.hpp>

namespace infty {

// A linear associative memory A [B, H, F, V]: heads H, features F of a key, and V of a value. It
// sums the products of what was written, φ(k) vᵀ, and with it a mass z [B, H, F], the sum of the
// φ(k), that what is read is divided by. All of a segment is written at once, against one memory.

/// What is read is divided by: max(z φ, floor) + epsilon.
struct Denominator {
  double floor = 0;    ///< least mass that counts
  double epsilon = 0;  ///< what is added to it
};

namespace detail {

/// y [..., V] over max(mass, floor) + epsilon, mass [..., 1].
template <class T, class B>
Variable<T, B> over_mass(const Variable<T, B>& x, const Variable<T, B>& mass,
                         const Denominator& by) {
  const Index width = x.dim(-1), rows = mass.size();
  const T floor = static_cast<T>(by.floor), epsilon = static_cast<T>(by.epsilon);
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  const T *const in = x.value().data(), *const m = mass.value().data();
  T* const out = y.value().data();
  B::for_each_row(rows, width, [=] INFTY_HOST_DEVICE(Index i) {
    const T divisor = (m[i] < floor ? floor : m[i]) + epsilon;
    for (Index j = i * width; j < (i + 1) * width; ++j) out[j] = in[j] / divisor;
  });
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x = Unread(x), mass, result, width, rows, floor, epsilon](const Tensor<T, B>& dy) {
        const bool of_x = x.requires_grad(), of_mass = mass.requires_grad();
        const GradTarget<T> to_x = of_x ? x.grad_target() : GradTarget<T>{},
                            to_mass = of_mass ? mass.grad_target() : GradTarget<T>{};
        T *const dx = to_x.data, *const dm = to_mass.data;
        const bool add_x = to_x.add, add_mass = to_mass.add;
        const Index n = width;
        const T least = floor, more = epsilon;
        const T *const read = result.data(), *const total = mass.value().data(),
                       *const g = dy.data();
        B::for_each_row(rows, 3 * width, [=] INFTY_HOST_DEVICE(Index i) {
          const bool counts = !(total[i] < least);
          const T inverse = T(1) / ((counts ? total[i] : least) + more);
          const T *const v = g + i * n, *const r = read + i * n;
          if (of_x)
            for (Index j = 0; j < n; ++j) {
              T& to = dx[i * n + j];
              to = (add_x ? to : T(0)) + v[j] * inverse;
            }
          if (of_mass) {
            const T sum =
                counts ? row_sum<T>(n, [=](Index j) { return v[j] * r[j]; }) * inverse : T(0);
            dm[i] = (add_mass ? dm[i] : T(0)) - sum;
          }
        });
      },
      Unread(x), mass, result);
}

/// @throws infty::ShapeError that names `op` unless features are [B, H, L, F] and memory
/// [B, H, F, V]
template <class T, class B>
void require_associative(const char* op, const Variable<T, B>& features,
                         const Variable<T, B>& memory) {
  const Shape &f = features.shape(), &a = memory.shape();
  require<ShapeError>(
      f.rank() == 4 && a.rank() == 4 && f[0] == a[0] && f[1] == a[1] && f[3] == a[2], op,
      "features are ", f, ", the memory is ", a, ": they must be [B, H, L, F] and [B, H, F, V]");
}

/// @throws infty::ShapeError that names `op` unless features are [B, H, L, F] and the mass is
/// [B, H, F]
template <class T, class B>
void require_mass(const char* op, const Shape& features, const Variable<T, B>& mass) {
  require<ShapeError>(
      features.rank() == 4 && mass.shape() == Shape{features[0], features[1], features[3]}, op,
      "features are ", features, ", the mass is ", mass.shape(),
      ": they must be [B, H, L, F] and [B, H, F]");
}

}  // namespace detail

/// What features read of a memory: Aᵀφ / (max(z φ, floor) + epsilon), or Aᵀφ where there is no mass
/// [Katharopoulos et al. 2020; Munkhdalai et al. 2024, Eq. 3; Rodkin et al. 2024, §3].
/// @param features  φ, [B, H, L, F]
/// @param memory    A, [B, H, F, V]
/// @param mass      z, [B, H, F], or empty for none
/// @return          [B, H, L, V]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> associative_read(const Variable<T, B>& features, const Variable<T, B>& memory,
                                const Variable<T, B>& mass, const Denominator& by) {
  const char* const op = "associative_read";
  detail::require_associative(op, features, memory);
  const Variable<T, B> sums = matmul(features, memory);
  if (mass.size() == 0) return sums;
  detail::require_mass(op, features.shape(), mass);
  const Shape& z = mass.shape();
  return detail::over_mass(sums, matmul(features, reshape(mass, Shape{z[0], z[1], z[2], 1})), by);
}

/// A memory with more written to it: A + Σ_t φ_t u_tᵀ.
/// @param memory    A, [B, H, F, V]
/// @param features  φ, [B, H, L, F]
/// @param values    u, [B, H, L, V]
/// @return          [B, H, F, V]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> associative_write(const Variable<T, B>& memory, const Variable<T, B>& features,
                                 const Variable<T, B>& values) {
  const char* const op = "associative_write";
  detail::require_associative(op, features, memory);
  const Index L = features.dim(2), F = memory.dim(2), W = memory.dim(3);
  require<ShapeError>(values.shape() == features.shape().with(3, W), op, "values are ",
                      values.shape(), ": they must be ", features.shape().with(3, W));
  const Shape batch = detail::batch_of(memory.shape());
  Variable<T, B> y(memory.value().clone());
  const detail::Broadcast at(batch, batch, batch);
  detail::batched_product<B>(at, F, W, L, true, false, features.value().data(),
                             values.value().data(), T(1), y.value().data());
  return record(
      y,
      [memory = Unread(memory), features, values, batch, L, F, W](const Tensor<T, B>& dy) {
        if (memory.requires_grad()) detail::add_to_grad(memory, dy);
        // dφ = u dyᵀ, du = φ dy
        if (features.requires_grad())
          detail::add_batched_product_to_grad(features, batch, batch, batch, L, F, W, false, true,
                                              values.value().data(), dy.data());
        if (values.requires_grad())
          detail::add_batched_product_to_grad(values, batch, batch, batch, L, W, F, false, false,
                                              features.value().data(), dy.data());
      },
      Unread(memory), features, values);
}

/// A mass with that of more features: z + Σ_t γ_t φ_t.
/// @param mass      z, [B, H, F]
/// @param features  φ, [B, H, L, F]
/// @param share     γ, [B, H, L, 1], without a gradient; empty for 1 everywhere
/// @return          [B, H, F]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> mass_write(const Variable<T, B>& mass, const Variable<T, B>& features,
                          const Tensor<T, B>& share = {}) {
  detail::require_mass("mass_write", features.shape(), mass);
  const Index batch = features.dim(0), heads = features.dim(1), length = features.dim(2);
  require<ShapeError>(share.empty() || share.shape() == Shape{batch, heads, length, 1},
                      "mass_write", "the share is ", share.shape(), ": it must be ",
                      Shape{batch, heads, length, 1});
  const Variable<T, B> weights(share.empty() ? Tensor<T, B>::full(Shape{1, 1, 1, length}, T(1))
                                             : share.reshape(Shape{batch, heads, 1, length}));
  return mass + reshape(matmul(weights, features), mass.shape());
}

/// How much of each of the features is new to a mass, γ = 1 - (z φ + epsilon) / (φ φ + of_length),
/// held within [0, 1]; 1 in rows that are fresh [Rodkin et al. 2024, §3]. No gradient flows
/// through it.
/// @param mass      z, [B, H, F]
/// @param features  φ, [B, H, L, F]
/// @param fresh     [B], 1 where nothing was written yet, else 0
/// @return          [B, H, L, 1]
/// @throws infty::ShapeError
template <class T, class B>
Tensor<T, B> new_share(const Tensor<T, B>& mass, const Tensor<T, B>& features,
                       const Tensor<Index, B>& fresh, double epsilon, double of_length) {
  detail::require_mass("new_share", features.shape(), Variable<T, B>(mass));
  const Index batch = features.dim(0), heads = features.dim(1), length = features.dim(2),
              width = features.dim(3);
  require<ShapeError>(fresh.shape() == Shape{batch}, "new_share", "fresh is ", fresh.shape(),
                      ": it must be [", batch, "]");
  Tensor<T, B> share(Shape{batch, heads, length, 1});
  const T *const z = mass.data(), *const f = features.data();
  const Index* const unwritten = fresh.data();
  const T above = static_cast<T>(epsilon), below = static_cast<T>(of_length);
  T* const to = share.data();
  B::for_each_row(batch * heads * length, 4 * width, [=] INFTY_HOST_DEVICE(Index i) {
    const T *const phi = f + i * width, *const of_head = z + i / length * width;
    const T known = detail::row_sum<T>(width, [=](Index j) { return of_head[j] * phi[j]; });
    const T whole = detail::row_sum<T>(width, [=](Index j) { return phi[j] * phi[j]; });
    const T gamma = T(1) - (known + above) / (whole + below);
    const T held = gamma > T(0) ? (gamma < T(1) ? gamma : T(1)) : T(0);
    to[i] = unwritten[i / (heads * length)] == 1 ? T(1) : held;
  });
  return share;
}

/// How much of each vector's delta rule a memory can take and not correct any key beyond what it
/// should hold: 1 / max(1, c_t), c_t = φ_tᵀ Σ_s w_s φ_s, w = β / max(z φ + epsilon, φ φ +
/// of_length). So weighed, Σ w φ φᵀ, which the write takes off the memory, has no eigenvalue above
/// 1: its nonzero ones are those of a matrix of numbers >= 0 whose rows sum to at most 1. A vector
/// by itself has 1, if its features are no longer than that or are divided by a mass; alike ones
/// count as one together; 1 in rows that are fresh. No gradient flows
/// through it.
/// @param features   φ >= 0, [B, H, L, F]
/// @param strengths  β, [B, H, L, W]; the largest of a vector counts
/// @param mass       z, [B, H, F]; of no elements where nothing is divided by it, and w is β
/// @param fresh      [B], 1 where nothing was written yet, else 0
/// @return           [B, H, L, 1]
/// @throws infty::ShapeError
template <class T, class B>
Tensor<T, B> contracting_share(const Tensor<T, B>& features, const Tensor<T, B>& strengths,
                               const Tensor<T, B>& mass, const Tensor<Index, B>& fresh,
                               double epsilon, double of_length) {
  const char* const op = "contracting_share";
  const bool divided = mass.size() > 0;
  const Shape& shape = features.shape();
  if (divided) detail::require_mass(op, shape, Variable<T, B>(mass));
  require<ShapeError>(shape.rank() == 4 && strengths.shape().rank() == 4 &&
                          strengths.shape().with(3, 0) == shape.with(3, 0) &&
                          fresh.shape() == Shape{shape[0]},
                      op, "features are ", shape, ", strengths ", strengths.shape(), ", fresh is ",
                      fresh.shape(), ": they must be [B, H, L, F], [B, H, L, W] and [B]");
  const Index heads = shape[1], length = shape[2], width = shape[3], each = strengths.dim(3);
  Tensor<T, B> weights(Shape{shape[0], heads, 1, length});
  Tensor<T, B> share(Shape{shape[0], heads, length, 1});
  const T *const z = mass.data(), *const f = features.data(), *const beta = strengths.data();
  const T above = static_cast<T>(epsilon), below = static_cast<T>(of_length);
  T* const w = weights.data();
  B::for_each_row(shape[0] * heads * length, 4 * width + each, [=] INFTY_HOST_DEVICE(Index i) {
    const T *const phi = f + i * width, *const of_head = z + (divided ? i / length * width : 0);
    w[i] = T(0);
    for (Index j = i * each; j < (i + 1) * each; ++j) w[i] = beta[j] > w[i] ? beta[j] : w[i];
    if (!divided) return;
    const T known = detail::row_sum<T>(width, [=](Index j) { return of_head[j] * phi[j]; }) + above;
    const T whole = detail::row_sum<T>(width, [=](Index j) { return phi[j] * phi[j]; }) + below;
    w[i] /= known < whole ? whole : known;
  });
  const Variable<T, B> phi(features);
  const auto sum = matmul(Variable<T, B>(weights), phi).value();
  const Tensor<T, B> rows =
      matmul(phi, Variable<T, B>(sum.reshape(Shape{shape[0], heads, width, 1}))).value();
  const T* const c = rows.data();
  const Index* const unwritten = fresh.data();
  T* const to = share.data();
  B::for_each(share.size(), [=] INFTY_HOST_DEVICE(Index i) {
    to[i] = unwritten[i / (heads * length)] == 1 || !(c[i] > T(1)) ? T(1) : T(1) / c[i];
  });
  return share;
}

}  // namespace infty
