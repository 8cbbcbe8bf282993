// SPDX-License-Identifier: MIT
#include <array>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/linear_of_concat.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"
#if defined(INFTY_TEST_THRUST)
#include <infty/thrust/host.hpp>
#include <infty/thrust/tensor_cores.hpp>
#endif

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("linear: y = x Wᵀ + b by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> x(Tensor<T, B>::from({2, 3}, {1, 2, 3, 4, 5, 6}));
  const Variable<T, B> weight(Tensor<T, B>::from({2, 3}, {1, 0, -1, 2, 1, 0}));
  const Variable<T, B> bias(Tensor<T, B>::from({2}, {10, 20}));
  CHECK(infty::linear(x, weight).value().to_vector() == std::vector<T>{-2, 4, -2, 13});
  CHECK(infty::linear(x, weight, bias).value().to_vector() == std::vector<T>{8, 24, 8, 33});
}

TEMPLATE_LIST_TEST_CASE("linear: all leading dimensions are rows", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const auto x = uniform_variable<T, B>({2, 3, 5, 7}, random);
  const auto weight = uniform_variable<T, B>({4, 7}, random);
  const auto y = infty::linear(x, weight);
  CHECK(y.shape() == Shape{2, 3, 5, 4});
  const auto flat = infty::linear(Variable<T, B>(x.value().reshape({30, 7})), weight);
  CHECK(y.value().to_vector() == flat.value().to_vector());
  CHECK(infty::linear(Variable<T, B>(Tensor<T, B>::zeros({7})), weight).shape() == Shape{4});
  CHECK(infty::linear(Variable<T, B>(Tensor<T, B>::zeros({0, 7})), weight).shape() == Shape{0, 4});
}

TEMPLATE_LIST_TEST_CASE(
    "linear: of a weight stored in bfloat16, the bits of one that holds the same numbers", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index in : {1, 2, 31, 96, 642})
    for (const Index out : {0, 1, 17, 70}) {
      const auto bias = uniform_variable<T, B>({out}, random);
      auto weight = uniform_variable<T, B>({out, in}, random);
      const Variable<T, B> full(weight.value().template cast<infty::BFloat16>().template cast<T>());
      weight.store_in_bfloat16();
      for (const Index rows : {0, 1, 2, 5, 8, 9, 30}) {
        const auto x = uniform_variable<T, B>({rows, in}, random);
        CAPTURE(rows, in, out);
        CHECK(infty::linear(x, weight).value().to_vector() ==
              infty::linear(x, full).value().to_vector());
        CHECK(infty::linear(x, weight, bias).value().to_vector() ==
              infty::linear(x, full, bias).value().to_vector());
      }
    }
}

TEST_CASE("linear: a gradient goes through a weight stored in bfloat16, and none to it") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({4, 6}, random),
             bias = uniform_variable<double>({3}, random);
  auto weight = uniform_variable<double>({3, 6}, random);
  weight.store_in_bfloat16();
  const auto loss = [&] {
    const auto y = infty::linear(x, weight, bias);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{x, bias}) < 1e-8);
  CHECK_FALSE(weight.has_grad());
  CHECK(weight.stored_in_bfloat16());
}

TEMPLATE_LIST_TEST_CASE("linear_of_concat: the numbers of linear(concat)", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const auto& [la, lb] : {std::array<Index, 2>{1, 1}, {3, 5}, {40, 7}, {0, 6}, {6, 0}, {0, 0}})
    for (const Index n : {1, 3})
      for (const bool with_bias : {false, true}) {
        CAPTURE(la, lb, n, with_bias);
        const auto a = uniform_variable<T, B>({n, la, 9}, random),
                   b = uniform_variable<T, B>({n, lb, 9}, random),
                   weight = uniform_variable<T, B>({4, 9}, random),
                   bias = with_bias ? uniform_variable<T, B>({4}, random) : Variable<T, B>();
        const auto y = infty::linear_of_concat(a, b, weight, bias),
                   expected = infty::linear(infty::concat(a, b), weight, bias);
        CHECK(y.shape() == Shape{n, la + lb, 4});
        CHECK(infty::tests::error(y.value().to_vector(), expected.value().to_vector()) <
              infty::tests::tolerance<T>);
      }
}

