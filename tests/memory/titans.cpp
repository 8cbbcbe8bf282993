// SPDX-License-Identifier: MIT
#include <string>

#include <infty/memory/titans.hpp>

#include "support/catch.hpp"
#include "support/golden_titans.hpp"

namespace titans_test {

infty::tests::Comparison replay(const std::string& name) {
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  return infty::tests::replay_titans<double, infty::EigenBackend>(file);
}

}  // namespace titans_test

TEST_CASE("Titans: the program's numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("titans_linear", "titans_mlp");
  const auto result = titans_test::replay(name);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == (name == "titans_linear" ? 19 : 24));
}
