// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>

#include "support/golden_case.hpp"

namespace infty::tests {

// Replays a case in double on one backend: each is compiled by itself, where its backend is built.

Comparison replay_on_eigen(const std::filesystem::path& path);
Comparison replay_on_thrust_omp(const std::filesystem::path& path);
Comparison replay_on_thrust_cpp(const std::filesystem::path& path);
Comparison replay_on_cuda(const std::filesystem::path& path);

/// @throws infty::DeviceError that says why, unless there is a GPU that can be used
void require_gpu();

}  // namespace infty::tests
