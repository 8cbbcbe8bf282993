// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/nn/place_encoding.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::RowCounts;
using infty::Shape;

TEMPLATE_LIST_TEST_CASE("place_encoding: sines, then cosines, of each row's own places", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index length = 3, d = 6;
  const RowCounts first{0, 7, -2, 12345678};
  std::vector<double> expected;
  for (const Index from : first)
    for (Index i = 0; i < length; ++i)
      for (Index c = 0; c < d; ++c) {
        const double place = from + i < 0 ? 0 : static_cast<double>(from + i);
        const double angle =
            place * std::pow(10000., -2 * static_cast<double>(c % 3) / static_cast<double>(d));
        expected.push_back(c < 3 ? std::sin(angle) : std::cos(angle));
      }
  const auto encoding = infty::place_encoding<T, B>(first, length, d);
  CHECK(encoding.shape() == Shape{4, length, d});
  CHECK(infty::tests::error(encoding.to_vector(), expected) < infty::tests::tolerance<T>);
}

TEST_CASE("place_encoding: rows at one place share, and places are those of distances") {
  const auto all = infty::place_encoding<double>({5, 5, 5}, 4, 6);
  CHECK(all.shape() == Shape{1, 4, 6});
  const auto distances = infty::distance_encoding<double>(4, 6, 5);
  for (Index i = 0; i < 4; ++i)
    CHECK(all.slice(0, 1).reshape({4, 6}).slice(i, i + 1).to_vector() ==
          distances.slice(3 - i, 4 - i).to_vector());
  CHECK(infty::place_encoding<double>({5}, 0, 6).shape() == Shape{1, 0, 6});
}

TEST_CASE("place_encoding: the last places of all are told apart, and cost what others do") {
  const Index last = infty::most_places - 2;
  const auto encoding = infty::place_encoding<double>({last}, 2, 2).to_vector();
  CHECK(encoding[0] == std::sin(static_cast<double>(last)));
  CHECK(encoding[2] == std::sin(static_cast<double>(last + 1)));
}

TEST_CASE("place_encoding: what cannot be is refused") {
  CHECK_THROWS_AS(infty::place_encoding<float>({}, 1, 4), infty::ValueError);
  CHECK_THROWS_AS(infty::place_encoding<float>({0}, -1, 4), infty::ValueError);
  CHECK_THROWS_WITH(infty::place_encoding<float>({0}, 1, 5),
                    "[place_encoding] d is 5: it must be even, >= 2");
  CHECK_THROWS_AS(infty::place_encoding<float>({0}, 1, 0), infty::ValueError);
  for (const Index first : {infty::most_places, std::numeric_limits<Index>::max()})
    CHECK_THROWS_AS(infty::place_encoding<float>({0, first}, 1, 4), infty::ValueError);
}
