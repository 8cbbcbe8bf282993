// SPDX-License-Identifier: MIT
#include <string>

#include <infty/core/error.hpp>

#include "support/catch.hpp"
#include "support/golden_transformer_xl.hpp"

namespace {

template <class Mixer>
infty::tests::Comparison replay(const std::string& name) {
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  return infty::tests::replay_transformer_xl<Mixer>(file);
}

}  // namespace

TEST_CASE(
    "TransformerLM: a Transformer-XL's numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("transformer_xl", "transformer_xl_prenorm");
  const auto result = replay<infty::ShortTermMemory<double>>(name);
  CAPTURE(name, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == 90);  // three segments of losses, three memories, 26 gradients
}

TEST_CASE("TransformerLM: with adaptive embedding and softmax, likewise") {
  const auto result = replay<infty::ShortTermMemory<double>>("transformer_xl_adaptive");
  CAPTURE(result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == 120);  // three segments of losses, three memories, 36 gradients
}

TEST_CASE("TransformerLM: a Transformer-XL's numbers in float to 1e-5") {
  const std::string name =
      GENERATE("transformer_xl", "transformer_xl_prenorm", "transformer_xl_adaptive");
  const auto result = replay<infty::ShortTermMemory<float>>(name);
  CAPTURE(name, result.worst_name);
  // About 100 units of 6e-8: gradients add up a few hundred rounded terms.
  CHECK(result.worst <= 1e-5);
}

TEST_CASE("TransformerLM: a LaMemo's numbers in double, every value and gradient, to 1e-9") {
  const auto result = replay<infty::LaMemo<double>>("lamemo");
  CAPTURE(result.worst_name);
  CHECK(result.worst <= 1e-9);
  // Of four segments the losses, five memories and 29 gradients; one less of the first, which has
  // nothing to look ahead from.
  CHECK(result.compared == 4 * 35 - 1);
}

TEST_CASE("TransformerLM: a LaMemo's numbers in float to 1e-5") {
  const auto result = replay<infty::LaMemo<float>>("lamemo");
  CAPTURE(result.worst_name);
  CHECK(result.worst <= 1e-5);
}
