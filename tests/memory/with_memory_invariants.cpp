// SPDX-License-Identifier: MIT
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/nn/cached_attention.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

TEST_CASE("WithMemory: a cache of chunks beside a memory keeps to what every mixer keeps to") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<
      infty::WithMemory<infty::CachedAttention<double>, infty::LongTermMemory<double>>>(
      {.attention = {.capacity = 9},
       .memory = infty::LongTermConfig{.basis = 6, .widths = {.1, .3}, .samples = 5}},
      folder / "state.safetensors");
}
