// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::DeltaRuleInputs;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

namespace delta_rule_tests {

/// Inputs of a rule with a state before them, and what its outputs are weighed by in a loss.
template <class T, class B>
struct Case {
  using V = Variable<T, B>;
  DeltaRuleInputs<T, B> in;
  V state, by, by_state;

  Case(Index length, bool beta, bool decay, Index heads = 2, Index shared = 2) {
    Random random(infty::tests::seed);
    const Index batch = 2, K = 3, D = 5, H = heads * shared;
    const double most = 1 / std::sqrt(double(K));  // keys no longer than 1
    in.query = uniform_variable<T, B>({batch, length, heads, K}, random);
    in.key = uniform_variable<T, B>({batch, length, heads, K}, random, -most, most);
    in.value = uniform_variable<T, B>({batch, length, H, D}, random);
    if (beta) in.beta = uniform_variable<T, B>({batch, length, H}, random, 0, 2);
    if (decay) in.decay = uniform_variable<T, B>({batch, length, H}, random, -1, 0);
    state = uniform_variable<T, B>({batch, H, K, D}, random);
    by = V(uniform_tensor<T, B>(in.value.shape(), random));
    by_state = V(uniform_tensor<T, B>(state.shape(), random));
  }

  std::vector<V> inputs() const {
    std::vector<V> all{in.query, in.key, in.value, state};
    if (in.beta.size() > 0) all.push_back(in.beta);
    if (in.decay.size() > 0) all.push_back(in.decay);
    return all;
  }

  V loss(const infty::DeltaRuleOptions& options) const {
    const auto [output, last] = infty::delta_rule(in, state, options);
    return infty::sum(output * by) + infty::sum(last * by_state);
  }

  /// Outputs and all gradients, one behind the other.
  std::vector<T> all_of(const infty::DeltaRuleOptions& options) const {
    for (V x : inputs()) x.zero_grad();
    infty::Tape tape;
    const auto result = infty::delta_rule(in, state, options);
    tape.backward(infty::sum(result.output * by) + infty::sum(result.state * by_state));
    auto all = result.output.value().to_vector();
    const auto append = [&](const std::vector<T>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(result.state.value().to_vector());
    for (const V& x : inputs()) append(x.grad().to_vector());
    return all;
  }
};

}  // namespace delta_rule_tests

TEMPLATE_LIST_TEST_CASE("delta_rule: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  // Half of S = (8, 0) stays: (4, 0). Half of what is wrong at k = (0, 1), v - 0 = 6, is put right:
  // (4, 3). At k = (1, 0), without a decay, 1 - 4 = -3 is added in full: (1, 3).
  const V q(Tensor<T, B>::from({1, 2, 1, 2}, {1, 2, 10, 1})),
      k(Tensor<T, B>::from({1, 2, 1, 2}, {0, 1, 1, 0}));
  const V v(Tensor<T, B>::from({1, 2, 1, 1}, {6, 1})),
      beta(Tensor<T, B>::from({1, 2, 1}, {T(.5), 1})),
      decay(Tensor<T, B>::from({1, 2, 1}, {std::log(T(.5)), 0})),
      state(Tensor<T, B>::from({1, 1, 2, 1}, {8, 0}));
  for (const Index chunk : {0, 1, 2, 4}) {
    CAPTURE(chunk);
    const auto got = infty::delta_rule({q, k, v, beta, decay}, state, {.scale = 1, .chunk = chunk});
    CHECK(infty::tests::error(got.output.value().to_vector(), std::vector<T>{10, 13}) <
          infty::tests::tolerance<T>);
    CHECK(infty::tests::error(got.state.value().to_vector(), std::vector<T>{1, 3}) <
          infty::tests::tolerance<T>);
    // Without β: (8, 0) + 6 (0, 1) + 1 (1, 0)
    const auto linear = infty::delta_rule({q, k, v}, state, {.scale = 2, .chunk = chunk});
    CHECK(linear.output.value().to_vector() == std::vector<T>{40, 192});
    CHECK(linear.state.value().to_vector() == std::vector<T>{9, 6});
  }
}

TEMPLATE_LIST_TEST_CASE("delta_rule: chunks are the recurrence, and their gradients its gradients",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const bool beta : {false, true})
    for (const bool decay : {false, true}) {
      const Index length = 13;
      const delta_rule_tests::Case<T, B> one(length, beta, decay);
      const auto expected = one.all_of({.chunk = 0});
      for (const Index chunk : {1, 2, 5, 13, 32}) {
        CAPTURE(beta, decay, chunk);
        CHECK(infty::tests::error(one.all_of({.chunk = chunk}), expected) <
              4 * infty::tests::tolerance<T>);  // sums over 13 places
      }
    }
}

