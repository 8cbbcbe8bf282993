// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <type_traits>

#include <infty/core/backend.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/pairs.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/products.hpp>
#include <infty/eigen/rounded_gemm.hpp>
#include <infty/eigen/scratch.hpp>

namespace infty::detail {

/// While it lives, Eigen keeps to this thread: how its own threads cut a product would change sums.
class OneThread {
 public:
#if defined(_OPENMP)
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
#else
  OneThread() {}
#endif
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  [[maybe_unused]] int before_ = 1;
};

/// How a product C (m, n) of inner size k is cut into tasks: tiles of C, or parts of k whose
/// products are added up in their order.
struct MatmulTiles {
  Index rows, cols, inner;
};

/// Cuts `products` of one size by the sizes alone, and k as if there were one of them: no sum
/// depends on what else is multiplied. What a task multiplies stays so large that packing its
/// operands, which costs as much as some ten multiplications of an element, is little.
/// @param sums_rows  whether k counts tokens, as in a gradient of weights: only then is it cut
/// @param streams    whether B's columns are stored as rows, which a few rows of A read from end to
///                   end without packing: then what counts is how much there is to read
/// @param strip      columns that B is packed by, if A is not packed for two of them: then each may
///                   be a task. Sums do not depend on it
inline MatmulTiles matmul_tiles(Index m, Index n, Index k, Index products, bool sums_rows,
                                bool streams, Index strip = 0) {
  constexpr Index tasks = 16, least_work = Index{1} << 20, least_side = 128, least_inner = 512,
                  least_read = Index{1} << 16, least_columns = 32;
  MatmulTiles tile{m, n, k};
  const auto half = [](Index x) { return (x / 2 + 31) / 32 * 32; };
  if (sums_rows && products > 1) tile.inner = matmul_tiles(m, n, k, 1, sums_rows, streams).inner;
  const bool cuts_sums = sums_rows && products == 1;
  Index count = products * (tile.inner > 0 ? (k + tile.inner - 1) / tile.inner : 1);
  if (streams && m <= most_few_rows && !sums_rows)
    for (; count < tasks && tile.cols * k >= 2 * least_read && tile.cols >= 2 * least_columns;
         count *= 2)
      tile.cols = half(tile.cols);
  while (count < tasks && tile.rows * tile.cols * tile.inner >= 2 * least_work) {
    if (cuts_sums && tile.inner >= 4 * (std::max)(tile.rows, tile.cols) &&
        tile.inner >= 2 * least_inner)
      tile.inner = half(tile.inner);
    else if (tile.rows >= tile.cols && tile.rows >= 2 * least_side)
      tile.rows = half(tile.rows);
    else if (tile.cols >= 2 * least_side)
      tile.cols = half(tile.cols);
    else if (tile.cols > strip && tile.cols <= 2 * strip)
      tile.cols = strip;
    else
      break;
    count *= 2;
  }
  return tile;
}

/// One product in one thread; `rounded`, with factors in bfloat16, if they are floats, the left one
/// in that layout, which may be pairs already.
template <class T>
void multiply(bool rounded, PairLayout of_left, InPairs in_pairs, Index m, Index n, Index k,
              T alpha, GemmOperand<T> a, GemmOperand<T> b, T beta, T* c, Index ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (rounded) return rounded_gemm(m, n, k, alpha, a, b, beta, c, ldc, of_left, in_pairs);
  gemm(m, n, k, alpha, a, b, beta, c, ldc);
}

/// Batched matrix product, cut into tasks by the sizes alone. Each of them is one product in one
/// thread.
/// @param pairs  those of b, not transposed, if they are laid out already; then b is not read, and
/// there is one product
template <class T>
void matmul(const Matmul& p, T alpha, const T* a, const T* b, T beta, T* c,
            const T* pairs = nullptr) {
  if (p.m == 0 || p.n == 0) return;
  const Index products = p.outer * p.inner;
  constexpr Index strip = own_products() ? 2 * Simd<T>::width : 0;
  const MatmulTiles tile =
      matmul_tiles(p.m, p.n, p.k, products, p.a.transposed, p.b.transposed, strip);
  const Index row_tiles = (p.m + tile.rows - 1) / tile.rows;
  const Index col_tiles = (p.n + tile.cols - 1) / tile.cols;
  const Index parts = tile.inner > 0 ? (p.k + tile.inner - 1) / tile.inner : 1;
  const Index tiles = row_tiles * col_tiles, area = p.m * p.n;
  const bool rounded = pairs || (p.roundable && infty::products() == Products::bfloat16);
  // A matrix that several tasks multiply is rounded once, for all of them.
  const auto one = [&](const Matmul::Operand& o) {
    return products == 1 || (o.outer == 0 && o.inner == 0);
  };
  // A process asks for tiles when it first rounds, not before.
  const PairLayout of_left = rounded ? left_layout() : PairLayout::joined,
                   of_right = right_layout(of_left);
  const SharedPairs<T> pairs_a(rounded && one(p.a) && products * col_tiles > 1, of_left, p.m, p.k,
                               a, p.a.leading, !p.a.transposed),
      pairs_b = pairs ? SharedPairs<T>(of_right, p.n, p.k, pairs)
                      : SharedPairs<T>(rounded && one(p.b) && products * row_tiles > 1, of_right,
                                       p.n, p.k, b, p.b.leading, p.b.transposed);
  const InPairs in_pairs{static_cast<bool>(pairs_a), static_cast<bool>(pairs_b)};
  // Part 0 goes to C itself, the others are added to it at the end.
  Scratch<T> partial(products * (parts - 1) * area);
  // Of few rows it is reading and turning B that takes the time.
  const Index least_rows = p.b.transposed ? most_few_rows / 2 : 1;
  const Index work = std::max<Index>(
      1, (std::max)(tile.rows, least_rows) * tile.cols * std::max<Index>(tile.inner, 1));
  const Index grain = std::max<Index>(1, (Index{1} << 18) / work);
  parallel_for(products * tiles * parts, grain, [&](Index begin, Index end) {
    const OneThread guard;
    for (Index job = begin; job < end; ++job) {
      const Index part = job % parts, place = job / parts % tiles, product = job / parts / tiles;
      const Index outer = product / p.inner, inner = product % p.inner;
      const Index row = place / col_tiles * tile.rows, col = place % col_tiles * tile.cols;
      const Index rows = (std::min)(tile.rows, p.m - row), cols = (std::min)(tile.cols, p.n - col);
      const Index first = part * tile.inner, depth = (std::min)(tile.inner, p.k - first);
      const auto operand = [&](const T* x, const Matmul::Operand& o, Index i, Index j) {
        return GemmOperand<T>{x + outer * o.outer + inner * o.inner +
                                  (o.transposed ? j * o.leading + i : i * o.leading + j),
                              o.leading, o.transposed};
      };
      const GemmOperand<T> left = pairs_a ? pairs_a.from(row, first, p.a.transposed)
                                          : operand(a, p.a, row, first),
                           right = pairs_b ? pairs_b.from(col, first, p.b.transposed)
                                           : operand(b, p.b, first, col);
      if (part == 0)
        multiply(rounded, of_left, in_pairs, rows, cols, depth, alpha, left, right, beta,
                 c + outer * p.c.outer + inner * p.c.inner + row * p.c.leading + col, p.c.leading);
      else
        multiply(rounded, of_left, in_pairs, rows, cols, depth, alpha, left, right, T(0),
                 partial.data() + (product * (parts - 1) + part - 1) * area + row * p.n + col, p.n);
    }
  });
  if (parts == 1) return;
  parallel_for(products * p.m, std::max<Index>(1, 8192 / p.n), [&](Index begin, Index end) {
    for (Index at = begin; at < end; ++at) {
      const Index product = at / p.m, row = at % p.m;
      T* const to =
          c + product / p.inner * p.c.outer + product % p.inner * p.c.inner + row * p.c.leading;
      for (Index part = 0; part + 1 < parts; ++part) {
        const T* const from = partial.data() + (product * (parts - 1) + part) * area + row * p.n;
        for (Index j = 0; j < p.n; ++j) to[j] += from[j];
      }
    }
  });
}

}  // namespace infty::detail
