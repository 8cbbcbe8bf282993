// SPDX-License-Identifier: MIT
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/variable.hpp>
#include <infty/core/random.hpp>

#include "support/catch.hpp"
#include "support/other_backend.hpp"
#include "support/types.hpp"

using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("Variable: a handle of a value and its gradient", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto tensor = Tensor<T, B>::from({2, 2}, {1, 2, 3, 4});
  Variable<T, B> x(tensor, true);
  CHECK(x.value().data() == tensor.data());
  CHECK(x.shape() == Shape{2, 2});
  CHECK(x.dim(-1) == 2);
  CHECK(x.size() == 4);
  CHECK(x.requires_grad());

  const Variable<T, B> copy = x;
  CHECK(same(copy, x));
  CHECK_FALSE(same(Variable<T, B>(tensor), x));
  x.grad().fill(T(3));
  CHECK(copy.has_grad());
  CHECK(copy.grad().to_vector() == std::vector<T>(4, T(3)));
}

TEMPLATE_LIST_TEST_CASE("Variable: a gradient that has not arrived is zero", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Variable<T, B> x(Tensor<T, B>::zeros({3}), true);
  CHECK_FALSE(x.has_grad());
  CHECK(x.grad().to_vector() == std::vector<T>(3, T(0)));
  x.grad().fill(T(2));
  const T* const memory = x.grad().data();
  x.zero_grad();
  CHECK_FALSE(x.has_grad());
  CHECK(x.grad().to_vector() == std::vector<T>(3, T(0)));
  CHECK(x.grad().data() == memory);
}

TEST_CASE("Variable: through a const handle a gradient is read and added to, a value is read") {
  const Variable<float> x(Tensor<float>::zeros({3}), true);
  static_assert(std::is_same_v<decltype(x.value()), const Tensor<float>&>);
  static_assert(std::is_same_v<decltype(x.grad()), Tensor<float>&>);
  CHECK_FALSE(x.has_grad());
  Variable<float> copy = x;  // as an operation keeps its inputs
  copy.grad().fill(2);
  CHECK(x.grad().to_vector() == std::vector<float>(3, 2));
  copy.value().fill(1);
  CHECK(x.value().to_vector() == std::vector<float>(3, 1));
}

TEST_CASE("Variable: all handles of one have one identity, and others another") {
  const Variable<float> x(Tensor<float>::zeros({3})), copy = x, other = x.detach();
  CHECK(x.identity() == copy.identity());
  CHECK(x.identity() != other.identity());
  Variable<float> none, empty = none;
  CHECK(none.identity() != empty.identity());
  none.value() = x.value();
  CHECK(none.identity() != empty.identity());
  empty = none;
  CHECK(none.identity() == empty.identity());
}

TEST_CASE("Variable: a tensor becomes one that needs no gradient") {
  const Variable<float> x = Tensor<float>::zeros({2});
  CHECK_FALSE(x.requires_grad());
  const Variable<float> none;
  CHECK(none.size() == 0);
  CHECK_FALSE(none.requires_grad());
}

TEST_CASE("Variable: detach shares the memory, not the gradient") {
  Variable<float> x(Tensor<float>::zeros({2}), true);
  auto y = x.detach();
  CHECK_FALSE(y.requires_grad());
  CHECK_FALSE(same(x, y));
  y.value().fill(7);
  CHECK(x.value().to_vector() == std::vector<float>{7, 7});
  y.grad().fill(1);
  CHECK_FALSE(x.has_grad());
}

TEMPLATE_LIST_TEST_CASE(
    "Variable: stored in bfloat16 it has the rounded numbers, for all of its handles", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const std::vector<T> numbers{T(1), T(1.00390625), T(1.01171875), T(-3e-39), T(1e30), T(.1)};
  Variable<T, B> x(Tensor<T, B>::from({3, 2}, numbers), true);
  x.grad().fill(T(1));
  const auto wanted = x.value().template cast<infty::BFloat16>().template cast<T>().to_vector();
  const Variable<T, B> other = x;
  x.store_in_bfloat16();
  x.store_in_bfloat16();
  REQUIRE(other.stored_in_bfloat16());
  CHECK(other.stored_in_bfloat16()->bytes() == 12);
  CHECK(other.shape() == Shape{3, 2});
  CHECK(other.dim(-1) == 2);
  CHECK(other.size() == 6);
  CHECK_FALSE(other.requires_grad());
  CHECK_FALSE(other.has_grad());
  CHECK(other.value().to_vector() == wanted);
  CHECK(wanted[1] == T(1));           // a tie, to the even one
  CHECK(wanted[2] == T(1.015625));    // and the other way
  CHECK(other.stored_in_bfloat16());  // reading changes nothing

  // It may be copied, and its copy is stored as well.
  const Variable<T, B> copy = other.detach();
  CHECK_FALSE(same(copy, other));
  CHECK(copy.stored_in_bfloat16() == other.stored_in_bfloat16());
  CHECK(copy.value().to_vector() == wanted);

  const auto other_memory = other.template to<B>();
  REQUIRE(other_memory.stored_in_bfloat16());
  CHECK_FALSE(same(*other_memory.stored_in_bfloat16(), *other.stored_in_bfloat16()));
  CHECK(other_memory.value().to_vector() == wanted);

  // Who may write has it in full.
  x.value().fill(T(.1));
  CHECK_FALSE(other.stored_in_bfloat16());
  CHECK(other.value().to_vector() == std::vector<T>(6, T(.1)));
  CHECK(copy.value().to_vector() == wanted);
}

