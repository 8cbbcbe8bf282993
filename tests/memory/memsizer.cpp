// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/memory/memsizer_layer.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "support/golden_memsizer.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace memsizer_tests {

using infty::Index;
using infty::MemSizer;
using infty::MemSizerLayer;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::numbers_of;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

constexpr infty::AttentionSizes sizes{.model_dim = 6, .heads = 2, .head_dim = 1};
const infty::MemSizerConfig small{.slots = 3, .bias = true, .query_scale = 1};

TEST_CASE("MemSizer: the authors' numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("memsizer_causal", "memsizer_cross", "memsizer_layer");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = infty::tests::replay_memsizer<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst_name, result.worst);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 14);
}

TEMPLATE_LIST_TEST_CASE("MemSizer: a segment of three chunks is its vectors one by one", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const MemSizer<T, B> memory(small, sizes, Random(2));
  const auto whole = uniform_variable<T, B>({2, 150, 6}, random);
  auto at_once = memory.make_state(2), one_by_one = at_once;
  // Rows of different age, so that they divide by different roots.
  Pass<T, B> pass;
  memory.forward(at_once, narrow(whole, 0, 3), pass);
  infty::reset_row(at_once, 1);
  one_by_one = at_once;
  const auto y = memory.forward(at_once, whole, pass).value();
  for (Index i = 0; i < 150; ++i) {
    const auto step = memory.forward(one_by_one, narrow(whole, i, i + 1), pass).value();
    const auto expected = narrow(Variable<T, B>(y), i, i + 1).value();
    CAPTURE(i);
    CHECK(error(step.to_vector(), expected.to_vector()) < 20 * infty::tests::tolerance<T>);
  }
  CHECK(error(one_by_one.memory.value().to_vector(), at_once.memory.value().to_vector()) <
        infty::tests::tolerance<T>);
  CHECK(one_by_one.seen == at_once.seen);
  CHECK(at_once.seen == infty::RowCounts{153, 150});
}

TEST_CASE("read_rolling_sums: gradients of all four, of one chunk and of several") {
  Random random(infty::tests::seed);
  for (const Index length : {1, 64, 130}) {
    const auto a = uniform_variable<double>({2, length, 2}, random),
               l = uniform_variable<double>({2, length, 2}, random),
               v = uniform_variable<double>({2, length, 3}, random),
               m = uniform_variable<double>({2, 2, 3}, random);
    const Variable<double> by(uniform_tensor<double>({2, length, 3}, random));
    const auto loss = [&] { return sum(infty::read_rolling_sums(a, l, v, m) * by); };
    CAPTURE(length);
    CHECK(infty::fast_gradient_check(loss, std::vector{a, l, v, m}, 1e-7) < 1e-7);
    // The definition, for the last place of the second row.
    const auto pa = a.value().to_vector(), pl = l.value().to_vector(), pv = v.value().to_vector(),
               pm = m.value().to_vector(),
               y = infty::read_rolling_sums(a, l, v, m).value().to_vector();
    const auto n = static_cast<std::size_t>(length);
    double expected = 0;
    for (std::size_t s = 0; s < 2; ++s) {
      double slot = pm[6 + s * 3 + 1];
      for (std::size_t j = 0; j < n; ++j) slot += pl[(n + j) * 2 + s] * pv[(n + j) * 3 + 1];
      expected += pa[(2 * n - 1) * 2 + s] * slot;
    }
    CHECK(y[(2 * n - 1) * 3 + 1] == Approx(expected));
  }
  CHECK_THROWS_AS(infty::read_rolling_sums(uniform_variable<double>({1, 2, 2}, random),
                                           uniform_variable<double>({1, 2, 2}, random),
                                           uniform_variable<double>({1, 3, 3}, random),
                                           uniform_variable<double>({1, 2, 3}, random)),
                  infty::ShapeError);
}

