// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

#include <infty/core/bfloat16.hpp>
#include <infty/core/config.hpp>
#include <infty/eigen/lanes.hpp>
#include <infty/eigen/register_tile.hpp>

// Inner products of queries and keys in registers, for whoever searches for the largest.
namespace infty::detail {

/// Whether all elements of a mask are set.
template <class Mask>
bool all_of(const Mask& mask) {
  std::uint64_t words[sizeof(Mask) / 8];
  std::memcpy(words, &mask, sizeof(Mask));
  std::uint64_t everywhere = words[0];
  for (const std::uint64_t word : words) everywhere &= word;
  return everywhere == ~std::uint64_t{0};
}

/// The lanes of a mask that are set: a bit each, the first lowest.
template <class Mask>
std::uint64_t lanes_of(const Mask& mask) {
  constexpr std::size_t bytes = sizeof mask, each = sizeof mask[0];
#if defined(__AVX512DQ__) && !defined(__CUDACC__)
  if constexpr (bytes == 64 && each == 4)
    return _mm512_movepi32_mask(std::bit_cast<__m512i>(mask));
  else if constexpr (bytes == 64 && each == 8)
    return _mm512_movepi64_mask(std::bit_cast<__m512i>(mask));
#elif defined(__AVX__) && !defined(__CUDACC__)
  if constexpr (bytes == 32 && each == 4)
    return static_cast<std::uint64_t>(_mm256_movemask_ps(std::bit_cast<__m256>(mask)));
  else if constexpr (bytes == 32 && each == 8)
    return static_cast<std::uint64_t>(_mm256_movemask_pd(std::bit_cast<__m256d>(mask)));
#endif
  std::uint64_t bits = 0;
  for (std::size_t lane = 0; lane < bytes / each; ++lane)
    bits |= static_cast<std::uint64_t>(mask[lane] != 0) << lane;
  return bits;
}

/// The lanes in which x exceeds another number, or one of them is NaN.
template <class Vector>
std::uint64_t lanes_above(const Vector& x, const Vector& most) {
  return lanes_of(~(x <= most));
}

/// The products of `rows` keys, which stand one behind the other, and of as many queries as fill so
/// many vectors, [D, ldq]; whether one of them exceeds the number that its query has in `least`.
/// They are written to scores (rows, queries) only then, or where `all` are wanted. Each key's
/// products begin at its number in `offsets`, or at 0 where that is null.
template <int rows, int vectors, class T>
bool exceeding_products(Index head_dim, const T* keys, const T* offsets, const T* queries,
                        Index ldq, const T* least, bool all, T* scores) {
  using S = Simd<T>;
  using Mask = decltype(typename S::Vector{} <= typename S::Vector{});
  typename S::Vector sum[rows][vectors] = {};
  if (offsets != nullptr) {
    INFTY_UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      INFTY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) sum[i][v] = offsets[i] - typename S::Vector{};
    }
  }
  for (Index d = 0; d < head_dim; ++d) {
    typename S::Vector right[vectors];
    INFTY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) right[v] = S::load(queries + d * ldq + v * S::width);
    INFTY_UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      const typename S::Vector key = keys[i * head_dim + d] - typename S::Vector{};
      INFTY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) sum[i][v] += key * right[v];
    }
  }
  if (!all) {
    Mask below = sum[0][0] <= S::load(least);  // and not ~Mask{}, which nvcc's front end ends at
    INFTY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) {
      const typename S::Vector most = S::load(least + v * S::width);
      INFTY_UNROLL(16)
      for (int i = 0; i < rows; ++i) below &= sum[i][v] <= most;  // NaN is not
    }
    if (all_of(below)) return false;
  }
  INFTY_UNROLL(16)
  for (int i = 0; i < rows; ++i) {
    INFTY_UNROLL(2)
    for (int v = 0; v < vectors; ++v) S::store(scores + (i * vectors + v) * S::width, sum[i][v]);
  }
  return true;
}

#if !defined(__CUDACC__)  // whose front end does not know the conversion

/// The numbers that begin at x as a vector of floats: their bits stand in the upper halves.
[[gnu::always_inline]] inline Simd<float>::Vector floats_at(const BFloat16* x) {
  typedef std::uint16_t Halves
      __attribute__((vector_size(Simd<float>::bytes / 2), aligned(2), may_alias));
  typedef std::uint32_t Wholes __attribute__((vector_size(Simd<float>::bytes)));
  return std::bit_cast<Simd<float>::Vector>(
      __builtin_convertvector(*reinterpret_cast<const Halves*>(x), Wholes) << 16);
}

#endif

/// The numbers that begin at x as a vector of T, each turned exactly.
template <class T, class Stored>
[[gnu::always_inline]] inline typename Simd<T>::Vector load_as(const Stored* x) {
  using S = Simd<T>;
  if constexpr (std::is_same_v<T, Stored>) {
    return S::load(x);
  } else {
#if !defined(__CUDACC__)
    if constexpr (std::is_same_v<T, float> && std::is_same_v<Stored, BFloat16>) return floats_at(x);
#endif
    T lane[S::width];
    for (Index i = 0; i < S::width; ++i) lane[i] = static_cast<T>(x[i]);
    return S::load(lane);
  }
}

/// x (rows) = the products of `rows` keys, one behind the other, and a query. What comes later is
/// asked for before it is needed: nothing else slows down who reads each key once.
template <int rows, class T, class Stored>
void dot_products(Index head_dim, const Stored* keys, const T* query, T* x) {
  using S = Simd<T>;
  constexpr Index ahead = 4096 / static_cast<Index>(sizeof(Stored)),
                  line = 64 / static_cast<Index>(sizeof(Stored));
  for (Index at = 0; at < rows * head_dim; at += line) __builtin_prefetch(keys + ahead + at);
  typename S::Vector sum[rows] = {};
  Index d = 0;
  for (; d + S::width <= head_dim; d += S::width) {
    const typename S::Vector q = S::load(query + d);
    INFTY_UNROLL(8)
    for (int i = 0; i < rows; ++i) sum[i] += load_as<T>(keys + i * head_dim + d) * q;
  }
  for (int i = 0; i < rows; ++i) {
    T lane[S::width];
    S::store(lane, sum[i]);
    T rest = lanes<S::width>(lane).sum();
    for (Index e = d; e < head_dim; ++e) rest += keys[i * head_dim + e] * query[e];
    x[i] = rest;
  }
}

}  // namespace infty::detail