TEST_CASE("Variable: what is stored in bfloat16 is in full again to be trained") {
  Variable<float> x(Tensor<float>::from({2}, {.1f, .2f}));
  x.store_in_bfloat16();
  const auto rounded = std::as_const(x).value().to_vector();
  x.set_requires_grad(false);
  CHECK(x.stored_in_bfloat16());
  x.set_requires_grad(true);
  CHECK_FALSE(x.stored_in_bfloat16());
  CHECK(std::as_const(x).value().to_vector() == rounded);
  CHECK_FALSE(x.has_grad());
  x.grad().fill(2);
  CHECK(x.grad().shape() == Shape{2});

  Variable<float> empty;
  empty.store_in_bfloat16();
  CHECK(empty.size() == 0);
  CHECK(empty.value().empty());
}

TEST_CASE("Variable: several threads ask at once for what is stored in bfloat16, in full") {
  for (int round = 0; round < 20; ++round) {
    Variable<float> x(Tensor<float>::full({64, 64}, .1f));
    x.store_in_bfloat16();
    std::vector<const float*> found(4);
    {
      std::vector<std::jthread> threads;
      for (auto& place : found)
        threads.emplace_back(
            [&place, shared = std::as_const(x)] { place = std::as_const(shared).value().data(); });
    }
    for (const float* const place : found) {
      CHECK(place == found.front());
      CHECK(place[4095] == static_cast<float>(infty::BFloat16(.1f)));
    }
  }
}

TEST_CASE("Variable: to another backend is a new leaf that needs a gradient where this one did") {
  const Variable<float> x(Tensor<float>::from({2}, {1, 2}), true);
  x.grad().fill(3);
  const auto there = x.to<infty::tests::OtherBackend>();
  CHECK(there.value().to_vector() == std::vector<float>{1, 2});
  CHECK(there.requires_grad());
  CHECK_FALSE(there.has_grad());
  CHECK_FALSE(x.detach().to<infty::tests::OtherBackend>().requires_grad());
  const auto copy = x.to<infty::EigenBackend>();
  CHECK_FALSE(same(copy, x));
  CHECK(copy.value().data() != x.value().data());
}

TEMPLATE_LIST_TEST_CASE("Variable: a gradient's target is overwritten first and then added to", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Variable<T, B> x(Tensor<T, B>::zeros({3}), true);
  const auto first = x.grad_target();
  CHECK_FALSE(first.add);
  CHECK(first.beta() == T(0));
  B::fill(first.data, 3, T(2));
  CHECK(x.has_grad());
  const auto second = x.grad_target();
  CHECK(second.add);
  CHECK(second.beta() == T(1));
  CHECK(second.data == first.data);
  CHECK(x.grad().to_vector() == std::vector<T>(3, T(2)));
  x.zero_grad();
  CHECK(x.grad().to_vector() == std::vector<T>(3, T(0)));
  CHECK(x.grad_target().add);
}

TEMPLATE_LIST_TEST_CASE("Variable: without a row the others are what they were, gradients too", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({3, 2}, {1, 2, 3, 4, 5, 6}), true);
  infty::Tape tape;
  const auto y = x.without_row(1);
  CHECK(y.value().to_vector() == std::vector<T>{1, 2, 0, 0, 5, 6});
  CHECK(x.value().to_vector() == std::vector<T>{1, 2, 3, 4, 5, 6});
  tape.backward(y, Tensor<T, B>::from({3, 2}, {7, 8, 9, 10, 11, 12}));
  CHECK(x.grad().to_vector() == std::vector<T>{7, 8, 0, 0, 11, 12});
}

