// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string_view>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/eigen/few_rows.hpp>
#include <infty/eigen/include.hpp>
#include <infty/eigen/scratch.hpp>
#include <infty/eigen/transpose.hpp>

// One matrix product in one thread: the seam at which a library takes the place of our own tiles.
// Define INFTY_EIGEN_PRODUCTS to have Eigen multiply, INFTY_ONEDNN for oneDNN (floats), or
// INFTY_BLAS for a BLAS with a cblas.h (CMake's options of the same names find and link them).
//
// Our own product sums every element in the order of k alone, so that no result depends on how many
// rows or columns are multiplied at once. Libraries do not promise that.
#if defined(INFTY_ONEDNN)
#include <dnnl.h>
#elif defined(INFTY_BLAS)
#include <cblas.h>
#endif

namespace infty::detail {

template <class T>
using RowMajor = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using Strided = Eigen::Map<RowMajor<T>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstStrided = Eigen::Map<const RowMajor<T>, 0, Eigen::OuterStride<>>;

/// An operand as stored: rows `leading` elements apart, and to be transposed if it says so.
template <class T>
struct GemmOperand {
  const T* data;
  Index leading;
  bool transposed;
};

/// What multiplies matrices of T.
template <class T>
constexpr const char* gemm_library() {
#if defined(INFTY_ONEDNN)
  if (std::is_same_v<T, float>) return "oneDNN";
#elif defined(INFTY_BLAS)
  return "BLAS";
#elif defined(INFTY_EIGEN_PRODUCTS)
  return "Eigen";
#endif
  return "infty";
}

/// Whether no result depends on the rows beside: all products are our own.
constexpr bool own_products() {
  return std::string_view(gemm_library<float>()) == "infty" &&
         std::string_view(gemm_library<double>()) == "infty";
}

/// c (m, n) = alpha a b + beta c by Eigen; beta 0 overwrites, whatever c held.
template <class T>
void eigen_gemm(Index m, Index n, Index k, T alpha, GemmOperand<T> a, GemmOperand<T> b, T beta,
                T* c, Index ldc) {
  Strided<T> to(c, m, n, Eigen::OuterStride<>(ldc));
  if (beta == T(0)) {
    to.setZero();
  } else if (beta != T(1)) {
    to *= beta;
  }
  if (k == 0) return;
  const ConstStrided<T> x(a.data, a.transposed ? k : m, a.transposed ? m : k,
                          Eigen::OuterStride<>(a.leading));
  const ConstStrided<T> y(b.data, b.transposed ? n : k, b.transposed ? k : n,
                          Eigen::OuterStride<>(b.leading));
  if (a.transposed && b.transposed) {
    to.noalias() += alpha * (x.transpose() * y.transpose());
  } else if (a.transposed) {
    to.noalias() += alpha * (x.transpose() * y);
  } else if (b.transposed) {
    to.noalias() += alpha * (x * y.transpose());
  } else {
    to.noalias() += alpha * (x * y);
  }
}

/// Copies so many vectors.
template <int vectors, class T>
void copy_vectors(const T* from, T* to) {
  INFTY_UNROLL(2)
  for (int v = 0; v < vectors; ++v)
    Simd<T>::store(to + v * Simd<T>::width, Simd<T>::load(from + v * Simd<T>::width));
}

/// Lays rows of a out in panels of `tile_rows` rows, [panels, k, tile_rows], each to be read from
/// end to end. `to` has room for one vector more.
template <class T>
void pack_panels(Index m, Index k, TileView<T> a, T* to) {
  constexpr Index rows = tile_rows<T>;
  if (a.row == 1) {
    // Some columns at a time for all panels, so that each of their lines is read once.
    constexpr Index block = 16, width = Simd<T>::width, vectors = (rows + width - 1) / width;
    for (Index first = 0; first < k; first += block)
      for (Index i = 0; i < m; i += rows) {
        const Index end = (std::min)(k, first + block);
        Index p = first;
        // Vectors reach beyond a column of the panel, into the one that is written next.
        if (i + vectors * width <= m)
          for (; p < (std::min)(end, k - 1); ++p)
            copy_vectors<vectors>(a.data + i + p * a.column, to + i * k + p * rows);
        for (; p < end; ++p)
          std::copy_n(a.data + i + p * a.column, (std::min)(rows, m - i), to + i * k + p * rows);
      }
    return;
  }
  for (Index i = 0; i < m; i += rows, to += rows * k) {
    const T* const from = a.data + i * a.row;
    Index done = 0;
#if !defined(__CUDACC__)
    // Squares reach beyond the panel's rows: what they write there is overwritten by the squares of
    // lower rows and by what follows.
    constexpr Index width = Simd<T>::width, last = (rows - 1) / width * width;
    if (a.column == 1 && i + last + width <= m)
      for (; done + width <= k; done += width)
        for (Index r = last; r >= 0; r -= width)
          transpose_square(from + r * a.row + done, a.row, to + done * rows + r, rows);
#endif
    for (Index p = done; p < k; ++p)
      for (Index r = 0; r < (std::min)(rows, m - i); ++r)
        to[p * rows + r] = from[r * a.row + p * a.column];
  }
}

/// How the sums of a product of inner size k are cut: parts of so many, the last one shorter. They
/// begin at whole lines of the cache if the rows do.
inline Index gemm_depth(Index k) {
  constexpr Index depth = 320, line = 16;
  const Index parts = (k + depth - 1) / depth;
  return parts <= 1 ? k : ((k + parts - 1) / parts + line - 1) / line * line;
}

/// c (m, columns), rows ldc apart, = alpha sums + keep c; keep 0 overwrites, whatever c held.
template <class T>
void scale_into(Index m, Index columns, T alpha, const T* sums, Index lds, T keep, T* c,
                Index ldc) {
  for (Index i = 0; i < m; ++i) {
    T* const to = c + i * ldc;
    // A sum that is -0 stays so where nothing is added.
    for (Index q = 0; q < columns; ++q) {
      const T sum = alpha * sums[i * lds + q];
      to[q] = keep == T(0) ? sum : sum + keep * to[q];
    }
  }
}

#if !defined(__CUDACC__)
/// c (m, n) = alpha a b + beta c of at most `most_few_rows` rows, k >= 1, of a's elements and b
/// transposed as stored, by the sums of `tiled_gemm`.
template <class Elements = PlainElements, class T, class Stored>
[[gnu::noinline]] void few_rows_gemm(Index m, Index n, Index k, T alpha, const T* a, Index lda,
                                     const Stored* b, Index ldb, T beta, T* c, Index ldc) {
  constexpr Index wide = Simd<T>::width, each = Elements::together;
  const Index deepest = each * gemm_depth((k + each - 1) / each);
  const bool plain = alpha == T(1) && (beta == T(0) || beta == T(1));
  T sums[most_few_rows * wide];
  for (Index j = 0; j < n; j += wide) {
    const Index columns = (std::min)(wide, n - j);
    for (Index first = 0; first < k; first += deepest) {
      const Index deep = (std::min)(deepest, k - first);
      const T keep = first > 0 ? T(1) : beta;
      const bool more = first + deep < k, below = j + 2 * wide <= n;
      FewRowsWeights<T, Stored> right{{}, more ? deep : below ? wide * ldb - first : 0};
      for (Index r = 0; r < wide; ++r)
        right.row[r] = b + (j + (std::min)(r, columns - 1)) * ldb + first;
      const bool direct = plain && columns == wide;
      few_rows<Elements>(m, deep, a + first * Elements::parts / Elements::floats, lda, right,
                         direct && keep == T(1), direct ? c + j : sums, direct ? ldc : wide);
      if (!direct) scale_into(m, columns, alpha, sums, wide, keep, c + j, ldc);
    }
  }
}
#endif

/// What the next strip of b will be made of, so many columns of rows [first, first + deep), which
/// lie far apart in memory: asked for while the strip before it is multiplied.
template <class T>
class NextStrip {
 public:
  NextStrip(GemmOperand<T> b, Index first, Index deep, Index column, Index columns)
      : data_(b.data + (b.transposed ? column * b.leading + first : first * b.leading + column)),
        leading_(b.leading),
        lines_(columns <= 0   ? 0
               : b.transposed ? columns
                              : deep),
        length_(b.transposed ? deep : columns) {}

