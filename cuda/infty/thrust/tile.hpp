// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/thrust/system.hpp>

#if defined(__CUDACC__)
#include <infty/thrust/context.hpp>
#endif

/// Programs for a block of threads, written once for the GPU and for the host. A kernel is a small
/// struct that is copied to the device:
///
///     struct Kernel {
///       static constexpr int threads = 256;  // of a block, a multiple of 32
///       std::size_t shared_bytes() const;    // the sum of `shared_bytes<T>(n)` of its pieces
///       template <class Block>
///       INFTY_HOST_DEVICE void operator()(Block& block) const;
///     };
///
/// The function runs once in every thread of a block, so all that it does outside of an `each` is
/// the same for all of them: what differs lives in shared or global memory, and two items of one
/// `each` must not touch the same element if one of them writes it.
namespace infty::detail {

/// Pieces of shared memory begin at multiples of this: no load is wider.
inline constexpr std::size_t shared_alignment = 16;

/// The bytes that a piece of n elements takes of a block's shared memory.
template <class T>
INFTY_HOST_DEVICE constexpr std::size_t shared_bytes(Index n) {
  return (static_cast<std::size_t>(n) * sizeof(T) + shared_alignment - 1) / shared_alignment *
         shared_alignment;
}

/// What a kernel that chooses its tiles asks for at most: every GPU since compute capability 8.0
/// gives that much to a block, and an H100 runs two such blocks side by side.
inline constexpr std::size_t most_shared = 96 * 1024;

/// In which order the host runs the items of an `each`. A kernel without a race gives the same bits
/// in all of them; in the latter two, which are for tests, shared memory starts as NaN.
enum class ItemOrder { forward, reverse, shuffled };

/// The order of a system: a test specialises it for a tag of its own.
template <class System>
inline constexpr ItemOrder item_order = ItemOrder::forward;

/// Where item `i` of n stands in an order.
template <ItemOrder order, class I>
INFTY_HOST_DEVICE inline I ordered(I i, I n) {
  if constexpr (order == ItemOrder::reverse) return n - 1 - i;
  // A step without a common divisor visits every item once.
  if constexpr (order == ItemOrder::shuffled) {
    const long long step = n % 7919 == 0 ? 1 : 7919;
    return static_cast<I>((static_cast<long long>(i) * step + n / 3) % n);
  }
  return i;
}

/// Lanes that fold one row in `fold_rows`.
inline constexpr int fold_lanes = 16;

/// A block of the host: one thread does the work of all.
template <int threads, ItemOrder order = ItemOrder::forward>
class HostBlock {
 public:
  INFTY_HOST_DEVICE HostBlock(Index index, unsigned char* memory)
      : index_(index), memory_(memory) {}

  /// Which block of the launch this is.
  INFTY_HOST_DEVICE Index index() const { return index_; }

  /// The next n elements of shared memory, the same for all threads, with no defined contents.
  template <class T>
  INFTY_HOST_DEVICE T* shared(Index n) {
    static_assert(std::is_trivially_copyable_v<T> && shared_alignment % alignof(T) == 0);
    T* const piece = reinterpret_cast<T*>(memory_ + used_);
    used_ += shared_bytes<T>(n);
    return piece;
  }
  /// Bytes of shared memory given out.
  INFTY_HOST_DEVICE std::size_t used() const { return used_; }

  /// f(i) for i in [0, n) over the threads, then a barrier.
  template <class I, class F>
  INFTY_HOST_DEVICE void each(I n, const F& f) {
    for (I i = 0; i < n; ++i) f(ordered<order>(i, n));
  }

  /// fold(init, f(0), ..., f(n - 1)), known to all threads, in an order that n alone determines.
  template <class T, class I, class Fold, class F>
  INFTY_HOST_DEVICE T reduce(I n, T init, const Fold& fold, const F& f) {
    if (n <= 0) return init;
    T lane[threads];
    const int lanes = n < threads ? static_cast<int>(n) : threads;
    for (int l = 0; l < lanes; ++l) lane[l] = strided<T>(l, threads, n, fold, f);
    // As the device does it: within warps, then over warps.
    const int warps = (lanes + 31) / 32;
    for (int warp = 0; warp < warps; ++warp) {
      join(lane + 32 * warp, 32, lanes - 32 * warp, fold);
      lane[warp] = lane[32 * warp];
    }
    join(lane, 32, warps, fold);
    return fold(init, lane[0]);
  }

  /// take(row, fold over j in [0, n) of f(row, j)) for row in [0, rows), n >= 1, then a barrier:
  /// for many short rows, each by a few neighbouring threads. Every f(row, j) is called once, and
  /// every take(row, ...) by one thread when all of the row's have been.
  template <class T, class Fold, class F, class Take>
  INFTY_HOST_DEVICE void fold_rows(int rows, int n, const Fold& fold, const F& f,
                                   const Take& take) {
    const int lanes = n < fold_lanes ? n : fold_lanes;
    for (int i = 0; i < rows; ++i) {
      const int row = ordered<order>(i, rows);
      T lane[fold_lanes];
      for (int l = 0; l < lanes; ++l)
        lane[l] = strided<T>(l, fold_lanes, n, fold, [&](int j) { return f(row, j); });
      join(lane, fold_lanes, lanes, fold);
      take(row, lane[0]);
    }
  }

