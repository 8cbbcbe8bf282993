// SPDX-License-Identifier: MIT
#include <infty/thrust/host.hpp>

#include "conformance/replay.hpp"
#include "support/golden_replay.hpp"

namespace infty::tests {

Comparison replay_on_thrust_cpp(const std::filesystem::path& path) {
  return replay<double, ThrustBackend<Cpp>>(path);
}

Comparison replay_on_thrust_omp(const std::filesystem::path& path) {
#if defined(_OPENMP)
  return replay<double, ThrustBackend<Omp>>(path);
#else
  raise<Error>("conformance", path.string(), ": thrust-omp needs a compiler with OpenMP");
#endif
}

}  // namespace infty::tests
