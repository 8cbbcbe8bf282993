// SPDX-License-Identifier: MIT
#include <infty/signal/gaussian_density.hpp>
#include <infty/thrust/cuda.hpp>

#include "../run.hpp"

bool sorting::run_cuda_gaussian(const Options& options, const Settings& settings,
                                const std::string& name, Finished& finished) {
  return run_model<infty::GaussianDensity, infty::ThrustBackend<infty::Cuda>, infty::DevicePool>(
      options, settings, name, finished);
}
