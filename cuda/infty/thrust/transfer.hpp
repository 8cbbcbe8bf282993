// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

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

/// Host memory that captured work reads each time that it is done.
class CapturedUploads {
 public:
  CapturedUploads() = default;
  ~CapturedUploads() {
    for (void* const block : blocks_) cudaFreeHost(block);
  }
  CapturedUploads(const CapturedUploads&) = delete;
  CapturedUploads& operator=(const CapturedUploads&) = delete;

  /// A copy of these bytes that lives as long as this.
  const void* keep(const void* from, std::size_t bytes) {
    blocks_.reserve(blocks_.size() + 1);
    void* block = nullptr;
    check(cudaHostAlloc(&block, bytes, cudaHostAllocPortable), "cudaHostAlloc");
    blocks_.push_back(block);
    std::memcpy(block, from, bytes);
    return block;
  }

 private:
  std::vector<void*> blocks_;
};

/// More than this is not copied aside, but waited for.
inline constexpr std::size_t largest_staged = std::size_t{4} << 20;

/// Host memory to the GPU's; returns as soon as `from` may change, and does not wait for the GPU
/// unless there is too much to be copied aside.
inline void upload(void* to, const void* from, std::size_t bytes) {
  const auto send = [&](const void* source) {
    check(cudaMemcpyAsync(to, source, bytes, cudaMemcpyHostToDevice, stream()), "cudaMemcpyAsync");
  };
  if (CapturedUploads* const captured = current_stream().captured)
    return send(captured->keep(from, bytes));
  if (bytes > largest_staged) {
    send(from);
    synchronize();
    return;
  }
  auto staged = pinned_blocks().take(bytes);
  std::memcpy(staged.data(), from, bytes);
  send(staged.data());
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
/// @throws infty::DeviceError while a `Graph` is captured
inline void synchronize() {
  detail::refuse_captured("synchronize");
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  detail::pending_checks().look();
}

}  // namespace infty::gpu
