// SPDX-License-Identifier: MIT
#include <cmath>
#include <string>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/delta_net.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AttentionSizes;
using infty::DeltaNet;
using infty::DeltaNetConfig;
using infty::GatedDeltaNet;
using infty::GatedDeltaNetConfig;
using infty::Index;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;

namespace gated_delta_net_tests {

constexpr AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 3};

/// Outputs, last state and gradients of the parameters of a layer that takes x in pieces.
template <class Layer>
std::vector<double> run(const Layer& layer, const std::vector<Index>& pieces) {
  using T = typename Layer::Scalar;
  using B = typename Layer::BackendType;
  Random random(infty::tests::seed);
  Index length = 0, at = 0;
  for (const Index piece : pieces) length += piece;
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, length, 6}, random, -2, 2));
  const Variable<T, B> by(infty::tests::uniform_tensor<T, B>({2, length, 6}, random));
  Layer own = layer;
  infty::zero_grad(own);
  infty::Tape tape;
  auto state = layer.make_state(2);
  Variable<T, B> y(Tensor<T, B>(Shape{2, 0, 6}));
  for (const Index piece : pieces) {
    Pass<T, B> pass;
    y = concat(y, layer.forward(state, narrow(x, at, at + piece), pass));
    at += piece;
  }
  tape.backward(infty::sum(y * by));
  const auto out = y.value().to_vector();
  std::vector<double> all(out.begin(), out.end());
  const auto held = numbers_of(state);
  all.insert(all.end(), held.begin(), held.end());
  infty::for_each_parameter(own, [&](const std::string&, const auto& parameter) {
    const auto grad = parameter.grad().to_vector();
    all.insert(all.end(), grad.begin(), grad.end());
  });
  return all;
}

template <class Layer>
void check_pieces(const Layer& layer) {
  using T = typename Layer::Scalar;
  const auto at_once = run(layer, {12});
  CHECK(at_once.size() > 2 * 12 * 6);
  const double off = 10 * infty::tests::tolerance<T>;  // sums over two dozen places
  CHECK(infty::tests::error(run(layer, {1, 3, 7, 1}), at_once) < off);
  CHECK(infty::tests::error(run(layer, std::vector<Index>(12, 1)), at_once) < off);
}

}  // namespace gated_delta_net_tests

TEMPLATE_LIST_TEST_CASE("GatedDeltaNet: in pieces as at once, gradients through the pieces", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using gated_delta_net_tests::check_pieces;
  using gated_delta_net_tests::sizes;
  check_pieces(GatedDeltaNet<T, B>({.chunk = 5}, sizes, Random(1)));
  check_pieces(GatedDeltaNet<T, B>({.value_heads = 4,
                                    .value_dim = 5,
                                    .convolution = 0,
                                    .gate = false,
                                    .negative_eigenvalues = true},
                                   sizes, Random(2)));
  check_pieces(
      DeltaNet<T, B>({.convolution = 2, .convolution_bias = true, .chunk = 4}, sizes, Random(3)));
}