TEST_CASE("delta_rule: gradients of all inputs and of the state") {
  for (const bool beta : {false, true})
    for (const bool decay : {false, true})
      for (const Index chunk : {0, 2, 3}) {
        CAPTURE(beta, decay, chunk);
        const delta_rule_tests::Case<double, infty::EigenBackend> one(4, beta, decay, 2,
                                                                      chunk == 2 ? 1 : 2);
        CHECK(infty::gradient_check([&] { return one.loss({.chunk = chunk}); }, one.inputs()) <
              1e-7);
      }
}

TEST_CASE("delta_rule: a gradient comes back through the state alone, or the output alone") {
  const delta_rule_tests::Case<double, infty::EigenBackend> one(6, true, true);
  for (const Index chunk : {0, 4}) {
    const auto run = [&](bool output) {
      const auto result = infty::delta_rule(one.in, one.state, {.chunk = chunk});
      return output ? infty::sum(result.output * one.by) : infty::sum(result.state * one.by_state);
    };
    CHECK(infty::gradient_check([&] { return run(false); }, one.inputs()) < 1e-7);
    CHECK(infty::gradient_check([&] { return run(true); }, one.inputs()) < 1e-7);
  }
}

TEST_CASE("delta_rule: what has faded beyond the numbers is gone, without NaN") {
  delta_rule_tests::Case<float, infty::EigenBackend> one(40, true, true);
  one.in.decay.value().fill(-60.f);
  for (const Index chunk : {0, 16, 64})
    for (const float x : one.all_of({.chunk = chunk})) REQUIRE(std::isfinite(x));
}

