// SPDX-License-Identifier: MIT
#include <cstddef>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/golden_tokens.hpp"

TEST_CASE("memory tokens: the recorded numbers in double, every value and gradient, to 1e-9") {
  // Layers' outputs, states, losses, and the gradients of all of them.
  const auto [name, count] =
      GENERATE(table<std::string, std::size_t>({{"memory_transformer_memtransformer", 4 + 2 + 24},
                                                {"memory_transformer_memctrl", 4 + 2 + 48},
                                                {"memory_transformer_membottleneck", 4 + 2 + 48},
                                                {"memory_transformer_xl", 3 * 6 + 1 + 27},
                                                {"rmt_gpt2", 3 * 3 + 1 + 29},
                                                {"rmt_xl", 3 * 3 + 1 + 27}}));
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = infty::tests::replay_tokens<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == count);
}
