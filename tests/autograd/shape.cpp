// SPDX-License-Identifier: MIT
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
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

// These operations are linear: differences of sum(weights * f²) are off by rounding alone.
constexpr double rounding_tolerance = 1e-9;

template <class F>
double check_slopes(F f, std::vector<Variable<double>> inputs) {
  Random random(infty::tests::seed, 1);
  const auto weights = uniform_variable<double>(f().shape(), random).detach();
  const auto loss = [&] {
    const auto y = f();
    return infty::sum(y * y * weights);
  };
  return infty::gradient_check(loss, std::move(inputs));
}

template <class T, class B>
Variable<T, B> counting(Shape shape, int first = 0) {
  std::vector<T> values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), static_cast<T>(first));
  return Variable<T, B>(Tensor<T, B>::from(shape, values));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("reshape, concat, narrow: values by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = std::vector<T>;
  const auto a = counting<T, B>({2, 2, 2}), b = counting<T, B>({2, 1, 2}, 10);

  const auto flat = infty::reshape(a, {8});
  CHECK(flat.value().data() == a.value().data());

  const auto joined = infty::concat(a, b);
  CHECK(joined.shape() == Shape{2, 3, 2});
  CHECK(joined.value().to_vector() == V{0, 1, 2, 3, 10, 11, 4, 5, 6, 7, 12, 13});

  const auto middle = infty::narrow(joined, 1, 3);
  CHECK(middle.shape() == Shape{2, 2, 2});
  CHECK(middle.value().to_vector() == V{2, 3, 10, 11, 6, 7, 12, 13});
  CHECK(infty::narrow(joined, 2, 2).shape() == Shape{2, 0, 2});
}

TEST_CASE("reshape, concat, narrow: gradients") {
  Random random(infty::tests::seed);
  const auto a = uniform_variable<double>({3, 4, 5}, random);
  const auto b = uniform_variable<double>({3, 2, 5}, random);
  CHECK(check_slopes([&] { return infty::reshape(a, {5, 12}); }, {a}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::concat(a, b); }, {a, b}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::concat(a, b.detach()); }, {a}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::concat(a.detach(), b); }, {b}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::concat(a, a); }, {a}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::narrow(a, 1, 3); }, {a}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::narrow(a, 0, 4); }, {a}) < rounding_tolerance);
  CHECK(check_slopes([&] { return infty::concat(infty::narrow(a, 2, 4), infty::narrow(a, 0, 3)); },
                     {a}) < rounding_tolerance);
}

TEST_CASE("concat: with nothing it is the other one") {
  Random random(infty::tests::seed);
  const auto a = uniform_variable<double>({2, 3}, random);
  const Variable<double> none(Tensor<double>::zeros({2, 0}));
  CHECK(same(infty::concat(a, none), a));
  CHECK(same(infty::concat(none, a), a));
}

TEST_CASE("transpose: of one dimension with itself it is the input") {
  const Variable<double> a(Tensor<double>::zeros({2, 3}));
  CHECK(same(infty::transpose(a, 1, -1), a));
}

TEST_CASE("reshape, concat, narrow: shapes that do not fit") {
  const Variable<float> a(Tensor<float>::zeros({2, 3, 4}));
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::reshape(a, {5}),
                    "[reshape] [2, 3, 4] to [5]: the number of elements must stay");
  CHECK_THROWS_WITH(infty::concat(a, zeros({3, 3, 4})),
                    "[concat] a is [2, 3, 4], b is [3, 3, 4]: they may differ in dimension 1 only");
  CHECK_THROWS_AS(infty::concat(a, zeros({2, 3})), infty::ShapeError);
  CHECK_THROWS_AS(infty::concat(zeros({3}), zeros({3})), infty::ShapeError);
  CHECK_THROWS_WITH(infty::narrow(a, 1, 4), "[narrow] [1, 4) of dimension 1 of [2, 3, 4]");
  CHECK_THROWS_AS(infty::narrow(a, -1, 2), infty::ShapeError);
  CHECK_THROWS_AS(infty::narrow(a, 2, 1), infty::ShapeError);
  CHECK_THROWS_AS(infty::narrow(zeros({3}), 0, 1), infty::ShapeError);
}

TEMPLATE_LIST_TEST_CASE("transpose: elements change places, and gradients back", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 5}, Shape{2, 3, 4}, Shape{2, 3, 4, 5, 2},
                             Shape{2, 0, 3}, Shape{3, 2, 0}, Shape{0, 2, 2}})
    for (Index a = 0; a < shape.rank(); ++a)
      for (Index b = 0; b < shape.rank(); ++b) {
        const auto x = uniform_variable<T, B>(shape, random);
        const auto in = x.value().to_vector();
        const Shape to = shape.with(a, shape[b]).with(b, shape[a]);
        // Where element i of the result stands in x, by its place in every dimension.
        std::vector<T> expected;
        for (Index i = 0; i < to.size(); ++i) {
          std::vector<Index> place;
          for (Index d = to.rank() - 1, rest = i; d >= 0; rest /= to[d--])
            place.insert(place.begin(), rest % to[d]);
          std::swap(place[static_cast<std::size_t>(a)], place[static_cast<std::size_t>(b)]);
          Index at = 0;
          for (Index d = 0; d < shape.rank(); ++d)
            at = at * shape[d] + place[static_cast<std::size_t>(d)];
          expected.push_back(in[static_cast<std::size_t>(at)]);
        }
        CAPTURE(shape, a, b);
        infty::Tape tape;
        const auto y = infty::transpose(x, a, b - shape.rank());
        CHECK(y.shape() == to);
        CHECK(y.value().to_vector() == expected);
        if (x.size() == 0) continue;
        // From a gradient that is the result's own value x's comes back.
        tape.backward(y, y.value().clone());
        CHECK(x.grad().to_vector() == in);
      }
}

TEST_CASE("transpose: gradients against differences; dimensions that are not there") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({2, 3, 4}, random);
  const auto twice = [&] {
    const auto y = infty::transpose(x, 0, 2);
    return infty::sum(y * y * y);
  };
  CHECK(infty::gradient_check(twice, std::vector{x}) < 1e-8);
  CHECK_THROWS_WITH(infty::transpose(x, 0, 3), "[transpose] dimensions 0 and 3 of [2, 3, 4]");
  CHECK_THROWS_AS(infty::transpose(x, -4, 0), infty::ShapeError);
}
