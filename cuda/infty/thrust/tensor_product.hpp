// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <infty/core/config.hpp>
#include <infty/thrust/fragments.hpp>
#include <infty/thrust/unroll.hpp>

/// Products of floats by a warp's tensor cores, 16 columns of a (16, k) and as many rows of b (k,
/// 8) at a time. A lane has them in pairs: of a's rows lane / 4 and lane / 4 + 8 the pairs 0 and 1,
/// and 2 and 3; of b's column lane / 4 two. Instructions for bfloat16 call the numbers of a pair
/// columns 2 t and 2 t + 1, or 2 t + 8 and 2 t + 9, t = lane % 4, which a lane has where a is what
/// another product summed; those for TF32 call them t and t + 4 of 8 columns each. As sums do not
/// mind which column is which, both are given the same pairs, whatever columns they stand for in a
/// and b.
namespace infty::detail {

/// Numbers in TF32 that stand for floats: one, rounded, or two as their sum, which is about as
/// exact.
template <int parts>
struct InTf32 {
  static_assert(parts == 1 || parts == 2);
  /// Whether a sum of products is as exact as if floats had been multiplied.
  static constexpr bool exact = parts == 2;

  /// What a lane has of `pairs` pairs of a factor: four of a, two of b.
  template <class Warp, int pairs>
  struct Factor {
    static constexpr int size = pairs;
    // Of each step of 8 columns.
    typename Warp::template Lanes<std::uint32_t, pairs> part[parts][2];

    /// `round` is `tf32_half`, but a compiler need not know it (`TensorAttentionTile::again`).
    INFTY_HOST_DEVICE void set(int lane, int pair, float first, float second,
                               std::uint32_t round = tf32_half) {
      constexpr int sides = pairs / 2;
      const int step = pair / sides, at = pair % sides;
      set(lane, step, at, first, round);
      set(lane, step, at + sides, second, round);
    }
    /// The same of numbers as `kept` has them.
    INFTY_HOST_DEVICE void set_kept(int lane, int pair, float first, float second) {
      static_assert(!exact);
      constexpr int sides = pairs / 2;
      const int step = pair / sides, at = pair % sides;
      part[0][step][lane][at] = std::bit_cast<std::uint32_t>(first);
      part[0][step][lane][at + sides] = std::bit_cast<std::uint32_t>(second);
    }

   private:
    INFTY_HOST_DEVICE void set(int lane, int step, int at, float x, std::uint32_t round) {
      if constexpr (parts == 1) {
        part[0][step][lane][at] = nearest_tf32(x);
      } else {
        const Tf32Pair pair = tf32_pair(x, round);
        part[0][step][lane][at] = pair.nearest;
        part[1][step][lane][at] = pair.rest;
      }
    }
  };

  /// A number as it may be kept from one product to the next: what is rounded, is so once.
  INFTY_HOST_DEVICE static float kept(float x) {
    return exact ? x : std::bit_cast<float>(nearest_tf32(x));
  }

  /// sum (16, 8), the four registers from `at` on, += a b. Of two parts the product of the rests is
  /// left out, 2^-22 of the whole at most; the small products come first, for tensor cores cut a
  /// sum towards zero whenever they add to it.
  template <class Warp, class Sums>
  INFTY_HOST_DEVICE static void multiply_add(const Warp& warp, Sums& sum, int at,
                                             const Factor<Warp, 4>& a, const Factor<Warp, 2>& b) {
    if constexpr (parts == 2) {
      INFTY_OVER_REGISTERS
      for (int step = 0; step < 2; ++step) {
        warp.multiply_tf32(sum, at, a.part[1][step], b.part[0][step]);
        warp.multiply_tf32(sum, at, a.part[0][step], b.part[1][step]);
      }
    }
    INFTY_OVER_REGISTERS
    for (int step = 0; step < 2; ++step)
      warp.multiply_tf32(sum, at, a.part[0][step], b.part[0][step]);
  }
};

/// Floats rounded to bfloat16.
struct InBfloat16 {
  static constexpr bool exact = false;

  template <class Warp, int pairs>
  struct Factor {
    static constexpr int size = pairs;
    typename Warp::template Lanes<std::uint32_t, pairs> words;

    INFTY_HOST_DEVICE void set(int lane, int pair, float first, float second) {
      words[lane][pair] = nearest_bf16_pair(first, second);
    }
    INFTY_HOST_DEVICE void set_kept(int lane, int pair, float first, float second) {
      set(lane, pair, first, second);
    }
  };

  /// As it is: two of them are rounded by one instruction when they are used.
  INFTY_HOST_DEVICE static float kept(float x) { return x; }

  template <class Warp, class Sums>
  INFTY_HOST_DEVICE static void multiply_add(const Warp& warp, Sums& sum, int at,
                                             const Factor<Warp, 4>& a, const Factor<Warp, 2>& b) {
    warp.multiply_bf16(sum, at, a.words, b.words);
  }
};

/// Takes 16 columns of a factor: get(lane, i) is number i % 2 of pair i / 2.
template <class Warp, class Factor, class Get>
INFTY_HOST_DEVICE inline void take_pairs(const Warp& warp, Factor& factor, const Get& get) {
  warp.lanes([&](int lane) {
    INFTY_OVER_REGISTERS
    for (int p = 0; p < Factor::size; ++p)
      factor.set(lane, p, get(lane, 2 * p), get(lane, 2 * p + 1));
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

/// As `In::multiply_add`, but what the products of exact numbers add up to is added as float adds,
/// that is rounded to the nearest.
template <class In, class Warp, class Sums>
INFTY_HOST_DEVICE inline void multiply_add_rounded(const Warp& warp, Sums& sum, int at,
                                                   const typename In::template Factor<Warp, 4>& a,
                                                   const typename In::template Factor<Warp, 2>& b) {
  if constexpr (!In::exact) {
    In::multiply_add(warp, sum, at, a, b);
  } else {
    typename Warp::template Lanes<float, 4> here;
    set_zero<Warp, 4>(warp, here);
    In::multiply_add(warp, here, 0, a, b);
    warp.lanes([&](int lane) {
      INFTY_OVER_REGISTERS
      for (int i = 0; i < 4; ++i) sum[lane][at + i] += here[lane][i];
    });
  }
}

}  // namespace infty::detail
