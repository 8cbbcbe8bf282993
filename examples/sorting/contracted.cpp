// SPDX-License-Identifier: MIT
#include <infty/eigen/backend.hpp>
#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/uniform_memory.hpp>

#include "run.hpp"

namespace {

using Uniform = infty::UniformMemory<float>;

template <class LongTerm>
bool run_blocks(const sorting::Options& options, const sorting::Settings& settings,
                const std::string& name, sorting::Finished& finished) {
  return sorting::run_model<infty::GaussianDensity, infty::EigenBackend, infty::HostPool,
                            infty::GaussianBasis, LongTerm>(options, settings, name, finished);
}

}  // namespace

bool sorting::run_eigen_blocks(const Options& options, const Settings& settings,
                               const std::string& name, Finished& finished) {
  const bool one = contraction_of(settings, name) == "uniform";
  return (one ? run_blocks<Uniform> : run_blocks<infty::MixedMemory<Uniform>>)(options, settings,
                                                                               name, finished);
}
