// SPDX-License-Identifier: MIT
#pragma once

namespace infty {

/// Thrust's system for one host thread.
struct Cpp;
/// Thrust's system for the host threads of OpenMP.
struct Omp;
/// Thrust's system for NVIDIA GPUs.
struct Cuda;

template <class System>
struct ThrustBackend;

}  // namespace infty