TEST_CASE("slot_weights: the mean of the heads' softmaxes, its gradient, and large scores") {
  const double log3 = std::log(3.0);
  const Variable<double> scores(Tensor<double>::from({1, 2, 4}, {0, log3, 0, 0, 1000, 0, 0, 0}),
                                true);
  const auto y =
      infty::slot_weights(scores, 2, Tensor<double>::from({1, 2}, {2, 1})).value().to_vector();
  CHECK(y[0] == Approx(.75));   // 2 (1/4 + 1/2) / 2
  CHECK(y[1] == Approx(1.25));  // 2 (3/4 + 1/2) / 2
  CHECK(y[2] == Approx(.75));   // (1 + 1/2) / 2
  CHECK(y[3] == Approx(.25));
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({2, 3, 6}, random);
  const auto factor = uniform_tensor<double>({2, 3}, random);
  const Variable<double> by(uniform_tensor<double>({2, 3, 2}, random));
  CHECK(infty::gradient_check([&] { return sum(infty::slot_weights(x, 3, factor) * by); },
                              std::vector{x}) < 1e-8);
  CHECK_THROWS_AS(infty::slot_weights(x, 4), infty::ShapeError);
  CHECK_THROWS_AS(infty::slot_weights(x, 3, Tensor<double>::zeros({3, 2})), infty::ShapeError);
}

TEST_CASE("MemSizer: a gradient flows through segments, as through one") {
  Random random(infty::tests::seed);
  const MemSizer<double> memory(small, sizes, Random(2));
  const auto x = uniform_variable<double>({1, 5, 6}, random);
  const Variable<double> by(uniform_tensor<double>({1, 2, 6}, random));
  const auto gradient = [&](Index cut) {
    x.grad().fill(0);
    infty::Tape tape;
    Pass<double> pass;
    auto state = memory.make_state(1);
    if (cut > 0) memory.forward(state, narrow(x, 0, cut), pass);
    const auto y = memory.forward(state, narrow(x, cut, 5), pass);
    tape.backward(sum(narrow(y, 3 - cut, 5 - cut) * by));
    return x.grad().to_vector();
  };
  CHECK(error(gradient(3), gradient(0)) < 1e-12);
}

TEST_CASE("MemSizer: memory tokens are read in their segment and not taken in") {
  Random random(infty::tests::seed);
  const MemSizer<double> memory(small, sizes, Random(2));
  const auto x = uniform_variable<double>({2, 6, 6}, random);
  auto with = memory.make_state(2), without = with, plain = with;
  Pass<double> told{.before = 2, .behind = 1}, nothing;
  const auto y = memory.forward(with, x, told);
  memory.forward(without, narrow(x, 2, 5), nothing);
  CHECK(numbers_of(with) == numbers_of(without));
  CHECK(y.value().to_vector() == memory.forward(plain, x, nothing).value().to_vector());
  Pass<double> too_many{.before = 4, .behind = 3};
  CHECK_THROWS_AS(memory.forward(with, x, too_many), infty::ShapeError);
  CHECK(numbers_of(with) == numbers_of(without));
}

TEMPLATE_LIST_TEST_CASE("MemSizer: a source's padding is not seen, wherever it stands", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  Random random(infty::tests::seed);
  const MemSizer<T, B> memory(small, sizes, Random(2));
  const auto row = uniform_tensor<T, B>({1, 4, 6}, random),
             x = uniform_tensor<T, B>({1, 3, 6}, random);
  const auto numbers = row.to_vector();
  // A second row whose padding holds something else.
  auto other = numbers;
  std::fill_n(other.begin(), 6, T(7));
  auto both = numbers;
  both.insert(both.end(), other.begin(), other.end());
  const auto source = Tensor<T, B>::from({2, 4, 6}, both);
  const auto seen = [&](std::vector<Index> padding) {
    return memory.encode(V(source), Tensor<Index, B>::from({2, 4}, padding));
  };
  const auto padded = seen({0, 0, 0, 0, 1, 0, 0, 1});
  const V whole = memory.encode(V(row)), part = memory.encode(narrow(V(row), 1, 3));
  const auto close = [](const Tensor<T, B>& a, const V& b) {
    return error(a.to_vector(), b.value().to_vector()) < infty::tests::tolerance<T>;
  };
  CHECK(close(padded.value().slice(0, 1), whole));
  CHECK(close(padded.value().slice(1, 2), part));
  CHECK(close(memory.attend(concat(V(x), V(x)), whole).value(),
              concat(memory.attend(V(x), whole), memory.attend(V(x), whole))));
  CHECK(seen({1, 1, 1, 1, 0, 0, 0, 0}).value().slice(0, 1).to_vector() == std::vector<T>(18, T(0)));
  CHECK_THROWS_AS(memory.encode(V(source), Tensor<Index, B>::zeros({4, 2})), infty::ShapeError);
  CHECK_THROWS_AS(memory.attend(V(x), padded), infty::ShapeError);
}

