// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>
#include <infty/eigen/register_tile.hpp>

// The instruction takes vectors that only programs for AVX-512 have in registers. It stands as
// text, so that a compiler need not know it, and Clang 16's own form of it crashes that compiler.
#if defined(__AVX512F__) && defined(__x86_64__) && !defined(__CUDACC__)
#define INFTY_DOT_INSTRUCTION 1
#endif

// Products of matrices whose elements are pairs of bfloat16, two that follow each other in the
// order of k, in the bits of a float.
namespace infty::detail {

/// Whether this processor multiplies pairs itself, and this program may ask it to.
inline bool has_dot_instruction() {
#if defined(INFTY_DOT_INSTRUCTION)
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has;
#else
  return false;
#endif
}

/// Whether this file may use it. What is chosen by that has it as a parameter: a program's files
/// may differ in it, and be linked.
#if defined(INFTY_DOT_INSTRUCTION)
inline constexpr bool dot_here = true;
#else
inline constexpr bool dot_here = false;
#endif

/// Whether products of pairs are made by that instruction. Two multiply-adds of floats make the
/// same: on Intel's processors in half of the time, on AMD's in twice.
template <bool dot = dot_here>
bool multiplies_pairs() {
#if defined(INFTY_DOT_INSTRUCTION)
  static const bool does = dot && has_dot_instruction() && !__builtin_cpu_is("intel");
  return does;
#else
  return false;
#endif
}

/// What the instruction makes of a number below the normal ones: zero, with its sign.
inline float without_subnormals(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}

/// How sums are added up from here to `end`: with zero in the place of subnormal numbers, as the
/// instruction does, where a processor can be told to.
class FlushedSums {
 public:
#if defined(__x86_64__) && !defined(__CUDACC__)
  FlushedSums() {
    before_ = word();
    set(before_ | flush);
  }
  /// Sets it back, but for what was noted of sums since.
  void end() const { set((word() & ~flush) | (before_ & flush)); }

  /// Holds a sum to where it is asked to, on its side of the beginning and of the end.
  template <class Vector>
  [[gnu::always_inline]] static void keep(Vector& sum) {
    asm volatile("" : "+v"(sum));
  }

 private:
  static constexpr unsigned flush = 0x8040;  // of what is read, and of what is written

  static unsigned word() {
    unsigned now;
    asm volatile("stmxcsr %0" : "=m"(now));
    return now;
  }
  static void set(unsigned now) { asm volatile("ldmxcsr %0" ::"m"(now)); }

  unsigned before_;
#else
  static void end() {}
  template <class Vector>
  static void keep(Vector&) {}
#endif
};

/// Pairs whose halves any processor multiplies, by halves that are floats each, as `vdpbf16ps`
/// does: first the product of the upper ones is added, then that of the lower ones, each sum
/// rounded once. (Without fused multiply-adds the product of two is a float by itself, exact but
/// where that overflows or is subnormal.)
struct HalfElements : PlainElements {
  using Sums = FlushedSums;
  static constexpr Index floats = 2, parts = 2, together = 2;

  template <class Vector>
  [[gnu::always_inline]] static void add_product(Vector& sum, Vector left, Vector right) {
#if defined(__FMA__) && defined(__x86_64__) && !defined(__CUDACC__)
    // Not left to the compiler: a product that is subnormal counts where the sum is not.
    asm("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(right), "v"(left));
#else
    sum += left * right;
#endif
  }

  [[gnu::always_inline]] static void take_apart(const Simd<float>::Vector& pairs,
                                                Simd<float>::Vector* half) {
    const auto words = std::bit_cast<Simd<std::uint32_t>::Vector>(pairs);
    half[0] = std::bit_cast<Simd<float>::Vector>(words & 0xffff0000u);
    half[1] = std::bit_cast<Simd<float>::Vector>(words << 16);
  }
};

/// Tiles of products of pairs by any processor.
using HalfTile = RegisterTile<HalfElements>;

/// A pair as the instructions round it: a number below the normal ones is zero before.
inline float rounded_pair(float first, float second) {
  return std::bit_cast<float>(bfloat16_pair(without_subnormals(first), without_subnormals(second)));
}

#if defined(INFTY_DOT_INSTRUCTION)
/// The same by instructions, of two vectors: first[0], second[0], first[1], second[1]...; or, not
/// `between` each other, first[0], first[1]..., second[0], second[1]...
template <bool between, class Vector>
[[gnu::always_inline]] inline Vector rounded_pairs(Vector first, Vector second) {
  Vector words;
  asm("vcvtne2ps2bf16 {%1, %2, %0|%0, %2, %1}" : "=v"(words) : "v"(first), "v"(second));
  if constexpr (between) {
    typedef std::uint32_t Words __attribute__((vector_size(64)));
    constexpr Words order = {0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005,
                             0x160006, 0x170007, 0x180008, 0x190009, 0x1a000a, 0x1b000b,
                             0x1c000c, 0x1d000d, 0x1e000e, 0x1f000f};
    asm("vpermw {%0, %1, %0|%0, %1, %0}" : "+v"(words) : "v"(order));
  }
  return words;
}

/// Pairs that the instruction multiplies and adds.
struct PairElements {
  using Sums = UsualSums;
  static constexpr Index floats = 2, together = 2;
  static constexpr Index parts = 1;  ///< of one: the instruction takes both at once

  /// The pairs that begin at x, a vector of them.
  [[gnu::always_inline]] static Simd<float>::Vector load(const float* x) {
    using S = Simd<float>;
    return rounded_pairs<false>(S::load(x), S::load(x + S::width));
  }
  /// The pair at x, where so many are left.
  static float element(const float* x, Index left) {
    return rounded_pair(x[0], left > 1 ? x[1] : 0);
  }
  template <class Vector>
  [[gnu::always_inline]] static Vector copies(const float& x) {
    Vector all;  // a pair is no number: arithmetic might change its bits
    asm("vbroadcastss {%1, %0|%0, %1}" : "=v"(all) : "m"(x));
    return all;
  }
  template <class Vector>
  [[gnu::always_inline]] static void add_product(Vector& sum, Vector left, Vector right) {
    asm("vdpbf16ps {%2, %1, %0|%0, %1, %2}" : "+v"(sum) : "v"(right), "v"(left));
  }
  template <class Vector>
  [[gnu::always_inline]] static void take_apart(const Vector& pairs, Vector* part) {
    *part = pairs;
  }
};

/// Pairs that the instruction makes of two floats, and whose halves are multiplied as
/// `HalfElements`.
struct RoundedHalves : HalfElements {
  [[gnu::always_inline]] static Simd<float>::Vector load(const float* x) {
    return PairElements::load(x);
  }
  static float element(const float* x, Index left) { return PairElements::element(x, left); }
};

/// The same by the instruction, to be used only where it is.
using DotTile = RegisterTile<PairElements>;
#else
using DotTile = HalfTile;
#endif

}  // namespace infty::detail
