// SPDX-License-Identifier: MIT
#include <infty/signal/gaussian_density.hpp>

#include "run_thrust.hpp"

bool sorting::run_thrust_gaussian(const Options& options, const Settings& settings,
                                  const std::string& name, Finished& finished) {
  return run_thrust<infty::GaussianDensity>(options, settings, name, finished);
}
