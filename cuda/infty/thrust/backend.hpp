// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <infty/core/backend.hpp>
#include <infty/core/config.hpp>
#include <infty/thrust/biased_product.hpp>
#include <infty/thrust/kernels/adam.hpp>
#include <infty/thrust/kernels/attention.hpp>
#include <infty/thrust/kernels/column_sums.hpp>
#include <infty/thrust/kernels/expectation.hpp>
#include <infty/thrust/kernels/gradients.hpp>
#include <infty/thrust/kernels/layer_norm.hpp>
#include <infty/thrust/kernels/nearest.hpp>
#include <infty/thrust/kernels/scatter.hpp>
#include <infty/thrust/kernels/token_losses.hpp>
#include <infty/thrust/system.hpp>

namespace infty {

namespace detail {

/// What differs between Thrust's systems: memory, policies, reduction, dense linear algebra. `Omp`
/// and `Cpp` are in host.hpp, `Cuda` is in cuda.hpp.
template <class System>
struct ThrustSystem;

/// f(row, column) of element i in the order of memory.
template <class F>
struct AtElement {
  Index columns;
  F f;
  INFTY_HOST_DEVICE void operator()(Index i) const {
    // A GPU divides 32 bits several times faster than 64.
    constexpr Index most = 0xffffffff;
    if (i <= most && columns <= most) {
      const auto at = static_cast<unsigned>(i), width = static_cast<unsigned>(columns);
      f(static_cast<Index>(at / width), static_cast<Index>(at % width));
    } else {
      f(i / columns, i % columns);
    }
  }
};

}  // namespace detail

/// A backend on one of Thrust's systems: `ThrustBackend<Cuda>` is a GPU, `ThrustBackend<Omp>` and
/// `ThrustBackend<Cpp>` run the same functors and the same tile programs on every machine. Include
/// <infty/thrust/cuda.hpp> or <infty/thrust/host.hpp>.
template <class System>
struct ThrustBackend {
  /// Where memory comes from, and what runs the loops.
  using Device = detail::ThrustSystem<System>;

  /// A GPU has. The host's systems say so too, and take the ways that it takes.
  static constexpr bool many_threads = true;

  using FusedAdam = detail::TiledAdam<System>;            ///< a step of Adam by tiles
  using FusedAttention = detail::TiledAttention<System>;  ///< `relative_attention` by tiles
  /// `linear` with its bias by a library.
  using FusedBiasedProduct = detail::LibraryBiasedProduct<System>;
  using FusedColumnSums = detail::TiledColumnSums<System>;  ///< the gradient of a bias by tiles
  using FusedGradients = detail::TiledGradients<System>;    ///< norms and clipping by tiles
  /// The expectation of a value signal by tiles.
  template <class Density>
  using FusedExpectation = detail::TiledExpectation<System, Density>;
  using FusedLayerNorm = detail::TiledLayerNorm<System>;      ///< `layer_norm` by tiles
  using FusedNearest = detail::TiledNearest<System>;          ///< `nearest` by tiles
  using FusedTokenLosses = detail::TiledTokenLosses<System>;  ///< `token_losses` by tiles

  /// A block of the system's pool, aligned to 64 bytes at least.
  /// @throws std::bad_alloc, and infty::DeviceMemoryError on a GPU
  static void* allocate(std::size_t bytes) { return Device::allocate(bytes); }
  /// Gives a block of `allocate(bytes)` back to the pool.
  static void release(void* data, std::size_t bytes) { Device::release(data, bytes); }

  /// n elements; the ranges may overlap.
  template <class T>
  static void copy(T* to, const T* from, Index n) {
    if (n > 0) Device::copy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  }
  /// Host memory to this backend's; `from` may be changed as soon as it returns.
  template <class T>
  static void from_host(T* to, const T* from, Index n) {
    if (n > 0) Device::from_host(to, from, static_cast<std::size_t>(n) * sizeof(T));
  }
  /// This backend's memory to the host's. Waits for all work of the current stream.
  template <class T>
  static void to_host(T* to, const T* from, Index n) {
    if (n > 0) Device::to_host(to, from, static_cast<std::size_t>(n) * sizeof(T));
  }
  /// n times `value`.
  template <class T>
  static void fill(T* to, Index n, T value) {
    if (n <= 0) return;
    Device::reach("fill", to);
    Device::run("fill", [&] { thrust::fill_n(Device::policy(), to, n, value); });
  }

