// SPDX-License-Identifier: MIT
#include <optional>
#include <type_traits>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/memory/to.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"
#include "support/other_backend.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using namespace infty;
using infty::tests::numbers_of;
using infty::tests::OtherBackend;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace {

template <class T>
LongTermMemory<T> sticky_memory() {
  return LongTermMemory<T>({.model_dim = 8,
                            .heads = 2,
                            .basis = 16,
                            .samples = 16,
                            .resampling = Resampling::sticky,
                            .bins = 8},
                           Random(5));
}

/// A state of a user's own: tensors in a vector and in an optional.
template <class T, class B>
struct Notes {
  std::vector<Tensor<T, B>> pages;
  std::optional<Tensor<Index, B>> index;
  RowCounts length;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("pages", pages);
    see("index", index);
    see("length", length);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("to: a long-term state moves and reads on as before", "", float, double) {
  const auto memory = sticky_memory<TestType>();
  Random random(1);
  auto state = memory.make_state(2, 7);
  const auto x = uniform_variable<TestType>({2, 5, 8}, random);
  memory.write(state, x);
  memory.read(state, uniform_variable<TestType>({2, 3, 8}, random));

  auto moved = to<OtherBackend>(state);
  CHECK((std::is_same_v<decltype(moved), LongTermState<TestType, OtherBackend>>));
  CHECK(numbers_of(moved) == numbers_of(state));
  CHECK_FALSE(moved.coefficients.requires_grad());

  // The same primitives, so the same bits, sampling included.
  const auto other = to<OtherBackend>(memory);
  memory.write(state, x);
  other.write(moved, x.template to<OtherBackend>());
  CHECK(numbers_of(moved) == numbers_of(state));
  auto back = to<EigenBackend>(moved);
  CHECK((std::is_same_v<decltype(back), LongTermState<TestType>>));
  CHECK(numbers_of(back) == numbers_of(state));
}

TEST_CASE("to: the same backend gives a state with memory of its own") {
  const auto memory = sticky_memory<float>();
  Random random(1);
  auto state = memory.make_state(2);
  memory.write(state, uniform_variable<float>({2, 5, 8}, random));
  auto copy = to<EigenBackend>(state);
  const auto before = numbers_of(state);
  CHECK(numbers_of(copy) == before);
  copy.coefficients.value().fill(0);
  copy.attention.fill(1);
  CHECK(numbers_of(state) == before);
}

TEST_CASE("to: a model's state moves, layers and what waits to be written included") {
  const TransformerLM<InftyMemory<double>> model(
      {.vocabulary = 7, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.attention = {.capacity = 3}, .memory = LongTermConfig{.basis = 16, .samples = 16}},
      Random(3));
  const auto other = to<OtherBackend>(model);
  const auto tokens = Tensor<Index>::from({2, 5}, {0, 1, 2, 3, 4, 5, 6, 0, 1, 2});
  auto state = model.make_state(2);
  model.forward(state, tokens);
  model.forward(state, tokens);

  auto moved = to<OtherBackend>(state);
  CHECK((std::is_same_v<decltype(moved), decltype(other)::State>));
  CHECK(moved.body.layers.size() == 2);
  CHECK(numbers_of(moved) == numbers_of(state));
  const auto here = model.forward(state, tokens);
  const auto there = other.forward(moved, tokens.to<OtherBackend>());
  CHECK(there.value().to_vector() == here.value().to_vector());
  CHECK(numbers_of(moved) == numbers_of(state));
}

TEST_CASE("to: a state of one's own moves as well") {
  Random random(2);
  const Notes<float, EigenBackend> notes{
      {uniform_tensor<float>({2, 3}, random), uniform_tensor<float>({2, 1}, random)}, {}, {3, 1}};
  const auto moved = to<OtherBackend>(notes);
  CHECK((std::is_same_v<decltype(moved), const Notes<float, OtherBackend>>));
  CHECK(moved.pages.size() == 2);
  CHECK_FALSE(moved.index.has_value());
  CHECK(numbers_of(moved) == numbers_of(notes));

  auto with_index = notes;
  with_index.index = Tensor<Index>::from({2}, {4, 5});
  CHECK(to<OtherBackend>(with_index).index->to_vector() == std::vector<Index>{4, 5});
}
