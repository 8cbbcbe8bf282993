// SPDX-License-Identifier: MIT
#include <infty/memory/memsizer.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

TEST_CASE("MemSizer: keeps what all mixers keep, in a model, with biases and without") {
  const infty::tests::TemporaryFolder folder;
  using MemSizer = infty::MemSizer<double>;
  infty::testing::require_mixer<MemSizer>({.slots = 3}, folder / "plain");
  infty::testing::require_mixer<MemSizer>({.slots = 2, .bias = true, .query_scale = 1},
                                          folder / "biased");
}
