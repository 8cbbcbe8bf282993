// SPDX-License-Identifier: MIT
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Biases that all of many layers hold, and one of its own.
struct Shared {
  struct Part {
    Variable<float> bias, weight;

    template <class Visitor>
    void visit(Visitor&& see) {
      see("bias", bias);
      see("weight", weight);
    }
  };
  std::vector<Part> parts;
  Variable<float> again;

  explicit Shared(std::size_t size) {
    const auto zeros = [](infty::Index n) {
      return Variable<float>(infty::Tensor<float>::zeros({n}), true);
    };
    const auto bias = zeros(3);
    for (std::size_t i = 0; i < size; ++i) parts.push_back({bias, zeros(2)});
    again = parts.front().weight;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("parts", parts);
    see("again", again);
  }
};

static_assert(infty::Layer<Nested>);
static_assert(infty::Layer<infty::Linear<double>>);
static_assert(!infty::Layer<Variable<float>>);
static_assert(!infty::Layer<int>);

// Handles that one may write through are not given away by a const layer.
template <class L>
concept GivesHandles = requires(L& layer) { infty::parameters<float>(layer); };
template <class L>
concept ForgetsGradients = requires(L& layer) { infty::zero_grad(layer); };
static_assert(GivesHandles<Nested> && ForgetsGradients<Nested>);
static_assert(!GivesHandles<const Nested> && !ForgetsGradients<const Nested>);

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

TEST_CASE("parameters: one that stands in several places comes once, under its first name") {
  Shared layer(3);
  std::vector<std::string> names;
  infty::for_each_parameter(
      layer, [&](const std::string& name, Variable<float>&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"parts.0.bias", "parts.0.weight", "parts.1.weight",
                                          "parts.2.weight"});
  CHECK(infty::parameters<float>(layer).size() == 4);
  CHECK(infty::count_parameters(layer) == 3 + 3 * 2);
  layer.again.grad().fill(1);
  infty::zero_grad(layer);
  CHECK_FALSE(layer.parts.front().weight.has_grad());
}

TEST_CASE("parameters: empty variables are parameters of their own") {
  Shared layer(1);
  layer.parts.front() = {};
  std::vector<std::string> names;
  infty::for_each_parameter(
      layer, [&](const std::string& name, const Variable<float>&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"parts.0.bias", "parts.0.weight", "again"});
}

TEST_CASE("parameters: twenty thousand layers that share a bias are counted at once") {
  CHECK(infty::count_parameters(Shared(20000)) == 3 + 20000 * 2);
}

TEST_CASE("parameters: those of a const layer are const") {
  const Nested layer;
  infty::Index size = 0;
  infty::for_each_parameter(layer, [&](const std::string&, auto& parameter) {
    static_assert(std::is_const_v<std::remove_reference_t<decltype(parameter)>>);
    size += parameter.size();
  });
  CHECK(size == infty::count_parameters(layer));
}

TEST_CASE("store_in_bfloat16: the matrices of a layer, each once, and nothing else") {
  Nested layer;
  CHECK(infty::store_in_bfloat16(layer) == 6 * 2 + 1 * 2);
  infty::for_each_parameter(layer, [](const std::string& name, const Variable<float>& p) {
    CAPTURE(name);
    CHECK((p.stored_in_bfloat16() != nullptr) == (p.shape().rank() == 2));
    CHECK(p.requires_grad() == (p.shape().rank() != 2));
  });
  CHECK(infty::store_in_bfloat16(layer) == 0);
  CHECK(infty::count_parameters(layer) == 6 + 3 + 4 * 2 + 1);
  infty::set_requires_grad(layer, true);
  CHECK(infty::store_in_bfloat16(layer) == 6 * 2 + 1 * 2);
}

TEST_CASE("set_requires_grad: those whose names hold a part, and no others") {
  Nested layer;
  const auto trained = [&] {
    std::vector<std::string> names;
    infty::for_each_parameter(layer, [&](const std::string& name, const auto& p) {
      if (p.requires_grad()) names.push_back(name);
    });
    return names;
  };
  CHECK(infty::set_requires_grad(layer, false) == 7);
  CHECK(trained().empty());
  CHECK(infty::set_requires_grad(layer, true, "norms.1.") == 2);
  CHECK(trained() == std::vector<std::string>{"norms.1.weight", "norms.1.bias"});
  CHECK(infty::set_requires_grad(layer, false, ".bias") == 3);
  CHECK(trained() == std::vector<std::string>{"norms.1.weight"});
  CHECK_THROWS_WITH(infty::set_requires_grad(layer, true, "memory"),
                    "[set_requires_grad] no parameter has 'memory' in its name");
}
