// SPDX-License-Identifier: MIT
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include <infty/thrust/context.hpp>

namespace infty::gpu {

namespace detail {

/// A GPU and a stream of it.
struct Place {
  int device = 0;
  NumberedStream stream;

  friend bool operator<(const Place& a, const Place& b) {
    return std::tie(a.device, a.stream.number) < std::tie(b.device, b.stream.number);
  }
};

/// Where this thread's work goes.
inline Place place() { return {device(), current_stream()}; }

/// Events of CUDA that are used again and again, of all GPUs.
class Events {
 public:
  struct Event {
    cudaEvent_t handle = nullptr;
    int device = 0;
  };

  /// Records one behind all work that `place`, on this thread's GPU, has been given.
  Event record(const Place& place) {
    auto& free = free_[place.device];
    Event event{nullptr, place.device};
    if (free.empty()) {
      check(cudaEventCreateWithFlags(&event.handle, cudaEventDisableTiming), "cudaEventCreate");
    } else {
      event.handle = free.back();
      free.pop_back();
    }
    const cudaError_t status = cudaEventRecord(event.handle, place.stream.handle);
    if (status != cudaSuccess) give_back(event);
    check(status, "cudaEventRecord");
    return event;
  }
  /// Takes one that nobody asks for again. What was told to wait for it goes on waiting.
  void give_back(const Event& event) { free_[event.device].push_back(event.handle); }

 private:
  std::map<int, std::vector<cudaEvent_t>> free_;
};

}  // namespace detail

}  // namespace infty::gpu
