// SPDX-License-Identifier: MIT
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::matmul;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

namespace {

// A shared right side, equal batches, shared left sides, batches that are repeated on either side
// and in the middle, and nothing in every place.
const std::vector<std::pair<Shape, Shape>>& factors_that_fit() {
  static const std::vector<std::pair<Shape, Shape>> all{{{2, 3}, {3, 4}},
                                                        {{5, 2, 3}, {3, 4}},
                                                        {{2, 5, 1, 3}, {3, 1}},
                                                        {{5, 2, 3}, {5, 3, 4}},
                                                        {{2, 3}, {5, 3, 4}},
                                                        {{2, 5, 7, 3}, {2, 5, 3, 1}},
                                                        {{2, 1, 7, 3}, {5, 3, 2}},
                                                        {{2, 1, 3, 1, 2, 3}, {1, 4, 1, 2, 3, 2}},
                                                        {{3, 2, 2, 2, 3}, {3, 1, 2, 3, 2}},
                                                        {{0, 2, 3}, {0, 3, 4}},
                                                        {{0, 2, 3}, {3, 4}},
                                                        {{0, 2, 3}, {1, 3, 4}},
                                                        {{5, 0, 3}, {5, 3, 4}},
                                                        {{5, 2, 0}, {5, 0, 4}},
                                                        {{2, 0}, {0, 4}},
                                                        {{5, 2, 3}, {5, 3, 0}}};
  return all;
}

/// The product of batch `i` of the result, by the definition.
template <class T>
std::vector<double> by_definition(const Tensor<T>& a, const Tensor<T>& b, const Shape& to) {
  const Index m = to[-2], n = to[-1], k = a.dim(-1);
  const auto begin = [&](const Tensor<T>& x, Index batch) {
    Index at = 0, step = x.dim(-1) * x.dim(-2);
    for (Index d = 3; d <= to.rank(); ++d) {
      const Index place = batch % to[-d];
      batch /= to[-d];
      if (d > x.rank()) continue;
      if (x.dim(-d) > 1) at += place * step;
      step *= x.dim(-d);
    }
    return x.data() + at;
  };
  std::vector<double> out;
  for (Index batch = 0; batch < to.size(0, to.rank() - 2); ++batch) {
    const T *const x = begin(a, batch), *const y = begin(b, batch);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        double sum = 0;
        for (Index p = 0; p < k; ++p)
          sum += static_cast<double>(x[i * k + p]) * static_cast<double>(y[p * n + j]);
        out.push_back(sum);
      }
  }
  return out;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("matmul: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> a(Tensor<T, B>::from({2, 1, 2}, {1, 2, 3, 4}));
  const Variable<T, B> b(Tensor<T, B>::from({2, 2, 2}, {1, 0, 0, 1, 2, 3, 4, 5}));
  CHECK(matmul(a, b).value().to_vector() == std::vector<T>{1, 2, 22, 29});
  const Variable<T, B> shared(Tensor<T, B>::from({2, 1}, {10, 1}));
  CHECK(matmul(a, shared).value().to_vector() == std::vector<T>{12, 34});
  const Variable<T, B> row(Tensor<T, B>::from({2}, {3, 4}));
  CHECK(matmul(row, shared).shape() == Shape{1});
  CHECK(matmul(row, shared).value().item() == T(34));
}

TEMPLATE_LIST_TEST_CASE("matmul: equals its definition, whatever is shared", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const auto& [p, q] : factors_that_fit()) {
    const auto a = uniform_variable<T, B>(p, random), b = uniform_variable<T, B>(q, random);
    const auto y = matmul(a, b);
    CAPTURE(p, q, y.shape());
    CHECK(y.shape().rank() ==
          (q.rank() == 2
               ? p.rank()
               : infty::detail::broadcast_shape("", p.with(-1, 1), q.with(-2, 1)).rank()));
    CHECK(infty::tests::error(y.value().to_vector(),
                              by_definition(a.value().template to<infty::EigenBackend>(),
                                            b.value().template to<infty::EigenBackend>(),
                                            y.shape())) < infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("matmul: gradients are those of double", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const auto& [p, q] : factors_that_fit()) {
    const auto a = uniform_variable<T, B>(p, random), b = uniform_variable<T, B>(q, random);
    const Variable<double> x(a.value().template to<infty::EigenBackend>().template cast<double>(),
                             true),
        y(b.value().template to<infty::EigenBackend>().template cast<double>(), true);
    {
      infty::Tape tape;
      const auto product = matmul(a, b);
      tape.backward(infty::sum(product * product));
    }
    {
      infty::Tape tape;
      const auto product = matmul(x, y);
      tape.backward(infty::sum(product * product));
    }
    CAPTURE(p, q);
    CHECK(infty::tests::error(a.grad().to_vector(), x.grad().to_vector()) <
          infty::tests::tolerance<T>);
    CHECK(infty::tests::error(b.grad().to_vector(), y.grad().to_vector()) <
          infty::tests::tolerance<T>);
  }
}

TEST_CASE("matmul: gradients against differences") {
  Random random(infty::tests::seed);
  for (const auto& [p, q] : factors_that_fit()) {
    const auto a = uniform_variable<double>(p, random), b = uniform_variable<double>(q, random);
    const auto loss = [&] {
      const auto y = matmul(a, b);
      return infty::sum(y * y);
    };
    CAPTURE(p, q);
    // Differences of quadratics are off by rounding alone, 1e-16 * loss / 1e-5.
    CHECK(infty::gradient_check(loss, std::vector{a, b}) < 1e-8);
  }
}

TEST_CASE("matmul: gradients only where they are needed") {
  Random random(infty::tests::seed);
  const auto a = uniform_variable<double>({2, 3, 4}, random).detach();
  const auto b = uniform_variable<double>({1, 4, 5}, random);
  infty::Tape tape;
  tape.backward(infty::sum(matmul(a, b)));
  CHECK_FALSE(a.has_grad());
  CHECK(b.has_grad());
}

TEST_CASE("matmul: shapes that do not fit") {
  const auto zeros = [](const Shape& shape) {
    return Variable<float>(Tensor<float>::zeros(shape));
  };
  CHECK_THROWS_WITH(matmul(zeros({2, 3}), zeros({2, 3})),
                    "[matmul] a is [2, 3], b is [2, 3]: they must be [..., m, k] and [..., k, n]");
  CHECK_THROWS_AS(matmul(zeros({3}), zeros({2, 3, 4})), infty::ShapeError);
  CHECK_THROWS_AS(matmul(zeros({}), zeros({3, 4})), infty::ShapeError);
  CHECK_THROWS_AS(matmul(zeros({3, 4}), zeros({4})), infty::ShapeError);
  CHECK_THROWS_WITH(
      matmul(zeros({2, 3, 4}), zeros({3, 4, 5})),
      "[matmul] a is [2], b is [3]: extents, counted from the last, must be equal or 1");
}
