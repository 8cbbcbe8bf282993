// SPDX-License-Identifier: MIT
#include <algorithm>
#include <tuple>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/linear_attention.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/memory_invariants.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::FeatureMap;
using infty::Index;
using infty::LinearAttention;
using infty::LinearAttentionConfig;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("normalized_linear_attention: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  // z = (1, 0) + (1, 1) = (2, 1), then (2, 4); S = (0, 6) + 8 (1, 1) = (8, 14), then (8, 14 + 3).
  const V q(Tensor<T, B>::from({1, 2, 1, 2}, {1, 0, 1, 1})),
      k(Tensor<T, B>::from({1, 2, 1, 2}, {1, 1, 0, 3})),
      v(Tensor<T, B>::from({1, 2, 1, 1}, {8, 1})), state(Tensor<T, B>::from({1, 1, 2, 1}, {0, 6})),
      norm(Tensor<T, B>::from({1, 1, 2}, {1, 0}));
  for (const Index chunk : {0, 1, 2}) {
    CAPTURE(chunk);
    const auto got = infty::normalized_linear_attention<T, B>({q, k, v}, state, norm, 0,
                                                              {.scale = 2, .chunk = chunk});
    CHECK(infty::tests::error(got.output.value().to_vector(), std::vector<double>{4, 25. / 6}) <
          infty::tests::tolerance<T>);
    CHECK(got.state.value().to_vector() == std::vector<T>{8, 17});
    CHECK(got.norm.value().to_vector() == std::vector<T>{2, 4});
    const auto held = infty::normalized_linear_attention<T, B>({q, k, v}, state, norm, 0,
                                                               {.scale = 2, .chunk = chunk}, 3);
    CHECK(infty::tests::error(held.output.value().to_vector(),
                              std::vector<double>{8. / 3, 25. / 6}) < infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("LinearAttention: in pieces as at once", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const LinearAttentionConfig& config :
       {LinearAttentionConfig{.normalized = false, .chunk = 4}, LinearAttentionConfig{.chunk = 4},
        LinearAttentionConfig{
            .features = FeatureMap::gaussian, .chunk = 4, .gate = true, .bias = true},
        LinearAttentionConfig{.features = FeatureMap::learned, .chunk = 4}}) {
    const LinearAttention<T, B> layer(config, {.model_dim = 6, .heads = 2, .head_dim = 3},
                                      Random(1));
    Random random(infty::tests::seed);
    const Variable<T, B> x(infty::tests::uniform_tensor<T, B>({2, 9, 6}, random));
    Pass<T, B> pass;
    auto at_once = layer.make_state(2), in_pieces = layer.make_state(2);
    const auto expected = layer.forward(at_once, x, pass);
    Variable<T, B> got(Tensor<T, B>(Shape{2, 0, 6}));
    for (Index i = 0; i < 9; ++i)
      got = concat(got, layer.forward(in_pieces, narrow(x, i, i + 1), pass));
    CHECK(infty::tests::error(got.value().to_vector(), expected.value().to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(infty::tests::error(infty::tests::numbers_of(in_pieces),
                              infty::tests::numbers_of(at_once)) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("normalized_linear_attention: gradients of all inputs and of both states") {
  Random random(infty::tests::seed);
  using infty::tests::uniform_variable;
  const Shape shape{2, 5, 2, 3};
  const auto q = uniform_variable<double>(shape, random, .1, 1),
             k = uniform_variable<double>(shape, random, .1, 1),
             v = uniform_variable<double>(shape, random),
             state = uniform_variable<double>({2, 2, 3, 3}, random),
             norm = uniform_variable<double>({2, 2, 3}, random, 0, 1),
             decay = uniform_variable<double>({2, 5, 2}, random, -1, -.1);
  const Variable<double> by(infty::tests::uniform_tensor<double>(shape, random));
  for (const auto& [chunk, fades, floor] : {std::tuple{0, false, 0.},
                                            {2, false, 0.},
                                            {0, true, 2.},  // of some places
                                            {2, true, 2.}}) {
    CAPTURE(chunk, fades, floor);
    infty::DeltaRuleInputs<double> in{q, k, v};
    if (fades) in.decay = decay;
    const infty::DeltaRuleOptions options{.chunk = chunk};
    const double least = floor;
    const auto loss = [&] {
      const auto got = infty::normalized_linear_attention<double, infty::EigenBackend>(
          in, state, norm, .1, options, least);
      return infty::sum(got.output * by) + infty::sum(got.state * got.state) +
             infty::sum(got.norm * got.norm);
    };
    CHECK(infty::gradient_check(loss, std::vector{q, k, v, state, norm, decay}) < 1e-7);
  }
}

TEST_CASE("LinearAttention: keeps to what every mixer keeps to") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<LinearAttention<double>>({}, folder / "state");
  infty::testing::require_mixer<LinearAttention<double>>(
      {.features = FeatureMap::identity, .normalized = false, .chunk = 3}, folder / "state");
  infty::testing::require_mixer<LinearAttention<double>>(
      {.features = FeatureMap::gaussian, .chunk = 3, .feature_dim = 16, .gate = true, .bias = true},
      folder / "state", 1e-10);  // what is divided by is a sum that cancels
  infty::testing::require_mixer<LinearAttention<double>>(
      {.features = FeatureMap::arc_cosine, .feature_dim = 4}, folder / "state");
  infty::testing::require_mixer<LinearAttention<double>>(
      {.features = FeatureMap::learned, .feature_dim = 4, .bias = true}, folder / "state");
}

TEST_CASE("LinearAttention: every map and the gate, as a sum over all pairs of places") {
  Random random(infty::tests::seed);
  const Index L = 11, H = 2, D = 3;
  const Variable<double> x(infty::tests::uniform_tensor<double>({1, L, 6}, random));
  for (const auto map : {FeatureMap::identity, FeatureMap::elu_plus_one, FeatureMap::gaussian,
                         FeatureMap::arc_cosine, FeatureMap::learned})
    for (const bool gate : {false, true})
      for (const Index chunk : {0, 4}) {
        CAPTURE(static_cast<int>(map), gate, chunk);
        LinearAttention<double> layer({.features = map,
                                       .epsilon = 0,
                                       .chunk = chunk,
                                       .feature_dim = 7,
                                       .floor = .3,
                                       .gate = gate,
                                       .bias = true},
                                      {.model_dim = 6, .heads = H, .head_dim = D}, Random(1));
        const auto q = layer.features.forward(layer.query.forward(x)).value().to_vector(),
                   k = layer.features.forward(layer.key.forward(x)).value().to_vector(),
                   v = layer.value.forward(x).value().to_vector();
        std::vector<double> g;
        if (gate) g = infty::sigmoid(layer.gate.forward(x)).value().to_vector();
        const Index F = layer.features.width();
        const auto at = [](Index i) { return static_cast<std::size_t>(i); };
        std::vector<double> read(at(L * H * D));
        int held = 0;
        for (Index i = 0; i < L; ++i)
          for (Index h = 0; h < H; ++h) {
            double mass = 0;
            std::vector<double> sum(at(D));
            for (Index j = 0; j <= i; ++j) {
              double weight = gate ? 1 - g[at(j * H + h)] : 1;
              for (Index m = j + 1; gate && m <= i; ++m) weight *= g[at(m * H + h)];
              double product = 0;
              for (Index f = 0; f < F; ++f)
                product += q[at((i * H + h) * F + f)] * k[at((j * H + h) * F + f)];
              mass += weight * product;
              for (Index c = 0; c < D; ++c)
                sum[at(c)] += weight * product * v[at((j * H + h) * D + c)];
            }
            held += mass < .3;
            for (Index c = 0; c < D; ++c)
              read[at((i * H + h) * D + c)] = sum[at(c)] / std::max(mass, .3);
          }
        const auto expected =
            layer.out.forward(Variable<double>(Tensor<double>::from({1, L, H * D}, read)));
        Pass<double> pass;
        auto state = layer.make_state(1);
        CHECK(infty::tests::error(layer.forward(state, x, pass).value().to_vector(),
                                  expected.value().to_vector()) < 1e-12);
        if (gate && map != FeatureMap::elu_plus_one) CHECK(held > 0);
      }
}

TEST_CASE("LinearAttention: a restored layer has the projections that it was saved with") {
  const infty::tests::TemporaryFolder folder;
  const LinearAttentionConfig config{.features = FeatureMap::gaussian, .feature_dim = 5};
  const infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 3};
  LinearAttention<double> saved(config, sizes, Random(1)), loaded(config, sizes, Random(2));
  infty::save_parameters(folder / "layer", saved);
  infty::load_parameters(folder / "layer", loaded);
  CHECK(loaded.features.projections.value().to_vector() ==
        saved.features.projections.value().to_vector());
  CHECK_FALSE(loaded.features.projections.requires_grad());
}

TEST_CASE("LinearAttention: what does not fit") {
  const infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 3};
  const auto make = [&](LinearAttentionConfig config) {
    return LinearAttention<float>(config, sizes);
  };
  CHECK_THROWS_WITH(make({.epsilon = -1}),
                    "[LinearAttentionConfig] epsilon is -1: it must lie in [0, 1e+30]");
  CHECK_THROWS_WITH(make({.scale = -1}),
                    "[LinearAttentionConfig] scale is -1: it must lie in [0, 1e+30]");
  CHECK_THROWS_WITH(make({.chunk = -1}),
                    "[LinearAttentionConfig] chunk is -1: it must be at least 0");
  CHECK_THROWS_WITH(make({.feature_dim = -1}),
                    "[LinearAttentionConfig] feature_dim is -1: it must be at least 0");
  CHECK_THROWS_AS(make({.features = FeatureMap::learned, .feature_dim = Index(1) << 60}),
                  infty::ValueError);
  CHECK_THROWS_WITH(make({.floor = -1}),
                    "[LinearAttentionConfig] floor is -1: it must lie in [0, 1e+30]");
  CHECK_THROWS_AS(LinearAttention<float>({}, {.heads = 0}), infty::ValueError);
  const auto layer = make({});
  CHECK_THROWS_AS(layer.make_state(0), infty::ValueError);
  Pass<float> pass;
  auto state = layer.make_state(2), other = make({.normalized = false}).make_state(2);
  const Variable<float> x(Tensor<float>::zeros({2, 3, 6}));
  CHECK_THROWS_AS(layer.forward(other, x, pass), infty::ShapeError);
  CHECK_THROWS_AS(layer.forward(state, narrow(x, 0, 2).value().slice(0, 1), pass),
                  infty::ShapeError);
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  using Inputs = infty::DeltaRuleInputs<float>;
  const auto q = zeros({1, 2, 2, 3});
  CHECK_THROWS_AS(
      infty::normalized_linear_attention(Inputs{q, q, q}, zeros({1, 2, 3, 3}), zeros({1, 2, 4})),
      infty::ShapeError);
  CHECK_THROWS_AS(infty::normalized_linear_attention(Inputs{q, q, zeros({1, 2, 4, 3})},
                                                     zeros({1, 4, 3, 3}), zeros({1, 2, 3})),
                  infty::ShapeError);
}
