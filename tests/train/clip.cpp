// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/train/clip.hpp>

#include "support/catch.hpp"
#include "support/model.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Random;
using infty::Tensor;
using infty::tests::Affine;
using infty::tests::error;
using infty::tests::tolerance;

namespace {

// Gradients 1, -2, 3 for the weight and 4 for the bias: norm √30.
template <class T, class B>
Affine<T, B> example() {
  Affine<T, B> model(3, 1, Random(1));
  model.weight.grad().copy_from(Tensor<T, B>::from({1, 3}, {1, -2, 3}));
  model.bias.grad().fill(T(4));
  return model;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("clip_grad_norm: the numbers of PyTorch", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto model = example<T, B>();
  CHECK(infty::clip_grad_norm<T, B>(model, 1) == Catch::Approx(5.477225575051661).epsilon(1e-14));
  // torch.nn.utils.clip_grad_norm_ of PyTorch 2.15 in float64
  const std::vector<double> weight{0.18257415250172812, -0.36514830500345624, 0.5477224575051843};
  CHECK(error(model.weight.grad().to_vector(), weight) < tolerance<T>);
  CHECK(error(model.bias.grad().to_vector(), std::vector{0.7302966100069125}) < tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("clip_grad_norm: what is short enough stays bit for bit", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto model = example<T, B>();
  for (const double max_norm : {5.48, std::numeric_limits<double>::infinity()}) {
    infty::clip_grad_norm<T, B>(model, max_norm);
    CHECK(model.weight.grad().to_vector() == std::vector<T>{1, -2, 3});
    CHECK(model.bias.grad().to_vector() == std::vector<T>{4});
  }
}

TEST_CASE("clip_grad_norm: parameters without a gradient count nothing and get none") {
  auto model = example<double, infty::EigenBackend>();
  model.bias.zero_grad();
  CHECK(infty::clip_grad_norm<double>(model, 100) == Catch::Approx(std::sqrt(14.0)));
  CHECK_FALSE(model.bias.has_grad());
  infty::zero_grad(model);
  CHECK(infty::clip_grad_norm<double>(model, 1) == 0);
}

TEST_CASE("clip_grad_norm: squares are summed in double") {
  Affine<float> model(1000, 100, Random(1));
  model.weight.grad().fill(1e25F);  // whose square no float holds
  CHECK(infty::clip_grad_norm<float>(model, 1) == Catch::Approx(1e25 * std::sqrt(1e5)));
  CHECK(infty::clip_grad_norm<float>(model, 100) == Catch::Approx(1));
}

TEST_CASE("grad_norm: the same bits with one thread and with two") {
  Affine<float> model(999, 333, Random(1));
  Random random(2);
  infty::fill_uniform(model.weight.grad(), -1, 1, random);
  const auto parameters = infty::named_parameters<float>(model);
  const auto norm = [&] { return infty::grad_norm(parameters); };
  CHECK(infty::tests::with_threads(1, norm) == infty::tests::with_threads(2, norm));
}

TEST_CASE("clip_grad_norm: names the first gradient that is not finite, and changes nothing") {
  auto model = example<double, infty::EigenBackend>();
  model.bias.grad().fill(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(infty::clip_grad_norm<double>(model, 1), infty::NonFiniteError);
  model.bias.grad().fill(-std::numeric_limits<double>::infinity());
  CHECK_THROWS_WITH(infty::clip_grad_norm<double>(model, 1),
                    "[grad_norm] the gradient of bias has norm inf: it must be finite");
  CHECK(model.weight.grad().to_vector() == std::vector<double>{1, -2, 3});
}

TEST_CASE("clip_grad_norm: max_norm must be positive") {
  auto model = example<float, infty::EigenBackend>();
  CHECK_THROWS_WITH(infty::clip_grad_norm<float>(model, 0),
                    "[clip_grad_norm] max_norm is 0: it must be above 0");
  CHECK_THROWS_AS(infty::clip_grad_norm<float>(model, std::nan("")), infty::ValueError);
}

TEMPLATE_LIST_TEST_CASE("clip_grad_norm: of a gradient by rows, as of the whole table", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto model = example<T, B>();
  model.weight = infty::Variable<T, B>(Tensor<T, B>::zeros({5, 3}), true);
  model.weight.set_grad_by_rows(true);
  model.weight.add_row_grad(
      {Tensor<infty::Index, B>::from({1}, {2}), Tensor<T, B>::from({1, 3}, {1, -2, 3}), 5});
  CHECK(infty::clip_grad_norm<T, B>(model, 1) == Catch::Approx(5.477225575051661).epsilon(1e-14));
  REQUIRE(model.weight.row_grad());  // still by rows
  const std::vector<double> clipped{0.18257415250172812, -0.36514830500345624, 0.5477224575051843};
  CHECK(error(model.weight.row_grad()->values.to_vector(), clipped) < tolerance<T>);
  CHECK(error(model.bias.grad().to_vector(), std::vector{0.7302966100069125}) < tolerance<T>);
}

TEST_CASE(
    "clip_grad_norm: one gradient by rows that two tables were given is clipped once in each") {
  const infty::RowGradient<double, infty::EigenBackend> rows{
      Tensor<infty::Index>::from({1}, {1}), Tensor<double>::from({1, 2}, {3, 4}), 4};
  std::vector<infty::NamedParameter<double, infty::EigenBackend>> tables;
  for (const char* const name : {"first", "second"}) {
    tables.push_back({name, infty::Variable<double>(Tensor<double>::zeros({4, 2}), true)});
    tables.back().variable.set_grad_by_rows(true);
    tables.back().variable.add_row_grad(rows);
  }
  CHECK(infty::clip_grad_norm(tables, 1) == Catch::Approx(std::sqrt(50.)));
  CHECK(infty::grad_norm(tables) == Catch::Approx(1).epsilon(1e-6));
  CHECK(rows.values.to_vector() == std::vector<double>{3, 4});
  Tensor<infty::Index> list = rows.rows;  // nobody would check it once more
  list.fill(1'000'000);
  CHECK(tables.front().variable.row_grad()->rows.to_vector() == std::vector<infty::Index>{1});
}

TEST_CASE("clip_grad_norm: a norm is a number whose square is none") {
  auto model = example<double, infty::EigenBackend>();
  model.weight.grad().fill(.7e154);
  model.bias.grad().fill(-.9e154);
  const double norm = std::sqrt(3 * .7 * .7 + .9 * .9) * 1e154;
  REQUIRE_FALSE(std::isfinite(norm * norm));
  CHECK(infty::clip_grad_norm<double>(model, 1) == Catch::Approx(norm).epsilon(1e-14));
  CHECK(model.bias.grad().item() == Catch::Approx(-.9e154 / norm).epsilon(1e-14));
  CHECK(infty::grad_norm(infty::named_parameters<double>(model)) ==
        Catch::Approx(1).epsilon(1e-14));
}
