// SPDX-License-Identifier: MIT
#pragma once

#include <infty/memory/long_term_config.hpp>

namespace infty::tests {

/// A long-term memory small enough for every test.
inline LongTermConfig small_config() {
  return {.model_dim = 4, .heads = 2, .head_dim = 3, .basis = 8, .widths = {.05, .2}, .samples = 6};
}

}  // namespace infty::tests
