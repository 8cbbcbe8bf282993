// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/retrieval/recall.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::neighbour_recall;
using infty::Neighbours;
using infty::Tensor;

namespace recall_tests {

template <class T, class B>
Neighbours<T, B> of(Index queries, const std::vector<Index>& indices) {
  const infty::Shape shape{queries, std::ssize(indices) / queries};
  return {Tensor<T, B>::zeros(shape), Tensor<Index, B>::from(shape, indices)};
}

}  // namespace recall_tests

TEMPLATE_LIST_TEST_CASE("neighbour_recall: the share of true neighbours, in any order", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto exact = recall_tests::of<T, B>(2, {5, 7, 9, 1, 2, -1});
  CHECK(neighbour_recall(exact, exact) == 1);
  CHECK(neighbour_recall(recall_tests::of<T, B>(2, {9, 5, 8, 7, 4, 2}), exact) == 3.0 / 5);
  CHECK(neighbour_recall(recall_tests::of<T, B>(2, {1, 2, 3, 7, 9, 7}), exact) == 0);
  CHECK(neighbour_recall(recall_tests::of<T, B>(2, {7, 2}), exact) == 2.0 / 5);
  CHECK(neighbour_recall(exact, recall_tests::of<T, B>(2, {-1, -1})) == 1);
  CHECK_THROWS_AS(neighbour_recall(recall_tests::of<T, B>(1, {7}), exact), infty::ShapeError);
}
