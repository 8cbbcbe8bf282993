// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/core/pool.hpp>
#include <infty/eigen/cholesky.hpp>
#include <infty/eigen/fused_adam.hpp>
#include <infty/eigen/fused_attention.hpp>
#include <infty/eigen/fused_expectation.hpp>
#include <infty/eigen/fused_kept_factor.hpp>
#include <infty/eigen/fused_layer_norm.hpp>
#include <infty/eigen/fused_nearest.hpp>
#include <infty/eigen/fused_plain_attention.hpp>
#include <infty/eigen/fused_stored_product.hpp>
#include <infty/eigen/fused_token_losses.hpp>
#include <infty/eigen/fused_top_k.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/parallel.hpp>

namespace infty {

/// The CPU: memory from `HostPool`, threads by OpenMP, matrix products by tiles of our own or a
/// library (eigen/gemm.hpp), Cholesky by blocks (eigen/cholesky.hpp).
/// No sum is cut by the number of threads: results are the same.
struct EigenBackend {
  /// The fused kernel of a step of Adam.
  using FusedAdam = detail::FusedAdam;
  /// The fused kernel of `relative_attention`.
  using FusedAttention = detail::FusedAttention;
  /// The fused kernel of `expected_values`.
  template <class Density>
  using FusedExpectation = detail::FusedExpectation<Density>;

  /// The fused kernel of what linear maps keep of their inputs.
  using FusedKeptFactor = detail::FusedKeptFactor;
  /// The fused kernel of `layer_norm`.
  using FusedLayerNorm = detail::FusedLayerNorm;
  /// The fused kernel of `nearest`.
  using FusedNearest = detail::FusedNearest;
  /// The fused kernel of `scaled_dot_product_attention`.
  using FusedPlainAttention = detail::FusedPlainAttention;
#if !defined(__CUDACC__)
  /// The fused kernel of products with weights stored in bfloat16.
  using FusedStoredProduct = detail::FusedStoredProduct;
#endif
  /// The fused kernel of `token_losses`.
  using FusedTokenLosses = detail::FusedTokenLosses;
  /// The fused kernel of a row of `top_k`.
  using FusedTopK = detail::FusedTopK;

  /// Hands out a block of `HostPool`, aligned to 64 bytes. @throws std::bad_alloc
  static void* allocate(std::size_t bytes) { return HostPool::instance().allocate(bytes); }
  /// Gives a block of `allocate(bytes)` back to `HostPool`.
  static void release(void* data, std::size_t bytes) { HostPool::instance().release(data, bytes); }

  /// Copies n elements; the ranges may overlap.
  template <class T>
  static void copy(T* to, const T* from, Index n) {
    const auto move = [=](Index begin, Index end) {
      std::memmove(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(T));
    };
    const std::less<const T*> before;
    if (before(to, from + n) && before(from, to + n)) {
      move(0, n);  // in one piece, as they overlap
    } else {
      parallel_for(n, element_grain, move);
    }
  }
  /// Copies n elements from host memory, which is this backend's.
  template <class T>
  static void from_host(T* to, const T* from, Index n) {
    copy(to, from, n);
  }
  /// Copies n elements to host memory, which is this backend's.
  template <class T>
  static void to_host(T* to, const T* from, Index n) {
    copy(to, from, n);
  }
  /// Fills n elements with `value`.
  template <class T>
  static void fill(T* to, Index n, T value) {
    parallel_for(n, element_grain,
                 [=](Index begin, Index end) { std::fill(to + begin, to + end, value); });
  }

  /// Calls f(i) for i in [0, n), in pieces of 32,768 over the threads; within a piece a compiler
  /// may make vector code of it.
  template <class F>
  static void for_each(Index n, F f) {
    parallel_for(n, element_grain, [&](Index begin, Index end) {
      const F body = f;
      INFTY_INDEPENDENT_LOOP
      for (Index i = begin; i < end; ++i) body(i);
    });
  }

  /// Calls f(i) for i in [0, rows), in pieces of about 32,768 / cost over the threads.
  template <class F>
  static void for_each_row(Index rows, Index cost, F f) {
    const Index grain = std::max<Index>(1, element_grain / std::max<Index>(1, cost));
    parallel_for(rows, grain, [&](Index begin, Index end) {
      const F body = f;
      for (Index i = begin; i < end; ++i) body(i);
    });
  }

