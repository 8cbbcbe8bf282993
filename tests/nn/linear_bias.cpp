// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/nn/linear_bias.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::LinearBias;
using infty::SlopeStart;
using infty::Tensor;
using infty::Variable;

TEST_CASE("alibi_slopes: by hand, for a power of 2 and between two") {
  const std::vector<double> eight = infty::alibi_slopes(8), twelve = infty::alibi_slopes(12);
  REQUIRE(eight.size() == 8);
  REQUIRE(twelve.size() == 12);
  for (std::size_t h = 0; h < 8; ++h) {
    CHECK(eight[h] == std::exp2(-static_cast<double>(h + 1)));
    CHECK(twelve[h] == eight[h]);
  }
  for (std::size_t h = 8; h < 12; ++h)
    CHECK(twelve[h] == std::exp2(-.5 - static_cast<double>(h - 8)));
  CHECK(infty::alibi_slopes(1) == std::vector<double>{std::exp2(-8)});
  CHECK_THROWS_AS(infty::alibi_slopes(0), infty::ValueError);
}

TEMPLATE_LIST_TEST_CASE("LinearBias: falls with the distance by each head's slope", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const LinearBias<T, B> bias(2);
  CHECK(bias.by_distance(3).value().to_vector() ==
        std::vector<T>{0, T(-.0625), T(-.125), 0, T(-.00390625), T(-.0078125)});
  const LinearBias<T, B> none(2, SlopeStart::zero);
  for (const T x : none.by_distance(3).value().to_vector()) CHECK(x == T(0));
  infty::Tape tape;
  tape.backward(infty::sum(none.by_distance(4)));
  CHECK(none.slopes.grad().to_vector() == std::vector<T>{-6, -6});
  CHECK_THROWS_AS((LinearBias<T, B>(0)), infty::ValueError);
}
