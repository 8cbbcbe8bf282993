// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include <infty/core/config.hpp>
#include <infty/thrust/pending_checks.hpp>
#include <infty/thrust/place.hpp>
#include <infty/thrust/staged_blocks.hpp>

namespace infty::gpu {

inline void synchronize();

namespace detail {

/// What `StagedBlocks` asks of CUDA: pinned memory.
struct PinnedMemory {
  using Mark = cudaEvent_t;

  int device() const { return gpu::device(); }
  void* allocate(std::size_t bytes) {
    void* block = nullptr;
    check(cudaHostAlloc(&block, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    return block;
  }
  cudaEvent_t make() {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    return event;
  }
  void record(cudaEvent_t event) { check(cudaEventRecord(event, stream()), "cudaEventRecord"); }
  bool done(cudaEvent_t event) {
    const cudaError_t status = cudaEventQuery(event);
    if (status != cudaErrorNotReady) check(status, "cudaEventQuery");
    if (status == cudaErrorNotReady) cudaGetLastError();
    return status == cudaSuccess;
  }
};

/// The pinned blocks of the process. Never freed: CUDA may be gone before the last object.
inline infty::detail::StagedBlocks<PinnedMemory>& pinned_blocks() {
  static auto* const blocks = new infty::detail::StagedBlocks<PinnedMemory>;
  return *blocks;
}

/// More than this is not copied aside, but waited for.
inline constexpr std::size_t largest_staged = std::size_t{4} << 20;

/// Host memory to the GPU's; returns as soon as `from` may change, and does not wait for the GPU
/// unless there is too much to be copied aside.
inline void upload(void* to, const void* from, std::size_t bytes) {
  if (bytes > largest_staged) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "cudaMemcpyAsync");
    synchronize();
    return;
  }
  auto staged = pinned_blocks().take(bytes);
  std::memcpy(staged.data(), from, bytes);
  check(cudaMemcpyAsync(to, staged.data(), bytes, cudaMemcpyHostToDevice, stream()),
        "cudaMemcpyAsync");
  staged.sent();
}

/// What `PendingChecks` asks of CUDA.
struct CudaChecks {
  using Place = detail::Place;

  Place place() const { return detail::place(); }
  Index* slots(std::size_t n) {
    void* slots = nullptr;
    check(cudaHostAlloc(&slots, n * sizeof(Index), cudaHostAllocPortable), "cudaHostAlloc");
    return static_cast<Index*>(slots);
  }
  // The stream itself may be gone.
  void finish(const Place& place) {
    const DeviceGuard there(place.device);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
};

using CudaPendingChecks = infty::detail::PendingChecks<CudaChecks>;

/// What threads share of their checks. Never freed, as the pinned blocks.
inline CudaPendingChecks::Shared& shared_checks() {
  static auto* const shared = new CudaPendingChecks::Shared;
  return *shared;
}

/// The checks of this thread.
inline CudaPendingChecks& pending_checks() {
  static thread_local CudaPendingChecks checks(shared_checks());
  return checks;
}

}  // namespace detail

/// Waits for this thread's stream, and throws what checks of its work have found, or those of a
/// thread that has ended.
inline void synchronize() {
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  detail::pending_checks().look();
}

}  // namespace infty::gpu