TEMPLATE_LIST_TEST_CASE("GatedDeltaNet: memory tokens are read and leave nothing behind", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using gated_delta_net_tests::sizes;
  const GatedDeltaNet<T, B> layer({}, sizes, Random(1));
  Random random(infty::tests::seed);
  const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 7, 6}, random));
  const auto begin = [&] {
    auto state = layer.make_state(2);
    Pass<T, B> pass;
    layer.forward(state, narrow(x, 0, 2), pass);
    return state;
  };
  auto words = begin();
  Pass<T, B> alone;
  layer.forward(words, narrow(x, 2, 5), alone);
  for (const Index before : {0, 2}) {
    auto all = begin(), told = begin(), silent = begin();
    Pass<T, B> plain, tokens{.before = before, .behind = 2},
        unanswered{.answer = false, .before = before, .behind = 2};
    const auto segment = narrow(x, 2 - before, 7);
    const auto expected = layer.forward(all, segment, plain).value().to_vector();
    const auto got = layer.forward(told, segment, tokens).value().to_vector();
    CHECK(infty::tests::error(got, expected) < infty::tests::tolerance<T>);
    CHECK(infty::tests::error(numbers_of(told), numbers_of(words)) < infty::tests::tolerance<T>);
    CHECK(layer.forward(silent, segment, unanswered).size() == 0);
    CHECK(infty::tests::error(numbers_of(silent), numbers_of(words)) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("GatedDeltaNet, DeltaNet: keep to what every mixer keeps to") {
  const infty::tests::TemporaryFolder folder;
  using infty::testing::require_mixer;
  require_mixer<GatedDeltaNet<double>>({}, folder / "state");
  require_mixer<GatedDeltaNet<double>>({.value_heads = 4,
                                        .value_dim = 2,
                                        .convolution = 3,
                                        .convolution_bias = true,
                                        .gate = false,
                                        .negative_eigenvalues = true,
                                        .chunk = 3},
                                       folder / "state");
  require_mixer<DeltaNet<double>>({}, folder / "state");
  require_mixer<DeltaNet<double>>({.convolution = 0, .gate = true, .chunk = 0}, folder / "state");
}

TEST_CASE("DeltaNet: is a GatedDeltaNet that does not fade, and brings back what it was given") {
  // One key at a time, wide apart from the others: each finds its value.
  const auto direction = [](Index at) {
    auto one = Tensor<double>::zeros({1, 1, 1, 4});
    one.data()[at] = 1;
    return Variable<double>(one);
  };
  Variable<double> memory(Tensor<double>::zeros({1, 1, 4, 1}));
  const Variable<double> all(Tensor<double>::full({1, 1, 1}, 1));
  for (const auto& [key, value] : std::vector<std::pair<Index, double>>{{0, 5}, {3, 7}, {0, 2}}) {
    const Variable<double> v(Tensor<double>::full({1, 1, 1, 1}, value));
    memory = infty::delta_rule<double, infty::EigenBackend>(
                 {direction(key), direction(key), v, all}, memory)
                 .state;
  }
  CHECK(memory.value().to_vector() == std::vector<double>{2, 0, 0, 7});

  const DeltaNet<float> layer({.gate = true}, gated_delta_net_tests::sizes);
  CHECK(layer.config().gate);
  CHECK(layer.decay.weight.size() == 0);
  CHECK(layer.make_state(3).memory.shape() == Shape{3, 2, 3, 3});
  CHECK(GatedDeltaNet<float>({}, gated_delta_net_tests::sizes).make_state(3).memory.shape() ==
        Shape{3, 2, 3, 6});
}

TEST_CASE("GatedDeltaNet: what does not fit") {
  const AttentionSizes sizes = gated_delta_net_tests::sizes;
  const auto make = [&](GatedDeltaNetConfig config) { return GatedDeltaNet<float>(config, sizes); };
  CHECK_THROWS_WITH(make({.value_heads = 3}),
                    "[GatedDeltaNetConfig] value_heads is 3: it must be a multiple of the 2 heads");
  CHECK_THROWS_WITH(make({.value_heads = -1}),
                    "[GatedDeltaNetConfig] value_heads is -1: it must be at least 0");
  CHECK_THROWS_WITH(make({.value_dim = -2}),
                    "[GatedDeltaNetConfig] value_dim is -2: it must be at least 0");
  CHECK_THROWS_WITH(make({.convolution = -1}),
                    "[GatedDeltaNetConfig] convolution is -1: it must be at least 0");
  CHECK_THROWS_WITH(make({.scale = -1}),
                    "[GatedDeltaNetConfig] scale is -1: it must lie in [0, 1e+30]");
  CHECK_THROWS_WITH(make({.norm_epsilon = 0}),
                    "[GatedDeltaNetConfig] norm_epsilon is 0: it must lie in [1e-30, 1e+30]");
  CHECK_THROWS_WITH(make({.length_epsilon = 0}),
                    "[GatedDeltaNetConfig] length_epsilon is 0: it must lie in [1e-30, 1e+30]");
  CHECK_THROWS_WITH(make({.chunk = -1}),
                    "[GatedDeltaNetConfig] chunk is -1: it must be at least 0");
  CHECK_THROWS_AS(make({.value_heads = Index{1} << 40, .value_dim = Index{1} << 40}),
                  infty::ValueError);
  CHECK_THROWS_AS(make({.convolution = Index{1} << 60}), infty::ValueError);
  CHECK_THROWS_AS(GatedDeltaNet<float>({}, {.model_dim = 0}), infty::ValueError);
  CHECK_THROWS_AS(DeltaNet<float>({.value_dim = -1}, sizes), infty::ValueError);

  const auto layer = make({});
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
  auto state = layer.make_state(2);
  Pass<float> pass;
  layer.forward(state, Variable<float>(Tensor<float>::full({2, 3, 6}, 1.f)), pass);
  const auto before = numbers_of(state);
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 3, 6}, Shape{2, 6}, Shape{}})
    CHECK_THROWS_AS(layer.forward(state, Variable<float>(Tensor<float>::zeros(shape)), pass),
                    infty::ShapeError);
  auto other = make({.convolution = 0}).make_state(2);
  const Variable<float> x(Tensor<float>::zeros({2, 3, 6}));
  CHECK_THROWS_WITH(layer.forward(other, x, pass),
                    "[GatedDeltaNet] the state's memory is [2, 2, 3, 6]: it must be [2, 2, 3, 6], "
                    "with inputs of convolutions");
  auto shorter = make({.convolution = 3}).make_state(2);
  const auto unlike = numbers_of(shorter);
  CHECK_THROWS_AS(layer.forward(shorter, x, pass), infty::ShapeError);
  CHECK(numbers_of(shorter) == unlike);
  CHECK(numbers_of(state) == before);
}

TEST_CASE("GatedDeltaNet: a traced pass sees what is replaced and what is kept at every word") {
  const GatedDeltaNet<double> layer({.convolution = 0}, gated_delta_net_tests::sizes, Random(1));
  auto state = layer.make_state(1);
  Random random(infty::tests::seed);
  const Variable<double> x(infty::tests::uniform_tensor<double>({1, 4, 6}, random));
  Pass<double> pass{.behind = 1, .traced = true};
  layer.forward(state, x, pass);
  const Variable<double> words = narrow(x, 0, 3);
  const auto share = first_shown(pass, "delta_share").value().to_vector(),
             kept = first_shown(pass, "delta_kept").value().to_vector(),
             beta = layer.beta.forward(words).value().to_vector(),
             fades = layer.decay.forward(words).value().to_vector(),
             rate = layer.decay_rate.value().to_vector(),
             bias = layer.decay_bias.value().to_vector();
  REQUIRE(share.size() == 6);
  REQUIRE(kept.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(share[i] == Approx(1 / (1 + std::exp(-beta[i]))));
    const double soft = std::log(1 + std::exp(fades[i] + bias[i % 2]));
    CHECK(kept[i] == Approx(std::exp(-std::exp(rate[i % 2]) * soft)));
  }
}