TEST_CASE("linear_of_concat: by infty's own products, the bits of linear(concat)") {
  if (!infty::detail::own_products()) return;
  const infty::ProductsScope full(infty::Products::full);
  Random random(infty::tests::seed);
  for (const Index la : {1, 31, 700})
    for (const Index lb : {1, 64, 300}) {
      const auto a = uniform_variable<float>({2, la, 70}, random),
                 b = uniform_variable<float>({2, lb, 70}, random),
                 weight = uniform_variable<float>({50, 70}, random),
                 bias = uniform_variable<float>({50}, random);
      CAPTURE(la, lb);
      const auto all = [&](const auto& map) {
        for (auto v : {a, b, weight, bias}) v.zero_grad();
        infty::Tape tape;
        const auto y = map();
        std::vector<std::vector<float>> found{y.value().to_vector()};
        tape.backward(infty::sum(y * y));
        for (const auto& v : {a, b, weight, bias}) found.push_back(v.grad().to_vector());
        return found;
      };
      CHECK(all([&] { return infty::linear_of_concat(a, b, weight, bias); }) ==
            all([&] { return infty::linear(infty::concat(a, b), weight, bias); }));
    }
}

TEST_CASE("linear_of_concat: gradients of both inputs, weight and bias") {
  Random random(infty::tests::seed);
  const auto a = uniform_variable<double>({2, 3, 5}, random),
             b = uniform_variable<double>({2, 4, 5}, random),
             weight = uniform_variable<double>({6, 5}, random),
             bias = uniform_variable<double>({6}, random);
  const auto loss = [&] {
    const auto y = infty::linear_of_concat(a, b, weight, bias);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{a, b, weight, bias}) < 1e-8);
  const Variable<double> memory(a.value());  // which takes none
  const auto behind = [&] {
    const auto y = infty::linear_of_concat(memory, b, weight, bias);
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(behind, std::vector{b, weight, bias}) < 1e-8);
}

TEST_CASE("linear_of_concat: of a weight stored in bfloat16, and of shapes that do not fit") {
  Random random(infty::tests::seed);
  const auto a = uniform_variable<float>({2, 3, 8}, random),
             b = uniform_variable<float>({2, 4, 8}, random);
  auto weight = uniform_variable<float>({6, 8}, random);
  weight.store_in_bfloat16();
  CHECK(infty::linear_of_concat(a, b, weight).value().to_vector() ==
        infty::linear(infty::concat(a, b), weight).value().to_vector());
  const auto refused = [&](Shape shape) {
    CHECK_THROWS_AS(infty::linear_of_concat(uniform_variable<float>(shape, random), b, weight),
                    infty::ShapeError);
  };
  refused({3, 3, 8});
  refused({2, 3, 7});
  refused({6, 8});
  CHECK_THROWS_WITH(
      infty::linear_of_concat(uniform_variable<float>({1, 3, 8}, random), b, weight),
      "[linear_of_concat] a is [1, 3, 8], b is [2, 4, 8]: they must be [n, L, in] and "
      "may differ in L only");
}

TEST_CASE("linear: gradients of input, weight and bias") {
  Random random(infty::tests::seed);
  // 150 rows are more than two bands of the sum over rows.
  for (const Index rows : {1, 6, 150}) {
    const auto x = uniform_variable<double>({rows, 5}, random);
    const auto weight = uniform_variable<double>({3, 5}, random);
    const auto bias = uniform_variable<double>({3}, random);
    const auto with_bias = [&] {
      const auto y = infty::linear(x, weight, bias);
      return infty::sum(y * y);
    };
    const auto without = [&] {
      const auto y = infty::linear(x, weight);
      return infty::sum(y * y);
    };
    // Quadratics: differences are off by rounding alone, 1e-16 * loss / 1e-5, where the largest
    // gradient is of the order of the loss.
    CAPTURE(rows);
    CHECK(infty::gradient_check(with_bias, std::vector{x, weight, bias}) < 1e-8);
    CHECK(infty::gradient_check(without, std::vector{x, weight}) < 1e-8);
  }
}

