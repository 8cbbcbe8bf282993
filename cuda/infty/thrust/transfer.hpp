// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/thrust/context.hpp>

namespace infty::gpu {

namespace detail {

/// A block of pinned host memory that the GPU reads or writes by itself.
struct Pinned {
  void* data = nullptr;
  std::size_t bytes = 0;
  cudaEvent_t done = nullptr;  ///< recorded behind the last work that uses the block
};

/// The pinned blocks of one thread and GPU, used again as soon as the GPU is done with them.
class PinnedBlocks {
 public:
  /// A block of at least `bytes` that no work uses.
  Pinned& take(std::size_t bytes) {
    for (Pinned& block : blocks_)
      if (block.bytes >= bytes && block.bytes <= 8 * bytes + 4096) {
        const cudaError_t status = cudaEventQuery(block.done);
        if (status == cudaSuccess) return block;
        if (status != cudaErrorNotReady) check(status, "cudaEventQuery");
        cudaGetLastError();
      }
    Pinned block{.bytes = bytes < 4096 ? 4096 : bytes};
    check(cudaMallocHost(&block.data, block.bytes), "cudaMallocHost");
    check(cudaEventCreateWithFlags(&block.done, cudaEventDisableTiming), "cudaEventCreate");
    blocks_.push_back(block);
    return blocks_.back();
  }

 private:
  std::vector<Pinned> blocks_;
};

inline PinnedBlocks& pinned_blocks() {
  // Never freed: CUDA may be gone before the thread's last object.
  static thread_local std::vector<PinnedBlocks*> of_device;
  const auto number = static_cast<std::size_t>(device());
  if (of_device.size() <= number) of_device.resize(number + 1);
  if (!of_device[number]) of_device[number] = new PinnedBlocks;
  return *of_device[number];
}

/// Host memory to the GPU's; returns as soon as `from` may change, and does not wait for the GPU
/// unless there is too much to be copied aside.
inline void upload(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t largest_staged = std::size_t{4} << 20;
  if (bytes > largest_staged) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    return;
  }
  Pinned& staged = pinned_blocks().take(bytes);
  std::memcpy(staged.data, from, bytes);
  check(cudaMemcpyAsync(to, staged.data, bytes, cudaMemcpyHostToDevice, stream()),
        "cudaMemcpyAsync");
  check(cudaEventRecord(staged.done, stream()), "cudaEventRecord");
}

/// Checks that the GPU makes while the host goes on. Each leaves the index of something bad, or -1,
/// in a slot of pinned memory, which is looked at when the host waits for the GPU anyway.
class PendingChecks {
 public:
  using Report = std::function<void(Index)>;

  /// The slot for a check on the current stream, whose work copies its finding there.
  Index* add(Report report) {
    constexpr std::size_t most = 256;
    if (!reports_.empty() && (reports_.size() == most || !here())) wait_and_look();
    if (!slots_)
      check(cudaHostAlloc(reinterpret_cast<void**>(&slots_), most * sizeof(Index),
                          cudaHostAllocPortable),
            "cudaHostAlloc");
    device_ = device();
    stream_ = stream();
    reports_.push_back(std::move(report));
    return slots_ + reports_.size() - 1;
  }

  /// Reports the first finding of this stream, which is done, and forgets all.
  void look() {
    if (!reports_.empty() && here()) take_and_report();
  }

 private:
  bool here() const { return device_ == device() && stream_ == stream(); }

  // The stream itself may be gone.
  void wait_and_look() {
    const int current = device();
    check(cudaSetDevice(device_), "cudaSetDevice");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaSetDevice(current), "cudaSetDevice");
    take_and_report();
  }

  void take_and_report() {
    const std::vector<Report> reports = std::exchange(reports_, {});
    for (std::size_t i = 0; i < reports.size(); ++i)
      if (slots_[i] >= 0) reports[i](slots_[i]);
  }

  Index* slots_ = nullptr;
  std::vector<Report> reports_;
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
};

/// Those of this thread.
inline PendingChecks& pending_checks() {
  static thread_local PendingChecks checks;
  return checks;
}

}  // namespace detail

/// Waits for this thread's stream, and throws what checks of its work have found.
inline void synchronize() {
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  detail::pending_checks().look();
}

}  // namespace infty::gpu