  /// f(i) for i in [0, n), in any order.
  template <class F>
  static void for_each(Index n, F f) {
    Device::carry("for_each", f);
    if (n > 0)
      Device::run("for_each", [&] {
        thrust::for_each_n(Device::policy(), thrust::counting_iterator<Index>(0), n, f);
      });
  }
  /// f(i) for i in [0, rows), in any order, for an f that loops over `cost` elements.
  template <class F>
  static void for_each_row(Index rows, Index cost, F f) {
    (void)cost;
    for_each(rows, f);
  }

  /// f(row, column) for all rows and columns, in any order.
  template <class F>
  static void for_each_element(Index rows, Index columns, F f) {
    for_each(rows * columns, detail::AtElement<F>{columns, f});
  }

  /// Folds f(0), ..., f(n - 1) into `init`, in an order that the number of threads does not change.
  /// Waits for it.
  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    return Device::reduce(n, init, fold, f);
  }
  /// The same, written to `to` in this backend's memory; a GPU is not waited for.
  template <class T, class Fold, class F>
  static void reduce_into(Index n, T init, Fold fold, F f, T* to) {
    Device::reduce_into(n, init, fold, f, to);
  }

  /// Asserts that bad(i) is false for all i in [0, n), as `detail::verify` does, but without
  /// waiting for a GPU: report(i), which throws, is called by this thread's next call that waits.
  template <class Bad, class Report>
    requires requires(Index n, Bad bad, Report report) { Device::verify(n, bad, report); }
  static void verify(Index n, Bad bad, Report report) {
    Device::verify(n, bad, report);
  }

  /// The products that `shape` describes: by cuBLAS on a GPU, by Eigen on the host.
  template <class T>
  static void matmul(const Matmul& shape, T alpha, const T* a, const T* b, T beta, T* c) {
    Device::matmul(shape, alpha, a, b, beta, c);
  }
  /// a (n, n) becomes its Cholesky factor, b (n, m) becomes a^-1 b; false if a is not s.p.d. or not
  /// finite. By cuSOLVER and cuBLAS on a GPU, by Eigen on the host.
  template <class T>
  static bool cholesky_solve(Index n, Index m, T* a, T* b) {
    return Device::cholesky_solve(n, m, a, b);
  }

  /// to[i, :] = from[rows[i], :] for i in [0, n), rows of `width`; a row not in [0, count) is
  /// zeros.
  template <class T>
  static void gather_rows(Index n, Index width, const T* from, const Index* rows, Index count,
                          T* to) {
    for_each_element(n, width, [=] INFTY_HOST_DEVICE(Index i, Index j) {
      const Index row = rows[i];
      to[i * width + j] = row >= 0 && row < count ? from[row * width + j] : T{};
    });
  }
  /// to (count, width) gains from (n, width): to[rows[i], :] += from[i, :], equal rows in the order
  /// of i; rows not in [0, count) are left out.
  template <class T>
  static void scatter_add_rows(Index n, Index width, const T* from, const Index* rows, Index count,
                               T* to) {
    detail::TiledScatter<System>::add(n, width, from, rows, count, to);
  }

  /// to[i] = from[0] + ... + from[i], exact where all of these sums are: of others a GPU may give
  /// other bits the next time.
  template <class T>
  static void inclusive_scan(T* to, const T* from, Index n) {
    if (n <= 0) return;
    Device::reach("inclusive_scan", to);
    Device::reach("inclusive_scan", from);
    Device::run("inclusive_scan",
                [&] { thrust::inclusive_scan(Device::ordered_policy(), from, from + n, to); });
  }
  /// Rising.
  template <class T>
  static void sort(T* data, Index n) {
    if (n <= 0) return;
    Device::reach("sort", data);
    Device::run("sort", [&] { thrust::sort(Device::policy(), data, data + n); });
  }
};

}  // namespace infty
