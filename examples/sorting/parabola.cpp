// SPDX-License-Identifier: MIT
#include <infty/eigen/backend.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "run.hpp"

bool sorting::run_eigen_parabola(const Options& options, const Settings& settings,
                                 const std::string& name, Finished& finished) {
  return run_model<infty::TruncatedParabola, infty::EigenBackend, infty::HostPool>(
      options, settings, name, finished);
}
