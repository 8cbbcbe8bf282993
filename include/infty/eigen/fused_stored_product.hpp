// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <infty/core/bfloat16.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/pairs.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/products.hpp>
#include <infty/eigen/rounded_tile.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/tile_product.hpp>

// Products of a few rows with weights that are stored in bfloat16: what a token costs is to read
// these, and they are half of what floats are. They are met as they come, two in a word. nvcc,
// whose front end does not know the shuffles of `few_rows`, has the composition.
#if !defined(__CUDACC__)

namespace infty::detail {

/// Two numbers in bfloat16 as they are stored, in the bits of a float.
struct StoredPairs {
  static constexpr Index floats = 2;  ///< numbers that become one

  /// The pairs that begin at x, a vector of them.
  [[gnu::always_inline]] static Simd<float>::Vector load(const BFloat16* x) {
    Simd<float>::Vector all;
    std::memcpy(&all, x, sizeof(all));
    return all;
  }
  /// The pair at x, where so many are left.
  static float element(const BFloat16* x, Index left) {
    return std::bit_cast<float>(std::uint32_t{x[0].bits()} |
                                (left > 1 ? std::uint32_t{x[1].bits()} << 16 : 0u));
  }
};

/// The same, each multiplied in full, by floats.
struct StoredElements : StoredPairs, PlainElements {
  using StoredPairs::element, StoredPairs::floats, StoredPairs::load;
  static constexpr Index parts = 2;  ///< of one, each multiplied by a float of its own

  [[gnu::always_inline]] static void take_apart(const Simd<float>::Vector& pairs,
                                                Simd<float>::Vector* part) {
    typedef std::uint32_t Words __attribute__((vector_size(Simd<float>::bytes)));
    const auto words = std::bit_cast<Words>(pairs);
    part[0] = std::bit_cast<Simd<float>::Vector>(words << 16);
    part[1] = std::bit_cast<Simd<float>::Vector>(words & 0xffff0000u);
  }
};

/// The same as halves of pairs, multiplied by such halves.
struct StoredHalves : StoredPairs, HalfElements {
  using HalfElements::take_apart, StoredPairs::element, StoredPairs::floats, StoredPairs::load;
};

#if defined(INFTY_DOT_INSTRUCTION)
/// The same, multiplied by pairs.
struct StoredPairElements : StoredPairs, PairElements {
  using StoredPairs::element, StoredPairs::floats, StoredPairs::load;
};
#endif

/// The kernel of `ComposedStoredProduct` for few rows, with the bits that this has of so many.
struct FusedStoredProduct {
  /// Whether it takes m rows of k floats.
  static bool takes(Index m, Index k) {
    // Rows of an even length are words, whose lower half is the first number.
    return std::endian::native == std::endian::little && k > 0 && k % 2 == 0 && m > 0 &&
           m <= most_few_rows;
  }

  /// y (m, n) = x (m, k) W (n, k)ᵀ + beta y, whose rows are `leading` apart.
  static void multiply(Index m, Index n, Index k, const float* x, const BFloat16* w, float beta,
                       float* y, Index leading, bool roundable) {
    if (n == 0) return;
    const bool rounded = roundable && products() == Products::bfloat16;
    const PairLayout of_left = rounded ? left_layout() : PairLayout::joined;
    const Scratch<float> pairs(rounded ? room_of(of_left, m, k / 2) : 0);
    if (rounded) laid_out(of_left, m, k, x, k, true, pairs.data());
    const Index columns = matmul_tiles(m, n, k, 1, false, true).cols;
    const Index work = (std::max)(m, most_few_rows / 2) * columns * k;
    const Index grain = std::max<Index>(1, (Index{1} << 18) / work);
    parallel_for((n + columns - 1) / columns, grain, [&](Index begin, Index end) {
      const Index first = begin * columns, count = (std::min)(n, end * columns) - first;
      const auto multiply_by = [&]<class Elements>(Elements, const float* a, Index lda) {
        few_rows_gemm<Elements>(m, count, k, 1.f, a, lda, w + first * k, k, beta, y + first,
                                leading);
      };
      if (!rounded) return multiply_by(StoredElements{}, x, k);
#if defined(INFTY_TILE_REGISTERS)
      if (of_left == PairLayout::rows)
        return tile_few_rows(m, count, k, 1.f, {pairs.data(), whole_tiles(k / 2), false},
                             w + first * k, k, beta, y + first, leading);
#endif
#if defined(INFTY_DOT_INSTRUCTION)
      if (of_left == PairLayout::joined)
        return multiply_by(StoredPairElements{}, pairs.data(), k / 2);
#endif
      multiply_by(StoredHalves{}, pairs.data(), k);
    });
  }
};

}  // namespace infty::detail

#endif