TEST_CASE("MemSizerLayer: streamed, reset and refused as a state is, its norms on either side") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({2, 5, 6}, random),
             source = uniform_variable<double>({2, 4, 6}, random);
  for (const bool in_front : {false, true}) {
    const MemSizerLayer<double> layer(
        {.self = small, .cross = {.slots = 4}, .feed_forward = 7, .norms_in_front = in_front},
        sizes, Random(3));
    auto state = layer.make_state(2);
    layer.set_source(state, source);
    auto streamed = state;
    Pass<double> pass;
    const auto y = layer.forward(state, x, pass).value();
    {  // part by part
      auto fresh = layer.self.make_state(2);
      using V = Variable<double>;
      const auto add = [&](const V& z, const infty::LayerNorm<double>& norm,
                           const std::function<V(const V&)>& part) {
        return in_front ? z + part(norm.forward(z)) : norm.forward(z + part(z));
      };
      auto by_hand = add(x, layer.self_norm, [&](const Variable<double>& z) {
        return layer.self.forward(fresh, z, pass);
      });
      by_hand = add(by_hand, layer.cross_norm, [&](const Variable<double>& z) {
        return layer.cross.attend(z, layer.cross.encode(source));
      });
      by_hand = add(by_hand, layer.feed_norm,
                    [&](const Variable<double>& z) { return layer.feed.forward(z, pass); });
      CHECK(error(by_hand.value().to_vector(), y.to_vector()) < 1e-14);
    }
    const auto first = layer.forward(streamed, narrow(x, 0, 2), pass);
    const auto rest = layer.forward(streamed, narrow(x, 2, 5), pass);
    CHECK(error(concat(first, rest).value().to_vector(), y.to_vector()) < 1e-13);
    Pass<double> silent{.answer = false};
    auto observed = layer.make_state(2);
    layer.set_source(observed, source);
    CHECK(layer.forward(observed, x, silent).size() == 0);
    CHECK(numbers_of(observed) == numbers_of(state));
    infty::reset_row(state, 0);
    CHECK(numbers_of(take_rows(state, 0, 1)) == numbers_of(layer.make_state(1)));
    const auto before = numbers_of(state);
    CHECK_THROWS_AS(layer.set_source(state, uniform_variable<double>({3, 4, 6}, random)),
                    infty::ShapeError);
    CHECK_THROWS_AS(layer.forward(state, uniform_variable<double>({2, 4, 5}, random), pass),
                    infty::ShapeError);
    CHECK(numbers_of(state) == before);
    const Variable<double> by(uniform_tensor<double>({2, 5, 6}, random));
    const auto loss = [&] {
      auto fresh = layer.make_state(2);
      layer.set_source(fresh, source);
      Pass<double> recorded;
      return sum(layer.forward(fresh, x, recorded) * by);
    };
    CHECK(infty::gradient_check(loss, std::vector{x, source}) < 1e-7);
  }
}

