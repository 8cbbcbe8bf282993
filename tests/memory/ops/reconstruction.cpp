// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/memory/ops/reconstruction.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::content_attention;
using infty::Index;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("content_attention: the definition, one query after the other", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr Index L = 3, E = 4, H = 2, D = 3, e = H * D;
  Random random(infty::tests::seed);
  const Variable<T, B> q(infty::tests::uniform_tensor<T, B>({3, L, e}, random, -2, 2)),
      k(infty::tests::uniform_tensor<T, B>({3, E, e}, random, -2, 2)),
      v(infty::tests::uniform_tensor<T, B>({3, E, e}, random));
  const RowCounts length{E, 2, 0};
  const auto y = content_attention(q, k, v, H, length);
  const auto pq = q.value().to_vector(), pk = k.value().to_vector(), pv = v.value().to_vector();
  const auto at = [](const std::vector<T>& x, Index row, Index count, Index i, Index c) {
    return static_cast<double>(x[static_cast<std::size_t>((row * count + i) * e + c)]);
  };
  std::vector<double> expected;
  for (Index row = 0; row < 3; ++row)
    for (Index i = 0; i < L; ++i)
      for (Index c = 0; c < e; ++c) {
        const Index head = c / D;
        double total = 0, sum = 0;
        for (Index j = E - length[static_cast<std::size_t>(row)]; j < E; ++j) {
          double score = 0;
          for (Index f = head * D; f < (head + 1) * D; ++f)
            score += at(pq, row, L, i, f) * at(pk, row, E, j, f);
          const double weight = std::exp(score / std::sqrt(static_cast<double>(D)));
          total += weight;
          sum += weight * at(pv, row, E, j, c);
        }
        expected.push_back(total > 0 ? sum / total : 0);
      }
  CHECK(infty::tests::error(y.value().to_vector(), expected) < infty::tests::tolerance<T>);
  const Variable<T, B> none(Tensor<T, B>::zeros({3, 0, e}));
  CHECK(content_attention(q, none, none, H, {0, 0, 0}).value().to_vector() ==
        std::vector<T>(static_cast<std::size_t>(3 * L * e)));
}

TEST_CASE("content_attention: gradients, none to keys that a row has not") {
  Random random(infty::tests::seed);
  const auto q = infty::tests::uniform_variable<double>({2, 3, 4}, random),
             k = infty::tests::uniform_variable<double>({2, 4, 4}, random),
             v = infty::tests::uniform_variable<double>({2, 4, 4}, random);
  const auto loss = [&] {
    const auto y = content_attention(q, k, v, 2, {4, 1});
    return infty::sum(y * y);
  };
  CHECK(infty::gradient_check(loss, std::vector{q, k, v}) < 1e-8);
  for (std::size_t i = 16; i < 28; ++i) CHECK(v.grad().to_vector()[i] == 0);
}

TEMPLATE_LIST_TEST_CASE("squared_error: over the vectors that a row has", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Variable<T, B> a(Tensor<T, B>::from({2, 2, 1}, {1, 2, 3, 4}));
  const auto b = Tensor<T, B>::from({2, 2, 1}, {0, 0, 0, 1});
  CHECK(infty::detail::squared_error(a, b, {2, 1}, T(0.5)).value().item() == T(7));
}

TEST_CASE("squared_error: gradient") {
  Random random(infty::tests::seed);
  const auto a = infty::tests::uniform_variable<double>({2, 3, 2}, random);
  const auto b = infty::tests::uniform_tensor<double>({2, 3, 2}, random);
  const auto loss = [&] { return infty::detail::squared_error(a, b, {3, 2}, 0.7); };
  CHECK(infty::gradient_check(loss, std::vector{a}) < 1e-8);
}

TEST_CASE("content_attention: shapes that do not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  CHECK_THROWS_WITH(
      content_attention(zeros({2, 3, 4}), zeros({2, 5, 4}), zeros({2, 5, 4}), 3, {5, 5}),
      "[content_attention] q is [2, 3, 4], k [2, 5, 4], v [2, 5, 4], heads 3, 2 "
      "lengths: they must be [B, L, HD], [B, E, HD] twice, B lengths");
  CHECK_THROWS_AS(content_attention(zeros({2, 3, 4}), zeros({2, 5, 4}), zeros({2, 5, 4}), 2, {5}),
                  infty::ShapeError);
}