TEMPLATE_LIST_TEST_CASE("delta_rule: what has faded in an instant hides no decay near it", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const double strong : {-1e8, -1e30, -std::numeric_limits<double>::infinity()}) {
    delta_rule_tests::Case<T, B> one(21, true, true);
    auto decays = one.in.decay.value().to_vector();
    for (std::size_t i = 0; i < decays.size(); i += 7) decays[i] = static_cast<T>(strong);
    one.in.decay.value().copy_from(Tensor<T, B>::from(one.in.decay.shape(), decays));
    const auto expected = one.all_of({.chunk = 0});
    for (const T x : expected) REQUIRE(std::isfinite(x));
    for (const Index chunk : {2, 8, 64}) {
      CAPTURE(strong, chunk);
      CHECK(infty::tests::error(one.all_of({.chunk = chunk}), expected) <
            4 * infty::tests::tolerance<T>);
    }
    // Of what nothing stays of, nothing is the slope.
    for (const Index chunk : {0, 8}) {
      one.all_of({.chunk = chunk});
      const auto slopes = one.in.decay.grad().to_vector();
      for (std::size_t i = 0; i < slopes.size(); i += 7) CHECK(slopes[i] == 0);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("delta_rule: quick decays in chunks are the recurrence's", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const double decay : {-0.7, -1.6, -6.0, -25.0, -43.0, -45.0}) {
    delta_rule_tests::Case<T, B> one(150, true, true);
    one.in.decay.value().fill(static_cast<T>(decay));
    CAPTURE(decay);
    CHECK(infty::tests::error(one.all_of({.chunk = 64}), one.all_of({.chunk = 0})) <
          4 * infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("delta_rule: chunks of quick decays have no numbers that are below normal",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr std::size_t C = 64;
  std::vector<T> below(C * C), product(C * C), one(C * C);
  const double rate = std::is_same_v<T, float> ? 1.6 : 12.8;  // e^-(63 rate) is below normal
  for (std::size_t i = 0; i < C; ++i) {
    one[i * C + i] = 1;
    for (std::size_t j = 0; j < i; ++j)
      below[i * C + j] = T(0.5) * infty::math::without_tail<T>(std::exp(-rate * double(i - j)));
  }
  const auto inverse =
      infty::detail::unit_lower_inverse(Tensor<T, B>::from({1, 1, C, C}, below)).to_vector();
  for (const T x : inverse) REQUIRE((x == T(0) || !(x * x < std::numeric_limits<T>::min())));
  for (std::size_t i = 0; i < C; ++i)
    for (std::size_t j = 0; j < C; ++j) {
      product[i * C + j] = inverse[i * C + j];
      for (std::size_t m = 0; m < i; ++m)
        product[i * C + j] += below[i * C + m] * inverse[m * C + j];
    }
  CHECK(infty::tests::error(product, one) < infty::tests::tolerance<T>);
}

TEST_CASE("delta_rule: β of 2 over long sequences in chunks loses no digits") {
  // Reflections, at unit keys: products of their chunks stay of norm 1.
  Random random(infty::tests::seed);
  const Shape shape{1, 300, 1, 4};
  DeltaRuleInputs<double> in;
  in.query = Variable<double>(uniform_tensor<double>(shape, random));
  std::vector<double> keys = uniform_tensor<double>(shape, random).to_vector();
  for (std::size_t i = 0; i < keys.size(); i += 4) {
    double squares = 0;
    for (std::size_t j = i; j < i + 4; ++j) squares += keys[j] * keys[j];
    for (std::size_t j = i; j < i + 4; ++j) keys[j] /= std::sqrt(squares);
  }
  in.key = Variable<double>(Tensor<double>::from(shape, keys));
  in.value = Variable<double>(uniform_tensor<double>(shape, random));
  in.beta = Variable<double>(Tensor<double>::full({1, 300, 1}, 2));
  const Variable<double> state(Tensor<double>::zeros({1, 1, 4, 4}));
  const auto by_place = infty::delta_rule(in, state, {.chunk = 0}).output.value().to_vector();
  for (const Index chunk : {64, 128})
    CHECK(infty::tests::error(
              infty::delta_rule(in, state, {.chunk = chunk}).output.value().to_vector(), by_place) <
          1e-12);
}

TEST_CASE("delta_rule: what does not fit") {
  const auto zeros = [](Shape shape) { return Variable<float>(Tensor<float>::zeros(shape)); };
  const DeltaRuleInputs<float> good{zeros({1, 2, 2, 3}), zeros({1, 2, 2, 3}), zeros({1, 2, 4, 5})};
  const auto state = zeros({1, 4, 3, 5});
  CHECK_NOTHROW(infty::delta_rule(good, state));
  const auto with = [&](auto change) {
    auto in = good;
    change(in);
    return in;
  };
  CHECK_THROWS_WITH(
      infty::delta_rule(with([&](auto& in) {
                          in.key = zeros({1, 2, 2, 4});
                        }),
                        state),
      "[delta_rule] query is [1, 2, 2, 3], key [1, 2, 2, 4], value [1, 2, 4, 5], beta [0], decay "
      "[0], state [1, 4, 3, 5]: they must be [B, L, H, K] twice, [B, L, H', D], [B, L, H'] or "
      "empty twice, and [B, H', K, D], H' a multiple of H");
  for (const auto& in : {with([&](auto& x) {
                           x.value = zeros({1, 2, 3, 5});
                         }),
                         with([&](auto& x) {
                           x.value = zeros({1, 3, 4, 5});
                         }),
                         with([&](auto& x) {
                           x.beta = zeros({1, 2, 2});
                         }),
                         with([&](auto& x) {
                           x.decay = zeros({1, 2, 4, 1});
                         }),
                         with([&](auto& x) {
                           x.query = x.key = zeros({1, 2, 0, 3});
                         })})
    CHECK_THROWS_AS(infty::delta_rule(in, state), infty::ShapeError);
  CHECK_THROWS_AS(infty::delta_rule(good, zeros({1, 2, 3, 5})), infty::ShapeError);
  CHECK_THROWS_WITH(infty::delta_rule(good, state, {.chunk = -1}),
                    "[DeltaRuleOptions] chunk is -1: it must be at least 0");
  CHECK_THROWS_WITH(infty::delta_rule(good, state, {.scale = -2}),
                    "[DeltaRuleOptions] scale is -2: it must lie in [0, 1e+30]");
  const DeltaRuleInputs<float> none{zeros({1, 0, 2, 3}), zeros({1, 0, 2, 3}), zeros({1, 0, 4, 5})};
  CHECK(infty::delta_rule(none, state).state.value().to_vector() == state.value().to_vector());
}
