// SPDX-License-Identifier: MIT
#include <limits>
#include <vector>

#include <infty/memory/fifo.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Fifo;
using infty::Index;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;

TEMPLATE_LIST_TEST_CASE("Fifo: first in, first out", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Fifo<T, B> memory(1, 3);
  auto state = memory.make_state(1);
  CHECK(state.length == RowCounts{0});
  auto leaving = memory.write(state, Tensor<T, B>::from({1, 2, 1}, {1, 2}));
  CHECK(leaving.vectors.shape() == Shape{1, 0, 1});
  CHECK(leaving.length == RowCounts{0});
  CHECK(state.vectors.to_vector() == std::vector<T>{0, 1, 2});
  CHECK(state.length == RowCounts{2});
  leaving = memory.write(state, Tensor<T, B>::from({1, 2, 1}, {3, 4}));
  CHECK(leaving.vectors.to_vector() == std::vector<T>{1});
  CHECK(state.vectors.to_vector() == std::vector<T>{2, 3, 4});
  leaving = memory.write(state, Tensor<T, B>::from({1, 5, 1}, {5, 6, 7, 8, 9}));
  CHECK(leaving.vectors.to_vector() == std::vector<T>{2, 3, 4, 5, 6});
  CHECK(leaving.length == RowCounts{5});
  CHECK(state.vectors.to_vector() == std::vector<T>{7, 8, 9});
}

TEST_CASE("Fifo: with a stride vectors leave in groups") {
  const Fifo<float> memory(1, 2, 3);
  CHECK(memory.most_held() == 4);
  auto state = memory.make_state(1);
  for (const float x : {1.0f, 2.0f, 3.0f, 4.0f})
    CHECK(memory.write(state, Tensor<float>::from({1, 1, 1}, {x})).length == RowCounts{0});
  CHECK(state.vectors.to_vector() == std::vector<float>{1, 2, 3, 4});
  auto leaving = memory.write(state, Tensor<float>::from({1, 1, 1}, {5}));
  CHECK(leaving.vectors.to_vector() == std::vector<float>{1, 2, 3});
  CHECK(state.vectors.to_vector() == std::vector<float>{0, 0, 4, 5});
  CHECK(state.length == RowCounts{2});
  leaving = memory.write(state, Tensor<float>::from({1, 8, 1}, {6, 7, 8, 9, 10, 11, 12, 13}));
  CHECK(leaving.vectors.to_vector() == std::vector<float>{4, 5, 6, 7, 8, 9});
  CHECK(state.vectors.to_vector() == std::vector<float>{10, 11, 12, 13});
}

TEST_CASE("Fifo: rows of different age give up different numbers, aligned right") {
  const Fifo<float> memory(1, 3);
  auto state = memory.make_state(2);
  memory.write(state, Tensor<float>::from({2, 2, 1}, {1, 2, 10, 20}));
  infty::reset_row(state, 1);
  const auto leaving =
      memory.write(state, Tensor<float>::from({2, 4, 1}, {3, 4, 5, 6, 7, 8, 9, 5}));
  CHECK(leaving.length == RowCounts{3, 1});
  CHECK(leaving.vectors.to_vector() == std::vector<float>{1, 2, 3, 0, 0, 7});
  CHECK(state.length == RowCounts{3, 3});
  CHECK(state.vectors.to_vector() == std::vector<float>{4, 5, 6, 8, 9, 5});
}

TEST_CASE("Fifo: without capacity all leaves at once; nothing written changes nothing") {
  const Fifo<float> none(2, 0);
  auto state = none.make_state(1);
  const auto x = Tensor<float>::from({1, 2, 2}, {1, 2, 3, 4});
  CHECK(none.write(state, x).vectors.to_vector() == x.to_vector());
  CHECK(state.length == RowCounts{0});
  const Fifo<float> some(2, 3);
  auto held = some.make_state(1);
  some.write(held, x);
  const auto before = held.vectors.to_vector();
  CHECK(some.write(held, Tensor<float>(Shape{1, 0, 2})).vectors.dim(1) == 0);
  CHECK(held.vectors.to_vector() == before);
  CHECK(held.length == RowCounts{2});
}

