// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/core/row_groups.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("group_rows: equal rows side by side, in the order of the list", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto list = Tensor<Index, B>::from({2, 3}, {7, 2, 7, 9, 2, 7});
  const auto groups = infty::group_rows(list, 10);
  CHECK(groups.rows.to_vector() == std::vector<Index>{2, 7, 9});
  CHECK(groups.begin.to_vector() == std::vector<Index>{0, 2, 5, 6});
  CHECK(groups.places.to_vector() == std::vector<Index>{1, 4, 0, 2, 5, 3});

  // Places 2 i and 2 i + 1 share row i.
  const auto from = Tensor<T, B>::from({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto weights = Tensor<T, B>::from({6}, {1, 2, 3, 4, 5, 6});
  Tensor<T, B> sums(Shape{3, 2});
  infty::detail::sum_groups(groups, weights.data(), from.data(), Index{2}, Index{2}, sums.data(),
                            false);
  CHECK(sums.to_vector() == std::vector<T>{2 * 1 + 5 * 5, 2 * 2 + 5 * 6, 1 * 1 + 3 * 3 + 6 * 5,
                                           1 * 2 + 3 * 4 + 6 * 6, 4 * 3, 4 * 4});
  auto table = Tensor<T, B>::full({10, 2}, T(1));
  infty::detail::sum_groups<T>(groups, nullptr, from.data(), 2, 2, table.data(), true);
  CHECK(table.slice(2, 3).to_vector() == std::vector<T>{1 + 1 + 5, 1 + 2 + 6});
  CHECK(table.slice(3, 7).to_vector() == std::vector<T>(8, T(1)));
}

TEMPLATE_LIST_TEST_CASE(
    "group_rows: of nothing there are none; rows out of range count as the first", "",
    infty::tests::Types) {
  using B = typename TestType::B;
  const auto none = infty::group_rows(Tensor<Index, B>(Shape{0}), 10);
  CHECK(none.rows.size() == 0);
  CHECK(none.begin.to_vector() == std::vector<Index>{0});
  const auto one = infty::group_rows(Tensor<Index, B>::from({1}, {3}), 4);
  CHECK(one.rows.to_vector() == std::vector<Index>{3});
  CHECK(one.begin.to_vector() == std::vector<Index>{0, 1});
  const auto bad = infty::group_rows(Tensor<Index, B>::from({3}, {-5, 4, 3}), 4);
  CHECK(bad.rows.to_vector() == std::vector<Index>{0, 3});
  CHECK(bad.places.to_vector() == std::vector<Index>{0, 1, 2});
}

TEST_CASE("group_rows: a table that is too long to number its rows and places is refused") {
  const auto list = Tensor<Index>::from({3}, {0, 1, 2});
  CHECK(infty::group_rows(list, Index{1} << 60).rows.size() == 3);
  CHECK_THROWS_WITH(
      infty::group_rows(list, (Index{1} << 60) + 1),
      "[group_rows] the table has 1152921504606846977 rows, the list 3 entries: their "
      "product must be at most 2^62");
  CHECK_THROWS_AS(infty::group_rows(list, 0), infty::ValueError);
}
