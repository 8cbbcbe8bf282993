// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Approximate;
using infty::Random;
using infty::Tensor;
using infty::Variable;

namespace {

/// All activations of one tensor.
template <class T, class B>
std::vector<Variable<T, B>> activations(const Variable<T, B>& x) {
  return {infty::gelu(x), infty::gelu(x, Approximate::tanh), infty::silu(x)};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("activations: PyTorch's values", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({5}, {-3, -1, 0, T(0.5), 2}));
  // x erfc(-x / sqrt 2) / 2, its approximation, and x / (1 + e^-x), to 16 digits.
  const std::vector<std::vector<double>> expected{
      {-0.004049694094890287, -0.15865525393145707, 0, 0.34573123063700656, 1.9544997361036416},
      {-0.0036373920817729943, -0.15880800939172324, 0, 0.34571400982514394, 1.9545976940877750},
      {-0.14227761953270035, -0.26894142136999512, 0, 0.31122966560092728, 1.7615941559557649}};
  const auto got = activations(x);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(infty::tests::error(got[i].value().to_vector(), expected[i]) <
          infty::tests::tolerance<T>);
  }
}

TEST_CASE("activations: gelu keeps its digits far below 0") {
  // x Φ(x) = -x erfc(-x / sqrt 2) / 2; a sum with erf would have lost all of it.
  const Variable<double> x(Tensor<double>::from({1}, {-10}));
  CHECK(infty::gelu(x).value().item() ==
        Approx(-5 * std::erfc(10 / std::sqrt(2.0))).epsilon(1e-12));
}

TEST_CASE("activations: gradients") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({5, 7}, random, -6, 6);
  const auto weight = infty::tests::uniform_variable<double>({5, 7}, random).detach();
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(infty::gradient_check([&] { return infty::sum(activations(x)[i] * weight); },
                                std::vector{x}) < 1e-9);
  }
}

TEMPLATE_LIST_TEST_CASE("activations: far from 0 they are 0 or x, with slopes 0 and 1", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = std::vector<T>;
  const T most = std::numeric_limits<T>::max();
  const Variable<T, B> x(Tensor<T, B>::from({4}, {-most, T(-1e30), T(1e30), most}), true);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    x.grad().fill(T(0));
    infty::Tape tape;
    const auto y = activations(x)[i];
    CHECK(y.value().to_vector() == V{0, 0, T(1e30), most});
    tape.backward(infty::sum(y * Variable<T, B>(Tensor<T, B>::full({4}, T(1e-20)))));
    CHECK(x.grad().to_vector() == V{0, 0, T(1e-20), T(1e-20)});
  }
}

TEMPLATE_LIST_TEST_CASE("activations: NaN stays, denormals pass, nothing is nothing", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T nan = std::numeric_limits<T>::quiet_NaN(), least = std::numeric_limits<T>::min() / 4;
  const Variable<T, B> x(Tensor<T, B>::from({2}, {nan, least})), none(Tensor<T, B>::zeros({0, 3}));
  for (const auto& y : activations(x)) {
    CHECK(std::isnan(y.value().to_vector()[0]));
    CHECK(y.value().to_vector()[1] == least / 2);
  }
  for (const auto& y : activations(none)) CHECK(y.shape() == none.shape());
  const auto positive = infty::relu(x).value().to_vector();
  CHECK(std::isnan(positive[0]));
  CHECK(positive[1] == least);
}

TEMPLATE_LIST_TEST_CASE("elu_plus_one: above 0 everywhere, slopes 1 and e^x", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({4}, {-40, -1, 0, 3}), true);
  infty::Tape tape;
  const auto y = infty::elu_plus_one(x);
  const std::vector<double> expected{4.248354255291589e-18, 0.36787944117144233, 1, 4};
  CHECK(infty::tests::error(y.value().to_vector(), expected) < infty::tests::tolerance<T>);
  CHECK(y.value().to_vector()[0] > 0);
  tape.backward(infty::sum(y));
  CHECK(infty::tests::error(x.grad().to_vector(),
                            std::vector<double>{expected[0], expected[1], 1, 1}) <
        infty::tests::tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("elu_plus_one: x + 1 above 0, e^x below", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T most = std::numeric_limits<T>::max();
  const Variable<T, B> x(Tensor<T, B>::from({6}, {-most, -1, 0, T(-0.0), T(0.5), most}));
  const auto y = infty::elu_plus_one(x).value().to_vector();
  CHECK(infty::tests::error(std::vector<T>(y.begin(), y.end() - 1),
                            std::vector<double>{0, 0.36787944117144233, 1, 1, 1.5}) <
        infty::tests::tolerance<T>);
  CHECK(y.back() == most);
}

TEST_CASE("elu_plus_one: gradient") {
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({5, 7}, random, -6, 6);
  const auto weight = infty::tests::uniform_variable<double>({5, 7}, random).detach();
  CHECK(infty::gradient_check([&] { return infty::sum(infty::elu_plus_one(x) * weight); },
                              std::vector{x}) < 1e-9);
}
