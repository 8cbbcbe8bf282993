// SPDX-License-Identifier: MIT
// Weights of a softmax that are lost beside the largest one leave no numbers below the least normal
// one, for which processors take ten times as long.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/plain_attention.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace small_weights_tests {

using infty::Index, infty::Random, infty::Tensor, infty::Variable, infty::tests::uniform_variable;

template <class T>
bool all_normal(const Tensor<T>& x) {
  const auto numbers = x.to_vector();
  return std::all_of(numbers.begin(), numbers.end(), [](T number) {
    return number == T(0) || !(std::abs(number) < std::numeric_limits<T>::min());
  });
}

// Of scores that fall by `slope` a place, the weights of some are too small, whatever the length.
template <class T>
constexpr T slope = std::is_same_v<T, float> ? T(1) : T(6);

}  // namespace small_weights_tests

TEMPLATE_TEST_CASE("relative_attention: far keys' gradients are normal numbers or 0", "", float,
                   double) {
  using namespace small_weights_tests;
  using T = TestType;
  Random random(infty::tests::seed);
  const Index keys = 160, D = 4;
  for (const Index queries : {2, 40}) {
    const auto k = uniform_variable<T>({1, keys, D}, random),
               v = uniform_variable<T>({1, keys, D}, random),
               u = uniform_variable<T>({1, D}, random);
    auto q = uniform_variable<T>({1, queries, D}, random), w = uniform_variable<T>({1, D}, random),
         r = uniform_variable<T>({keys, D}, random);
    for (Index i = 0; i < queries; ++i) q.value().data()[i * D] = 0;
    w.value().data()[0] = 1;
    for (Index c = 0; c < keys; ++c)
      r.value().data()[c * D] = -2 * slope<T> * static_cast<T>(keys - 1 - c);
    infty::Tape tape;
    const auto y = infty::relative_attention(q, k, v, r, u, w);
    tape.backward(infty::mean(y * y));
    CAPTURE(queries);
    for (const auto& x : {k, v, r}) CHECK(all_normal(x.grad()));
    CHECK(v.grad().to_vector()[0] == 0);      // the first key is that far
    CHECK(v.grad().to_vector().back() != 0);  // and the last is not
  }
}

TEMPLATE_TEST_CASE("scaled_dot_product_attention: gradients of lost keys are normal numbers or 0",
                   "", float, double) {
  using namespace small_weights_tests;
  using T = TestType;
  Random random(infty::tests::seed);
  const Index keys = 160, D = 4;
  for (const Index queries : {2, 40}) {
    auto q = uniform_variable<T>({1, queries, D}, random, T(1), T(2)),
         k = uniform_variable<T>({1, keys, D}, random);
    const auto v = uniform_variable<T>({1, keys, D}, random);
    for (Index i = 0; i < queries; ++i) q.value().data()[i * D] = 1;
    for (Index j = 0; j < keys; ++j)
      k.value().data()[j * D] = -2 * slope<T> * static_cast<T>(keys - 1 - j);
    infty::Tape tape;
    const auto y = infty::scaled_dot_product_attention(q, k, v, {.heads = 1});
    tape.backward(infty::mean(y * y));
    CAPTURE(queries);
    for (const auto& x : {k, v}) CHECK(all_normal(x.grad()));
    CHECK(v.grad().to_vector()[0] == 0);
    CHECK(v.grad().to_vector().back() != 0);
  }
}

TEMPLATE_TEST_CASE("cross_entropy: gradients of lost classes are normal numbers or 0", "", float,
                   double) {
  using namespace small_weights_tests;
  using T = TestType;
  Random random(infty::tests::seed);
  const Index classes = 400;
  auto logits = uniform_variable<T>({3, classes}, random);
  for (Index i = 0; i < 3 * classes; ++i)
    logits.value().data()[i] -= slope<T> * static_cast<T>(i % classes);
  infty::Tape tape;
  tape.backward(infty::cross_entropy(logits, Tensor<Index>::from({3}, {0, 5, 300})));
  CHECK(all_normal(logits.grad()));
  CHECK(logits.grad().to_vector()[classes - 1] == 0);
}
