// SPDX-License-Identifier: MIT
#include <infty/train/named_parameters.hpp>

#include "support/catch.hpp"
#include "support/model.hpp"

using infty::Random;

TEST_CASE("named_parameters: names of nested layers, in their order") {
  infty::tests::TwoLayers<float> model(3, 4, 2, Random(1));
  const auto parameters = infty::named_parameters<float>(model);
  REQUIRE(parameters.size() == 4);
  CHECK(parameters[0].name == "first.weight");
  CHECK(parameters[1].name == "first.bias");
  CHECK(parameters[2].name == "second.weight");
  CHECK(parameters[3].name == "second.bias");
  CHECK(same(parameters[3].variable, model.second.bias));
}

TEST_CASE("named_parameters: tied weights are listed once, under their first name") {
  infty::tests::TwoLayers<float> model(3, 3, 3, Random(1));
  model.second.weight = model.first.weight;
  const auto parameters = infty::named_parameters<float>(model);
  REQUIRE(parameters.size() == 3);
  CHECK(parameters[0].name == "first.weight");
  CHECK(parameters[2].name == "second.bias");
}