TEMPLATE_LIST_TEST_CASE("Variable: a gradient by rows is summed, and spread where one asks for all",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Rows = infty::RowGradient<T, B>;
  const auto rows = [](std::vector<infty::Index> list, std::vector<T> values) {
    const auto n = static_cast<infty::Index>(list.size());
    return Rows{Tensor<infty::Index, B>::from({n}, list), Tensor<T, B>::from({n, 2}, values), 4};
  };
  Variable<T, B> table(Tensor<T, B>::zeros({4, 2}), true);
  table.set_grad_by_rows(true);
  const Variable<T, B> handle = table;
  CHECK(handle.grad_by_rows());
  CHECK(table.row_grad() == nullptr);
  handle.add_row_grad(rows({1, 3}, {1, 2, 3, 4}));
  handle.add_row_grad(rows({0, 3}, {5, 6, 7, 8}));
  handle.add_row_grad(rows({}, {}));
  CHECK(table.has_grad());
  REQUIRE(table.row_grad());
  CHECK(table.row_grad()->rows.to_vector() == std::vector<infty::Index>{0, 1, 3});
  CHECK(table.row_grad()->values.to_vector() == std::vector<T>{5, 6, 1, 2, 10, 12});
  CHECK(table.grad().to_vector() == std::vector<T>{5, 6, 1, 2, 0, 0, 10, 12});
  CHECK(table.row_grad() == nullptr);
  table.add_row_grad(rows({2}, {1, 1}));  // a whole one has arrived
  CHECK(table.row_grad() == nullptr);
  CHECK(table.grad().to_vector() == std::vector<T>{5, 6, 1, 2, 1, 1, 10, 12});

  table.zero_grad();
  table.add_row_grad(rows({2}, {1, 1}));
  CHECK(table.row_grad());
  table.zero_grad();
  CHECK_FALSE(table.has_grad());
  CHECK(table.grad().to_vector() == std::vector<T>(8, T(0)));
  table.set_grad_by_rows(false);
  table.zero_grad();
  table.add_row_grad(rows({2}, {1, 1}));
  CHECK(table.row_grad() == nullptr);
  CHECK(table.grad().to_vector() == std::vector<T>{0, 0, 0, 0, 1, 1, 0, 0});
}

TEST_CASE("Variable: gradients of rows that arrive one by one are those that arrive together") {
  using Rows = infty::RowGradient<double, infty::EigenBackend>;
  constexpr infty::Index count = 40;
  Variable<double> rows(Tensor<double>::zeros({count, 1}), true), whole(rows.value().clone(), true);
  rows.set_grad_by_rows(true);
  infty::Random random(infty::tests::seed);
  for (int i = 0; i < 500; ++i) {
    const infty::Index row = random.below(count), next = (row + 1) % count;
    const auto value = Tensor<double>::from({1, 1}, {random.uniform()});
    for (auto* const table : {&rows, &whole})
      table->add_row_grad(
          Rows{Tensor<infty::Index>::from({1}, {i % 7 == 0 ? next : row}), value, count});
    if (i % 90 == 0) CHECK(rows.row_grad() != nullptr);  // what is asked for meanwhile is joined
    if (i == 333) {
      rows.zero_grad();
      whole.zero_grad();
    }
  }
  REQUIRE(rows.row_grad() != nullptr);
  CHECK(rows.row_grad()->rows.size() <= count);
  CHECK(rows.grad().to_vector() == whole.grad().to_vector());  // in the order of arrival
}

TEST_CASE("Variable: rows of another table are refused, and those of an older shape forgotten") {
  Variable<float> table(Tensor<float>::zeros({4, 2}), true);
  table.set_grad_by_rows(true);
  const auto one = Tensor<infty::Index>::from({1}, {1});
  CHECK_THROWS_WITH(table.add_row_grad({one, Tensor<float>::zeros({1, 3}), 4}),
                    "[add_row_grad] the rows are [1, 3] of 4, the table is [4, 2]");
  CHECK_THROWS_AS(table.add_row_grad({one, Tensor<float>::zeros({1, 2}), 5}), infty::ShapeError);
  CHECK_THROWS_AS(table.add_row_grad({one, Tensor<float>::zeros({}), 4}), infty::ShapeError);
  CHECK_FALSE(table.has_grad());
  table.add_row_grad({one, Tensor<float>::full({1, 2}, 1), 4});
  CHECK(table.to<infty::EigenBackend>().grad_by_rows());
  table.value() = Tensor<float>::zeros({2, 2});
  CHECK_FALSE(table.has_grad());
  CHECK(table.grad().to_vector() == std::vector<float>(4, 0));
}

TEMPLATE_LIST_TEST_CASE("Variable: rows that are too many, not there or not in order are refused",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Variable<T, B> table(Tensor<T, B>::zeros({4, 2}), true);
  table.set_grad_by_rows(GENERATE(false, true));
  const auto add = [&](std::vector<infty::Index> list, infty::Index values) {
    table.add_row_grad({Tensor<infty::Index, B>::from({std::ssize(list)}, list),
                        Tensor<T, B>::full({values, 2}, T(1)), 4});
  };
  const std::string shapes = ": they must be [n] and [n, ...]";
  CHECK_THROWS_WITH(add({0, 1, 2}, 2),
                    "[add_row_grad] the rows are [3], their values [2, 2]" + shapes);
  CHECK_THROWS_AS(add({0}, 2), infty::ShapeError);
  const std::string rising = ": rows must rise in [0, 4)";
  CHECK_THROWS_WITH(add({0, 4}, 2), "[add_row_grad] row 4 at place 1" + rising);
  CHECK_THROWS_WITH(add({-1, 0}, 2), "[add_row_grad] row -1 at place 0" + rising);
  CHECK_THROWS_WITH(add({1, 3, 3}, 3), "[add_row_grad] row 3 at place 2" + rising);
  CHECK_THROWS_AS(add({1'000'000}, 1), infty::ValueError);
  CHECK_FALSE(table.has_grad());
  add({0, 3}, 2);
  CHECK(table.grad().to_vector() == std::vector<T>{1, 1, 0, 0, 0, 0, 1, 1});
}
