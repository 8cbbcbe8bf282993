// SPDX-License-Identifier: MIT
#include "conformance/replay.hpp"
#include "support/golden_replay.hpp"

infty::tests::Comparison infty::tests::replay_on_eigen(const std::filesystem::path& path) {
  return replay<double, EigenBackend>(path);
}
