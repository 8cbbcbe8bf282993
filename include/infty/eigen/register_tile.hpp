// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/config.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/stairs.hpp>

// The device's compiler knows this pragma by another name, and nvcc would hand that to the host's.
#if defined(__CUDA_ARCH__)
#define INFTY_UNROLL(n) _Pragma("unroll")
#elif defined(__CUDACC__)
#define INFTY_UNROLL(n)
#else
#define INFTY_UNROLL_TEXT(text) _Pragma(#text)
#define INFTY_UNROLL(n) INFTY_UNROLL_TEXT(GCC unroll n)
#endif

// Products of tiles that lie in cache already, so that nothing is packed: what the fused kernels
// are made of. The accumulators of a small tile of C stay in registers while A and B pass by.
namespace infty::detail {

/// The widest vectors that this program is compiled for.
template <class T>
struct Simd {
#if defined(__AVX512F__)
  static constexpr int bytes = 64, registers = 32;
#elif defined(__AVX__)
  static constexpr int bytes = 32, registers = 16;
#else
  static constexpr int bytes = 16, registers = 16;
#endif
  static constexpr Index width = bytes / static_cast<int>(sizeof(T));
  typedef T Vector __attribute__((vector_size(bytes)));
  typedef T Unaligned __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));

  static Vector load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Vector x) { *reinterpret_cast<Unaligned*>(to) = x; }
  /// The larger ones of two vectors' elements.
  static Vector larger(Vector x, Vector y) { return y > x ? y : x; }
  /// The largest element.
  static T largest(Vector x) {
    T lane[width];
    store(lane, x);
    return join_lanes<width / 2>(lane, [](T a, T b) { return (std::max)(a, b); });
  }
};

/// A multiple of the vectors' width, at least n: the columns that a tile must have room for.
template <class T>
constexpr Index padded(Index n) {
  return (n + Simd<T>::width - 1) / Simd<T>::width * Simd<T>::width;
}

/// The left operand of a product, element (i, p) at data[i * row + p * column], of which `row` or
/// `column` is 1.
template <class T>
struct TileView {
  const T* data;
  Index row, column;
};

/// Rows of C that stay in registers, with two vectors a row.
template <class T>
inline constexpr int tile_rows = Simd<T>::registers == 32 ? 14 : 6;

/// Has the compiler hold a vector in a register, where it would read it anew for each of its uses.
template <class Vector>
[[gnu::always_inline]] inline void hold([[maybe_unused]] Vector& x) {
#if defined(__x86_64__) && !defined(__CUDACC__)
  asm("" : "+v"(x));
#endif
}

/// How sums are added up from here to `end`: as usual.
struct UsualSums {
  /// Holds a sum to where it is asked to; of the usual ones none has to be.
  template <class Vector>
  [[gnu::always_inline]] static void keep(Vector&) {}
  static void end() {}
};

/// Elements that are multiplied and added as they are.
struct PlainElements {
  using Sums = UsualSums;

  static constexpr Index floats = 1;    ///< that become one
  static constexpr Index parts = 1;     ///< of one, each multiplied by a float of its own
  static constexpr Index together = 1;  ///< numbers that a step of a sum takes in

  /// The elements that begin at x, a vector of them.
  template <class T>
  [[gnu::always_inline]] static typename Simd<T>::Vector load(const T* x) {
    return Simd<T>::load(x);
  }
  /// The element at x.
  template <class T>
  static T element(const T* x, Index) {
    return *x;
  }
  /// A vector of copies of an element.
  template <class Vector, class T>
  [[gnu::always_inline]] static Vector copies(const T& x) {
    return x - Vector{};
  }
  template <class Vector>
  [[gnu::always_inline]] static void add_product(Vector& sum, Vector left, Vector right) {
    sum += left * right;
  }
  template <class Vector>
  [[gnu::always_inline]] static void take_apart(const Vector& elements, Vector* part) {
    *part = elements;
  }
};

/// Tiles of products of such elements; A has a float for each part of an element of B.
template <class Elements>
struct RegisterTile {
  static constexpr Index parts = Elements::parts;

  /// C (rows, vectors) = or += A (rows, k parts) B (k, vectors), with C in registers.
  template <int rows, int vectors, class T>
  static void multiply(Index k, TileView<T> a, const T* b, Index ldb, bool add, T* c, Index ldc) {
    if (a.row == 1)
      sums<rows, vectors, false>(k, a.data, a.column, b, ldb, add, c, ldc);
    else
      sums<rows, vectors, true>(k, a.data, a.row, b, ldb, add, c, ldc);
  }

