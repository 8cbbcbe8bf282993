// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/thrust/async_rows.hpp>
#include <infty/thrust/device_warp.hpp>
#include <infty/thrust/host_block.hpp>

namespace infty::detail {

/// A block of the device. Its functions are marked for the host as well, as kernels are, and do
/// nothing there.
template <int threads>
class DeviceBlock {
 public:
  static_assert(threads % 32 == 0 && threads <= 1024);

  __host__ __device__ DeviceBlock(Index index, unsigned char* memory, unsigned char* exchange)
      : index_(index), memory_(memory), exchange_(exchange) {}

  /// As `HostBlock::index`.
  __host__ __device__ Index index() const { return index_; }

  /// As `HostBlock::shared`.
  template <class T>
  __host__ __device__ T* shared(Index n) {
    static_assert(std::is_trivially_copyable_v<T> && shared_alignment % alignof(T) == 0);
    T* const piece = reinterpret_cast<T*>(memory_);
    memory_ += shared_bytes<T>(n);
    return piece;
  }

  /// As `HostBlock::each`.
  template <class Int, class F>
  __host__ __device__ void each(Int n, const F& f) {
    for (Int i = static_cast<Int>(thread()); i < n; i += threads) f(i);
    barrier();
  }

  /// As `HostBlock::reduce`.
  template <class T, class Int, class Fold, class F>
  __host__ __device__ T reduce(Int n, T init, const Fold& fold, const F& f) {
    static_assert(sizeof(T) <= 16);
    if (n <= 0) return init;
    const int lanes = n < threads ? static_cast<int>(n) : threads;
    const int lane = thread() % 32, warp = thread() / 32, warps = (lanes + 31) / 32;
    T sum = init;
    if (thread() < lanes) sum = strided<T>(thread(), threads, n, fold, f);
    sum = join<32>(sum, lane, lanes - 32 * warp, fold);
    T* const of_warp = reinterpret_cast<T*>(exchange_);
    if (lane == 0 && warp < warps) of_warp[warp] = sum;
    barrier();
    // Every warp joins the warps' sums for itself: that spares a second exchange.
    sum = join<32>(of_warp[lane < warps ? lane : 0], lane, warps, fold);
    sum = from_lane(sum, 0);
    barrier();
    return fold(init, sum);
  }

  /// As `HostBlock::reduce_rows`.
  template <class T, class Fold, class F, class Take>
  __host__ __device__ void reduce_rows(int rows, int n, const Fold& fold, const F& f,
                                       const Take& take) {
    constexpr int groups = threads / reduce_lanes;
    const int lane = thread() % reduce_lanes, lanes = n < reduce_lanes ? n : reduce_lanes;
    // All threads go round as often: a shuffle needs its whole warp.
    for (int first = 0; first < rows; first += groups) {
      const int row = first + thread() / reduce_lanes;
      T sum{};
      if (row < rows && lane < lanes)
        sum = strided<T>(lane, reduce_lanes, n, fold, [&](int j) { return f(row, j); });
      sum = join<reduce_lanes>(sum, lane, lanes, fold);
      if (lane == 0 && row < rows) take(row, sum);
    }
    barrier();
  }

  using Warp = DeviceWarp;
  static constexpr int all_warps = threads / warp_lanes;

  /// As `HostBlock::each_warp`.
  template <class F>
  __host__ __device__ void each_warp(const F& f) {
#if defined(__CUDA_ARCH__)
    // From a lane to all of them, so that the compiler knows that they agree.
    f(Warp(__shfl_sync(~0u, thread() / warp_lanes, 0)));
#endif
    barrier();
  }
  /// As `HostBlock::OfWarps`: of this thread's warp, as this lane has it.
  template <class State>
  struct OfWarps {
    State of;
  };
  /// As `HostBlock::each_warp`.
  template <class State, class F>
  __host__ __device__ void each_warp(OfWarps<State>& states, const F& f) {
    each_warp([&](const Warp& warp) { f(warp, states.of); });
  }

  /// As `HostBlock::start`.
  template <int most>
  __host__ __device__ void start(const AsyncRows& rows) {
    if constexpr (most >= 16) {
      if (rows.wide) {
        start_pieces<16, most>(rows);
        return;
      }
    }
    start_pieces<4, most>(rows);
  }
  /// As `HostBlock::commit`.
  __host__ __device__ void commit() {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  /// As `HostBlock::wait`.
  template <int younger>
  __host__ __device__ void wait() {
#if defined(__CUDA_ARCH__)
    asm volatile("cp.async.wait_group %0;" ::"n"(younger) : "memory");
#endif
    barrier();
  }

 private:
  // Every thread has a piece of its own in rows that stand `threads` pieces apart.
  template <int size, int most>
  __host__ __device__ static void start_pieces(const AsyncRows& rows) {
#if defined(__CUDA_ARCH__)
    constexpr int across = most / size;
    static_assert(threads % across == 0);
    const int at = thread() % across * size;
    if (at >= rows.bytes) return;
      // Not unrolled: addresses would take registers that the work beside it needs.
#pragma unroll 1
    for (int row = thread() / across; row < rows.rows; row += threads / across) {
      const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(rows.target(row) + at));
      // Of fewer bytes than the piece has the others are zeros.
      const int there = rows.inside(row) ? size : 0;
      if constexpr (size == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(rows.source(row) + at), "r"(there)
                     : "memory");
      else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to),
                     "l"(rows.source(row) + at), "r"(there)
                     : "memory");
    }
#endif
  }
  __host__ __device__ static int thread() {
#if defined(__CUDA_ARCH__)
    return static_cast<int>(threadIdx.x);
#else
    return 0;
#endif
  }
  __host__ __device__ static void barrier() {
#if defined(__CUDA_ARCH__)
    __syncthreads();
#endif
  }

  template <class T, class Int, class Fold, class F>
  __host__ __device__ static T strided(int first, int stride, Int n, const Fold& fold, const F& f) {
    T sum = f(static_cast<Int>(first));
    for (Int i = static_cast<Int>(first) + stride; i < n; i += stride) sum = fold(sum, f(i));
    return sum;
  }

  // Lane 0 of every `width` lanes gets the fold of the first `count` of them.
  template <int width, class T, class Fold>
  __host__ __device__ static T join(T sum, int lane, int count, const Fold& fold) {
    for (int half = width / 2; half > 0; half /= 2) {
      const T other = from_lane<width>(sum, lane + half);
      if (lane + half < count) sum = fold(sum, other);
    }
    return sum;
  }

  // The value of another lane of the same `width` lanes, word by word.
  template <int width = 32, class T>
  __host__ __device__ static T from_lane(const T& x, int lane) {
    static_assert(sizeof(T) % 4 == 0);
    unsigned words[sizeof(T) / 4];
    std::memcpy(words, &x, sizeof(T));
#if defined(__CUDA_ARCH__)
    for (unsigned& word : words) word = __shfl_sync(~0u, word, lane, width);
#else
    (void)lane;
#endif
    T out;
    std::memcpy(&out, words, sizeof(T));
    return out;
  }

  Index index_;
  unsigned char* memory_;
  unsigned char* exchange_;
};

}  // namespace infty::detail
