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

/// What the instruction makes of a number below the normal ones: zero, with its sign.
inline float without_subnormals(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}

/// sum + the products of two pairs, as `vdpbf16ps` computes it: first that of the upper halves is
/// added, then that of the lower ones, each rounded once, and what is subnormal is zero before and
/// behind each.
inline float dot_pair(float sum, float a, float b) {
  const auto x = std::bit_cast<std::uint32_t>(a), y = std::bit_cast<std::uint32_t>(b);
  const auto half = [](std::uint32_t bits) {
    return without_subnormals(std::bit_cast<float>(bits & 0xffff0000u));
  };
  sum = without_subnormals(std::fma(half(x), half(y), without_subnormals(sum)));
  return without_subnormals(std::fma(half(x << 16), half(y << 16), sum));
}

/// Tiles of products of pairs by any processor.
struct SlowDotTile {
  /// C (rows, vectors) = or += A (rows, k) B (k, vectors).
  template <int rows, int vectors>
  static void multiply(Index k, TileView<float> a, const float* b, Index ldb, bool add, float* c,
                       Index ldc) {
    sums(rows, vectors * Simd<float>::width, k, a, b, ldb, add, c, ldc);
  }

 private:
  // Of any size, so that there is one to compile.
  static void sums(Index rows, Index columns, Index k, TileView<float> a, const float* b, Index ldb,
                   bool add, float* c, Index ldc) {
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) {
        float sum = 0;
        for (Index p = 0; p < k; ++p)
          sum = dot_pair(sum, a.data[i * a.row + p * a.column], b[p * ldb + j]);
        c[i * ldc + j] = add ? c[i * ldc + j] + sum : sum;
      }
  }
};

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
  static constexpr Index floats = 2;  ///< that become one
  static constexpr Index parts = 1;   ///< of one: the instruction takes both at once

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

/// The same by the instruction, to be used only where it is, to the bit: but for sums that are
/// within a rounding of the least normal number, of which the instruction may say 0.
using DotTile = RegisterTile<PairElements>;
#else
using DotTile = SlowDotTile;
#endif

}  // namespace infty::detail
