// SPDX-License-Identifier: MIT
#pragma once

#include <infty/thrust/host.hpp>

#include "../run.hpp"

namespace sorting {

/// `run_model` on Thrust's threads of OpenMP, or on one thread where the compiler has no OpenMP.
template <class Density>
bool run_thrust(const Options& options, const Settings& settings, const std::string& name,
                Finished& finished) {
#if defined(_OPENMP)
  using System = infty::Omp;
  if (options.threads > 0) omp_set_num_threads(options.threads);
#else
  using System = infty::Cpp;
#endif
  return run_model<Density, infty::ThrustBackend<System>, infty::HostPool>(options, settings, name,
                                                                           finished);
}

}  // namespace sorting
