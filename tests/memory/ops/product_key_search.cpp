// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/product_key_search.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::tolerance;

namespace product_key_search_tests {

/// Small whole numbers, whose sums are exact and often equal.
template <class T, class B>
Tensor<T, B> whole_numbers(Shape shape, Random& random) {
  std::vector<T> numbers(static_cast<std::size_t>(shape.size()));
  for (T& x : numbers) x = static_cast<T>(static_cast<int>(random.uniform() * 7) - 3);
  return Tensor<T, B>::from(shape, numbers);
}

/// The k best of all n² slots, of equal ones first those with the best halves, by plain loops.
struct Exhaustive {
  std::vector<double> scores;
  std::vector<Index> slots;

  template <class T, class B>
  Exhaustive(const Tensor<T, B>& queries, const Tensor<T, B>& keys, Index k) {
    const Index heads = keys.dim(0), n = keys.dim(2), half = keys.dim(3);
    const std::vector<T> q = queries.to_vector(), key = keys.to_vector();
    const auto dot = [&](Index row, Index head, Index c, Index i) {
      double sum = 0;
      for (Index d = 0; d < half; ++d)
        sum +=
            static_cast<double>(
                q[static_cast<std::size_t>(((row * heads + head) * 2 + c) * half + d)]) *
            static_cast<double>(key[static_cast<std::size_t>(((head * 2 + c) * n + i) * half + d)]);
      return sum;
    };
    for (Index row = 0; row < queries.size() / (heads * 2 * half); ++row)
      for (Index head = 0; head < heads; ++head) {
        struct Found {
          double score;
          Index slot, rank;
        };
        std::vector<double> s[2];
        std::vector<Index> rank[2];  // of each key among those of its half
        for (const Index c : {0, 1}) {
          std::vector<double>& own = s[c];
          for (Index i = 0; i < n; ++i) own.push_back(dot(row, head, c, i));
          for (std::size_t i = 0; i < own.size(); ++i) {
            Index before = 0;
            for (std::size_t j = 0; j < own.size(); ++j)
              before += own[j] > own[i] || (own[j] == own[i] && j < i);
            rank[c].push_back(before);
          }
        }
        std::vector<Found> all;
        for (std::size_t i = 0; i < s[0].size(); ++i)
          for (std::size_t j = 0; j < s[1].size(); ++j)
            all.push_back({s[0][i] + s[1][j], static_cast<Index>(i) * n + static_cast<Index>(j),
                           rank[0][i] * n + rank[1][j]});
        std::sort(all.begin(), all.end(), [](const Found& x, const Found& y) {
          return x.score > y.score || (x.score == y.score && x.rank < y.rank);
        });
        for (Index j = 0; j < k; ++j) {
          scores.push_back(all[static_cast<std::size_t>(j)].score);
          slots.push_back(all[static_cast<std::size_t>(j)].slot);
        }
      }
  }
};

}  // namespace product_key_search_tests

TEMPLATE_LIST_TEST_CASE("product_key_search: the best of all n² pairs, ties as they stand", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  namespace own = product_key_search_tests;
  Random random(infty::tests::seed);
  for (const Index k : {1, 2, 5, 9}) {
    const auto queries = own::whole_numbers<T, B>({2, 3, 3 * 2 * 2}, random);
    const auto keys = own::whole_numbers<T, B>({3, 2, 9, 2}, random);
    const own::Exhaustive expected(queries, keys, k);
    const auto found = infty::product_key_search(Variable<T, B>(queries), Variable<T, B>(keys), k);
    CHECK(found.scores.shape() == Shape{2, 3, 3, k});
    CHECK(found.slots.to_vector() == expected.slots);
    CHECK(error(found.scores.value().to_vector(), expected.scores) < tolerance<T>);
  }
}

TEST_CASE("product_key_search: more rows than are searched at once") {
  Random random(infty::tests::seed);
  // 2^18 / (2 * 2048) = 64 rows a piece on a CPU, 1024 where threads are many
  const auto queries = infty::tests::uniform_tensor<float>({1030, 2}, random);
  const auto keys = infty::tests::uniform_tensor<float>({1, 2, 2048, 1}, random);
  const auto all = infty::product_key_search(Variable<float>(queries), Variable<float>(keys), 2);
  const auto last = infty::product_key_search(Variable<float>(queries.slice(1020, 1030)),
                                              Variable<float>(keys), 2);
  CHECK(all.slots.slice(1020, 1030).to_vector() == last.slots.to_vector());
  CHECK(all.scores.value().slice(1020, 1030).to_vector() == last.scores.value().to_vector());
}

TEST_CASE("product_key_search: gradient through the slots that were found") {
  Random random(infty::tests::seed);
  const auto queries = infty::tests::uniform_variable<double>({2, 3, 2 * 2 * 3}, random);
  const auto keys = infty::tests::uniform_variable<double>({2, 2, 5, 3}, random);
  const auto weight = infty::tests::uniform_variable<double>({2, 3, 2, 4}, random).detach();
  const auto loss = [&] {
    const auto found = infty::product_key_search(queries, keys, 4);
    return infty::sum(found.scores * found.scores * weight);
  };
  CHECK(infty::gradient_check(loss, std::vector{queries, keys}) < 1e-8);
}

TEST_CASE("product_key_search: NaN and infinity find slots that there are") {
  Random random(infty::tests::seed);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  auto queries = infty::tests::uniform_tensor<float>({4, 4}, random);
  const auto keys = infty::tests::uniform_tensor<float>({1, 2, 6, 2}, random);
  for (const Index at : {0, 6, 11}) {
    std::vector<float> numbers = queries.to_vector();
    numbers[static_cast<std::size_t>(at)] = at == 6 ? inf : nan;
    queries = Tensor<float>::from({4, 4}, numbers);
  }
  const auto found = infty::product_key_search(Variable<float>(queries), Variable<float>(keys), 3);
  for (const Index slot : found.slots.to_vector()) CHECK((slot >= 0 && slot < 36));
}

TEST_CASE("product_key_search: shapes that do not fit, and a k that there is not, are refused") {
  const Variable<float> keys(Tensor<float>::zeros({2, 2, 5, 3}));
  const Variable<float> queries(Tensor<float>::zeros({4, 12}));
  CHECK_THROWS_WITH(infty::product_key_search(queries, keys, 6),
                    "[product_key_search] k is 6, keys are [2, 2, 5, 3]: k must lie in [1, 5]");
  CHECK_THROWS_AS(infty::product_key_search(queries, keys, 0), infty::ValueError);
  CHECK_THROWS_WITH(
      infty::product_key_search(Variable<float>(Tensor<float>::zeros({4, 11})), keys, 2),
      "[product_key_search] queries are [4, 11], keys are [2, 2, 5, 3]: they must be [..., heads * "
      "key_dim] and [heads, 2, n, key_dim / 2]");
  CHECK_THROWS_AS(
      infty::product_key_search(queries, Variable<float>(Tensor<float>::zeros({2, 3, 5, 3})), 2),
      infty::ShapeError);
  const auto none =
      infty::product_key_search(Variable<float>(Tensor<float>(Shape{0, 12})), keys, 2);
  CHECK(none.scores.shape() == Shape{0, 2, 2});
}
