// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/plain_attention_case.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::AttentionSize;
using infty::EigenBackend;
using infty::Index;
using infty::PlainAttentionOptions;
using infty::Random;
using infty::scaled_dot_product_attention;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::PlainAttentionCase;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: two keys by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Scores 2 · 0 and 2 · log 3 / 2: weights 1/4 and 3/4.
  const Variable<T, B> q(Tensor<T, B>::full({1, 1, 1}, T(2)));
  const Variable<T, B> k(Tensor<T, B>::from({1, 2, 1}, {0, std::log(T(3)) / 2}));
  const Variable<T, B> v(Tensor<T, B>::from({1, 2, 1}, {10, 20}));
  CHECK(static_cast<double>(scaled_dot_product_attention(q, k, v).value().item()) == Approx(17.5));
  const auto even = scaled_dot_product_attention(q, k, v, {.scale = 0.});
  CHECK(static_cast<double>(even.value().item()) == Approx(15));
}

TEMPLATE_LIST_TEST_CASE(
    "scaled_dot_product_attention: the backend's kernel, the composition and the definition agree",
    "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Kernel = infty::detail::chosen_t<infty::ComposedPlainAttention<B>>;
  using Composed = infty::ComposedPlainAttention<B>;
  if constexpr (std::is_same_v<B, EigenBackend>)
    static_assert(std::is_same_v<Kernel, EigenBackend::FusedPlainAttention>);
  for (const AttentionSize& s : infty::tests::plain_attention_sizes())
    for (const bool causal : {false, true})
      for (const bool limited : {false, true}) {
        if (causal && s.keys < s.queries) continue;
        CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, causal, limited);
        const PlainAttentionCase<T, B> c(s, causal, limited);
        const auto got = c.template run<Kernel>();
        auto expected = c.template run<Composed>();
        CHECK(infty::tests::error(got[0], c.by_definition()) < infty::tests::tolerance<T>);
        for (std::size_t i = 0; i < 4; ++i) {
          CAPTURE(i);
          CHECK(infty::tests::error(got[i], expected[i]) < infty::tests::tolerance<T>);
        }
        // Without a key both are -infinity.
        for (std::size_t i = 0; i < got[4].size(); ++i)
          if (got[4][i] != expected[4][i])
            CHECK(std::abs(got[4][i] - expected[4][i]) <
                  static_cast<T>(infty::tests::tolerance<T>) * (1 + std::abs(expected[4][i])));
      }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: what matmul and softmax say", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index batch = 2, L = 6, K = 9, H = 3, D = 4;
  Random random(infty::tests::seed);
  const auto q = uniform_variable<T, B>({batch, L, H * D}, random),
             k = uniform_variable<T, B>({batch, K, H * D}, random),
             v = uniform_variable<T, B>({batch, K, H * D}, random);
  const auto seed = uniform_tensor<T, B>({batch, L, H * D}, random);
  const auto gradients = [&](const Variable<T, B>& y, infty::Tape& tape) {
    for (auto x : {q, k, v}) x.zero_grad();
    tape.backward(y, seed);
    std::vector<std::vector<T>> all{y.value().to_vector()};
    for (const auto& x : {q, k, v}) all.push_back(x.grad().to_vector());
    return all;
  };
  infty::Tape tape;
  const auto fused = gradients(scaled_dot_product_attention(q, k, v, {.heads = H}), tape);
  const auto heads = [&](const Variable<T, B>& x) {
    return infty::transpose(infty::reshape(x, {batch, x.dim(1), H, D}), 1, 2);
  };
  const auto weights =
      infty::softmax(infty::matmul(heads(q), infty::transpose(heads(k), 2, 3)) / T(2));
  const auto y =
      infty::reshape(infty::transpose(infty::matmul(weights, heads(v)), 1, 2), {batch, L, H * D});
  const auto composed = gradients(y, tape);
  for (std::size_t i = 0; i < fused.size(); ++i)
    CHECK(infty::tests::error(fused[i], composed[i]) < infty::tests::tolerance<T>);
}