 private:
  template <class T, class I, class Fold, class F>
  INFTY_HOST_DEVICE static T strided(int first, int stride, I n, const Fold& fold, const F& f) {
    T sum = f(static_cast<I>(first));
    for (I i = static_cast<I>(first) + stride; i < n; i += stride) sum = fold(sum, f(i));
    return sum;
  }
  template <class T, class Fold>
  INFTY_HOST_DEVICE static void join(T* lane, int width, int count, const Fold& fold) {
    for (int half = width / 2; half > 0; half /= 2)
      for (int l = 0; l < half && l + half < count; ++l) lane[l] = fold(lane[l], lane[l + half]);
  }

  Index index_;
  unsigned char* memory_;
  std::size_t used_ = 0;
};

#if defined(__CUDACC__)

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
  template <class I, class F>
  __host__ __device__ void each(I n, const F& f) {
    for (I i = static_cast<I>(thread()); i < n; i += threads) f(i);
    barrier();
  }

  /// As `HostBlock::reduce`.
  template <class T, class I, class Fold, class F>
  __host__ __device__ T reduce(I n, T init, const Fold& fold, const F& f) {
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

  /// As `HostBlock::fold_rows`.
  template <class T, class Fold, class F, class Take>
  __host__ __device__ void fold_rows(int rows, int n, const Fold& fold, const F& f,
                                     const Take& take) {
    constexpr int groups = threads / fold_lanes;
    const int lane = thread() % fold_lanes, lanes = n < fold_lanes ? n : fold_lanes;
    // All threads go round as often: a shuffle needs its whole warp.
    for (int first = 0; first < rows; first += groups) {
      const int row = first + thread() / fold_lanes;
      T sum{};
      if (row < rows && lane < lanes)
        sum = strided<T>(lane, fold_lanes, n, fold, [&](int j) { return f(row, j); });
      sum = join<fold_lanes>(sum, lane, lanes, fold);
      if (lane == 0 && row < rows) take(row, sum);
    }
    barrier();
  }

 private:
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

  template <class T, class I, class Fold, class F>
  __host__ __device__ static T strided(int first, int stride, I n, const Fold& fold, const F& f) {
    T sum = f(static_cast<I>(first));
    for (I i = static_cast<I>(first) + stride; i < n; i += stride) sum = fold(sum, f(i));
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

/// Runs a kernel's blocks, more than one after the other where a grid cannot hold them all. The
/// bounds leave 128 registers to a thread.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads,
                                  Kernel::threads < 512 ? 512 / Kernel::threads : 1)
    run_blocks(const __grid_constant__ Kernel kernel, Index blocks) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  __shared__ __align__(16) unsigned char exchange[32 * 16];
  for (Index i = blockIdx.x; i < blocks; i += gridDim.x) {
    DeviceBlock<Kernel::threads> block(i, shared_memory, exchange);
    kernel(block);
  }
}

template <class Kernel>
void launch_on_device(Index blocks, const Kernel& kernel) {
  const std::size_t bytes = kernel.shared_bytes();
  // More than a block may have without asking; the limit stays raised, asking again costs little.
  if (bytes > 48 * 1024)
    gpu::check(cudaFuncSetAttribute(run_blocks<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "cudaFuncSetAttribute");
  constexpr Index most = 0x7fffffff;
  run_blocks<Kernel>
      <<<static_cast<unsigned>(std::min(blocks, most)), Kernel::threads, bytes, gpu::stream()>>>(
          kernel, blocks);
  gpu::check(cudaGetLastError(), "kernel launch");
}

#endif

/// Blocks [begin, end) of a kernel, one after the other, with one piece of shared memory.
template <ItemOrder order, class Kernel>
void run_on_host(Index begin, Index end, Index blocks, const Kernel& kernel) {
  const std::size_t bytes = kernel.shared_bytes();
  unsigned char* const memory = static_cast<unsigned char*>(HostPool::instance().allocate(bytes));
  for (Index i = begin; i < end; ++i) {
    if (order != ItemOrder::forward) std::memset(memory, 0xff, bytes);
    HostBlock<Kernel::threads, order> block(ordered<order>(i, blocks), memory);
    kernel(block);
    require(block.used() <= bytes, "launch", "a block used ", block.used(),
            " bytes of shared memory and asked for ", bytes);
  }
  HostPool::instance().release(memory, bytes);
}

template <class System>
struct ThrustSystem;

/// Runs `blocks` blocks of a kernel: on the device behind all that its stream was given before,
/// without waiting for it; on the host until they have ended. Blocks must not wait for each other.
template <class System, class Kernel>
void launch(Index blocks, const Kernel& kernel) {
  static_assert(std::is_trivially_copyable_v<Kernel>);
  if (blocks <= 0) return;
  if constexpr (std::is_same_v<System, Cuda>) {
#if defined(__CUDACC__)
    launch_on_device(blocks, kernel);
#else
    static_assert(!std::is_same_v<System, Cuda>, "launch<Cuda> needs a CUDA compiler");
#endif
  } else {
    const auto run = [&](Index begin, Index end) {
      run_on_host<item_order<System>>(begin, end, blocks, kernel);
    };
    const auto run_all = [&] {
      if constexpr (std::is_same_v<System, Omp>) {
        parallel_for(blocks, (blocks + 255) / 256, run);
      } else {
        run(0, blocks);
      }
    };
    if constexpr (requires { ThrustSystem<System>::open(); }) {
      const auto open = ThrustSystem<System>::open();
      run_all();
    } else {
      run_all();
    }
  }
}

}  // namespace infty::detail
