// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <infty/core/config.hpp>
#include <infty/thrust/fragments.hpp>
#include <infty/thrust/unroll.hpp>

/// Products of floats by a warp's tensor cores. In 8 columns of a (16, k), and as many rows of
/// b (k, 8), a lane has the columns 2 t and 2 t + 1, t = lane % 4: where a is what another product
/// summed, that is what the lane has. The instruction wants columns t and t + 4; as sums do not
/// mind which column is which, it is given these under that name.
namespace infty::detail {

/// N floats of a lane as the tensor cores take them: rounded to TF32, or with two parts as the sum
/// of two such numbers.
template <class Warp, int parts, int N>
struct Tf32Words {
  static_assert(parts == 1 || parts == 2);
  typename Warp::template Lanes<std::uint32_t, N> part[parts];

  INFTY_HOST_DEVICE void set(int lane, int i, float x, std::uint32_t round = tf32_half) {
    if constexpr (parts == 1) {
      part[0][lane][i] = nearest_tf32(x);
    } else {
      const Tf32Pair pair = tf32_pair(x, round);
      part[0][lane][i] = pair.nearest;
      part[1][lane][i] = pair.rest;
    }
  }
};

/// Takes a (16, 8): get(lane, i) for rows lane / 4 and, from i = 2 on, lane / 4 + 8, as sums lie.
/// `round` is `tf32_half`.
template <class Warp, int parts, class Get>
INFTY_HOST_DEVICE inline void take_left(const Warp& warp, Tf32Words<Warp, parts, 4>& a,
                                        const Get& get, std::uint32_t round = tf32_half) {
  warp.lanes([&](int lane) {
    INFTY_OVER_REGISTERS
    for (int i = 0; i < 4; ++i) a.set(lane, i / 2 + i % 2 * 2, get(lane, i), round);
  });
}
/// The same of numbers that `nearest_tf32` has rounded already.
template <class Warp, class Get>
INFTY_HOST_DEVICE inline void take_rounded_left(const Warp& warp, Tf32Words<Warp, 1, 4>& a,
                                                const Get& get) {
  warp.lanes([&](int lane) {
    INFTY_OVER_REGISTERS
    for (int i = 0; i < 4; ++i)
      a.part[0][lane][i / 2 + i % 2 * 2] = std::bit_cast<std::uint32_t>(get(lane, i));
  });
}
/// Takes b (8 steps, 8): get(lane, i) for the column lane / 4, two of a step.
template <class Warp, int parts, int steps, class Get>
INFTY_HOST_DEVICE inline void take_right(const Warp& warp, Tf32Words<Warp, parts, 2> (&b)[steps],
                                         const Get& get) {
  warp.lanes([&](int lane) {
    INFTY_OVER_REGISTERS
    for (int i = 0; i < 2 * steps; ++i) b[i / 2].set(lane, i % 2, get(lane, i));
  });
}

/// Zeros in all registers.
template <class Warp, int N>
INFTY_HOST_DEVICE inline void set_zero(const Warp& warp,
                                       typename Warp::template Lanes<float, N>& x) {
  warp.lanes([&](int lane) {
    INFTY_OVER_REGISTERS
    for (int i = 0; i < N; ++i) x[lane][i] = 0;
  });
}

/// sum (16, 8), the four registers from `at` on, += a b for several steps of 8 columns of a. Of two
/// parts the product of the rests is left out, 2^-22 of the whole at most; the small products come
/// first, for tensor cores cut a sum towards zero whenever they add to it.
template <class Warp, int parts, int steps, class Sums>
INFTY_HOST_DEVICE inline void multiply_add(const Warp& warp, Sums& sum, int at,
                                           const Tf32Words<Warp, parts, 4> (&a)[steps],
                                           const Tf32Words<Warp, parts, 2> (&b)[steps]) {
  if constexpr (parts == 2) {
    INFTY_OVER_REGISTERS
    for (int i = 0; i < steps; ++i) {
      warp.multiply_tf32(sum, at, a[i].part[1], b[i].part[0]);
      warp.multiply_tf32(sum, at, a[i].part[0], b[i].part[1]);
    }
  }
  INFTY_OVER_REGISTERS
  for (int i = 0; i < steps; ++i) warp.multiply_tf32(sum, at, a[i].part[0], b[i].part[0]);
}

/// The same, but what the products of numbers in two parts add up to is added as float adds, that
/// is rounded to the nearest.
template <class Warp, int parts, int steps, class Sums>
INFTY_HOST_DEVICE inline void multiply_add_rounded(const Warp& warp, Sums& sum, int at,
                                                   const Tf32Words<Warp, parts, 4> (&a)[steps],
                                                   const Tf32Words<Warp, parts, 2> (&b)[steps]) {
  if constexpr (parts == 1) {
    multiply_add(warp, sum, at, a, b);
  } else {
    typename Warp::template Lanes<float, 4> here;
    set_zero<Warp, 4>(warp, here);
    multiply_add(warp, here, 0, a, b);
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < 4; ++i) sum[lane][at + i] += here[lane][i];
    });
  }
}

}  // namespace infty::detail