  /// How many rows of a batch a task of `for_each_task` should take in, of which it reads `length`
  /// tokens at a time: so many that its products are worth laying their factors out for, no more
  /// than memory allows, and as many tasks as there are threads, or twice as many and so on. With a
  /// library's products, whose sums may depend on the rows beside, the threads do not count.
  static Index task_rows(Index batch, Index length) {
    constexpr Index tokens = 512, tasks = 8;
    const auto parts = [](Index n, Index of) { return (n + of - 1) / of; };
    const Index threads = detail::own_products() ? num_threads() : tasks;
    const Index fewest = parts(batch, std::max<Index>(1, tokens / std::max<Index>(1, length)));
    return parts(batch, std::max<Index>(1, parts(fewest, threads) * threads));
  }
  /// Calls task(i) for all i in [0, n), which may throw: coarse pieces of work that share nothing,
  /// such as the rows of a batch. Not asked of a backend; one that has it is given such pieces.
  template <class Task>
  static void for_each_task(Index n, const Task& task) {
    parallel_tasks(n, task);
  }

  /// Folds f(0), ..., f(n - 1) into `init`, by at most 256 pieces that n alone determines. A piece
  /// is folded in sixteen lanes, which a compiler turns into vector code: the fold must commute.
  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    constexpr Index most_pieces = 256, lanes = 16;
    const Index grain = (std::max)(element_grain, (n + most_pieces - 1) / most_pieces);
    T partial[most_pieces];
    parallel_for(n, grain, [&](Index begin, Index end) {
      const F term = f;
      T lane[lanes] = {};
      const Index used = (std::min)(lanes, end - begin);
      for (Index l = 0; l < used; ++l) lane[l] = term(begin + l);
      Index i = begin + used;
      for (; i + lanes <= end; i += lanes)
        for (Index l = 0; l < lanes; ++l) lane[l] = fold(lane[l], term(i + l));
      for (Index l = 0; i < end; ++i, ++l) lane[l] = fold(lane[l], term(i));
      T sum = lane[0];
      for (Index l = 1; l < used; ++l) sum = fold(sum, lane[l]);
      partial[begin / grain] = sum;
    });
    T total = init;
    for (Index piece = 0; piece * grain < n; ++piece) total = fold(total, partial[piece]);
    return total;
  }
  /// Folds f(0), ..., f(n - 1) into `init` as `reduce` does, and writes the result to `to`.
  template <class T, class Fold, class F>
  static void reduce_into(Index n, T init, Fold fold, F f, T* to) {
    *to = reduce(n, init, fold, f);
  }

  /// Computes the products that `shape` describes, cut over the threads by the sizes alone.
  template <class T>
  static void matmul(const Matmul& shape, T alpha, const T* a, const T* b, T beta, T* c) {
    detail::matmul(shape, alpha, a, b, beta, c);
  }

  /// Makes a (n, n) its Cholesky factor and b (n, m) a^-1 b; false if a is not s.p.d. or not
  /// finite.
  template <class T>
  static bool cholesky_solve(Index n, Index m, T* a, T* b) {
    return detail::cholesky_solve(n, m, a, b);
  }

  /// Copies rows, to[i, :] = from[rows[i], :] for i in [0, n), from (count, width).
  template <class T>
  static void gather_rows(Index n, Index width, const T* from, const Index* rows, Index count,
                          T* to) {
    (void)count;
    for_each_row(n, width,
                 [=](Index i) { std::copy_n(from + rows[i] * width, width, to + i * width); });
  }

  /// Adds rows to others, to[rows[i], :] += from[i, :], to (count, width) and from (n, width).
  template <class T>
  static void scatter_add_rows(Index n, Index width, const T* from, const Index* rows, Index count,
                               T* to) {
    // A band of columns a thread: every sum runs in the order of i.
    (void)count;
    parallel_for(width, 16, [=](Index begin, Index end) {
      for (Index i = 0; i < n; ++i)
        for (Index j = begin; j < end; ++j) to[rows[i] * width + j] += from[i * width + j];
    });
  }

  /// Sums up to each element, to[i] = from[0] + ... + from[i], in one thread.
  template <class T>
  static void inclusive_scan(T* to, const T* from, Index n) {
    T sum{};
    for (Index i = 0; i < n; ++i) to[i] = sum = sum + from[i];
  }

  /// Sorts n elements, rising, in one thread.
  template <class T>
  static void sort(T* data, Index n) {
    std::sort(data, data + n);
  }

 private:
  static constexpr Index element_grain = 32768;
};

static_assert(Backend<EigenBackend>);

}  // namespace infty