TEST_CASE("scaled_dot_product_attention: gradients against differences") {
  for (const AttentionSize& s : std::vector<AttentionSize>{
           {1, 1, 1, 1, 1}, {2, 3, 5, 2, 3}, {2, 6, 6, 1, 2}, {2, 5, 3, 2, 2}})
    for (const bool causal : {false, true})
      for (const bool limited : {false, true}) {
        if (causal && s.keys < s.queries) continue;
        const PlainAttentionCase<double, EigenBackend> c(s, causal, limited);
        const Variable<double> q(c.q, true), k(c.k, true), v(c.v, true), weight(c.dy);
        const PlainAttentionOptions<> options{
            .heads = s.heads, .causal = causal, .scale = 0.7, .visible = c.visible};
        const auto loss = [&] {
          return infty::sum(scaled_dot_product_attention(q, k, v, options) * weight);
        };
        CAPTURE(s.queries, s.keys, causal, limited);
        CHECK(infty::gradient_check(loss, std::vector{q, k, v}) < 1e-8);
      }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: the last query sees all keys, others fewer",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index L = 70, K = 100, e = 4;
  const PlainAttentionCase<T, B> c({1, L, K, 2, 2}, true, false);
  const Variable<T, B> q(c.q), v(c.v, true);
  Variable<T, B> k(c.k, true);
  infty::Tape tape;
  const auto y = scaled_dot_product_attention(q, k, v, {.heads = 2, .causal = true});
  const auto before = y.value().to_vector();
  tape.backward(infty::sum(infty::narrow(y, 0, 3)));
  const auto dk = k.grad().to_vector(), dv = v.grad().to_vector();
  for (Index i = 0; i < K * e; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK((dv[at] != 0) == (i / e < K - L + 3));
    if (i / e >= K - L + 3) CHECK(dk[at] == 0);
  }
  auto keys = c.k.to_vector();
  std::fill(keys.begin() + (K - L + 3) * e, keys.end(), T(1e15));
  k = Variable<T, B>(Tensor<T, B>::from(c.k.shape(), keys));
  const auto after = scaled_dot_product_attention(q, k, v, {.heads = 2, .causal = true});
  const auto numbers = after.value().to_vector();
  CHECK(std::equal(before.begin(), before.begin() + 3 * e, numbers.begin()));
  CHECK(before != numbers);
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: padding may be anything that is a number",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index L : {2, 66}) {
    const PlainAttentionCase<T, B> c({2, L, 7, 1, 3}, false, false);
    auto k = c.k.to_vector(), v = c.v.to_vector();
    const auto read = [&] {
      const Variable<T, B> keys(Tensor<T, B>::from(c.k.shape(), k)),
          values(Tensor<T, B>::from(c.v.shape(), v));
      return scaled_dot_product_attention(Variable<T, B>(c.q), keys, values,
                                          {.visible = Tensor<Index, B>::from({2}, {3, 0})})
          .value()
          .to_vector();
    };
    const auto before = read();
    for (std::size_t i = before.size() / 2; i < before.size(); ++i) CHECK(before[i] == 0);  // row 1
    std::fill_n(k.begin(), 12, T(1e30));
    std::fill_n(v.begin(), 12, T(-1e30));
    CHECK(read() == before);
  }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: large and tiny scores stay finite", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const double size : {1e15, 1e-38})
    for (const Index L : {3, 70}) {
      const PlainAttentionCase<T, B> c({1, L, 140, 1, 4}, true, false, size);
      const Variable<T, B> q(c.q, true), k(c.k, true), v(c.v, true);
      infty::Tape tape;
      const auto y = scaled_dot_product_attention(q, k, v, {.causal = true});
      // An average of values in [-1, 1).
      for (const T x : y.value().to_vector()) CHECK(std::abs(x) <= T(1.0001));
      tape.backward(infty::sum(y));
      for (const auto& x : {q, k, v})
        for (const T g : x.grad().to_vector()) CHECK(std::isfinite(g));
    }
}

TEST_CASE("scaled_dot_product_attention: only the gradients that are wanted") {
  const PlainAttentionCase<double, EigenBackend> c({2, 70, 140, 2, 6}, true, true);
  const auto gradients = [&](std::size_t wanted) {
    std::vector<Variable<double>> x;
    for (const auto& value : {c.q, c.k, c.v})
      x.emplace_back(value, wanted == 3 || wanted == x.size());
    infty::Tape tape;
    tape.backward(scaled_dot_product_attention(x[0], x[1], x[2],
                                               {.heads = 2, .causal = true, .visible = c.visible}),
                  c.dy);
    return x;
  };
  const auto all = gradients(3);
  for (std::size_t wanted = 0; wanted < 3; ++wanted) {
    const auto some = gradients(wanted);
    CAPTURE(wanted);
    for (std::size_t i = 0; i < 3; ++i) CHECK(some[i].has_grad() == (i == wanted));
    CHECK(some[wanted].grad().to_vector() == all[wanted].grad().to_vector());
  }
}

