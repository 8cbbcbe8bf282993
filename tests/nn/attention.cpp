// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/nn/attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

namespace {

/// The inputs of one call, drawn evenly.
template <class T, class B = infty::EigenBackend>
struct Case {
  Index batch, queries, keys, heads, head_dim;
  Variable<T, B> q, k, v, r, u, w;

  Case(Index rows, Index L, Index K, Index H, Index D, Random random = Random(infty::tests::seed))
      : batch(rows), queries(L), keys(K), heads(H), head_dim(D) {
    q = uniform_variable<T, B>({rows, L, H * D}, random);
    k = uniform_variable<T, B>({rows, K, H * D}, random);
    v = uniform_variable<T, B>({rows, K, H * D}, random);
    r = uniform_variable<T, B>({K, H * D}, random);
    u = uniform_variable<T, B>({H, D}, random);
    w = uniform_variable<T, B>({H, D}, random);
  }

  Variable<T, B> read(const Tensor<Index, B>& visible = {}) const {
    return infty::relative_attention(q, k, v, r, u, w, visible);
  }

  /// The definition, one sum after the other.
  std::vector<double> by_definition(const std::vector<Index>& visible = {}) const {
    const Index M = keys - queries, e = heads * head_dim;
    const auto host = [](const Variable<T, B>& x) { return x.value().to_vector(); };
    const std::vector<T> hq = host(q), hk = host(k), hv = host(v), hr = host(r), hu = host(u),
                         hw = host(w);
    const auto at = [](const std::vector<T>& x, Index i) {
      return static_cast<double>(x[static_cast<std::size_t>(i)]);
    };
    std::vector<double> out;
    for (Index b = 0; b < batch; ++b)
      for (Index i = 0; i < queries; ++i)
        for (Index h = 0; h < heads; ++h) {
          const Index first = visible.empty() ? 0 : M - visible[static_cast<std::size_t>(b)];
          std::vector<double> weight;
          double total = 0;
          for (Index j = first; j <= M + i; ++j) {
            double score = 0;
            for (Index c = h * head_dim; c < (h + 1) * head_dim; ++c) {
              const double query = at(hq, (b * queries + i) * e + c);
              score += (query + at(hu, c)) * at(hk, (b * keys + j) * e + c);
              // Row c of r stands for distance keys - 1 - c.
              score += (query + at(hw, c)) * at(hr, (keys - 1 - (M + i - j)) * e + c);
            }
            weight.push_back(std::exp(score / std::sqrt(static_cast<double>(head_dim))));
            total += weight.back();
          }
          for (Index c = h * head_dim; c < (h + 1) * head_dim; ++c) {
            double sum = 0;
            for (Index j = first; j <= M + i; ++j)
              sum += weight[static_cast<std::size_t>(j - first)] / total *
                     at(hv, (b * keys + j) * e + c);
            out.push_back(sum);
          }
        }
    return out;
  }
};

template <class T, class B>
double size_of_worst(const Variable<T, B>& x) {
  double worst = 0;
  for (const T value : x.value().to_vector())
    worst = std::isfinite(value) ? std::max(worst, std::abs(static_cast<double>(value)))
                                 : std::numeric_limits<double>::infinity();
  return worst;
}

}  // namespace

TEST_CASE("relative_attention: two keys by hand") {
  // One query with a memory of one: scores q k + q r = 1 * 1 + 1 * 0 and 0 + log 3 - 1 + 1.
  const auto one = [](double x) { return Variable<double>(Tensor<double>::full({1, 1, 1}, x)); };
  const Variable<double> k(Tensor<double>::from({1, 2, 1}, {1, 0}));
  const Variable<double> v(Tensor<double>::from({1, 2, 1}, {10, 20}));
  const Variable<double> r(Tensor<double>::from({2, 1}, {0, 1 + std::log(3.0)}));
  const Variable<double> zero(Tensor<double>::zeros({1, 1}));
  CHECK(infty::relative_attention(one(1), k, v, r, zero, zero).value().item() == Approx(17.5));
}