#if defined(INFTY_TEST_THRUST)

namespace {

struct Asked;
int times_asked = 0;
bool there_is_one = true;

}  // namespace

template <>
struct infty::detail::ThrustSystem<Asked> : ThrustSystem<Cpp> {
  static bool biased_product(Index rows, Index out, Index in, const float* x, const float* w,
                             const float* b, float* y) {
    ++times_asked;
    return there_is_one && ThrustSystem<Cpp>::biased_product(rows, out, in, x, w, b, y);
  }
};

TEST_CASE("linear: a library adds the bias where it is allowed to and can") {
  using B = infty::ThrustBackend<Asked>;
  Random random(infty::tests::seed);
  for (const auto& [rows, out, in] :
       {std::array<Index, 3>{1, 1, 1}, {7, 5, 3}, {64, 17, 33}, {0, 4, 3}, {3, 0, 2}, {3, 2, 0}}) {
    const auto x = uniform_variable<float, B>({rows, in}, random);
    const auto weight = uniform_variable<float, B>({out, in}, random);
    const auto bias = uniform_variable<float, B>({out}, random);
    const auto y = [&] { return infty::linear(x, weight, bias).value().to_vector(); };
    CAPTURE(rows, out, in);
    times_asked = 0;
    const auto expected = y();
    CHECK(times_asked == 0);
    infty::gpu::set_bias_epilogue(true);
    for (const bool has : {true, false}) {
      there_is_one = has;
      CHECK(infty::tests::error(y(), expected) < infty::tests::tolerance<float>);
    }
    infty::linear(x, weight);
    infty::gpu::set_bias_epilogue(false);
    CHECK(times_asked == (rows * out * in > 0 ? 2 : 0));
  }
}

#endif

TEST_CASE("linear: gradients only where they are needed") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({4, 5}, random).detach();
  const auto weight = uniform_variable<double>({3, 5}, random);
  infty::Tape tape;
  tape.backward(infty::sum(infty::linear(x, weight)));
  CHECK_FALSE(x.has_grad());
  CHECK(weight.has_grad());
}

TEST_CASE("linear: the gradient has the same bits with one thread and with two") {
  const auto gradient = [] {
    Random random(infty::tests::seed);
    const auto x = uniform_variable<float>({3000, 65}, random);
    const auto weight = uniform_variable<float>({33, 65}, random);
    const auto bias = uniform_variable<float>({33}, random);
    infty::Tape tape;
    const auto y = infty::linear(x, weight, bias);
    tape.backward(infty::mean(y * y));
    auto all = weight.grad().to_vector();
    for (const auto& g : {x.grad().to_vector(), bias.grad().to_vector()})
      all.insert(all.end(), g.begin(), g.end());
    return all;
  };
  CHECK(infty::tests::with_threads(1, gradient) == infty::tests::with_threads(2, gradient));
}

TEST_CASE("linear: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(infty::linear(zeros({2, 3}), zeros({4, 5})),
                    "[linear] x is [2, 3], weight is [4, 5]: x must be [..., in] and weight "
                    "[out, in]");
  CHECK_THROWS_AS(infty::linear(zeros({}), zeros({4, 5})), infty::ShapeError);
  CHECK_THROWS_AS(infty::linear(zeros({2, 5}), zeros({5})), infty::ShapeError);
  CHECK_THROWS_WITH(infty::linear(zeros({2, 5}), zeros({4, 5}), zeros({5})),
                    "[linear] bias is [5], weight is [4, 5]: bias must be [out]");
  CHECK_THROWS_AS(infty::linear(zeros({2, 5}), zeros({4, 5}), zeros({1, 4})), infty::ShapeError);
}