TEMPLATE_LIST_TEST_CASE("scaled_dot_product_attention: with dropout, by the weights that stay", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Index batch = 2, L = 3, K = 5, H = 2, D = 4;
  Random random(infty::tests::seed);
  const auto tensor = [&](Index length) {
    return Variable<T, B>(uniform_tensor<T, B>({batch, length, H * D}, random));
  };
  const auto q = tensor(L), k = tensor(K), v = tensor(K);
  PlainAttentionOptions<B> options{
      .heads = H, .causal = true, .visible = Tensor<Index, B>::from({batch}, {5, 4})};
  const auto plain = scaled_dot_product_attention(q, k, v, options).value().to_vector();
  const auto weights = infty::scaled_dot_product_weights(q, k, options).to_vector();
  // Nothing falls without random numbers, nor with a share of 0, which draws none.
  options.dropout = .4;
  CHECK(scaled_dot_product_attention(q, k, v, options).value().to_vector() == plain);
  Random draws(7), same(7);
  options.random = &draws;
  options.dropout = 0;
  CHECK(scaled_dot_product_attention(q, k, v, options).value().to_vector() == plain);
  CHECK(draws.counter() == same.counter());
  options.dropout = .4;
  const auto got = scaled_dot_product_attention(q, k, v, options).value().to_vector();
  const Variable<T, B> ones(Tensor<T, B>::full({H, batch, L, K}, T(1)));
  const auto keep = infty::dropout(ones, .4, same).value().to_vector();
  CHECK(draws.counter() == same.counter());
  const auto values = v.value().to_vector();
  std::vector<T> expected(got.size(), T(0));
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < H; ++h)
      for (Index i = 0; i < L; ++i)
        for (Index j = 0; j < K; ++j)
          for (Index c = 0; c < D; ++c) {
            const auto at = [](Index index) { return static_cast<std::size_t>(index); };
            expected[at(((b * L + i) * H + h) * D + c)] +=
                weights[at(((b * H + h) * L + i) * K + j)] *
                keep[at(((h * batch + b) * L + i) * K + j)] *
                values[at(((b * K + j) * H + h) * D + c)];
          }
  CHECK(infty::tests::error(got, expected) < infty::tests::tolerance<T>);
  CHECK(got != plain);
}

TEST_CASE("scaled_dot_product_attention: the gradient with dropout, of a mask that is fixed") {
  Random random(3);
  std::vector<Variable<double>> x;
  for (const Index length : {4, 6, 6})
    x.push_back(uniform_variable<double>({2, length, 6}, random));
  const auto weights = uniform_tensor<double>({2, 4, 6}, random);
  const auto loss = [&] {
    Random draws(5);
    return infty::sum(infty::multiply(
        scaled_dot_product_attention(x[0], x[1], x[2],
                                     {.heads = 2, .causal = true, .dropout = .3, .random = &draws}),
        Variable<double>(weights)));
  };
  CHECK(infty::gradient_check(loss, x) < 1e-8);
}

TEST_CASE("scaled_dot_product_attention: dropout changes no mean, and must be a share") {
  const PlainAttentionCase<double, EigenBackend> c({1, 3, 4, 2, 2}, true, false);
  const Variable<double> q(c.q), k(c.k), v(c.v);
  Random draws(11);
  PlainAttentionOptions<> options{.heads = 2, .causal = true, .dropout = .25, .random = &draws};
  const auto expected =
      scaled_dot_product_attention(q, k, v, {.heads = 2, .causal = true}).value().to_vector();
  const int runs = 20'000;
  std::vector<double> mean(expected.size(), 0);
  for (int run = 0; run < runs; ++run) {
    const auto y = scaled_dot_product_attention(q, k, v, options).value().to_vector();
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += y[i] / runs;
  }
  // A weight p is 0 or p / .75: of deviation p / sqrt(3), and values are below 1.
  CHECK(infty::tests::error(mean, expected) < 6 / std::sqrt(3. * runs));
  for (const double wrong : {-.1, 1., std::nan("")}) {
    options.dropout = wrong;
    CHECK_THROWS_AS(scaled_dot_product_attention(q, k, v, options), infty::ValueError);
  }
}

TEST_CASE("scaled_dot_product_attention: shapes and values that do not fit") {
  const auto zeros = [](const Shape& shape) {
    return Variable<float>(Tensor<float>::zeros(shape));
  };
  const auto q = zeros({2, 3, 4}), k = zeros({2, 2, 4});
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, zeros({2, 3, 4})),
                    "[scaled_dot_product_attention] q is [2, 3, 4], k [2, 2, 4], v [2, 3, 4]: they "
                    "must be [B, L, HD] and [B, K, HD] twice");
  CHECK_THROWS_AS(scaled_dot_product_attention(zeros({1, 3, 4}), k, k), infty::ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(zeros({2, 3, 5}), k, k), infty::ShapeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(zeros({3, 4}), k, k), infty::ShapeError);
  CHECK_THROWS_AS(
      scaled_dot_product_attention(q, k, k, {.scale = std::numeric_limits<double>::quiet_NaN()}),
      infty::ValueError);
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k, {.heads = 3}),
                    "[scaled_dot_product_attention] q is [2, 3, 4], heads are 3: they must divide "
                    "the last extent, which must not be 0");
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k, k, {.heads = 0}), infty::ShapeError);
  CHECK_THROWS_WITH(scaled_dot_product_attention(q, k, k, {.causal = true}),
                    "[scaled_dot_product_attention] q is [2, 3, 4], k [2, 2, 4]: causal attention "
                    "needs as many keys as queries, or more");
  CHECK_THROWS_AS(scaled_dot_product_attention(q, k, k, {.visible = Tensor<Index>::zeros({3})}),
                  infty::ShapeError);
  CHECK_THROWS_WITH(
      scaled_dot_product_attention(q, k, k, {.visible = Tensor<Index>::from({2}, {2, 3})}),
      "[scaled_dot_product_attention] visible is 3 for row 1: it must lie in [0, 2]");
}
