// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/local_attention.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::local_attention;
using infty::LocalAttentionOptions;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace local_attention_tests {

/// A case of 2 rows, 4 queries behind 3 keys more, 2 heads of 3.
template <class T, class B = infty::EigenBackend>
struct Case {
  Index key_heads;
  Variable<T, B> q, k, v, bias;

  explicit Case(bool shared) : key_heads(shared ? 1 : 2) {
    Random random(infty::tests::seed);
    q = uniform_variable<T, B>({2, 4, 6}, random);
    k = uniform_variable<T, B>({2, 7, 3 * key_heads}, random);
    v = uniform_variable<T, B>({2, 7, 3 * key_heads}, random);
    bias = uniform_variable<T, B>({2, 7}, random);
  }
};

constexpr int all_options = 4;

/// Every option once; not in a vector, at which GCC 12 breaks down on some backends.
template <class B>
LocalAttentionOptions<B> option(int which, Index key_heads) {
  LocalAttentionOptions<B> o{.heads = 2, .key_heads = key_heads};
  if (which % 2 == 1) {
    o.window = 2;
    o.log_sum = true;
  }
  if (which >= 2) {
    o.strict = true;
    o.visible = Tensor<Index, B>::from({2}, {0, 2});
  }
  if (which == 3) o.null_score = -.3;
  return o;
}

/// The definition, pair by pair.
template <class T, class B>
std::vector<double> by_pairs(const Case<T, B>& c, const LocalAttentionOptions<B>& o) {
  const auto q = c.q.value().to_vector(), k = c.k.value().to_vector(), v = c.v.value().to_vector(),
             bias = c.bias.value().to_vector();
  const auto visible = o.visible.empty() ? std::vector<Index>{3, 3} : o.visible.to_vector();
  std::vector<double> y;
  for (Index b = 0; b < 2; ++b)
    for (Index i = 0; i < 4; ++i)
      for (Index h = 0; h < 2; ++h) {
        double sum = o.null_score ? std::exp(*o.null_score) : 0, read[3] = {};
        for (Index j = 0; j < 7; ++j) {
          const Index n = i + 3 - j, key = (b * 7 + j) * c.key_heads + h * (c.key_heads - 1);
          if (n < (o.strict ? 1 : 0) || (o.window > 0 && n > o.window) ||
              j < 3 - visible[static_cast<std::size_t>(b)])
            continue;
          double score = static_cast<double>(bias[static_cast<std::size_t>(h * 7 + n)]);
          for (Index d = 0; d < 3; ++d)
            score +=
                static_cast<double>(q[static_cast<std::size_t>(((b * 4 + i) * 2 + h) * 3 + d)]) *
                static_cast<double>(k[static_cast<std::size_t>(key * 3 + d)]);
          sum += std::exp(score);
          for (Index d = 0; d < 3; ++d)
            read[d] +=
                std::exp(score) * static_cast<double>(v[static_cast<std::size_t>(key * 3 + d)]);
        }
        for (const double x : read) y.push_back(sum > 0 ? x / sum : 0);
        if (o.log_sum) y.push_back(std::log(sum));
      }
  return y;
}

TEMPLATE_LIST_TEST_CASE("local_attention: the definition, pair by pair", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const bool shared : {false, true}) {
    const Case<T, B> c(shared);
    for (int which = 0; which < all_options; ++which) {
      const auto o = option<B>(which, c.key_heads);
      CAPTURE(shared, o.window, o.strict, o.log_sum);
      const auto y = local_attention(c.q, c.k, c.v, c.bias, o);
      CHECK(y.shape() == Shape{2, 4, 2, o.log_sum ? 4 : 3});
      CHECK(infty::tests::error(y.value().to_vector(), by_pairs(c, o)) <
            infty::tests::tolerance<T>);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("local_attention_weights: what values are averaged by", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const bool shared : {false, true}) {
    const Case<T, B> c(shared);
    const auto v = c.v.value().to_vector();
    for (int which = 0; which < all_options; ++which) {
      auto o = option<B>(which, c.key_heads);
      o.log_sum = false;
      CAPTURE(shared, o.window, o.strict);
      const auto weights = local_attention_weights(c.q, c.k, c.bias, o);
      REQUIRE(weights.shape() == Shape{2, 2, 4, 7});
      const auto p = weights.to_vector();
      std::vector<double> y;
      for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t i = 0; i < 4; ++i)
          for (std::size_t h = 0; h < 2; ++h)
            for (std::size_t d = 0; d < 3; ++d) {
              double sum = 0;
              for (std::size_t j = 0; j < 7; ++j)
                sum += static_cast<double>(p[((b * 2 + h) * 4 + i) * 7 + j]) *
                       static_cast<double>(
                           v[shared ? (b * 7 + j) * 3 + d : ((b * 7 + j) * 2 + h) * 3 + d]);
              y.push_back(sum);
            }
      CHECK(infty::tests::error(y, by_pairs(c, o)) < infty::tests::tolerance<T>);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("local_attention: gradients are added, alone and together", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Case<T, B> c(false);
  const auto o = option<B>(3, 2);
  const auto run = [&] {
    infty::Tape tape;
    tape.backward(infty::sum(local_attention(c.q, c.k, c.v, c.bias, o)));
  };
  run();
  const std::vector<Variable<T, B>> inputs{c.q, c.k, c.v, c.bias};
  std::vector<std::vector<T>> once;
  for (const auto& x : inputs) once.push_back(x.grad().to_vector());
  run();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for (std::size_t j = 0; j < once[i].size(); ++j)
      CHECK(static_cast<double>(inputs[i].grad().to_vector()[j]) ==
            Approx(2 * static_cast<double>(once[i][j])).margin(1e-6));
}

TEST_CASE("local_attention: gradients are those of differences") {
  for (const bool shared : {false, true}) {
    const Case<double> c(shared);
    for (int which = 0; which < all_options; ++which) {
      const auto o = option<infty::EigenBackend>(which, c.key_heads);
      // Where a query sees nothing the logarithm is -infinity, and of no use.
      Random random(5);
      const Variable<double> weight(uniform_tensor<double>({2, 4, 2, o.log_sum ? 4 : 3}, random));
      const auto loss = [&] {
        return infty::sum(local_attention(c.q, c.k, c.v, c.bias, o) * weight);
      };
      CAPTURE(shared, o.window, o.strict, o.log_sum);
      CHECK(infty::gradient_check(loss, std::vector{c.q, c.k, c.v, c.bias}) < 1e-8);
    }
  }
}

TEST_CASE("local_attention: a bias over many distances takes the gradient of every pair") {
  Random random(6);  // more distances than a band of 64
  const auto q = uniform_variable<double>({1, 3, 2}, random);
  const auto k = uniform_variable<double>({1, 150, 2}, random);
  const auto v = uniform_variable<double>({1, 150, 2}, random);
  const auto bias = uniform_variable<double>({1, 150}, random);
  const Variable<double> weight(uniform_tensor<double>({1, 3, 1, 2}, random));
  const auto loss = [&] { return infty::sum(local_attention(q, k, v, bias, {}) * weight); };
  CHECK(infty::gradient_check(loss, std::vector{bias}) < 1e-8);
}

TEMPLATE_LIST_TEST_CASE(
    "local_attention: with dropout, what plain attention makes of the same mask", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Of one row, head and query the weights lie alike in both.
  Random random(infty::tests::seed), draws(4), same(4);
  const auto q = uniform_variable<T, B>({1, 1, 3}, random);
  const auto k = uniform_variable<T, B>({1, 9, 3}, random);
  const auto v = uniform_variable<T, B>({1, 9, 3}, random);
  LocalAttentionOptions<B> options{.dropout = .4, .random = &draws};
  const auto got = local_attention(q, k, v, Variable<T, B>(), options).value().to_vector();
  const auto expected = infty::scaled_dot_product_attention(
      q, k, v, {.causal = true, .scale = 1., .dropout = .4, .random = &same});
  CHECK(infty::tests::error(got, expected.value().to_vector()) < infty::tests::tolerance<T>);
  CHECK(draws.counter() == same.counter());
  options.random = nullptr;
  const auto plain = local_attention(q, k, v, Variable<T, B>(), options).value().to_vector();
  CHECK(plain == local_attention(q, k, v, Variable<T, B>(), {}).value().to_vector());
  CHECK(plain != got);
}

TEST_CASE("local_attention: gradients with dropout, of a mask that is fixed") {
  const Case<double> c(false);
  for (int which = 0; which < all_options; ++which) {
    auto o = option<infty::EigenBackend>(which, c.key_heads);
    o.dropout = .3;
    Random random(5);
    const Variable<double> weight(uniform_tensor<double>({2, 4, 2, o.log_sum ? 4 : 3}, random));
    const auto loss = [&] {
      Random draws(6);
      o.random = &draws;
      return infty::sum(local_attention(c.q, c.k, c.v, c.bias, o) * weight);
    };
    CHECK(infty::gradient_check(loss, std::vector{c.q, c.k, c.v, c.bias}) < 1e-8);
  }
}

TEST_CASE("local_attention: what does not fit is refused") {
  const Case<float> c(false);
  const auto refused = [&](const auto& q, const auto& k, const auto& bias,
                           LocalAttentionOptions<> o) {
    CHECK_THROWS_AS(local_attention(q, k, k, bias, o), infty::ShapeError);
  };
  const LocalAttentionOptions<> two{.heads = 2, .key_heads = 2};
  refused(c.q, c.q, c.bias, two);             // a bias of other distances
  refused(c.k, c.q, Variable<float>(), two);  // more queries than keys
  refused(c.q, c.k, c.bias, {.heads = 4, .key_heads = 4});
  refused(c.q, c.k, c.bias, {.heads = 2, .key_heads = 1});
  refused(c.q, c.k, c.bias, {.heads = 2, .key_heads = 2, .visible = Tensor<Index>::zeros({3})});
  CHECK_THROWS_AS(
      local_attention(c.q, c.k, c.v, c.bias,
                      {.heads = 2, .key_heads = 2, .visible = Tensor<Index>::from({2}, {0, 4})}),
      infty::ValueError);
  CHECK_THROWS_AS(
      local_attention(c.q, c.k, c.v, c.bias, {.heads = 2, .key_heads = 2, .window = -1}),
      infty::ValueError);
  for (const double wrong : {infty::math::not_a_number<double>, 1e300})
    CHECK_THROWS_AS(
        local_attention(c.q, c.k, c.v, c.bias, {.heads = 2, .key_heads = 2, .null_score = wrong}),
        infty::ValueError);
}

}  // namespace local_attention_tests
