// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/memory/short_term_memory.hpp>

namespace infty {

/// There is nothing to choose.
struct NoMemoryConfig {};

/// No memory: attention with relative positions over the segment alone. It is a short-term memory
/// of no vectors, whose state holds none.
template <class T, class Backend>
class NoMemory : public ShortTermMemory<T, Backend> {
 public:
  using Config = NoMemoryConfig;

  /// Makes the attention of a layer that remembers nothing, with weights drawn as `Linear` draws
  /// them.
  /// @throws infty::ValueError if the sizes are not valid
  explicit NoMemory(NoMemoryConfig, AttentionSizes sizes, Random random = Random(0))
      : ShortTermMemory<T, Backend>({.capacity = 0}, sizes, random) {}

  /// The attention of another layer of the same model, which shares what attention shares.
  NoMemory sibling(Random random) const {
    return NoMemory(ShortTermMemory<T, Backend>::sibling(random));
  }

 private:
  explicit NoMemory(ShortTermMemory<T, Backend> like)
      : ShortTermMemory<T, Backend>(std::move(like)) {}
};

}  // namespace infty
