// SPDX-License-Identifier: MIT
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/thrust/cuda.hpp>

#include "../run.hpp"

using Gpu = infty::ThrustBackend<infty::Cuda>;

bool sorting::run_cuda_gaussian(const Options& options, const Settings& settings,
                                const std::string& name, Finished& finished) {
  return run_model<infty::GaussianDensity, Gpu, infty::DevicePool>(options, settings, name,
                                                                   finished);
}

bool sorting::run_cuda_parabola(const Options& options, const Settings& settings,
                                const std::string& name, Finished& finished) {
  return run_model<infty::TruncatedParabola, Gpu, infty::DevicePool>(options, settings, name,
                                                                     finished);
}
