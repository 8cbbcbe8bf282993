// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <infty/nn/distance_table.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;

TEMPLATE_LIST_TEST_CASE(
    "distance_encoding: sines, then cosines, of the distances from the last row on", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  // Frequencies 1 and 1/100.
  const auto table = infty::distance_encoding<T, typename TestType::B>(3, 4);
  CHECK(table.shape() == Shape{3, 4});
  const auto x = table.to_vector();
  const std::vector<double> expected{std::sin(2), std::sin(.02),
                                     std::cos(2), std::cos(.02),
                                     std::sin(1), std::sin(.01),
                                     std::cos(1), std::cos(.01),
                                     0,           0,
                                     1,           1};
  for (std::size_t i = 0; i < 12; ++i) CHECK(static_cast<double>(x[i]) == Approx(expected[i]));
}

TEST_CASE("distance_encoding: a longer table ends in the shorter one") {
  const auto all = infty::distance_encoding<float>(9, 6);
  CHECK(all.slice(5, 9).to_vector() == infty::distance_encoding<float>(4, 6).to_vector());
  CHECK(infty::distance_encoding<float>(0, 6).size() == 0);
  CHECK_THROWS_WITH(infty::distance_encoding<float>(4, 5),
                    "[distance_encoding] d is 5: it must be even, >= 2");
  CHECK_THROWS_AS(infty::distance_encoding<float>(4, 0), infty::ValueError);
}

TEMPLATE_LIST_TEST_CASE("negated_distances: sines of the distances negated, the same cosines", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  const auto table = infty::distance_encoding<T, typename TestType::B>(3, 4);
  const auto x = infty::negated_distances(table).to_vector();
  const std::vector<double> expected{std::sin(-2.),
                                     std::sin(-.02),
                                     std::cos(-2.),
                                     std::cos(-.02),
                                     std::sin(-1.),
                                     std::sin(-.01),
                                     std::cos(-1.),
                                     std::cos(-.01),
                                     0,
                                     0,
                                     1,
                                     1};
  for (std::size_t i = 0; i < 12; ++i) CHECK(static_cast<double>(x[i]) == Approx(expected[i]));
}

TEMPLATE_LIST_TEST_CASE("DistanceTable: copies share a table that grows as it is asked for", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::DistanceTable<T, B> table, other;
  const infty::DistanceTable<T, B> copy = table;
  const auto four = table.reaching(4, 6);
  CHECK(four.to_vector() == infty::distance_encoding<T, B>(4, 6).to_vector());
  CHECK(copy.reaching(2, 6).data() == four.data());  // what reaches further does for less
  const auto nine = copy.reaching(9, 6);
  CHECK(nine.to_vector() == infty::distance_encoding<T, B>(9, 6).to_vector());
  CHECK(table.reaching(9, 6).data() == nine.data());
  CHECK(four.to_vector() == infty::distance_encoding<T, B>(4, 6).to_vector());  // is as it was
  CHECK(other.reaching(1, 6).dim(0) == 1);
  CHECK(table.reaching(3, 2).shape() == Shape{3, 2});  // of another width, it is another one
}

TEST_CASE("DistanceTable: who asks for one more each time has few tables made") {
  const infty::DistanceTable<float> table;
  int made = 0;
  const float* last = nullptr;
  for (Index longest = 1; longest <= 1000; ++longest) {
    const auto encoding = table.reaching(longest, 4);
    REQUIRE(encoding.dim(0) >= longest);
    made += encoding.data() != last;
    last = encoding.data();
  }
  CHECK(made == 11);
}

TEST_CASE("DistanceTable: what cannot be is refused, and the table is as it was") {
  const infty::DistanceTable<float> table;
  const auto before = table.reaching(3, 4);
  CHECK_THROWS_WITH(table.reaching(5, 3), "[distance_encoding] d is 3: it must be even, >= 2");
  CHECK(table.reaching(3, 4).data() == before.data());
  CHECK_THROWS_AS(table.reaching(-5, 2), infty::ValueError);
  CHECK(table.reaching(0, 4).data() == before.data());
  CHECK(infty::DistanceTable<float>().reaching(0, 4).shape() == infty::Shape{0, 4});
  for (const Index last : {std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()})
    for (const double turn : infty::distance_encoding<double>(3, 4, last).to_vector())
      CHECK(std::abs(turn) <= 1);
}

TEST_CASE("DistanceTable: any number of threads may ask") {
  const infty::DistanceTable<double> table;
  std::vector<infty::Tensor<double>> got(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      for (Index longest = 1; longest < 40; ++longest) got[i] = table.reaching(longest, 4);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& encoding : got)
    CHECK(encoding.to_vector() == infty::distance_encoding<double>(encoding.dim(0), 4).to_vector());
}