TEST_CASE("Fifo: keeps what it took when the caller's memory changes") {
  const Fifo<float> memory(1, 2);
  auto state = memory.make_state(1);
  auto x = Tensor<float>::from({1, 3, 1}, {1, 2, 3});
  const auto leaving = memory.write(state, x);
  x.fill(9);
  CHECK(state.vectors.to_vector() == std::vector<float>{2, 3});
  CHECK(leaving.vectors.to_vector() == std::vector<float>{1});
}

TEST_CASE("Fifo: sizes that do not fit leave the state as it was") {
  CHECK_THROWS_WITH(Fifo<float>(0, 1),
                    "[Fifo] model_dim is 0, capacity 1, stride 1: they must be >= 1, >= "
                    "0 and >= 1");
  CHECK_THROWS_AS(Fifo<float>(1, -1), infty::ValueError);
  CHECK_THROWS_AS(Fifo<float>(1, 1, 0), infty::ValueError);
  const Fifo<float> memory(2, 3);
  CHECK_THROWS_WITH(memory.make_state(0), "[Fifo::make_state] batch is 0: it must be >= 1");
  auto state = memory.make_state(1);
  CHECK_THROWS_WITH(memory.write(state, Tensor<float>::zeros({2, 3, 2})),
                    "[Fifo::write] segment is [2, 3, 2]: it must be [1, L, 2]");
  CHECK_THROWS_AS(memory.write(state, Tensor<float>::zeros({1, 3, 3})), infty::ShapeError);
  CHECK_THROWS_AS(memory.write(state, Tensor<float>::zeros({1, 2})), infty::ShapeError);
  CHECK(state.length == RowCounts{0});
}

TEST_CASE("Fifo: rows take in different numbers of vectors") {
  const Fifo<double> memory(1, 2);
  auto state = memory.make_state(3);
  memory.write(state, Tensor<double>::from({3, 1, 1}, {1, 2, 3}));
  const auto leaving = memory.write(
      state, {Tensor<double>::from({3, 2, 1}, {4, 5, -1, 6, -1, -1}), RowCounts{2, 1, 0}});
  CHECK(state.vectors.to_vector() == std::vector<double>{4, 5, 2, 6, 0, 3});
  CHECK(state.length == RowCounts{2, 2, 1});
  CHECK(leaving.vectors.to_vector() == std::vector<double>{1, 0, 0});
  CHECK(leaving.length == RowCounts{1, 0, 0});
  CHECK_THROWS_AS(memory.write(state, {Tensor<double>::zeros({3, 2, 1}), RowCounts{2, 1}}),
                  infty::ShapeError);
  CHECK_THROWS_WITH(memory.write(state, {Tensor<double>::zeros({3, 2, 1}), RowCounts{2, 3, 1}}),
                    "[Fifo::write] a row of the segment has 3 vectors: it must have 0 to 2");
  state.length[1] = Index{1} << 40;  // as a hostile file may say
  CHECK_THROWS_AS(memory.check("test", state), infty::ShapeError);
}

TEST_CASE("Fifo: sizes whose sum or product overflows are refused") {
  constexpr Index huge = std::numeric_limits<Index>::max();
  CHECK_THROWS_WITH(Fifo<float>(3, huge), Catch::Contains("[Fifo] capacity is "));
  CHECK_THROWS_WITH(Fifo<float>(3, 2, huge), Catch::Contains("[Fifo] stride is "));
  CHECK_THROWS_WITH(Fifo<float>(Index{1} << 40, Index{1} << 40),
                    "[Fifo] capacity + stride - 1 is 1099511627776: with model_dim = 1099511627776 "
                    "there would be more than 72057594037927936 numbers");
}
