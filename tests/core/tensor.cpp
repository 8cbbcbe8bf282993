// SPDX-License-Identifier: MIT
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "support/other_backend.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Shape;
using infty::ShapeError;
using infty::Tensor;

static_assert(std::is_same_v<Tensor<float>, Tensor<float, infty::EigenBackend>>);
static_assert(std::is_nothrow_move_constructible_v<Tensor<float>>);

TEMPLATE_LIST_TEST_CASE("Tensor: made of zeros, of a value, of host elements", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  CHECK(X::zeros({2, 2}).to_vector() == std::vector<T>(4, T(0)));
  CHECK(X::full({3}, T(2.5)).to_vector() == std::vector<T>(3, T(2.5)));
  const std::vector<T> elements{1, 2, 3, 4, 5, 6};
  const X x = X::from({2, 3}, elements);
  CHECK(x.to_vector() == elements);
  CHECK(x.shape() == Shape{2, 3});
  CHECK(x.rank() == 2);
  CHECK(x.size() == 6);
  CHECK(x.dim(-1) == 3);
  CHECK(x.bytes() == 6 * sizeof(T));
  CHECK_FALSE(x.empty());
  CHECK(X::from({3}, elements.data()).to_vector() == std::vector<T>{1, 2, 3});
  CHECK_THROWS_WITH(X::from({2, 2}, elements), "[Tensor::from] 6 elements do not fill [2, 2]");
}

TEMPLATE_LIST_TEST_CASE("Tensor: empty ones work like others", "", infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  X none;
  CHECK(none.shape() == Shape{0});
  CHECK(none.empty());
  CHECK(none.to_vector().empty());
  none.fill(T(1));
  CHECK(none.clone().shape() == Shape{0});
  CHECK(none.slice(0, 0).empty());
  CHECK(none.reshape({4, 0}).shape() == Shape{4, 0});
  X hollow(Shape{3, 0});
  CHECK(hollow.slice(1, 2).shape() == Shape{1, 0});
  CHECK(X::zeros({}).item() == T(0));
}

