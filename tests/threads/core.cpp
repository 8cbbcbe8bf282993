// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "threads/at_once.hpp"

using infty::Index;
using infty::Shape;
using infty::tests::same_at_once;

TEST_CASE("threads: handles of one tensor are copied, cut and dropped anywhere") {
  using Tensor = infty::Tensor<float>;
  const auto shared = Tensor::full(Shape{8, 3}, 2);
  CHECK(same_at_once([&](int i) {
    double sum = 0;
    for (Index n = 0; n < 200; ++n) {
      const Tensor copy = shared;
      const Tensor part = copy.slice(i, i + 4).reshape(Shape{12});
      sum += part.clone().to_vector()[static_cast<std::size_t>(n % 12)];
    }
    return sum;
  }));
}

TEST_CASE("threads: each records on a tape of its own, from an input that all share") {
  using infty::Variable;
  const Variable<double> input(infty::Tensor<double>::full(Shape{5}, 3));
  CHECK(same_at_once([&](int i) {
    Variable<double> weight(infty::Tensor<double>::full(Shape{5}, i + 1.0), true);
    for (int n = 0; n < 20; ++n) {
      infty::Tape tape;
      tape.backward(infty::sum(weight * input));
    }
    return weight.grad().to_vector();
  }));
}
