// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/short_term_memory.hpp>

namespace infty {

/// There is nothing to choose.
struct NoMemoryConfig {};

/// No memory: attention sees the segment alone. It is a short-term memory of no vectors, whose
/// state holds none.
template <class T, class Backend>
class NoMemory : public ShortTermMemory<T, Backend> {
 public:
  using Config = NoMemoryConfig;

  /// @throws infty::ValueError if the sizes are not valid
  explicit NoMemory(NoMemoryConfig, AttentionSizes sizes, Random random = Random(0))
      : ShortTermMemory<T, Backend>({.capacity = 0}, sizes, random) {}
};

}  // namespace infty
