// SPDX-License-Identifier: MIT
#include <cstddef>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/weighted_rows.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("weighted_rows: by hand, its gradient of the table by rows and as a whole",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto rows = Tensor<Index, B>::from({1, 2, 2}, {0, 2, 2, 2});
  for (const bool by_rows : {false, true}) {
    Variable<T, B> table(Tensor<T, B>::from({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), true);
    table.set_grad_by_rows(by_rows);
    const Variable<T, B> weights(Tensor<T, B>::from({1, 2, 2}, {1, 2, 3, 4}), true);
    infty::Tape tape;
    const auto y = infty::weighted_rows(weights, rows, table);
    CHECK(y.shape() == Shape{1, 2, 2});
    CHECK(y.value().to_vector() == std::vector<T>{11, 14, 35, 42});
    tape.backward(y, Tensor<T, B>::from({1, 2, 2}, {1, 10, 100, 1000}));
    CHECK(weights.grad().to_vector() == std::vector<T>{21, 65, 6500, 6500});
    CHECK((table.row_grad() != nullptr) == by_rows);
    if (by_rows) CHECK(table.row_grad()->rows.to_vector() == std::vector<Index>{0, 2});
    CHECK(table.grad().to_vector() == std::vector<T>{1, 10, 0, 0, 702, 7020, 0, 0});
  }
}

TEST_CASE("weighted_rows: lists of any length, odd widths") {
  for (const Index m : {1, 3, 4, 5, 8, 11})
    for (const Index width : {1, 3, 33}) {
      CAPTURE(m, width);
      const Index count = 7, n = 3;
      std::vector<float> table, weights, expected;  // whole numbers: sums are exact
      std::vector<Index> rows;
      for (Index i = 0; i < count * width; ++i) table.push_back(static_cast<float>(i % 11 - 5));
      for (Index i = 0; i < n * m; ++i) {
        weights.push_back(static_cast<float>(i % 5 - 2));
        rows.push_back(i * 3 % count);
      }
      for (Index i = 0; i < n; ++i)
        for (Index c = 0; c < width; ++c) {
          float sum = 0;
          for (Index j = i * m; j < (i + 1) * m; ++j)
            sum += weights[static_cast<std::size_t>(j)] *
                   table[static_cast<std::size_t>(rows[static_cast<std::size_t>(j)] * width + c)];
          expected.push_back(sum);
        }
      const auto y = infty::weighted_rows(
          Variable<float>(Tensor<float>::from({n, m}, weights)), Tensor<Index>::from({n, m}, rows),
          Variable<float>(Tensor<float>::from({count, width}, table)));
      CHECK(y.value().to_vector() == expected);
    }
}

TEMPLATE_LIST_TEST_CASE(
    "weighted_rows: of a table stored in bfloat16, the bits of one that holds the same numbers", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index m : {0, 1, 6})
    for (const Index width : {1, 33}) {
      auto table = uniform_variable<T, B>({7, width}, random);
      const Variable<T, B> full(table.value().template cast<infty::BFloat16>().template cast<T>());
      table.store_in_bfloat16();
      const auto weights = uniform_variable<T, B>({3, m}, random);
      std::vector<Index> list;
      for (Index i = 0; i < 3 * m; ++i) list.push_back(i * 5 % 7);
      const auto rows = Tensor<Index, B>::from({3, m}, list);
      CAPTURE(m, width);
      CHECK(infty::weighted_rows(weights, rows, table).value().to_vector() ==
            infty::weighted_rows(weights, rows, full).value().to_vector());
    }
}

TEST_CASE("weighted_rows: gradient") {
  Random random(infty::tests::seed);
  const auto table = infty::tests::uniform_variable<double>({6, 5}, random);
  const auto weights = infty::tests::uniform_variable<double>({2, 3, 4}, random);
  const auto rows = Tensor<Index>::from(
      {2, 3, 4}, {0, 1, 2, 3, 1, 1, 1, 1, 5, 0, 5, 0, 2, 3, 2, 2, 0, 0, 1, 5, 3, 3, 1, 2});
  const auto loss = [&] {
    const auto y = infty::weighted_rows(weights, rows, table);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{table, weights}) < 1e-8);
}

TEST_CASE("weighted_rows: forward and backward take as much of a large table as of a small one") {
  const auto bytes = [](Index count) {
    Variable<float> table(Tensor<float>::full({count, 8}, 1), true);
    table.set_grad_by_rows(true);
    const auto rows = Tensor<Index>::from({2, 3}, {0, 1, 2, 3, 2, 1});
    const Variable<float> weights(Tensor<float>::full({2, 3}, 1), true);
    infty::HostPool::instance().reset_peak();
    const std::size_t before = infty::HostPool::instance().statistics().bytes_in_use;
    infty::Tape tape;
    tape.backward(infty::sum(infty::weighted_rows(weights, rows, table)));
    return infty::HostPool::instance().statistics().peak_bytes_in_use - before;
  };
  const std::size_t small = bytes(25);  // shorter ones than four times the list take less
  CHECK(small > 0);
  CHECK(bytes(400'000) == small);
}

TEST_CASE("weighted_rows: rows that there are not, and shapes that do not fit, are refused") {
  const Variable<float> table(Tensor<float>::zeros({4, 2})), weights(Tensor<float>::zeros({1, 2}));
  CHECK_THROWS_WITH(infty::weighted_rows(weights, Tensor<Index>::from({1, 2}, {0, 4}), table),
                    "[weighted_rows] row 4 at place 1: rows must lie in [0, 4)");
  CHECK_THROWS_AS(infty::weighted_rows(weights, Tensor<Index>::from({1, 2}, {-1, 0}), table),
                  infty::ValueError);
  CHECK_THROWS_WITH(infty::weighted_rows(weights, Tensor<Index>::zeros({1, 3}), table),
                    "[weighted_rows] weights are [1, 2], rows [1, 3], the table is [4, 2]: they "
                    "must be [..., m] both, and [count, width]");
  CHECK(infty::weighted_rows(Variable<float>(Tensor<float>(Shape{2, 0})),
                             Tensor<Index>(Shape{2, 0}), table)
            .value()
            .to_vector() == std::vector<float>(4, 0));
}
