// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace infty::tests {

/// Blocks of memory that the typed tests' backend and the host's pool have handed out so far; null
/// where that is the backend which tensors have anyway. `support/types.hpp` fills it in.
struct BlocksHandedOut {
  std::size_t (*by_backend)() = nullptr;
  std::size_t (*by_host)() = nullptr;
};
inline BlocksHandedOut blocks_handed_out;

}  // namespace infty::tests
