// SPDX-License-Identifier: MIT
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/to.hpp>
#include <infty/train/named_parameters.hpp>

#include "support/catch.hpp"
#include "support/model.hpp"
#include "support/other_backend.hpp"
#include "support/types.hpp"

using namespace infty;
using infty::tests::OtherBackend;
using infty::tests::TwoLayers;

namespace {

/// What a layer calls its parameters, and their elements.
template <class L>
std::vector<std::pair<std::string, std::vector<double>>> contents(L& layer) {
  std::vector<std::pair<std::string, std::vector<double>>> all;
  for_each_parameter(layer, [&](const std::string& name, auto& parameter) {
    const auto values = parameter.value().to_vector();
    all.push_back({name, {values.begin(), values.end()}});
  });
  return all;
}

struct NoConfig {};

/// A layer that names a bias which it does not have.
template <class T, class B = EigenBackend>
struct WithoutBias {
  Variable<T, B> weight{Tensor<T, B>::zeros({2, 3}), true}, bias;

  explicit WithoutBias(NoConfig) {}
  NoConfig config() const { return {}; }
  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    see("bias", bias);
  }
};

template <class T, class B = EigenBackend>
using Model = TransformerLM<InftyMemory<T, B>>;

template <class T>
Model<T> small_model() {
  return Model<T>(
      {.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 4}, .memory = LongTermConfig{.basis = 16, .samples = 16}},
      Random(3));
}

}  // namespace

TEST_CASE("Rebind: the backend is replaced wherever it stands") {
  using State = Model<float>::State;
  using Other = Model<float, OtherBackend>::State;
  CHECK((std::is_same_v<infty::detail::Rebind<State, OtherBackend>::type, Other>));
  using Layers = decltype(State().body.layers);
  CHECK((std::is_same_v<infty::detail::Rebind<Layers, OtherBackend>::type,
                        decltype(Other().body.layers)>));
  CHECK((std::is_same_v<
         infty::detail::Rebind<LongTermMemory<double, GaussianDensity>, OtherBackend>::type,
         LongTermMemory<double, GaussianDensity, GaussianBasis<double>, OtherBackend>>));
  CHECK((std::is_same_v<infty::detail::Rebind<RowCounts, OtherBackend>::type, RowCounts>));
}

TEMPLATE_TEST_CASE("copy_parameters: same names get the same bits, in place", "", float, double) {
  TwoLayers<TestType> from(3, 4, 2, Random(1));
  TwoLayers<TestType, OtherBackend> to(3, 4, 2, Random(2));
  const auto handles = named_parameters<TestType, OtherBackend>(to);
  REQUIRE(contents(from) != contents(to));
  copy_parameters(from, to);
  CHECK(contents(from) == contents(to));
  CHECK(handles.front().variable.value().to_vector() == from.first.weight.value().to_vector());
  from.first.weight.value().fill(0);
  CHECK(contents(from) != contents(to));
}

TEST_CASE("copy_parameters: the first difference is named, and nothing is copied") {
  TwoLayers<float, OtherBackend> to(3, 4, 2, Random(2));
  const auto before = contents(to);
  const auto refused = [&](const auto& from) {
    try {
      copy_parameters(from, to);
    } catch (const ShapeError& error) {
      CHECK(contents(to) == before);
      return std::string(error.what());
    }
    return std::string("was copied");
  };
  CHECK(refused(TwoLayers<float>(3, 5, 2, Random(1))) ==
        "[copy_parameters] first.weight of `from` is [5, 3], of `to` [4, 3]");
  CHECK(refused(TwoLayers<float>(3, 4, 1, Random(1))) ==
        "[copy_parameters] second.weight of `from` is [1, 4], of `to` [2, 4]");
  CHECK(refused(TwoLayers<double>(3, 4, 2, Random(1))) ==
        "[copy_parameters] first.weight of `from` is [4, 3], of `to` [4, 3], of another scalar");
  CHECK(refused(Linear<float>(3, 4, Random(1))) ==
        "[copy_parameters] parameter 0 of `from` is weight, of `to` first.weight");
}

TEST_CASE("copy_parameters: where one may not be written, none is") {
  TwoLayers<float> from(3, 4, 2, Random(1)), to(3, 4, 2, Random(2));
  const std::vector<float> fixed(8, 5);
  to.second.weight = Variable<float>(Tensor<float>::wrap(fixed.data(), {2, 4}), true);
  const auto before = to.first.weight.value().to_vector();
  CHECK_THROWS_AS(copy_parameters(from, to), Error);
  CHECK(to.first.weight.value().to_vector() == before);
}

TEST_CASE("copy_parameters: one parameter more or less is refused") {
  const Linear<float> with_bias(3, 4, Random(1)), without(3, 4, Random(1), false);
  Linear<float, OtherBackend> to(3, 4, Random(2));
  Linear<float, OtherBackend> to_without(3, 4, Random(2), false);
  CHECK_THROWS_WITH(copy_parameters(without, to),
                    "[copy_parameters] parameter 1 of `from` is missing, of `to` bias");
  CHECK_THROWS_WITH(copy_parameters(with_bias, to_without),
                    "[copy_parameters] parameter 1 of `from` is bias, of `to` missing");
}

TEMPLATE_TEST_CASE("to: a model moves with its configuration and parameters", "", float, double) {
  auto model = small_model<TestType>();
  auto& layers = model.body.layers;
  layers[0].mixer.attention.attention.content_bias.set_requires_grad(false);
  auto moved = to<OtherBackend>(model);
  CHECK((std::is_same_v<decltype(moved), Model<TestType, OtherBackend>>));
  CHECK(contents(moved) == contents(model));
  CHECK(moved.memory_config().attention.capacity == 4);
  auto& moved_layers = moved.body.layers;
  for (const auto& layer : moved_layers) {  // which share the biases
    CHECK_FALSE(layer.mixer.attention.attention.content_bias.requires_grad());
    CHECK(layer.mixer.attention.attention.position_bias.requires_grad());
  }
  CHECK(contents(*moved_layers[1].mixer.memory) == contents(*layers[1].mixer.memory));

  const auto memory = to<OtherBackend>(*layers[0].mixer.memory);
  CHECK(memory.config().basis == 16);
  CHECK(memory.key.weight.value().to_vector() ==
        layers[0].mixer.memory->key.weight.value().to_vector());
}

TEST_CASE("to: places need a gradient where they did, empty ones, too") {
  for (const bool trained : {false, true}) {
    WithoutBias<float> layer(NoConfig{});
    layer.weight.set_requires_grad(!trained);
    layer.bias.set_requires_grad(trained);
    const auto moved = infty::to<OtherBackend>(layer);
    CHECK(moved.weight.requires_grad() == !trained);
    CHECK(moved.bias.requires_grad() == trained);
  }
}

TEST_CASE("to: the same backend gives a model with parameters of its own") {
  auto model = small_model<float>();
  auto copy = to<EigenBackend>(model);
  const auto before = contents(model);
  CHECK(contents(copy) == before);
  copy.body.layers[0].mixer.attention.attention.content_bias.value().fill(1);
  CHECK(contents(model) == before);
}
