// SPDX-License-Identifier: MIT
#include <infty/eigen/backend.hpp>

#include "run.hpp"

bool sorting::run_eigen_gaussian(const Options& options, const Settings& settings,
                                 const std::string& name, Finished& finished) {
  return run_model<infty::GaussianDensity, infty::EigenBackend, infty::HostPool>(options, settings,
                                                                                 name, finished);
}
