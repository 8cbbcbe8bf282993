// SPDX-License-Identifier: MIT
#include <string>

#include <infty/core/error.hpp>

#include "support/catch.hpp"
#include "support/golden_transformer_xl.hpp"

namespace {

template <class T>
infty::tests::Comparison replay(const std::string& name) {
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  return infty::tests::replay_transformer_xl<T, infty::EigenBackend>(file);
}

}  // namespace

TEST_CASE(
    "TransformerLM: a Transformer-XL's numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("transformer_xl", "transformer_xl_prenorm");
  const auto result = replay<double>(name);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == 90);  // three segments of losses, three memories, 26 gradients
}

TEST_CASE("TransformerLM: a Transformer-XL's numbers in float to 1e-5") {
  const std::string name = GENERATE("transformer_xl", "transformer_xl_prenorm");
  const auto result = replay<float>(name);
  CAPTURE(name, result.worst_name);
  // About 100 units of 6e-8: gradients add up a few hundred rounded terms.
  CHECK(result.worst <= 1e-5);
}
