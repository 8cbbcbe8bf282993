// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/slot_attention.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace slot_attention_tests {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::slot_attention;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_variable;

/// Two rows, three slots, five tokens, two heads of three; row 1 sees its last `seen` tokens.
template <class T, class B>
struct Case {
  using V = Variable<T, B>;
  static constexpr Index rows = 2, slots = 3, tokens = 5, heads = 2, head_dim = 3;

  V q, own_key, own_value, k, v;
  Index seen;
  double temperature = .5;

  explicit Case(Index seen_, Random random = Random(infty::tests::seed))
      : q(uniform_variable<T, B>({rows, slots, heads * head_dim}, random)),
        own_key(uniform_variable<T, B>(q.shape(), random)),
        own_value(uniform_variable<T, B>(q.shape(), random)),
        k(uniform_variable<T, B>({rows, tokens, heads * head_dim}, random)),
        v(uniform_variable<T, B>(k.shape(), random)),
        seen(seen_) {}

  V run() const {
    return slot_attention(q, own_key, own_value, k, v,
                          {.heads = heads,
                           .temperature = temperature,
                           .visible = Tensor<Index, B>::from({rows}, {tokens, seen})});
  }

  /// Slot by slot, head by head.
  std::vector<double> by_definition() const {
    const auto numbers = [](const V& x) {
      const auto all = x.value().to_vector();
      return std::vector<double>(all.begin(), all.end());
    };
    const auto pq = numbers(q), pok = numbers(own_key), pov = numbers(own_value), pk = numbers(k),
               pv = numbers(v);
    std::vector<double> out;
    for (Index row = 0; row < rows; ++row)
      for (Index slot = 0; slot < slots; ++slot)
        for (Index h = 0; h < heads; ++h) {
          const auto at = [&](Index length, Index i) {
            return static_cast<std::size_t>(((row * length + i) * heads + h) * head_dim);
          };
          const std::size_t own = at(slots, slot);
          double total = 0;
          std::vector<double> sum(head_dim, 0.);
          const auto add = [&](const double* key, const double* value) {
            double score = 0;
            for (std::size_t j = 0; j < head_dim; ++j) score += pq[own + j] * key[j];
            const double weight = std::exp(score / std::sqrt(double(head_dim)) / temperature);
            total += weight;
            for (std::size_t j = 0; j < head_dim; ++j) sum[j] += weight * value[j];
          };
          add(&pok[own], &pov[own]);
          for (Index i = row == 0 ? 0 : tokens - seen; i < tokens; ++i)
            add(&pk[at(tokens, i)], &pv[at(tokens, i)]);
          for (const double x : sum) out.push_back(x / total);
        }
    return out;
  }
};

TEMPLATE_LIST_TEST_CASE("slot_attention: a slot reads itself and the tokens that count", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index seen : {0, 2, 5}) {
    CAPTURE(seen);
    const Case<T, B> c(seen);
    CHECK(infty::tests::error(c.run().value().to_vector(), c.by_definition()) <
          infty::tests::tolerance<T>);
  }
  // Scores that would overflow leave the largest alone.
  Case<T, B> sharp(2);
  sharp.temperature = 1e-30;
  for (const T x : sharp.run().value().to_vector()) CHECK(std::abs(x) <= 1);
}

TEST_CASE("slot_attention: gradients are those of central differences") {
  for (const Index seen : {0, 2}) {
    const Case<double, infty::EigenBackend> c(seen);
    Random random(2);
    const auto weight = uniform_variable<double>(c.q.shape(), random);
    CHECK(gradient_check([&] { return sum(c.run() * weight); },
                         std::vector{c.q, c.own_key, c.own_value, c.k, c.v}) < 1e-8);
    // One that alone needs a gradient.
    CHECK(gradient_check([&] { return sum(c.run() * weight); }, std::vector{c.own_key}) < 1e-8);
  }
}

TEST_CASE("slot_attention: what does not fit is refused") {
  const Case<double, infty::EigenBackend> c(2);
  const auto run = [&](const auto& q, const auto& k, infty::SlotAttentionOptions<> options) {
    return slot_attention(q, c.own_key, c.own_value, k, k, options);
  };
  CHECK_THROWS_WITH(run(c.q, Variable<double>(Tensor<double>::zeros({2, 0, 6})), {}),
                    Catch::Matchers::Contains("K >= 1"));
  CHECK_THROWS_AS(run(c.k, c.k, {}), infty::ShapeError);
  CHECK_THROWS_WITH(run(c.q, c.k, {.heads = 4}), Catch::Matchers::Contains("heads are 4"));
  CHECK_THROWS_WITH(run(c.q, c.k, {.temperature = 0}),
                    Catch::Matchers::Contains("temperature is 0"));
  CHECK_THROWS_AS(run(c.q, c.k, {.visible = Tensor<Index>::zeros({1})}), infty::ShapeError);
  CHECK_THROWS_WITH(run(c.q, c.k, {.visible = Tensor<Index>::from({2}, {5, 6})}),
                    Catch::Matchers::Contains("visible is 6 for row 1"));
}

}  // namespace slot_attention_tests