  /// Asks for one of `parts` of it.
  void fetch(Index part, Index parts) const {
    constexpr Index line = 64 / static_cast<Index>(sizeof(T));
    for (Index i = part * lines_ / parts; i < (part + 1) * lines_ / parts; ++i)
      for (Index at = 0; at < length_; at += line)
        __builtin_prefetch(data_ + i * leading_ + at, 0, 2);
  }

 private:
  const T* data_;
  Index leading_, lines_, length_;
};

/// c (m, n) = alpha a b + beta c by tiles in registers: b is laid out in strips that stay in the
/// innermost cache, and a in panels if it is long and there are strips enough to pay for it. It has
/// `Tile::parts` elements for each of the k of b.
template <class Tile = PlainTile, class T>
void tiled_gemm(Index m, Index n, Index k, T alpha, GemmOperand<T> a, GemmOperand<T> b, T beta,
                T* c, Index ldc) {
#if !defined(__CUDACC__)
  if constexpr (std::is_same_v<Tile, PlainTile>)
    if (m <= most_few_rows && !a.transposed && b.transposed && k > 0)
      return few_rows_gemm(m, n, k, alpha, a.data, a.leading, b.data, b.leading, beta, c, ldc);
#endif
  constexpr Index wide = 2 * Simd<T>::width, rows = tile_rows<T>, parts = Tile::parts;
  const Index deepest = gemm_depth(k), panels = (m + rows - 1) / rows;
  const bool packed = n > 2 * wide && deepest < k;
  Scratch<T> scratch((deepest + m) * wide + (packed ? panels * rows * deepest * parts + wide : 0));
  T *const strip_of_b = scratch.data(), *const sums = strip_of_b + deepest * wide,  // [m, wide]
                                            *const panels_of_a = sums + m * wide;
  // Sums that are scaled, added to what is there or narrower than their vectors go through `sums`.
  const bool plain = alpha == T(1) && (beta == T(0) || beta == T(1));
  if (k == 0)
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : beta * c[i * ldc + j];
  for (Index first = 0; first < k; first += deepest) {
    const Index deep = (std::min)(deepest, k - first);
    const T keep = first > 0 ? T(1) : beta;
    const TileView<T> left{a.data + parts * (a.transposed ? first * a.leading : first),
                           a.transposed ? 1 : a.leading, a.transposed ? a.leading : 1};
    if (packed) pack_panels(m, deep * parts, left, panels_of_a);
    const auto multiply_strip = [&](Index j, Index columns, bool add, T* to, Index stride) {
      if (!packed)
        return product_in_cache<Tile>(m, columns, deep, left, strip_of_b, wide, add, to, stride);
      const NextStrip<T> next(b, first, deep, j + wide, (std::min)(wide, n - j - columns));
      for (Index i = 0; i < m; i += rows) {
        next.fetch(i / rows, panels);
        product_in_cache<Tile>((std::min)(rows, m - i), columns, deep,
                               TileView<T>{panels_of_a + i * deep * parts, 1, rows}, strip_of_b,
                               wide, add, to + i * stride, stride);
      }
    };
    for (Index j = 0; j < n; j += wide) {
      const Index columns = (std::min)(wide, n - j);
      if (columns < wide) std::fill_n(strip_of_b, deep * wide, T(0));
      if (b.transposed)
        transpose(columns, deep, b.data + j * b.leading + first, b.leading, strip_of_b, wide);
      else if (columns == wide)
        for (Index p = 0; p < deep; ++p)
          copy_vectors<2>(b.data + (first + p) * b.leading + j, strip_of_b + p * wide);
      else
        for (Index p = 0; p < deep; ++p)
          std::copy_n(b.data + (first + p) * b.leading + j, columns, strip_of_b + p * wide);
      if (plain && columns == wide) {
        multiply_strip(j, wide, keep == T(1), c + j, ldc);
        continue;
      }
      multiply_strip(j, columns, false, sums, wide);
      scale_into(m, columns, alpha, sums, wide, keep, c + j, ldc);
    }
  }
}

/// c (m, n) = alpha a b + beta c, m, n >= 1, by what was chosen.
template <class T>
void gemm(Index m, Index n, Index k, T alpha, GemmOperand<T> a, GemmOperand<T> b, T beta, T* c,
          Index ldc) {
#if defined(INFTY_ONEDNN)
  if constexpr (std::is_same_v<T, float>) {
    // A product with nothing to sum is refused.
    if (k > 0 && dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha,
                            a.data, a.leading, b.data, b.leading, beta, c, ldc) == dnnl_success)
      return;
  }
#elif defined(INFTY_BLAS)
  const auto transpose = [](bool on) { return on ? CblasTrans : CblasNoTrans; };
  const auto size = [](Index i) { return static_cast<int>(i); };
  if constexpr (std::is_same_v<T, float>)
    return cblas_sgemm(CblasRowMajor, transpose(a.transposed), transpose(b.transposed), size(m),
                       size(n), size(k), alpha, a.data, size(a.leading), b.data, size(b.leading),
                       beta, c, size(ldc));
  if constexpr (std::is_same_v<T, double>)
    return cblas_dgemm(CblasRowMajor, transpose(a.transposed), transpose(b.transposed), size(m),
                       size(n), size(k), alpha, a.data, size(a.leading), b.data, size(b.leading),
                       beta, c, size(ldc));
#elif defined(INFTY_EIGEN_PRODUCTS)
  return eigen_gemm(m, n, k, alpha, a, b, beta, c, ldc);
#endif
  tiled_gemm(m, n, k, alpha, a, b, beta, c, ldc);
}

}  // namespace infty::detail
