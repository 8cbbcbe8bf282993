// SPDX-License-Identifier: MIT
#include <infty/thrust/cuda.hpp>

#include "conformance/replay.hpp"
#include "support/golden_replay.hpp"

namespace infty::tests {

Comparison replay_on_cuda(const std::filesystem::path& path) {
  return replay<double, ThrustBackend<Cuda>>(path);
}

void require_gpu() { gpu::device_count(); }

}  // namespace infty::tests
