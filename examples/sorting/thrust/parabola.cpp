// SPDX-License-Identifier: MIT
#include <infty/signal/truncated_parabola.hpp>

#include "run_thrust.hpp"

bool sorting::run_thrust_parabola(const Options& options, const Settings& settings,
                                  const std::string& name, Finished& finished) {
  return run_thrust<infty::TruncatedParabola>(options, settings, name, finished);
}
