// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/memory/ops/retrieved_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/nearest_case.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::retrieved_attention;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::NearestCase;

TEMPLATE_LIST_TEST_CASE("retrieved_attention: two of three entries by hand", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  infty::KeyValueStore<T, B> store(2, 1, 1, 2);  // a block holds two
  // Of row 0 keys 1, 2, 0 and values 10, 20, 30; of row 1 nothing.
  store.append({Tensor<T, B>::from({2, 3, 2}, {1, 10, 2, 20, 0, 30, 0, 0, 0, 0, 0, 0}), {3, 0}}, 9);
  const Variable<T, B> q(Tensor<T, B>::full({2, 1, 1}, std::log(T(3))), true);
  const auto indices = Tensor<Index, B>::from({2, 1, 1, 3}, {0, 2, -1, -1, -1, -1});
  infty::Tape tape;
  const auto y = retrieved_attention(q, store.latest(9), indices, true);
  CHECK(y.shape() == Shape{2, 1, 1, 2});
  const auto got = y.value().to_vector();  // weights 3/4 and 1/4
  CHECK(static_cast<double>(got[0]) == Approx(15));
  CHECK(static_cast<double>(got[1]) == Approx(std::log(4.)));
  CHECK(got[2] == 0);
  CHECK(got[3] == -infty::math::infinity<T>);
  // The store goes on, and what was read stays.
  store.append({Tensor<T, B>::full({2, 3, 2}, T(99)), {3, 3}}, 3);
  tape.backward(y, Tensor<T, B>::from({2, 1, 1, 2}, {1, 1, 1, 0}));
  const auto dq = q.grad().to_vector();  // Σ p (v - mean + 1) k = 3/4 (10 - 15 + 1)
  CHECK(static_cast<double>(dq[0]) == Approx(-3));
  CHECK(dq[1] == 0);
}

TEST_CASE("retrieved_attention: the gradient is that of differences, through the logarithm too") {
  for (const bool shared : {false, true})
    for (const bool log_sum : {false, true}) {
      const NearestCase<double> c{.queries = 3,
                                  .heads = 2,
                                  .key_heads = shared ? 1 : 2,
                                  .head_dim = 4,
                                  .k = 5,
                                  .block = 4,
                                  .counts = {9, 2}};
      const auto stored = c.stored();
      const Variable<double> q(c.q(), true);
      const auto indices = infty::nearest(q.value(), stored, 2, 5).indices;
      infty::Random random(4);
      const Variable<double> weight(
          infty::tests::uniform_tensor<double>({2, 3, 2, log_sum ? 5 : 4}, random));
      const auto loss = [&] {
        return infty::sum(retrieved_attention(q, stored, indices, log_sum) * weight);
      };
      CHECK(infty::gradient_check(loss, std::vector{q}) < 1e-8);
    }
}

TEST_CASE("retrieved_attention: what does not fit is refused") {
  const NearestCase<float> c{
      .queries = 2, .heads = 2, .key_heads = 2, .head_dim = 3, .k = 1, .block = 8, .counts = {5}};
  const auto stored = c.stored();
  const Variable<float> q(c.q());
  const auto indices = [](Shape shape) { return Tensor<Index>::zeros(shape); };
  CHECK(retrieved_attention(q, stored, indices({1, 2, 2, 1})).shape() == Shape{1, 2, 2, 3});
  CHECK_THROWS_AS(retrieved_attention(q, stored, indices({1, 2, 3, 1})), infty::ShapeError);
  CHECK_THROWS_AS(retrieved_attention(q, stored, indices({1, 1, 2, 1})), infty::ShapeError);
  CHECK_THROWS_AS(retrieved_attention(q, stored, indices({1, 2, 2})), infty::ShapeError);
}
