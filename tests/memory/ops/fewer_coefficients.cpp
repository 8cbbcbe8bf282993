// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/fewer_coefficients.hpp>
#include <infty/memory/ops/project_heads.hpp>
#include <infty/signal/fewer_gaussians.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::fewer_coefficients;
using infty::GaussianBasis;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;

TEMPLATE_LIST_TEST_CASE("fewer_coefficients: of each width by a plain loop", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index batch = GENERATE(1, 3), widths = GENERATE(1, 2, 3), M = 4, n = 5, d = GENERATE(1, 6);
  Random random(infty::tests::seed);
  const auto C = uniform_tensor<T>({M, n}, random);
  const auto given = uniform_tensor<T>({batch, n * widths, d}, random);
  for (Index i = 0; i < widths; ++i) {
    std::vector<T> want;
    for (Index b = 0; b < batch; ++b)
      for (Index k = 0; k < M; ++k)
        for (Index c = 0; c < d; ++c) {
          T sum = 0;
          for (Index j = 0; j < n; ++j)
            sum += C.data()[k * n + j] * given.data()[((b * n + j) * widths + i) * d + c];
          want.push_back(sum);
        }
    const auto y =
        fewer_coefficients(C.template to<B>(), Variable<T, B>(given.template to<B>()), i, widths);
    CHECK(y.shape() == Shape{batch, M, d});
    CHECK(infty::tests::error(y.value().to_vector(), want) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("fewer_coefficients: gradients") {
  Random random(infty::tests::seed);
  const auto C = uniform_tensor<double>({4, 3}, random);
  const auto given = infty::tests::uniform_variable<double>({2, 6, 3}, random);
  const auto loss = [&] {
    const auto y = fewer_coefficients(C, given, 1, 2);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{given}, 1e-6) < 1e-8);
}

TEST_CASE("fewer_coefficients: shapes that do not fit") {
  const Variable<float> given(Tensor<float>::zeros({2, 6, 3}));
  CHECK_THROWS_WITH(
      fewer_coefficients(Tensor<float>::zeros({4, 5}), given, 0, 2),
      "[fewer_coefficients] weights are [4, 5], coefficients [2, 6, 3], width 0 of 2: "
      "they must be [M, n] and [batch, n widths, d]");
  CHECK_THROWS_AS(fewer_coefficients(Tensor<float>::zeros({4, 3}), given, 2, 2), infty::ShapeError);
  CHECK_THROWS_AS(fewer_coefficients(Tensor<float>::zeros({4, 3}), given, -1, 2),
                  infty::ShapeError);
}

namespace {

/// A read of many queries, its loss and gradients, with functions as they are or by fewer.
template <class T, class B>
struct Read {
  GaussianBasis<T> psi{300, std::vector{.04, .2}};
  Variable<T, B> density, coefficients, weight;

  explicit Read(Random random)
      : coefficients(uniform_tensor<T, B>({2, 300, 6}, random), true),
        weight(uniform_tensor<T, B>({8, 6}, random), true) {
    auto values = uniform_tensor<T>({2, 2, 2, 70}, random, .001, .999);
    values.data()[0] = 0;  // a mean at an end, and a density of next to no width
    values.data()[values.size() - 1] = T(1e-6);
    density = Variable<T, B>(values.template to<B>(), true);
  }

  Variable<T, B> operator()(bool by_fewer) const {
    return infty::expected_head_values<infty::GaussianDensity>(
        psi, density, coefficients, weight, true,
        by_fewer ? infty::fewer_gaussians<B>(psi) : std::vector<infty::FewerGaussians<T, B>>{});
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE(
    "expected_head_values: by fewer functions the same is read, and its gradients", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Read<T, B> read{Random(infty::tests::seed)};
  REQUIRE(!infty::fewer_gaussians<B>(read.psi).empty());
  std::vector<std::vector<T>> found;
  for (const bool by_fewer : {false, true}) {
    infty::Tape tape;
    const auto y = read(by_fewer);
    for (auto* x : {&read.density, &read.coefficients, &read.weight}) x->zero_grad();
    tape.backward(infty::sum(y * y));
    found.push_back(y.value().to_vector());
    for (const auto* x : {&read.density, &read.coefficients, &read.weight})
      found.push_back(x->grad().to_vector());
  }
  for (std::size_t i = 0; i < 4; ++i) {
    INFO("of output, density, coefficients, weight: " << i);
    CHECK(infty::tests::error(found[4 + i], found[i]) < 30 * infty::tests::tolerance<T>);
  }
}
