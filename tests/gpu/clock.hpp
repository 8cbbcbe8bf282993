// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

#include <infty/thrust/cuda.hpp>

namespace infty::tests {

/// Milliseconds between two points of the current stream.
class Clock {
 public:
  Clock() {
    gpu::check(cudaEventCreate(&begin_), "cudaEventCreate");
    gpu::check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Clock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  template <class F>
  double time(const F& f) {
    std::vector<double> all;
    for (int i = 0; i < 24; ++i) {
      gpu::check(cudaEventRecord(begin_, gpu::stream()), "cudaEventRecord");
      f();
      gpu::check(cudaEventRecord(end_, gpu::stream()), "cudaEventRecord");
      gpu::check(cudaEventSynchronize(end_), "cudaEventSynchronize");
      float ms = 0;
      gpu::check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
      if (i >= 3) all.push_back(static_cast<double>(ms));
    }
    std::nth_element(all.begin(), all.begin() + 10, all.end());
    return all[10];
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace infty::tests
