// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>

/// The factors of a product that a warp's tensor cores compute, sum (16, 8) += a (16, k) b (k, 8):
/// which element of a matrix is register i of a lane, as the PTX ISA has it for mma.m16n8k8 of TF32
/// and mma.m16n8k16 of bfloat16, and how floats become TF32 and bfloat16.
namespace infty::detail {

/// Lanes of a warp.
inline constexpr int warp_lanes = 32;

/// Where an element of a matrix stands.
struct Entry {
  int row, column;
};

/// Of the sums (16, 8), a float in each of 4 registers.
INFTY_HOST_DEVICE constexpr Entry entry_of_sum(int lane, int i) {
  return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2};
}
/// Of a (16, 8) in TF32, a number in each of 4 registers.
INFTY_HOST_DEVICE constexpr Entry entry_of_tf32_a(int lane, int i) {
  return {lane / 4 + i % 2 * 8, lane % 4 + i / 2 * 4};
}
/// Of b (8, 8) in TF32, a number in each of 2 registers.
INFTY_HOST_DEVICE constexpr Entry entry_of_tf32_b(int lane, int i) {
  return {lane % 4 + i * 4, lane / 4};
}
/// Of a (16, 16) in bfloat16: i counts halves of 4 registers, the lower one first.
INFTY_HOST_DEVICE constexpr Entry entry_of_bf16_a(int lane, int i) {
  return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8};
}
/// Of b (16, 8) in bfloat16: i counts halves of 2 registers.
INFTY_HOST_DEVICE constexpr Entry entry_of_bf16_b(int lane, int i) {
  return {lane % 4 * 2 + i % 2 + i / 2 * 8, lane / 4};
}

/// The bits that TF32 keeps of a float: sign, exponent and 10 bits of mantissa.
inline constexpr std::uint32_t tf32_mask = 0xffffe000u;

/// Half of a unit in the last place that TF32 keeps, in bits of a float.
inline constexpr std::uint32_t tf32_half = 0x1000u;

/// x rounded to TF32, ties away from zero, as cvt.rna.tf32.f32 does it; beyond the largest it is
/// infinity.
INFTY_HOST_DEVICE inline std::uint32_t nearest_tf32(float x) {
#if defined(__CUDA_ARCH__)
  std::uint32_t out;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(out) : "f"(x));
  return out;
#else
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const bool finite = (bits & 0x7fffffffu) < 0x7f800000u;
  return (finite ? bits + tf32_half : bits) & tf32_mask;
#endif
}
/// A float as the sum of two numbers in TF32, which is off by 2^-22 of it at most. Of what is not
/// finite, or rounds to infinity, `rest` is not finite either.
struct Tf32Pair {
  std::uint32_t nearest, rest;
};
INFTY_HOST_DEVICE constexpr Tf32Pair tf32_pair(float x, std::uint32_t round = tf32_half) {
  // As `nearest_tf32`, but that of a NaN it may make 0: then the rest is NaN.
  const std::uint32_t nearest = (std::bit_cast<std::uint32_t>(x) + round) & tf32_mask;
  return {nearest, std::bit_cast<std::uint32_t>(x - std::bit_cast<float>(nearest)) & tf32_mask};
}

/// Two floats rounded to bfloat16, the first in the lower half, as `bfloat16_pair` joins them.
INFTY_HOST_DEVICE inline std::uint32_t nearest_bf16_pair(float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t out;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(out) : "f"(second), "f"(first));
  return out;
#else
  return bfloat16_pair(first, second);
#endif
}

}  // namespace infty::detail
