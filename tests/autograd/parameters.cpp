// SPDX-License-Identifier: MIT
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/linear.hpp>

#include "support/catch.hpp"

using infty::Random;
using infty::Variable;

namespace {

struct Nested {
  infty::Linear<float> map{2, 3, Random(1)};
  std::vector<infty::LayerNorm<float>> norms{infty::LayerNorm<float>(2),
                                             infty::LayerNorm<float>(2)};
  std::optional<infty::Linear<float>> none;
  std::optional<infty::Linear<float>> some = infty::Linear<float>(1, 1, Random(1), false);

  template <class Visitor>
  void visit(Visitor&& see) {
    see("map", map);
    see("norms", norms);
    see("none", none);
    see("some", some);
  }
};

static_assert(infty::Layer<Nested>);
static_assert(infty::Layer<infty::Linear<double>>);
static_assert(!infty::Layer<Variable<float>>);
static_assert(!infty::Layer<int>);

}  // namespace

TEST_CASE("parameters: named in the layer's order, nested, numbered, passed over where empty") {
  Nested layer;
  std::vector<std::string> names;
  infty::for_each_parameter(
      layer, [&](const std::string& name, Variable<float>&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"map.weight", "map.bias", "norms.0.weight",
                                          "norms.0.bias", "norms.1.weight", "norms.1.bias",
                                          "some.weight"});
  CHECK(infty::count_parameters(layer) == 6 + 3 + 4 * 2 + 1);
}

TEST_CASE("parameters: handles of the layer's own variables") {
  Nested layer;
  auto all = infty::parameters<float>(layer);
  REQUIRE(all.size() == 7);
  CHECK(same(all.front(), layer.map.weight));
  all.front().grad().fill(2);
  CHECK(layer.map.weight.has_grad());
  infty::zero_grad(layer);
  CHECK_FALSE(layer.map.weight.has_grad());
}
