// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>
#include <vector>

#include <infty/autograd/broadcast.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

namespace {

// Repeated rows, columns and numbers; both sides repeated; dimensions that are joined and some that
// are not; nothing at all.
const std::vector<std::pair<Shape, Shape>>& shapes_that_fit() {
  static const std::vector<std::pair<Shape, Shape>> all{{{2, 3}, {3}},
                                                        {{2, 3}, {2, 1}},
                                                        {{2, 3}, {}},
                                                        {{2, 3}, {1, 1}},
                                                        {{4, 1}, {1, 5}},
                                                        {{2, 3, 4}, {3, 1}},
                                                        {{2, 1, 4, 1}, {3, 1, 5}},
                                                        {{2, 3, 4, 5}, {3, 4, 5}},
                                                        {{2, 3, 4, 5}, {2, 1, 4, 1}},
                                                        {{1, 3, 1, 2, 1, 2}, {2, 1, 2, 1, 3, 1}},
                                                        {{0, 3}, {3}},
                                                        {{2, 3}, {2, 3}},
                                                        {{70, 5}, {5}},
                                                        {{}, {}}};
  return all;
}

/// Element i of a tensor of the shape `to`, as it stands in a tensor that is repeated to it.
template <class T, class B>
T element(const Tensor<T, B>& x, const Shape& to, Index i) {
  Index at = 0, step = 1;
  for (Index d = 1; d <= to.rank(); ++d) {
    const Index place = i % to[-d];
    i /= to[-d];
    if (d > x.rank()) continue;
    if (x.dim(-d) > 1) at += place * step;
    step *= x.dim(-d);
  }
  return x.to_vector()[static_cast<std::size_t>(at)];
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("broadcast: every element meets the right one", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const auto& [p, q] : shapes_that_fit())
    for (const bool turned : {false, true}) {
      const auto a = uniform_variable<T, B>(turned ? q : p, random),
                 b = uniform_variable<T, B>(turned ? p : q, random);
      const auto sum = a + b, difference = a - b, product = a * b;
      CAPTURE(a.shape(), b.shape());
      const Shape to = infty::detail::broadcast_shape("test", p, q);
      REQUIRE(sum.shape() == to);
      REQUIRE(difference.shape() == to);
      REQUIRE(product.shape() == to);
      const auto sums = sum.value().to_vector(), differences = difference.value().to_vector(),
                 products = product.value().to_vector();
      for (Index i = 0; i < to.size(); ++i) {
        const T x = element(a.value(), to, i), y = element(b.value(), to, i);
        const auto at = static_cast<std::size_t>(i);
        CHECK(sums[at] == x + y);
        CHECK(differences[at] == x - y);
        CHECK(products[at] == x * y);
      }
    }
}

TEMPLATE_LIST_TEST_CASE("broadcast: gradients are summed over what was repeated", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const auto& [p, q] : shapes_that_fit()) {
    const auto a = uniform_variable<T, B>(p, random), b = uniform_variable<T, B>(q, random);
    const Shape to = infty::detail::broadcast_shape("test", p, q);
    const auto seed = infty::tests::uniform_tensor<T, B>(to, random);
    infty::Tape tape;
    tape.backward(a * b - b, seed);
    std::vector<double> da(static_cast<std::size_t>(a.size())),
        db(static_cast<std::size_t>(b.size()));
    // Which element that is: read from tensors that hold their own places.
    const auto places = [](const Shape& shape) {
      Tensor<Index> out(shape);
      for (Index i = 0; i < shape.size(); ++i) out.data()[i] = i;
      return out;
    };
    const auto in_a = places(p), in_b = places(q);
    const auto d = seed.to_vector(), x = a.value().to_vector(), y = b.value().to_vector();
    for (Index i = 0; i < to.size(); ++i) {
      const auto j = static_cast<std::size_t>(element(in_a, to, i)),
                 k = static_cast<std::size_t>(element(in_b, to, i)),
                 at = static_cast<std::size_t>(i);
      da[j] += static_cast<double>(d[at]) * static_cast<double>(y[k]);
      db[k] += static_cast<double>(d[at]) * (static_cast<double>(x[j]) - 1);
    }
    CAPTURE(p, q);
    CHECK(infty::tests::error(a.grad().to_vector(), da) < infty::tests::tolerance<T>);
    CHECK(infty::tests::error(b.grad().to_vector(), db) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("broadcast: gradients against differences") {
  Random random(infty::tests::seed);
  for (const auto& [p, q] : shapes_that_fit()) {
    const auto a = uniform_variable<double>(p, random), b = uniform_variable<double>(q, random);
    const auto loss = [&] {
      const auto y = a * b + a - b;
      return infty::sum(y * y);
    };
    CAPTURE(p, q);
    // Quartic in all; differences are off by rounding, 1e-16 * loss / 1e-5.
    CHECK(infty::gradient_check(loss, std::vector{a, b}) < 1e-7);
  }
}

TEST_CASE("broadcast: a tensor may meet itself") {
  const Variable<double> x(Tensor<double>::from({1, 2}, {3, 5}), true);
  infty::Tape tape;
  tape.backward(infty::sum(x * x + x));
  CHECK(x.grad().to_vector() == std::vector<double>{7, 11});
}

TEST_CASE("broadcast: shapes that do not fit") {
  const Variable<float> a(Tensor<float>::zeros({2, 3})), b(Tensor<float>::zeros({2}));
  CHECK_THROWS_WITH(
      a + b, "[add] a is [2, 3], b is [2]: extents, counted from the last, must be equal or 1");
  CHECK_THROWS_WITH(
      a - b,
      "[subtract] a is [2, 3], b is [2]: extents, counted from the last, must be equal or 1");
  CHECK_THROWS_WITH(
      b * a,
      "[multiply] a is [2], b is [2, 3]: extents, counted from the last, must be equal or 1");
}
