// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/thrust/place.hpp>
#include <infty/thrust/stream_pool.hpp>

namespace infty {

namespace detail {

/// What `StreamPool` asks of CUDA.
class CudaMemory {
 public:
  using Place = gpu::detail::Place;
  using Mark = gpu::detail::Events::Event;

  Place place() const { return gpu::detail::place(); }

  void* allocate(std::size_t bytes, const Place& place) {
    void* block = nullptr;
    return given(cudaMallocAsync(&block, bytes, place.stream.handle), block, "cudaMallocAsync");
  }
  void* allocate_alone(std::size_t bytes) {
    void* block = nullptr;
    return given(cudaMalloc(&block, bytes), block, "cudaMalloc");
  }
  // Of cudaMallocAsync, too: in no order, for nothing works on it and its stream may be gone.
  void free(void* block) { gpu::check(cudaFree(block), "cudaFree"); }

  Mark mark(const Place& place) { return events_.record(place); }
  void wait(const Place& place, const Mark& mark) {
    gpu::check(cudaStreamWaitEvent(place.stream.handle, mark.handle, 0), "cudaStreamWaitEvent");
    events_.give_back(mark);
  }
  void finish(const Mark& mark) {
    gpu::check(cudaEventSynchronize(mark.handle), "cudaEventSynchronize");
    events_.give_back(mark);
  }
  void finish(const Place& place) {
    const gpu::detail::DeviceGuard there(place.device);
    gpu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  [[noreturn]] void raise_out_of_memory(std::size_t bytes, const Place& place, std::size_t in_use) {
    std::size_t free = 0, total = 0;
    gpu::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    raise<DeviceMemoryError>("allocate", "asked for ", bytes >> 10, " KiB on GPU ", place.device,
                             ", of whose ", total >> 20, " MiB ", free >> 20, " are free and ",
                             in_use >> 20, " are ours on all GPUs");
  }

 private:
  static void* given(cudaError_t status, void* block, const char* call) {
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return nullptr;
    }
    gpu::check(status, call);
    return block;
  }

  gpu::detail::Events events_;
};

}  // namespace detail

/// A cache of GPU memory blocks, as `HostPool` is for the host. A block belongs to the GPU and the
/// stream that it was asked for on, and what is given back goes to the next who asks there: the
/// stream's order keeps the two apart, so that nobody waits. One that is given back under another
/// stream is not worked on again before what that stream had been given until then is done; of a
/// third stream that still works on it the pool does not know.
///
/// `allocate(bytes)` gives a block on this thread's GPU and stream, aligned to 256, and throws
/// infty::DeviceMemoryError, which says how much was asked and how much is free.
///
/// A program that is started with INFTY_DEVICE_POOL=exact in its environment keeps nothing and
/// rounds nothing up: `compute-sanitizer` then sees every block from its first use to its last.
class DevicePool : public detail::StreamPool<detail::CudaMemory> {
 public:
  /// The pool of the process, for all GPUs. Never destroyed: CUDA may be gone before it.
  static DevicePool& instance() {
    static DevicePool* const pool = new DevicePool;
    return *pool;
  }

 private:
  DevicePool() = default;
};

namespace detail {

/// Memory of the pool for as long as a scope, or as the stream needs it.
template <class T>
class DeviceScratch {
 public:
  explicit DeviceScratch(std::size_t n)
      : bytes_(n * sizeof(T)), data_(DevicePool::instance().allocate(bytes_)) {}
  ~DeviceScratch() { DevicePool::instance().release(data_, bytes_); }
  DeviceScratch(const DeviceScratch&) = delete;
  DeviceScratch& operator=(const DeviceScratch&) = delete;
  T* data() const { return static_cast<T*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

/// What Thrust asks temporary memory from.
struct DevicePoolAllocator {
  using value_type = char;
  char* allocate(std::ptrdiff_t bytes) {
    return static_cast<char*>(DevicePool::instance().allocate(static_cast<std::size_t>(bytes)));
  }
  void deallocate(char* data, std::size_t bytes) { DevicePool::instance().release(data, bytes); }
};

}  // namespace detail

}  // namespace infty
