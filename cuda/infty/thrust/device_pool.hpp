// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/thrust/context.hpp>

namespace infty {

/// A cache of GPU memory blocks, as `HostPool` is for the host. A block belongs to the GPU and the
/// stream that it was asked for on, and what is given back goes to the next who asks there: the
/// stream's order keeps the two apart, so that nobody waits.
class DevicePool {
 public:
  using Statistics = PoolStatistics;  ///< what `statistics` returns

  /// The pool of the process, for all GPUs. Never destroyed: CUDA may be gone before it.
  static DevicePool& instance() {
    static DevicePool* const pool = new DevicePool;
    return *pool;
  }

  /// A block of at least `bytes` on this thread's GPU and stream, aligned to 256.
  /// @throws infty::DeviceMemoryError that says how much was asked and how much is free
  void* allocate(std::size_t bytes) {
    const std::size_t bin = detail::pool_bin(bytes), rounded = detail::pool_bin_bytes(bin);
    const Place place{gpu::device(), gpu::stream()};
    const std::lock_guard lock(mutex_);
    auto& free = free_[place][bin];
    void* block = nullptr;
    if (!free.empty()) {
      block = free.back();
      free.pop_back();
    } else {
      block = from_system(rounded, place);
      owners_.emplace(block, place);
      ++statistics_.system_allocations;
      statistics_.bytes_held += rounded;
    }
    statistics_.take(rounded);
    return block;
  }

  /// Gives a block of `allocate(bytes)` back, from any thread.
  void release(void* data, std::size_t bytes) noexcept {
    const std::size_t bin = detail::pool_bin(bytes);
    const std::lock_guard lock(mutex_);
    statistics_.bytes_in_use -= detail::pool_bin_bytes(bin);
    free_[owners_.at(data)][bin].push_back(data);
  }

  /// Waits for all GPUs and returns all cached blocks to the system.
  void trim() {
    const std::lock_guard lock(mutex_);
    trim_locked();
  }

  /// The counters as they stand.
  Statistics statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

  /// Starts `peak_bytes_in_use` anew from what is in use now.
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
  }

 private:
  using Place = std::pair<int, cudaStream_t>;

  DevicePool() = default;

  void* from_system(std::size_t bytes, const Place& place) {
    void* block = nullptr;
    cudaError_t status = cudaMallocAsync(&block, bytes, place.second);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      trim_locked();
      status = cudaMallocAsync(&block, bytes, place.second);
    }
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      std::size_t free = 0, total = 0;
      gpu::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
      raise<DeviceMemoryError>("allocate", "asked for ", bytes >> 10, " KiB on GPU ", place.first,
                               ", of whose ", total >> 20, " MiB ", free >> 20, " are free and ",
                               statistics_.bytes_in_use >> 20, " are ours");
    }
    gpu::check(status, "cudaMallocAsync");
    return block;
  }

  void trim_locked() {
    const int here = gpu::device();
    for (auto& [place, bins] : free_) {
      gpu::check(cudaSetDevice(place.first), "cudaSetDevice");
      gpu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      for (std::size_t bin = 0; bin < bins.size(); ++bin) {
        for (void* const block : bins[bin]) {
          // The default stream: the caller's may be gone by now.
          gpu::check(cudaFreeAsync(block, nullptr), "cudaFreeAsync");
          owners_.erase(block);
          statistics_.bytes_held -= detail::pool_bin_bytes(bin);
        }
        bins[bin].clear();
      }
      gpu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    gpu::check(cudaSetDevice(here), "cudaSetDevice");
  }

  mutable std::mutex mutex_;
  std::map<Place, std::array<std::vector<void*>, detail::pool_bins>> free_;
  std::unordered_map<void*, Place> owners_;
  Statistics statistics_;
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
