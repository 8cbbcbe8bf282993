// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/autograd/variable.hpp>

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
