// SPDX-License-Identifier: MIT
#include <infty/signal/truncated_parabola.hpp>
#include <infty/thrust/cuda.hpp>

#include "../run.hpp"

bool sorting::run_cuda_parabola(const Options& options, const Settings& settings,
                                const std::string& name, Finished& finished) {
  return run_model<infty::TruncatedParabola, infty::ThrustBackend<infty::Cuda>, infty::DevicePool>(
      options, settings, name, finished);
}
