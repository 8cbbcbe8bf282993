// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/with_memory.hpp>

namespace infty {

/// The ∞-former's memory: attention over the last vectors, and beside it the long-term memory that
/// takes in what leaves them [Martins et al. 2022, §3].
template <class T, class Backend = EigenBackend>
using InftyMemory =
    WithMemory<ShortTermMemory<T, Backend>, LongTermMemory<T, GaussianDensity, Backend>>;

/// The constants of the ∞-former's memory.
using InftyConfig = WithMemoryConfig<ShortTermConfig, LongTermConfig>;

}  // namespace infty