TEST_CASE(
    "MemSizer: fewer slots are its first ones alone, and several times as many change nothing") {
  Random random(infty::tests::seed);
  MemSizer<double> memory({.slots = 3, .bias = true, .query_scale = 1}, sizes, Random(2));
  for (const auto& drawn :
       {memory.query.bias, memory.left.bias, memory.left_norm.weight, memory.left_norm.bias}) {
    auto parameter = drawn;  // these begin as ones and zeros
    fill_uniform(parameter.value(), -1., 1., random);
  }
  const auto x = uniform_variable<double>({2, 4, 6}, random);
  Pass<double> pass;
  const auto answers = [&](const MemSizer<double>& asked) {
    auto state = asked.make_state(2);
    return asked.forward(state, x, pass).value().to_vector();
  };
  const auto before = answers(memory);
  CHECK(answers(memory.with_slots(3)) == before);
  CHECK(error(answers(memory.with_slots(9)), before) < 1e-13);

  // By definition with slots 0 and 1, V_i the sum of LN(W_l x) LN(W_r x)ᵀ.
  const auto two = memory.with_slots(2);
  CHECK(two.config().slots == 2);
  const auto scores = memory.query.forward(x).value().to_vector(),
             left = memory.left.forward(x).value().to_vector(),
             right = memory.right_norm.forward(memory.right.forward(x)).value().to_vector(),
             gain = memory.left_norm.weight.value().to_vector(),
             bias = memory.left_norm.bias.value().to_vector();
  std::vector<double> expected;
  for (std::size_t row = 0; row < 2; ++row) {
    double V[2][6] = {};
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t at = row * 4 + i;
      const double a = left[at * 3], b = left[at * 3 + 1], mean = (a + b) / 2;
      const double spread =
          std::sqrt(((a - mean) * (a - mean) + (b - mean) * (b - mean)) / 2 + 1e-5);
      const double key[2] = {(a - mean) / spread * gain[0] + bias[0],
                             (b - mean) / spread * gain[1] + bias[1]};
      double weight[2] = {};
      for (std::size_t h = 0; h < 2; ++h) {
        const double* const s = scores.data() + at * 6 + h * 3;
        for (std::size_t slot = 0; slot < 2; ++slot)
          weight[slot] += std::exp(s[slot]) / (std::exp(s[0]) + std::exp(s[1])) / 2;
      }
      for (std::size_t c = 0; c < 6; ++c) {
        double sum = 0;
        for (std::size_t slot = 0; slot < 2; ++slot)
          sum += weight[slot] * (V[slot][c] += key[slot] * right[at * 6 + c]);
        expected.push_back(sum / std::sqrt(static_cast<double>(i + 1)));
      }
    }
  }
  CHECK(error(answers(two), expected) < 1e-13);

  auto own = memory.with_slots(2);  // which has parameters of its own
  infty::for_each_parameter(own, [](const std::string&, auto& parameter) {
    CHECK(parameter.requires_grad());
    parameter.value().fill(0);
  });
  CHECK(answers(memory) == before);
  CHECK_THROWS_WITH(memory.with_slots(0), "[MemSizerConfig] slots is 0: it must be at least 1");
  auto state = memory.make_state(2);
  CHECK_THROWS_AS(two.forward(state, x, pass), infty::ShapeError);
}

TEST_CASE("MemSizer: keys that are not trained stay as they were drawn") {
  MemSizer<double> memory({.slots = 3, .bias = true, .query_scale = 1, .train_keys = false}, sizes,
                          Random(2));
  const MemSizer<double> trained({.slots = 3, .bias = true, .query_scale = 1}, sizes, Random(2));
  const auto keys = memory.query.weight.value().to_vector();
  CHECK(keys == trained.query.weight.value().to_vector());
  const auto values = memory.left.weight.value().to_vector();
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({2, 4, 6}, random);
  infty::Adam<double> adam(memory, {.weight_decay = .1});
  infty::train_step(adam, {}, [&] {
    auto state = memory.make_state(2);
    Pass<double> pass;
    const auto y = memory.forward(state, x, pass);
    return infty::sum(y * y);
  });
  CHECK(memory.query.weight.value().to_vector() == keys);
  CHECK(memory.left.weight.value().to_vector() != values);
  CHECK_FALSE(memory.with_slots(2).query.weight.requires_grad());
}

