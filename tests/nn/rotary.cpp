// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/rotary.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("rotary: pairs of each head turn by place times frequency", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index batch = 2, length = 3, heads = 2, D = GENERATE(4, 5, 1), first = GENERATE(0, 4000);
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<T>({batch, length, heads * D}, random);
  std::vector<double> expected;
  for (Index row = 0; row < batch * length; ++row)
    for (Index c = 0; c < heads * D; ++c) {
      const Index k = c % D, even = c - k % 2;
      const auto at = [&](Index i) { return static_cast<double>(x.data()[row * heads * D + i]); };
      if (k == D - 1 && D % 2 == 1) {  // has nothing to turn with
        expected.push_back(at(c));
        continue;
      }
      const double angle = static_cast<double>(first + row % length) *
                           std::pow(100., -static_cast<double>(k / 2 * 2) / static_cast<double>(D));
      expected.push_back(k % 2 == 0 ? at(even) * std::cos(angle) - at(even + 1) * std::sin(angle)
                                    : at(even) * std::sin(angle) + at(even + 1) * std::cos(angle));
    }
  const auto y = infty::rotary(Variable<T, B>(x.template to<B>()), heads,
                               infty::rotary_table<T, B>(length, D, first, 100));
  CHECK(y.shape() == x.shape());
  CHECK(infty::tests::error(y.value().to_vector(), expected) < infty::tests::tolerance<T>);
}

TEST_CASE("rotary: a table that grows has the same turns, and copies share it") {
  const infty::RotaryTable<double> turns(100);
  const auto copy = turns;
  for (const Index length : {3, 4, 2, 9, 0})
    CHECK(turns.reaching(length, 5).to_vector() ==
          infty::rotary_table<double>(length, 5, 0, 100).to_vector());
  CHECK_THROWS_AS(turns.reaching(-1, 5), infty::ValueError);
  CHECK(copy.reaching(9, 5).data() == turns.reaching(1, 5).data());
  CHECK(turns.reaching(2, 4).to_vector() == infty::rotary_table<double>(2, 4, 0, 100).to_vector());
}

TEST_CASE("rotary: products tell distances, not places") {
  infty::Random random(infty::tests::seed);
  const auto q = infty::tests::uniform_variable<double>({1, 1, 6}, random).detach(),
             k = infty::tests::uniform_variable<double>({1, 1, 6}, random).detach();
  const auto product = [&](Index i, Index j) {
    return infty::sum(infty::rotary(q, 1, infty::rotary_table<double>(1, 6, i)) *
                      infty::rotary(k, 1, infty::rotary_table<double>(1, 6, j)))
        .value()
        .item();
  };
  CHECK(product(7, 3) == Approx(product(4, 0)).epsilon(1e-12));
  CHECK(std::abs(product(7, 3) - product(7, 4)) > 1e-3);
}

TEST_CASE("rotary: gradient, and what does not fit") {
  infty::Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_variable<double>({2, 3, 10}, random);
  const auto table = infty::rotary_table<double>(3, 5, 2);
  CHECK(infty::gradient_check(
            [&] {
              const auto y = infty::rotary(x, 2, table);
              return infty::sum(y * y * y) + infty::sum(y * x);
            },
            std::vector{x}) < 1e-8);
  CHECK_THROWS_WITH(infty::rotary(x, 5, table),
                    "[rotary] the table is [3, 4], x is [2, 3, 10] of 5 heads: it must be [3, 2]");
  CHECK_THROWS_AS(infty::rotary(x, 3, table), infty::ShapeError);
  CHECK_THROWS_AS(infty::rotary(x, 0, table), infty::ShapeError);
  CHECK_THROWS_AS(infty::rotary_table<double>(-1, 5), infty::ValueError);
  CHECK_THROWS_AS(infty::rotary_frequencies(0), infty::ValueError);
  for (const double base : {0., -1., 1e-320, 1e300, std::nan("")})
    CHECK_THROWS_AS(infty::rotary_frequencies(4, base), infty::ValueError);
  for (const double base : {1e-30, 1e30})
    for (const Index first : {std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()})
      for (const double turn : infty::rotary_table<double>(2, 5, first, base).to_vector())
        CHECK(std::abs(turn) <= 1);
}
