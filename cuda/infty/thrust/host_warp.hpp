// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include <infty/core/config.hpp>
#include <infty/thrust/fragments.hpp>
#include <infty/thrust/item_order.hpp>

namespace infty::detail {

/// N registers in each lane of a warp, with no defined contents: `x[lane][i]`.
template <class T, int N>
class HostLanes {
 public:
  /// NaN, as shared memory is: what is read before it is written shows.
  INFTY_HOST_DEVICE HostLanes() { std::memset(x_, 0xff, sizeof(x_)); }
  INFTY_HOST_DEVICE T* operator[](int lane) { return x_[lane]; }
  INFTY_HOST_DEVICE const T* operator[](int lane) const { return x_[lane]; }

 private:
  T x_[warp_lanes][N];
};

/// A warp of the host: one thread does the work of its lanes, and its matrix products by taking
/// them from where each lane holds what it does.
template <ItemOrder order>
class HostWarp {
 public:
  template <class T, int N>
  using Lanes = HostLanes<T, N>;

  INFTY_HOST_DEVICE explicit HostWarp(int index) : index_(index) {}

  /// Which warp of its block this is.
  INFTY_HOST_DEVICE int index() const { return index_; }

  /// f(lane) in every lane, which writes registers of this lane alone, and of shared memory what no
  /// other lane touches before the next barrier.
  template <class F>
  INFTY_HOST_DEVICE void lanes(const F& f) const {
    for (int i = 0; i < warp_lanes; ++i) f(ordered<order>(i, warp_lanes));
  }
  /// The same for an f that writes memory which other lanes have read, or will read: it stands
  /// between two barriers of the warp.
  template <class F>
  INFTY_HOST_DEVICE void exchange(const F& f) const {
    lanes(f);
  }

  /// Register i of every lane becomes the fold of the registers i of its four, those of lanes that
  /// have lane / 4 in common, as a row of sums has. `fold` does not mind the order of its two.
  template <class T, int N, class Fold>
  INFTY_HOST_DEVICE void fold_quads(Lanes<T, N>& x, const Fold& fold) const {
    for (int step = 1; step < 4; step *= 2) {
      const Lanes<T, N> before = x;
      lanes([&](int lane) {
        for (int i = 0; i < N; ++i) x[lane][i] = fold(before[lane][i], before[lane ^ step][i]);
      });
    }
  }

  /// sum (16, 8), the four registers from `at` on, += a (16, 8) b (8, 8) in TF32.
  template <int N>
  INFTY_HOST_DEVICE void multiply_tf32(Lanes<float, N>& sum, int at,
                                       const Lanes<std::uint32_t, 4>& a,
                                       const Lanes<std::uint32_t, 2>& b) const {
    float left[16][8], right[8][8];
    for (int lane = 0; lane < warp_lanes; ++lane) {
      for (int i = 0; i < 4; ++i)
        element(left, entry_of_tf32_a(lane, i)) = std::bit_cast<float>(a[lane][i] & tf32_mask);
      for (int i = 0; i < 2; ++i)
        element(right, entry_of_tf32_b(lane, i)) = std::bit_cast<float>(b[lane][i] & tf32_mask);
    }
    multiply(sum, at, left, right);
  }

  /// sum (16, 8), the four registers from `at` on, += a (16, 16) b (16, 8) in bfloat16, two numbers
  /// a register, as `bfloat16_pair` joins them.
  template <int N>
  INFTY_HOST_DEVICE void multiply_bf16(Lanes<float, N>& sum, int at,
                                       const Lanes<std::uint32_t, 4>& a,
                                       const Lanes<std::uint32_t, 2>& b) const {
    float left[16][16], right[16][8];
    for (int lane = 0; lane < warp_lanes; ++lane) {
      for (int i = 0; i < 8; ++i)
        element(left, entry_of_bf16_a(lane, i)) = half_of(a[lane][i / 2], i % 2);
      for (int i = 0; i < 4; ++i)
        element(right, entry_of_bf16_b(lane, i)) = half_of(b[lane][i / 2], i % 2);
    }
    multiply(sum, at, left, right);
  }

 private:
  template <int rows, int columns>
  INFTY_HOST_DEVICE static float& element(float (&x)[rows][columns], Entry at) {
    return x[at.row][at.column];
  }
  INFTY_HOST_DEVICE static float half_of(std::uint32_t pair, int which) {
    return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff0000u);
  }
  // Products are exact, and a sum of them is cut towards zero   [Fasi et al. 2021, "Numerical
  // behavior of NVIDIA tensor cores"]: what is wrong with it adds up, where roundings would not.
  template <int N, int k>
  INFTY_HOST_DEVICE static void multiply(Lanes<float, N>& sum, int at, const float (&a)[16][k],
                                         const float (&b)[k][8]) {
    for (int lane = 0; lane < warp_lanes; ++lane)
      for (int i = 0; i < 4; ++i) {
        const Entry entry = entry_of_sum(lane, i);
        double total = static_cast<double>(sum[lane][at + i]);
        for (int l = 0; l < k; ++l)
          total += static_cast<double>(a[entry.row][l]) * static_cast<double>(b[l][entry.column]);
        sum[lane][at + i] = towards_zero(total);
      }
  }
  INFTY_HOST_DEVICE static float towards_zero(double x) {
    const float nearest = static_cast<float>(x);
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    const double size = x < 0 ? -x : x;
    const bool finite = (bits & 0x7fffffffu) < 0x7f800000u;
    return finite && static_cast<double>(nearest < 0 ? -nearest : nearest) > size
               ? std::bit_cast<float>(bits - 1)
               : nearest;
  }

  int index_;
};

}  // namespace infty::detail
