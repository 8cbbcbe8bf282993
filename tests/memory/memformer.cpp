// SPDX-License-Identifier: MIT
#include <string>

#include <infty/memory/memformer.hpp>

#include "support/catch.hpp"
#include "support/golden_memformer.hpp"

namespace memformer_tests {

TEST_CASE("Memformer: every recorded value and gradient of its programs, to 1e-9") {
  const std::string name = GENERATE("memformer_slots", "memformer_gru", "memformer_bmn");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = infty::tests::replay_memformer<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst_name, result.worst_value, result.worst_gradient);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared > 20);
}

}  // namespace memformer_tests
