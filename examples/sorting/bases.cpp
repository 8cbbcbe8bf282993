// SPDX-License-Identifier: MIT
#include <infty/eigen/backend.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>

#include "run.hpp"

namespace {

template <class T>
using Fourier = infty::FourierBasis<T>;

template <template <class> class Basis>
bool run_basis(const sorting::Options& options, const sorting::Settings& settings,
               const std::string& name, sorting::Finished& finished) {
  return sorting::run_model<infty::GaussianDensity, infty::EigenBackend, infty::HostPool, Basis>(
      options, settings, name, finished);
}

}  // namespace

bool sorting::run_eigen_fourier(const Options& options, const Settings& settings,
                                const std::string& name, Finished& finished) {
  return run_basis<Fourier>(options, settings, name, finished);
}

bool sorting::run_eigen_power(const Options& options, const Settings& settings,
                              const std::string& name, Finished& finished) {
  return run_basis<infty::PowerBasis>(options, settings, name, finished);
}

bool sorting::run_eigen_rectangular(const Options& options, const Settings& settings,
                                    const std::string& name, Finished& finished) {
  return run_basis<infty::RectangularBasis>(options, settings, name, finished);
}
