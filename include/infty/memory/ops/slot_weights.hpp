// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/math.hpp>
#include <infty/core/row.hpp>

namespace infty {

/// How much of every memory slot a vector reads: the mean over the heads of the softmax of each
/// head's scores over the slots, times a factor of the vector's own [Zhang & Cai 2022, §3]. Heads
/// that share their values read the same by the mean of their weights as by the mean of their
/// answers.
/// @param scores  [B, L, H k], head by head
/// @param factor  [B, L], or empty for 1
/// @return        [B, L, k]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> slot_weights(const Variable<T, B>& scores, Index heads,
                            const Tensor<T, B>& factor = {}) {
  require<ShapeError>(
      scores.shape().rank() == 3 && heads >= 1 && scores.dim(2) > 0 && scores.dim(2) % heads == 0 &&
          (factor.empty() || factor.shape() == Shape{scores.dim(0), scores.dim(1)}),
      "slot_weights", "scores are ", scores.shape(), ", heads ", heads, ", factor is ",
      factor.shape(), ": they must be [B, L, H k], H, and [B, L] or empty");
  const Index places = scores.dim(0) * scores.dim(1), slots = scores.dim(2) / heads;
  const T share = T(1) / static_cast<T>(heads);
  const bool scaled = !factor.empty();
  Variable<T, B> y(Tensor<T, B>(scores.shape().with(2, slots)));
  {
    const T *const all = scores.value().data(), *const factors = factor.data();
    T* const to = y.value().data();
    B::for_each_row(places, 16 * heads * slots, [=] INFTY_HOST_DEVICE(Index i) {
      T* const out = to + i * slots;
      for (Index s = 0; s < slots; ++s) out[s] = T(0);
      for (Index head = 0; head < heads; ++head) {
        const T* const x = all + (i * heads + head) * slots;
        const T top = detail::row_max<T>(slots, [=](Index s) { return x[s]; });
        const T sum = detail::row_sum<T>(slots, [=](Index s) { return math::exp(x[s] - top); });
        const T weight = share * (scaled ? factors[i] : T(1)) / sum;
        for (Index s = 0; s < slots; ++s) out[s] += weight * math::exp(x[s] - top);
      }
    });
  }
  return record(
      y,
      [scores, factor, heads, places, slots, share, scaled](const Tensor<T, B>& dy) {
        // With p a head's softmax: dx = factor / H p (dy - sum of p dy)
        const GradTarget<T> target = scores.grad_target();
        const T *const all = scores.value().data(), *const factors = factor.data(),
                       *const d_all = dy.data();
        T* const to = target.data;
        const bool add = target.add;
        B::for_each_row(places * heads, 24 * slots, [=] INFTY_HOST_DEVICE(Index i) {
          const T *const x = all + i * slots, *const d = d_all + i / heads * slots;
          T* const dx = to + i * slots;
          const T top = detail::row_max<T>(slots, [=](Index s) { return x[s]; });
          const T sum = detail::row_sum<T>(slots, [=](Index s) { return math::exp(x[s] - top); });
          const T mean =
              detail::row_sum<T>(slots, [=](Index s) { return math::exp(x[s] - top) * d[s]; }) /
              sum;
          const T weight = share * (scaled ? factors[i / heads] : T(1)) / sum;
          for (Index s = 0; s < slots; ++s) {
            const T g = weight * math::exp(x[s] - top) * (d[s] - mean);
            dx[s] = add ? dx[s] + g : g;
          }
        });
      },
      scores, factor);
}

}  // namespace infty
