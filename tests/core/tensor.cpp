// SPDX-License-Identifier: MIT
#include <new>
#include <type_traits>
#include <vector>

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
