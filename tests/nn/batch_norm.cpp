// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/nn/batch_norm.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/clip.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::BatchNorm;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::tolerance;

namespace batch_norm_tests {

/// A norm of width 3 with weights and statistics that are not those it begins with.
template <class T, class B = infty::EigenBackend>
BatchNorm<T, B> drawn() {
  BatchNorm<T, B> norm(3, .3);
  Random random(infty::tests::seed);
  for (auto* const part : {&norm.weight, &norm.bias, &norm.running_mean})
    infty::fill_uniform(part->value(), -1., 1., random);
  infty::fill_uniform(norm.running_variance.value(), .5, 2., random);
  return norm;
}

/// Plain loops: y, and the running statistics that training leaves.
struct Expected {
  std::vector<double> y, mean, variance;

  template <class T, class B>
  Expected(const BatchNorm<T, B>& norm, const std::vector<T>& x, bool training) {
    const std::size_t d = 3, n = x.size() / d;
    const auto gain = norm.weight.value().to_vector(), bias = norm.bias.value().to_vector();
    const auto m = norm.running_mean.value().to_vector();
    const auto v = norm.running_variance.value().to_vector();
    y.resize(x.size());
    for (std::size_t j = 0; j < d; ++j) {
      double mu = 0, squares = 0;
      for (std::size_t i = 0; i < n; ++i) mu += x[i * d + j] / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) squares += (x[i * d + j] - mu) * (x[i * d + j] - mu);
      const double used_mean = training ? mu : m[j];
      const double used_variance = training ? squares / static_cast<double>(n) : v[j];
      for (std::size_t i = 0; i < n; ++i)
        y[i * d + j] =
            (x[i * d + j] - used_mean) / std::sqrt(used_variance + 1e-5) * gain[j] + bias[j];
      mean.push_back(training ? .7 * m[j] + .3 * mu : m[j]);
      variance.push_back(training ? .7 * v[j] + .3 * squares / static_cast<double>(n - 1) : v[j]);
    }
  }
};

}  // namespace batch_norm_tests

TEMPLATE_LIST_TEST_CASE("BatchNorm: by the batch in training, by what it has seen otherwise", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto norm = batch_norm_tests::drawn<T, B>();
  Random random(infty::tests::seed);
  for (const bool training : {true, true, false}) {
    const auto x = infty::tests::uniform_tensor<T, B>({2, 5, 3}, random, -2, 5);
    const batch_norm_tests::Expected expected(norm, x.to_vector(), training);
    const auto y = norm.forward(Variable<T, B>(x), training);
    CHECK(y.shape() == x.shape());
    CHECK(error(y.value().to_vector(), expected.y) < tolerance<T>);
    CHECK(error(norm.running_mean.value().to_vector(), expected.mean) < tolerance<T>);
    CHECK(error(norm.running_variance.value().to_vector(), expected.variance) < tolerance<T>);
  }
}

TEST_CASE("BatchNorm: gradient, in training and otherwise") {
  auto norm = batch_norm_tests::drawn<double>();
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 3}, random);
  const auto weight = infty::tests::uniform_variable<double>({2, 3, 3}, random).detach();
  const bool training = GENERATE(true, false);
  const auto loss = [&] {
    const auto y = norm.forward(x, training);
    return infty::sum(y * y * weight);
  };
  CHECK(infty::gradient_check(loss, std::vector{x, norm.weight, norm.bias}) < 1e-8);
}

TEST_CASE(
    "BatchNorm: the statistics of a later batch do not spoil a gradient that is yet to come") {
  const auto norm = batch_norm_tests::drawn<double>();
  Random random(infty::tests::seed);
  const auto gradient = [&](bool disturbed) {
    Random own(infty::tests::seed + 1);
    const auto x = infty::tests::uniform_variable<double>({4, 3}, own);
    const auto layer = infty::clone(norm);
    infty::Tape tape;
    const auto y = layer.forward(x, false);
    if (disturbed) layer.forward(infty::tests::uniform_variable<double>({4, 3}, random), true);
    tape.backward(infty::sum(y * y));
    return x.grad().to_vector();
  };
  CHECK(gradient(true) == gradient(false));
}

TEST_CASE("BatchNorm: running statistics are saved and cloned, and no optimiser touches them") {
  auto norm = batch_norm_tests::drawn<double>();
  CHECK(infty::count_parameters(norm) == 12);
  infty::Adam<double> adam(norm, {.learning_rate = .1, .weight_decay = .5});
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({4, 3}, random);
  infty::Tape tape;
  tape.backward(infty::sum(norm.forward(x, true) * x));
  const auto mean = norm.running_mean.value().to_vector();
  CHECK_FALSE(norm.running_mean.has_grad());
  CHECK(infty::clip_grad_norm<double>(norm, 1e-3) > 1e-3);
  const auto gain = norm.weight.value().to_vector();
  adam.step();
  CHECK(norm.running_mean.value().to_vector() == mean);
  CHECK(norm.weight.value().to_vector() != gain);

  const auto copy = infty::clone(norm);
  CHECK_FALSE(copy.running_mean.requires_grad());
  copy.forward(x, true);
  CHECK(norm.running_mean.value().to_vector() == mean);
  CHECK(copy.running_mean.value().to_vector() != mean);
}

TEST_CASE("BatchNorm: what cannot be normed is refused, and nothing has changed") {
  const auto norm = batch_norm_tests::drawn<float>();
  const auto mean = norm.running_mean.value().to_vector();
  const Variable<float> one(Tensor<float>::zeros({1, 1, 3}));
  CHECK_THROWS_WITH(norm.forward(one, true),
                    "[batch_norm] x is [1, 1, 3]: in training there must be two vectors at least, "
                    "one has no variance");
  CHECK(norm.forward(one, false).shape() == Shape{1, 1, 3});
  CHECK(norm.forward(Variable<float>(Tensor<float>(Shape{0, 3})), true).shape() == Shape{0, 3});
  CHECK_THROWS_AS(norm.forward(Variable<float>(Tensor<float>::zeros({2, 4})), true),
                  infty::ShapeError);
  auto bad = norm;
  bad.momentum = 2;
  CHECK_THROWS_WITH(bad.forward(one, false), "[batch_norm] momentum is 2: it must lie in [0, 1]");
  bad.momentum = .1;
  bad.epsilon = 0;
  CHECK_THROWS_AS(bad.forward(one, false), infty::ValueError);
  CHECK_THROWS_WITH(BatchNorm<float>(0), "[BatchNorm] d is 0: it must be >= 1");
  CHECK(norm.running_mean.value().to_vector() == mean);
}
