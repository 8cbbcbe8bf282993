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
#include <infty/thrust/host_block.hpp>
#include <infty/thrust/system.hpp>

#if defined(__CUDACC__)
#include <infty/thrust/context.hpp>
#include <infty/thrust/device_block.hpp>
#include <infty/thrust/once_per_device.hpp>
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
/// It may say by `static constexpr int abreast` how many of its blocks a multiprocessor is to have
/// registers for.
///
/// The function runs once in every thread of a block, so all that it does outside of an `each` is
/// the same for all of them: what differs lives in shared or global memory, and two items of one
/// `each` must not touch the same element if one of them writes it.
namespace infty::detail {

/// Shared memory that every GPU since compute capability 8.0 gives to a block, and of which an H100
/// has room for two.
inline constexpr std::size_t shared_everywhere = 96 * 1024;

/// What a host's system has of it for a block: a test specialises it for a tag of its own.
template <class System>
inline constexpr std::size_t shared_on_host = shared_everywhere;

#if defined(__CUDACC__)

/// How many of a kernel's blocks are to have room on a multiprocessor side by side: what it says,
/// or else as many as leave 128 registers to a thread.
template <class Kernel>
constexpr int blocks_abreast() {
  if constexpr (requires { Kernel::abreast; })
    return Kernel::abreast;
  else
    return Kernel::threads < 512 ? 512 / Kernel::threads : 1;
}

/// Bytes by which a block's warps exchange what they have reduced, beside those that a kernel asks
/// for.
inline constexpr std::size_t exchange_bytes = 32 * 16;

/// Runs a kernel's blocks, more than one after the other where a grid cannot hold them all.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, blocks_abreast<Kernel>())
    run_blocks(const __grid_constant__ Kernel kernel, Index blocks) {
  extern __shared__ __align__(16) unsigned char shared_memory[];
  __shared__ __align__(16) unsigned char exchange[exchange_bytes];
  for (Index i = blockIdx.x; i < blocks; i += gridDim.x) {
    DeviceBlock<Kernel::threads> block(i, shared_memory, exchange);
    kernel(block);
  }
}

/// Raises what the kernel's blocks may have of shared memory to all that this thread's GPU gives,
/// once for each GPU: CUDA sets such a limit, and a lower one set for one launch would be in force
/// for another thread's. Of each file its own, for nvcc makes a kernel's launches so, too.
template <class Kernel>
static void allow_most_shared() {
  static OncePerDevice raised;
  const int device = gpu::device();
  raised.call(device, [&] {
    int most = 0;
    gpu::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
               "cudaDeviceGetAttribute");
    cudaFuncAttributes attributes{};
    gpu::check(cudaFuncGetAttributes(&attributes, run_blocks<Kernel>), "cudaFuncGetAttributes");
    gpu::check(cudaFuncSetAttribute(run_blocks<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    most - static_cast<int>(attributes.sharedSizeBytes)),
               "cudaFuncSetAttribute");
  });
}

/// What this thread's GPU gives to a block that asks for it, beside the bytes for exchange.
inline std::size_t shared_on_device() {
  int most = 0;
  gpu::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, gpu::device()),
             "cudaDeviceGetAttribute");
  return static_cast<std::size_t>(most) - exchange_bytes;
}

template <class Kernel>
void launch_on_device(Index blocks, const Kernel& kernel) {
  const std::size_t bytes = kernel.shared_bytes();
  // What a block may have without asking.
  if (bytes + exchange_bytes > 48 * 1024) allow_most_shared<Kernel>();
  constexpr Index most = 0x7fffffff;
  run_blocks<Kernel>
      <<<static_cast<unsigned>((std::min)(blocks, most)), Kernel::threads, bytes, gpu::stream()>>>(
          kernel, blocks);
  gpu::check(cudaGetLastError(), "kernel launch");
}

#endif

/// What a block may have of shared memory. A kernel that chooses its tiles takes the largest for
/// which that is enough: one block of a tile of 64 rows keeps more threads at work than two of 32.
template <class System>
std::size_t shared_for_block() {
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<System, Cuda>)
    return shared_on_device();
  else
#endif
    return shared_on_host<System>;
}

/// Blocks [begin, end) of a kernel, one after the other, with one piece of shared memory.
template <ItemOrder order, class Kernel>
void run_on_host(Index begin, Index end, Index blocks, const Kernel& kernel) {
  using Block = HostBlock<Kernel::threads, order>;
  const std::size_t bytes = kernel.shared_bytes(), room = bytes + Block::guard * Block::guarded;
  unsigned char* const memory = static_cast<unsigned char*>(HostPool::instance().allocate(room));
  for (Index i = begin; i < end; ++i) {
    if (order != ItemOrder::forward) std::memset(memory, 0xff, room);
    Block block(ordered<order>(i, blocks), memory);
    kernel(block);
    require(block.used() <= bytes, "launch", "a block used ", block.used(),
            " bytes of shared memory and asked for ", bytes);
    require(block.intact(), "launch", "a block wrote behind a piece of its shared memory");
  }
  HostPool::instance().release(memory, room);
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
      ThrustSystem<System>::carry("launch", kernel);
      const auto open = ThrustSystem<System>::open();
      run_all();
    } else {
      run_all();
    }
  }
}

}  // namespace infty::detail
