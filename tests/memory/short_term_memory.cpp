// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/short_term_memory.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::RowCounts;
using infty::Shape;
using infty::ShortTermMemory;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("ShortTermMemory: first in, first out", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const ShortTermMemory<T, B> memory(1, 3);
  auto state = memory.make_state(1);
  CHECK(state.recent.length == RowCounts{0});
  auto leaving = memory.write(state, Tensor<T, B>::from({1, 2, 1}, {1, 2}));
  CHECK(leaving.vectors.shape() == Shape{1, 0, 1});
  CHECK(leaving.length == RowCounts{0});
  CHECK(state.recent.vectors.to_vector() == std::vector<T>{0, 1, 2});
  CHECK(state.recent.length == RowCounts{2});
  leaving = memory.write(state, Tensor<T, B>::from({1, 2, 1}, {3, 4}));
  CHECK(leaving.vectors.to_vector() == std::vector<T>{1});
  CHECK(state.recent.vectors.to_vector() == std::vector<T>{2, 3, 4});
  leaving = memory.write(state, Tensor<T, B>::from({1, 5, 1}, {5, 6, 7, 8, 9}));
  CHECK(leaving.vectors.to_vector() == std::vector<T>{2, 3, 4, 5, 6});
  CHECK(leaving.length == RowCounts{5});
  CHECK(state.recent.vectors.to_vector() == std::vector<T>{7, 8, 9});
}

TEST_CASE("ShortTermMemory: with a stride vectors leave in groups") {
  const ShortTermMemory<float> memory(1, 2, 3);
  CHECK(memory.most_held() == 4);
  auto state = memory.make_state(1);
  for (const float x : {1.0f, 2.0f, 3.0f, 4.0f})
    CHECK(memory.write(state, Tensor<float>::from({1, 1, 1}, {x})).length == RowCounts{0});
  CHECK(state.recent.vectors.to_vector() == std::vector<float>{1, 2, 3, 4});
  auto leaving = memory.write(state, Tensor<float>::from({1, 1, 1}, {5}));
  CHECK(leaving.vectors.to_vector() == std::vector<float>{1, 2, 3});
  CHECK(state.recent.vectors.to_vector() == std::vector<float>{0, 0, 4, 5});
  CHECK(state.recent.length == RowCounts{2});
  leaving = memory.write(state, Tensor<float>::from({1, 8, 1}, {6, 7, 8, 9, 10, 11, 12, 13}));
  CHECK(leaving.vectors.to_vector() == std::vector<float>{4, 5, 6, 7, 8, 9});
  CHECK(state.recent.vectors.to_vector() == std::vector<float>{10, 11, 12, 13});
}

TEST_CASE("ShortTermMemory: rows of different age give up different numbers, aligned right") {
  const ShortTermMemory<float> memory(1, 3);
  auto state = memory.make_state(2);
  memory.write(state, Tensor<float>::from({2, 2, 1}, {1, 2, 10, 20}));
  infty::reset_row(state, 1);
  const auto leaving =
      memory.write(state, Tensor<float>::from({2, 4, 1}, {3, 4, 5, 6, 7, 8, 9, 5}));
  CHECK(leaving.length == RowCounts{3, 1});
  CHECK(leaving.vectors.to_vector() == std::vector<float>{1, 2, 3, 0, 0, 7});
  CHECK(state.recent.length == RowCounts{3, 3});
  CHECK(state.recent.vectors.to_vector() == std::vector<float>{4, 5, 6, 8, 9, 5});
}

TEST_CASE("ShortTermMemory: without capacity all leaves at once; nothing written changes nothing") {
  const ShortTermMemory<float> none(2, 0);
  auto state = none.make_state(1);
  const auto x = Tensor<float>::from({1, 2, 2}, {1, 2, 3, 4});
  CHECK(none.write(state, x).vectors.to_vector() == x.to_vector());
  CHECK(state.recent.length == RowCounts{0});
  const ShortTermMemory<float> some(2, 3);
  auto held = some.make_state(1);
  some.write(held, x);
  const auto before = held.recent.vectors.to_vector();
  CHECK(some.write(held, Tensor<float>(Shape{1, 0, 2})).vectors.dim(1) == 0);
  CHECK(held.recent.vectors.to_vector() == before);
  CHECK(held.recent.length == RowCounts{2});
}

TEST_CASE("ShortTermMemory: keeps what it took when the caller's memory changes") {
  const ShortTermMemory<float> memory(1, 2);
  auto state = memory.make_state(1);
  auto x = Tensor<float>::from({1, 3, 1}, {1, 2, 3});
  const auto leaving = memory.write(state, x);
  x.fill(9);
  CHECK(state.recent.vectors.to_vector() == std::vector<float>{2, 3});
  CHECK(leaving.vectors.to_vector() == std::vector<float>{1});
}

TEST_CASE("ShortTermMemory: sizes that do not fit leave the state as it was") {
  CHECK_THROWS_WITH(ShortTermMemory<float>(0, 1),
                    "[ShortTermMemory] model_dim is 0, capacity 1, stride 1: they must be >= 1, >= "
                    "0 and >= 1");
  CHECK_THROWS_AS(ShortTermMemory<float>(1, -1), infty::ValueError);
  CHECK_THROWS_AS(ShortTermMemory<float>(1, 1, 0), infty::ValueError);
  const ShortTermMemory<float> memory(2, 3);
  CHECK_THROWS_WITH(memory.make_state(0),
                    "[ShortTermMemory::make_state] batch is 0: it must be >= 1");
  auto state = memory.make_state(1);
  CHECK_THROWS_WITH(memory.write(state, Tensor<float>::zeros({2, 3, 2})),
                    "[ShortTermMemory::write] segment is [2, 3, 2]: it must be [1, L, 2]");
  CHECK_THROWS_AS(memory.write(state, Tensor<float>::zeros({1, 3, 3})), infty::ShapeError);
  CHECK_THROWS_AS(memory.write(state, Tensor<float>::zeros({1, 2})), infty::ShapeError);
  CHECK(state.recent.length == RowCounts{0});
}