 private:
  template <int rows, int vectors, class Vector>
  [[gnu::always_inline]] static void keep(const typename Elements::Sums& arithmetic,
                                          Vector (&sum)[rows][vectors]) {
    INFTY_UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      INFTY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) arithmetic.keep(sum[i][v]);
    }
  }

  /// The same for an A whose rows, `along` memory, or else columns are `stride` apart. Not inlined,
  /// so that all registers are its own.
  template <int rows, int vectors, bool along, class T>
  [[gnu::noinline]] static void sums(Index k, const T* a, Index stride, const T* b, Index ldb,
                                     bool add, T* c, Index ldc) {
    using S = Simd<T>;
    // An instruction reads at a pointer, once or twice a stride behind it: three rows share one.
    constexpr int together = 3, pointers = along ? (rows + together - 1) / together : 1;
    const T* left_of[pointers];
    INFTY_UNROLL(5)
    for (int g = 0; g < pointers; ++g) left_of[g] = a + g * together * stride;
    // What is written last is far away where C is large.
    INFTY_UNROLL(16)
    for (int i = 0; i < rows; ++i)
      for (int at = 0; at < vectors * S::bytes; at += 64)
        __builtin_prefetch(c + i * ldc + at / static_cast<int>(sizeof(T)), 1);
    typename S::Vector sum[rows][vectors] = {};
    const typename Elements::Sums arithmetic;
    keep<rows, vectors>(arithmetic, sum);
    for (const T* const end = b + k * ldb; b != end; b += ldb) {
      INFTY_UNROLL(2)
      for (Index q = 0; q < parts; ++q) {
        typename S::Vector right[vectors];
        INFTY_UNROLL(2)
        for (int v = 0; v < vectors; ++v) {
          typename S::Vector part[parts];
          Elements::take_apart(S::load(b + v * S::width), part);
          right[v] = part[q];
          hold(right[v]);
        }
        INFTY_UNROLL(16)
        for (int i = 0; i < rows; ++i) {
          const T& x =
              along ? left_of[i / together][i % together * stride + q] : left_of[0][i + q * stride];
          const auto left = Elements::template copies<typename S::Vector>(x);
          INFTY_UNROLL(2)
          for (int v = 0; v < vectors; ++v) Elements::add_product(sum[i][v], left, right[v]);
        }
      }
      INFTY_UNROLL(5)
      for (int g = 0; g < pointers; ++g) left_of[g] += along ? parts : parts * stride;
    }
    keep<rows, vectors>(arithmetic, sum);
    arithmetic.end();
    keep<rows, vectors>(arithmetic, sum);
    INFTY_UNROLL(16)
    for (int i = 0; i < rows; ++i) {
      INFTY_UNROLL(2)
      for (int v = 0; v < vectors; ++v) {
        T* const to = c + i * ldc + v * S::width;
        S::store(to, add ? S::load(to) + sum[i][v] : sum[i][v]);
      }
    }
  }
};

using PlainTile = RegisterTile<PlainElements>;

/// Rows `of` of a strip of C that begins at column j, in tiles of so many rows and then in smaller
/// ones.
template <class Tile, int rows, int vectors, class T, class Part>
void strip(IndexRange of, Index j, Index k, TileView<T> a, const T* b, Index ldb, bool add, T* c,
           Index ldc, const Part& part) {
  Index i = of.begin;
  for (; i + rows <= of.end; i += rows) {
    const auto [begin, end] = part.terms({i, i + rows}, {j, j + vectors * Simd<T>::width}, k);
    Tile::template multiply<rows, vectors>(
        end - begin,
        TileView<T>{a.data + i * a.row + begin * Tile::parts * a.column, a.row, a.column},
        b + begin * ldb + j, ldb, add, c + i * ldc + j, ldc);
  }
  if constexpr (rows > 1) {
    constexpr int fewer = rows > 8 ? 8 : rows > 4 ? 4 : rows - 1;
    if (i < of.end) strip<Tile, fewer, vectors>({i, of.end}, j, k, a, b, ldb, add, c, ldc, part);
  }
}

/// C (m, n) = A B, or += if `add`, for A (m, k) and B (k, n). B's and C's rows must have room for
/// padded(n) columns: those beyond n are read, and written in C. A strip of B, two vectors wide,
/// should fit into the innermost cache with some rows of A.
/// @param part  what is to be computed of it, `WholeProduct` or less (eigen/stairs.hpp)
template <class Tile = PlainTile, class T, class Part = WholeProduct>
void product_in_cache(Index m, Index n, Index k, TileView<T> a, const T* b, Index ldb, bool add,
                      T* c, Index ldc, const Part& part = {}) {
  constexpr int rows = tile_rows<T>;
  constexpr Index width = Simd<T>::width;
  Index j = 0;
  for (; j + width < n; j += 2 * width)
    strip<Tile, rows, 2>(part.rows({j, j + 2 * width}, m), j, k, a, b, ldb, add, c, ldc, part);
  if (j < n) strip<Tile, rows, 1>(part.rows({j, j + width}, m), j, k, a, b, ldb, add, c, ldc, part);
}

}  // namespace infty::detail