TEMPLATE_LIST_TEST_CASE("relative_attention: equals its definition", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const auto& [rows, L, K, H, D] : std::vector<std::array<Index, 5>>{{1, 1, 1, 1, 1},
                                                                          {2, 3, 3, 1, 4},
                                                                          {3, 5, 12, 3, 2},
                                                                          {2, 17, 50, 2, 7},
                                                                          {1, 1, 40, 2, 3}}) {
    const Case<T, B> c(rows, L, K, H, D);
    CAPTURE(rows, L, K, H, D);
    CHECK(infty::tests::error(c.read().value().to_vector(), c.by_definition()) <
          infty::tests::tolerance<T>);
    std::vector<Index> visible;
    for (Index b = 0; b < rows; ++b) visible.push_back(b * (K - L) / 2 % (K - L + 1));
    CHECK(infty::tests::error(c.read(Tensor<Index, B>::from({rows}, visible)).value().to_vector(),
                              c.by_definition(visible)) < infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("relative_attention: the logarithms of the denominators", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Scores of 0 but for those by content: all keys of a head are alike, query i sees 3 + i of them.
  const Index L = 5, K = 7, H = 2, D = 3;
  const auto full = [](Shape shape, double x) {
    return Variable<T, B>(Tensor<T, B>::full(shape, static_cast<T>(x)));
  };
  Random random(infty::tests::seed);
  Tensor<T, B> log_sum;
  for (const bool limited : {false, true}) {
    const auto visible = limited ? Tensor<Index, B>::from({1}, {1}) : Tensor<Index, B>();
    infty::relative_attention(full({1, L, H * D}, 1), full({1, K, H * D}, 2),
                              uniform_variable<T, B>({1, K, H * D}, random), full({K, H * D}, 0.5),
                              full({H, D}, -2), full({H, D}, 3), visible, &log_sum);
    REQUIRE(log_sum.shape() == Shape{1, L, H});
    const auto logs = log_sum.to_vector();
    // ((1 - 2) 2 + (1 + 3) 0.5) 3 / sqrt(3) = 0
    for (Index i = 0; i < L; ++i)
      for (Index h = 0; h < H; ++h)
        CHECK(static_cast<double>(logs[static_cast<std::size_t>(i * H + h)]) ==
              Approx(std::log(static_cast<double>(i + (limited ? 2 : 3)))).epsilon(1e-6));
  }
}

TEST_CASE("relative_attention: gradients of all inputs, with and without `visible`") {
  for (const auto& [L, K] : std::vector<std::array<Index, 2>>{{1, 1}, {3, 3}, {3, 8}, {1, 4}}) {
    const Case<double> c(2, L, K, 2, 3);
    Random random(7);
    const Variable<double> weight(infty::tests::uniform_tensor<double>({2, L, 6}, random));
    for (const bool limited : {false, true}) {
      const Tensor<Index> visible =
          limited ? Tensor<Index>::from({2}, {0, (K - L + 1) / 2}) : Tensor<Index>();
      const auto loss = [&] { return infty::sum(c.read(visible) * weight); };
      CAPTURE(L, K, limited);
      CHECK(infty::gradient_check(loss, std::vector{c.q, c.k, c.v, c.r, c.u, c.w}) < 1e-8);
    }
  }
}

TEST_CASE("relative_attention: causal, in values and gradients") {
  const Index L = 6, K = 9, e = 4;
  Case<double> c(1, L, K, 2, 2);
  const auto before = c.read().value().to_vector();
  infty::Tape tape;
  const auto y = c.read();
  tape.backward(infty::sum(infty::narrow(y, 0, 3)));
  for (Index j = K - L + 3; j < K; ++j)
    for (Index i = 0; i < e; ++i) {
      CHECK(c.k.grad().data()[j * e + i] == 0);
      CHECK(c.v.grad().data()[j * e + i] == 0);
      c.k.value().data()[j * e + i] = 1e30;
      c.v.value().data()[j * e + i] = -1e30;
    }
  const auto after = c.read().value().to_vector();
  for (std::size_t i = 0; i < static_cast<std::size_t>(3 * e); ++i) CHECK(after[i] == before[i]);
}

TEST_CASE("relative_attention: what is not visible may be anything") {
  Case<double> c(2, 2, 5, 1, 3);
  const auto visible = Tensor<Index>::from({2}, {1, 3});
  const auto before = c.read(visible).value().to_vector();
  c.k.value().slice(0, 1).reshape({15}).slice(0, 6).fill(1e30);
  c.v.value().slice(0, 1).reshape({15}).slice(0, 6).fill(-1e30);
  CHECK(c.read(visible).value().to_vector() == before);
}

TEMPLATE_LIST_TEST_CASE("relative_attention: large and tiny scores stay finite", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const double size : {1e15, 1e-38}) {
    Case<T, B> c(1, 3, 6, 1, 4);
    for (auto* x : {&c.q, &c.k}) {
      auto numbers = x->value().to_vector();
      for (T& number : numbers) number *= static_cast<T>(size);
      *x = Variable<T, B>(Tensor<T, B>::from(x->shape(), numbers), true);
    }
    infty::Tape tape;
    const auto y = c.read();
    CHECK(size_of_worst(y) <= 1.0001);  // an average of values in [-1, 1)
    tape.backward(infty::sum(y));
    for (const T g : c.v.grad().to_vector()) CHECK(std::isfinite(g));
  }
}

TEST_CASE("relative_attention: the same bits with one thread and with two") {
  const auto run = [] {
    const Case<float> c(3, 40, 100, 2, 8);
    return infty::tests::read_and_gradients(c, Tensor<Index>::from({3}, {0, 60, 17}));
  };
  CHECK(infty::tests::with_threads(1, run) == infty::tests::with_threads(2, run));
}

TEST_CASE("relative_attention: shapes and values that do not fit") {
  const Case<float> c(2, 3, 5, 2, 2), other(2, 3, 6, 2, 2), longer(2, 6, 6, 2, 2);
  CHECK_THROWS_WITH(
      infty::relative_attention(longer.q, c.k, c.v, c.r, c.u, c.w),
      "[relative_attention] q is [2, 6, 4], k [2, 5, 4], v [2, 5, 4], r [5, 4], u [2, 2], w [2, "
      "2]: they must be [B, L, HD], [B, K, HD] twice, [K, HD], [H, D] twice, K >= L");
  CHECK_THROWS_AS(infty::relative_attention(c.q, c.k, other.v, c.r, c.u, c.w), infty::ShapeError);
  CHECK_THROWS_AS(infty::relative_attention(c.q, c.k, c.v, other.r, c.u, c.w), infty::ShapeError);
  CHECK_THROWS_AS(c.read(Tensor<Index>::from({3}, {0, 0, 0})), infty::ShapeError);
  CHECK_THROWS_WITH(c.read(Tensor<Index>::from({2}, {3, 0})),
                    "[relative_attention] visible is 3 for row 0: it must lie in [0, 2]");
  CHECK_THROWS_AS(c.read(Tensor<Index>::from({2}, {-1, 0})), infty::ValueError);
}