TEMPLATE_LIST_TEST_CASE("Tensor: copies, reshape and slice share elements, clone does not", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  X x = X::from({3, 2}, {1, 2, 3, 4, 5, 6});
  X handle = x;
  X flat = x.reshape({6});
  X tail = x.slice(1, 3);
  X inner = tail.slice(1, 2).reshape({2, 1});
  const X copy = x.clone();
  CHECK(handle.data() == x.data());
  CHECK(flat.data() == x.data());
  CHECK(tail.data() == x.data() + 2);
  CHECK(inner.data() == x.data() + 4);
  CHECK(copy.data() != x.data());

  tail.fill(T(9));
  CHECK(x.to_vector() == std::vector<T>{1, 2, 9, 9, 9, 9});
  CHECK(flat.to_vector() == x.to_vector());
  CHECK(inner.to_vector() == std::vector<T>{9, 9});
  CHECK(copy.to_vector() == std::vector<T>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("Tensor: a view keeps the elements alive") {
  Tensor<float> tail;
  {
    const auto x = Tensor<float>::from({2, 2}, {1, 2, 3, 4});
    tail = x.slice(1, 2);
  }
  const auto other = Tensor<float>::full({2, 2}, 7.0F);  // would reuse the block if it were free
  CHECK(tail.to_vector() == std::vector<float>{3, 4});
}

TEST_CASE("Tensor: wrap is the caller's own memory") {
  std::vector<double> memory{1, 2, 3, 4};
  {
    auto x = Tensor<double>::wrap(memory.data(), {2, 2});
    CHECK(x.data() == memory.data());
    x.slice(0, 1).fill(5);
    CHECK(memory == std::vector<double>{5, 5, 3, 4});
    memory[3] = 8;
    CHECK(x.to_vector().back() == 8);
  }
  CHECK(memory == std::vector<double>{5, 5, 3, 8});  // nobody has freed it

  const std::vector<double> constant{1, 2};
  const auto y = Tensor<double>::wrap(constant.data(), {2});
  CHECK(y.data() == constant.data());
}

TEST_CASE("Tensor: memory that was wrapped as const is not written, through no handle or view") {
  const std::vector<double> constant{1, 2, 3, 4};
  const auto x = Tensor<double>::wrap(constant.data(), {2, 2});
  const Index version = x.version();
  Tensor<double> copy = x, row = x.slice(0, 1), flat = copy.reshape({4});
  const auto ones = Tensor<double>::full({2, 2}, 1);
  for (Tensor<double>* const tensor : {&copy, &row, &flat}) {
    CHECK_THROWS_WITH(tensor->data(),
                      "[Tensor] the memory was wrapped as const and must not be written: ask a "
                      "const tensor for data(), or write to a clone()");
    CHECK_THROWS_AS(tensor->fill(5), infty::ValueError);
    CHECK(std::as_const(*tensor).data() == constant.data());
  }
  CHECK_THROWS_AS(copy.copy_from(ones), infty::ValueError);
  Tensor<double> moved = std::move(copy);
  CHECK_THROWS_AS(moved.fill(5), infty::ValueError);
  moved = x;
  CHECK_THROWS_AS(moved.fill(5), infty::ValueError);
  CHECK(constant == std::vector<double>{1, 2, 3, 4});
  CHECK(x.version() == version);
  auto own = x.clone();
  own.fill(5);
  CHECK(own.to_vector() == std::vector<double>(4, 5));
  own.copy_from(x);
  CHECK(own.to_vector() == constant);
  moved = own;  // a handle of other memory may be written again
  moved.fill(6);
  CHECK(own.to_vector() == std::vector<double>(4, 6));
}

TEMPLATE_LIST_TEST_CASE("Tensor: writes count, through any handle or view, and reading does not",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  X x = X::from({3, 2}, {1, 2, 3, 4, 5, 6});
  X handle = x, tail = x.slice(1, 3), flat = x.reshape({6}), copy = x.clone();
  const X constant = x;
  Index last = x.version();
  const auto counted = [&] {
    const bool more = x.version() > last;
    last = x.version();
    return more && constant.version() == last && tail.version() == last && flat.version() == last;
  };
  handle.fill(T(2));
  CHECK(counted());
  tail.data();
  CHECK(counted());
  flat.copy_from(X::zeros({6}));
  CHECK(counted());
  tail.slice(0, 1).reshape({2}).fill(T(1));
  CHECK(counted());
  X moved = std::move(handle);
  moved.fill(T(3));
  CHECK(counted());

  CHECK(constant.data() != nullptr);
  CHECK(x.to_vector() == constant.to_vector());
  x.clone().fill(T(4));
  copy.fill(T(5));
  x.template cast<float>().fill(6);
  x.slice(0, 1);
  x.reshape({6});
  x = X::zeros({1});  // another tensor, which has a count of its own
  CHECK(constant.version() == last);
}

TEST_CASE("Tensor: writes to memory that the caller owns count, too") {
  std::vector<float> memory(4);
  auto x = Tensor<float>::wrap(memory.data(), {2, 2});
  const auto view = x.slice(1, 2);
  const Index before = view.version();
  x.fill(1);
  CHECK(view.version() > before);
}

TEST_CASE("Tensor: writes of several threads to parts of one tensor are all counted") {
  auto x = Tensor<float>::zeros({4, 8});
  const Index before = x.version();
  std::vector<std::thread> threads;
  for (Index i = 0; i < 4; ++i)
    threads.emplace_back([part = x.slice(i, i + 1)]() mutable {
      for (int k = 0; k < 1000; ++k) part.fill(static_cast<float>(k));
    });
  for (auto& thread : threads) thread.join();
  CHECK(x.version() == before + 4000);
  CHECK(x.to_vector() == std::vector<float>(32, 999.0F));
}

TEMPLATE_LIST_TEST_CASE("Tensor: two handles are the same if they show the same elements", "",
                        infty::tests::Types) {
  using X = Tensor<typename TestType::T, typename TestType::B>;
  const X x = X::zeros({2, 2}), handle = x;
  CHECK(same(x, handle));
  CHECK(same(x, x.slice(0, 2)));
  CHECK_FALSE(same(x, x.clone()));
  CHECK_FALSE(same(x, x.reshape({4})));
  CHECK_FALSE(same(x.slice(0, 1), x.slice(1, 2)));
}

TEMPLATE_LIST_TEST_CASE("Tensor: one that was moved from is empty, and can be used again", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  X x = X::full({2, 3}, T(7));
  X y = std::move(x);
  CHECK(y.shape() == Shape{2, 3});
  CHECK(x.shape() == Shape{0});
  CHECK(x.empty());
  CHECK(x.data() == nullptr);
  CHECK(x.to_vector().empty());
  x.fill(T(1));
  CHECK(x.clone().shape() == Shape{0});
  CHECK_THROWS_AS(x.slice(0, 1), ShapeError);
  CHECK_THROWS_AS(x.copy_from(y), ShapeError);
  x = std::move(y);
  CHECK(x.to_vector() == std::vector<T>(6, T(7)));
  CHECK(y.shape() == Shape{0});
  X& self = x;
  x = std::move(self);
  CHECK(x.to_vector() == std::vector<T>(6, T(7)));
}

TEST_CASE("Tensor: copy_from needs an equal shape") {
  auto x = Tensor<float>::zeros({2, 2});
  x.copy_from(Tensor<float>::full({2, 2}, 3));
  CHECK(x.to_vector() == std::vector<float>(4, 3.0F));
  CHECK_THROWS_WITH(x.copy_from(Tensor<float>::zeros({4})), "[copy_from] [4] into [2, 2]");
}

TEST_CASE("Tensor: wrong views are refused with their shapes") {
  const auto x = Tensor<float>::zeros({3, 2});
  CHECK_THROWS_WITH(x.reshape({7}), "[reshape] [3, 2] to [7]: the number of elements must stay");
  CHECK_THROWS_WITH(x.slice(2, 4), "[slice] [2, 4) of [3, 2]");
  CHECK_THROWS_WITH(x.slice(-1, 1), "[slice] [-1, 1) of [3, 2]");
  CHECK_THROWS_WITH(x.slice(2, 1), "[slice] [2, 1) of [3, 2]");
  CHECK_THROWS_AS(Tensor<float>::zeros({}).slice(0, 0), ShapeError);
  CHECK_THROWS_WITH(x.item(), "[item] [3, 2] has not one element");
}

TEST_CASE("Tensor: cast rounds to the nearest number of the other type") {
  const auto x = Tensor<double>::from({2}, {0.1, -3});
  const Tensor<float> y = x.cast<float>();
  CHECK(y.to_vector() == std::vector<float>{0.1F, -3.0F});
  CHECK(y.cast<double>().to_vector() == std::vector<double>{static_cast<double>(0.1F), -3});
  const auto halves = x.cast<infty::BFloat16>();
  CHECK(halves.cast<double>().to_vector() == std::vector<double>{0.10009765625, -3});
}

TEMPLATE_LIST_TEST_CASE("Tensor: to another backend and back", "", infty::tests::Types) {
  using T = typename TestType::T;
  using X = Tensor<T, typename TestType::B>;
  const X x = X::from({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto there = x.template to<infty::tests::OtherBackend>();
  CHECK(std::is_same_v<decltype(there), const Tensor<T, infty::tests::OtherBackend>>);
  CHECK(there.shape() == x.shape());
  CHECK(there.to_vector() == x.to_vector());
  CHECK(there.data() != x.data());
  CHECK(x.slice(1, 2).template to<infty::tests::OtherBackend>().to_vector() ==
        std::vector<T>{4, 5, 6});
  CHECK(X().template to<infty::tests::OtherBackend>().shape() == Shape{0});

  auto same = x.template to<typename TestType::B>();
  same.fill(0);
  CHECK(x.to_vector() == std::vector<T>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("Tensor: a size that no machine holds is std::bad_alloc, not a wrapped product") {
  CHECK_THROWS_AS(Tensor<double>(Shape{Index{1} << 62}), std::bad_alloc);
  CHECK_THROWS_AS(Tensor<double>(Shape{Index{1} << 61, 2}), std::bad_alloc);
  CHECK_THROWS_AS(Tensor<float>(Shape{(Index{1} << 62) - 1}), std::bad_alloc);
}