TEST_CASE("MemSizer: stays finite in float over a long stream") {
  Random random(infty::tests::seed);
  const MemSizer<float> memory({.slots = 4}, sizes, Random(2));
  auto state = memory.make_state(1);
  Pass<float> pass;
  const auto x = uniform_variable<float>({1, 1000, 6}, random);
  Variable<float> y;
  for (int i = 0; i < 200; ++i) y = memory.forward(state, x, pass);
  CHECK(infty::is_finite(state));
  CHECK(state.seen == infty::RowCounts{200000});
  CHECK(infty::detail::all_finite(y.value()));
}

TEST_CASE("MemSizer: configurations and inputs that do not fit are refused in words") {
  CHECK_THROWS_WITH(MemSizer<float>({.slots = 0}, sizes),
                    "[MemSizerConfig] slots is 0: it must be at least 1");
  CHECK_THROWS_WITH(MemSizer<float>({.query_scale = -1}, sizes),
                    "[MemSizerConfig] query_scale is -1: it must lie in [1e-30, 1e+30]");
  CHECK_THROWS_AS(MemSizer<float>({.value_scale = std::numeric_limits<double>::quiet_NaN()}, sizes),
                  infty::ValueError);
  CHECK_THROWS_AS(MemSizer<float>({.slots = Index{1} << 60}, sizes), infty::ValueError);
  CHECK_THROWS_AS(MemSizer<float>({}, {.model_dim = 4, .heads = 0}), infty::ValueError);
  CHECK_THROWS_AS(MemSizerLayer<float>({.feed_forward = 0}, sizes), infty::ValueError);
  const MemSizer<float> memory(small, sizes);
  CHECK_THROWS_AS(memory.make_state(0), infty::ValueError);
  CHECK_THROWS_AS(memory.encode(Variable<float>(Tensor<float>::zeros({1, 2, 6})),
                                Tensor<Index>::from({1, 2}, {0, 2})),
                  infty::ValueError);
  auto state = memory.make_state(2);
  Pass<float> pass;
  Random random(infty::tests::seed);
  CHECK_THROWS_AS(memory.forward(state, uniform_variable<float>({2, 3, 5}, random), pass),
                  infty::ShapeError);
  CHECK_THROWS_AS(memory.forward(state, uniform_variable<float>({1, 3, 6}, random), pass),
                  infty::ShapeError);
  CHECK(memory.forward(state, Variable<float>(Tensor<float>::zeros({2, 0, 6})), pass).size() == 0);
  CHECK(state.seen == infty::RowCounts{0, 0});
}

TEST_CASE("MemSizer: a traced pass sees how much of each slot a head reads") {
  const MemSizer<double> memory(small, sizes, Random(1));
  auto state = memory.make_state(2);
  Random random(infty::tests::seed);
  const Variable<double> x(uniform_tensor<double>({2, 6, 6}, random));
  Pass<double> pass{.before = 1, .behind = 2, .traced = true};
  memory.forward(state, x, pass);
  const auto weights = first_shown(pass, "slot_weights");
  REQUIRE(weights.shape() == Shape{2, 3, 2, 3});
  const auto got = weights.value().to_vector();
  const auto scores = memory.query.forward(narrow(x, 1, 4)).value().to_vector();
  for (std::size_t i = 0; i < got.size(); i += 3) {
    double sum = 0;
    for (std::size_t s = 0; s < 3; ++s) sum += std::exp(scores[i + s]);
    for (std::size_t s = 0; s < 3; ++s) CHECK(got[i + s] == Approx(std::exp(scores[i + s]) / sum));
  }
}

}  // namespace memsizer_tests
