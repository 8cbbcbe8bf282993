// SPDX-License-Identifier: MIT
#include <string>

#include <infty/memory/product_key_memory.hpp>

#include "support/catch.hpp"
#include "support/golden_product_key.hpp"

TEST_CASE("ProductKeyMemory: the authors' numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("single", "heads", "mlp");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/product_key_" + name +
                                ".safetensors");
  const auto result = infty::tests::replay_product_key<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 9);
}
