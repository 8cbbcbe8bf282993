// SPDX-License-Identifier: MIT
#include "../run.hpp"

#include <infty/eigen/parallel.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/thrust/host.hpp>

namespace {

// Threads of OpenMP, or one thread where the compiler has none.
#if defined(_OPENMP)
using System = infty::Omp;
#else
using System = infty::Cpp;
#endif

template <class Density>
bool run_thrust(const sorting::Options& options, const sorting::Settings& settings,
                const std::string& name, sorting::Finished& finished) {
#if defined(_OPENMP)
  omp_set_num_threads(infty::num_threads());  // --threads, or a rank's share
#endif
  return sorting::run_model<Density, infty::ThrustBackend<System>, infty::HostPool>(
      options, settings, name, finished);
}

}  // namespace

bool sorting::run_thrust_gaussian(const Options& options, const Settings& settings,
                                  const std::string& name, Finished& finished) {
  return run_thrust<infty::GaussianDensity>(options, settings, name, finished);
}

bool sorting::run_thrust_parabola(const Options& options, const Settings& settings,
                                  const std::string& name, Finished& finished) {
  return run_thrust<infty::TruncatedParabola>(options, settings, name, finished);
}
