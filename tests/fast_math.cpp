// SPDX-License-Identifier: MIT
// Compiled with -ffast-math, as a user's program may be: what is no number is refused all the same.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <span>
#include <vector>

#include <infty/autograd/top_k.hpp>
#include <infty/core/erf.hpp>
#include <infty/core/log.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/random.hpp>
#include <infty/core/sine.hpp>
#include <infty/eigen/fused_nearest.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/sampling.hpp>
#include <infty/retrieval/retrieved.hpp>
#include <infty/signal/bins.hpp>
#include <infty/signal/positions.hpp>
#include <infty/train/schedule.hpp>
#include <infty/train/train_step.hpp>
#include <infty/train/trainer_config.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

#if !defined(__FAST_MATH__)
#error "this is to be compiled with -ffast-math"
#endif

namespace {

using Catch::Contains;
using infty::Index;
using infty::LongTermMemory;
using infty::NonFiniteError;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::uniform_tensor;

/// NaN, inf or -inf; by way of memory, for a compiler may take a value for a number.
enum class Wrong { nan, infinity, minus_infinity };
constexpr auto all_wrong = {Wrong::nan, Wrong::infinity, Wrong::minus_infinity};

template <class T>
void put(T* to, Wrong what) {
  constexpr T values[] = {infty::math::not_a_number<T>, infty::math::infinity<T>,
                          -infty::math::infinity<T>};
  std::memcpy(to, &values[static_cast<int>(what)], sizeof(T));
}

const volatile double* a_nan() {
  static double nan;
  put(&nan, Wrong::nan);
  return &nan;
}

}  // namespace

TEMPLATE_TEST_CASE("-ffast-math: a memory refuses what is no number, and does not change", "",
                   float, double) {
  using T = TestType;
  Random random(infty::tests::seed);
  for (const bool bounded : {true, false}) {
    auto config = infty::tests::small_config();
    config.bounded = bounded;
    config.gate = false;
    const LongTermMemory<T> memory(config, Random(3));
    auto state = memory.make_state(2);
    memory.write(state, uniform_tensor<T>({2, 20, 4}, random));
    const auto before = infty::tests::numbers_of(state);
    for (const Wrong what : all_wrong) {
      auto x = uniform_tensor<T>({2, 3, 4}, random);
      put(x.data() + 3 * 4 + 2 * 4 + 1, what);
      CHECK_THROWS_WITH(memory.write(state, x),
                        "[write] coordinate 1 of a vector of row 1 is not finite");
      auto q = uniform_tensor<T>({2, 3, 6}, random);
      put(q.data(), what);
      CHECK_THROWS_WITH(memory.read(state, q), "[read] what is read is not finite: a query is not");
      auto places = Tensor<T>::full({2, 6}, T(.5));
      put(places.data() + 4, what);
      CHECK_THROWS_WITH(
          memory.write_at(state, uniform_tensor<T>({2, 9, 4}, random), {9, 9}, places),
          "[write] location 4 of row 0 does not lie in [0, 1]");
    }
    CHECK(infty::tests::numbers_of(state) == before);
    CHECK(infty::is_finite(state));
    put(state.coefficients.value().data() + 5, Wrong::nan);
    CHECK_FALSE(infty::is_finite(state));
    CHECK_THROWS_WITH(memory.read(state, uniform_tensor<T>({2, 2, 6}, random)),
                      "[read] what is read is not finite: the state is not");
  }
}

// Loops, of which a compiler makes vector code: that has other ways to lose digits.
TEMPLATE_TEST_CASE("-ffast-math: elementary functions keep their digits", "", float, double) {
  using T = TestType;
  std::vector<T> x(1000), y(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i) * T(.037) - T(20);
  const auto worst = [&](auto f, auto exact) {
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double wanted = exact(static_cast<double>(x[i]));
      most = std::max(most, std::abs(static_cast<double>(y[i]) - wanted) / std::abs(wanted));
    }
    return most / static_cast<double>(std::numeric_limits<T>::epsilon());
  };
  CHECK(worst([](T v) { return infty::math::exp(v); }, [](double v) { return std::exp(v); }) < 4);
  CHECK(worst([](T v) { return infty::math::exp_decay(v < 0 ? v : -v); },
              [](double v) { return std::exp(-std::abs(v)); }) < 4);
  CHECK(worst([](T v) { return infty::math::log(1 + v * v); },
              [](double v) { return std::log(static_cast<double>(1 + T(v) * T(v))); }) < 4);
  CHECK(worst([](T v) { return infty::math::log1p(v * v / (1 << 20)); },
              [](double v) { return std::log1p(static_cast<double>(T(v) * T(v) / (1 << 20))); }) <
        8);
  CHECK(worst([](T v) { return infty::math::erfc(v / 4); },
              [](double v) { return std::erfc(v / 4); }) < 8);
  CHECK(worst([](T v) { return 2 + infty::math::sine_and_cosine(256 * v).sine; },
              [](double v) { return 2 + std::sin(256 * v); }) < 4);
  CHECK(worst([](T v) { return 2 + infty::math::sine_and_cosine(256 * v).cosine; },
              [](double v) { return 2 + std::cos(256 * v); }) < 4);
}

TEST_CASE("-ffast-math: vectors that would overflow are refused") {
  auto config = infty::tests::small_config();
  config.gate = false;
  const LongTermMemory<float> memory(config);
  auto state = memory.make_state(1);
  CHECK_THROWS_WITH(memory.write(state, Tensor<float>::full({1, 9, 4}, 3e38f)),
                    Contains("is 3e+38: coefficients would overflow above"));
}

TEST_CASE("-ffast-math: a training stops at what is no number, and does not change") {
  Random random(infty::tests::seed);
  infty::Linear<double> layer(3, 2, Random(1));
  infty::Adam<double> adam(layer, {.learning_rate = .01});
  const Variable<double> x(uniform_tensor<double>({4, 3}, random));
  const auto loss = [&] {
    const auto y = layer.forward(x);
    return infty::mean(y * y);
  };
  infty::train_step(adam, {}, loss);
  for (const Wrong what : all_wrong) {
    const auto before = layer.weight.value().to_vector();
    const double kept = x.value().data()[5];
    put(Tensor<double>(x.value()).data() + 5, what);
    CHECK_THROWS_AS(infty::train_step(adam, {}, loss), NonFiniteError);
    CHECK(layer.weight.value().to_vector() == before);
    Tensor<double>(x.value()).data()[5] = kept;
  }
  CHECK_NOTHROW(infty::train_step(adam, {}, loss));
}

// Reads order many queries by their means, which are NaN here: places in an array.
TEST_CASE("-ffast-math: many reads of NaN stay within their memory") {
  Random random(infty::tests::seed);
  infty::LongTermConfig config{.model_dim = 8, .heads = 2, .basis = 64, .samples = 64};
  config.resampling = infty::Resampling::sticky;
  const LongTermMemory<float> memory(config, Random(3));
  auto state = memory.make_state(1);
  for (int i = 0; i < 2; ++i) memory.write(state, uniform_tensor<float>({1, 64, 8}, random));
  for (const Wrong what : all_wrong) {
    auto q = uniform_tensor<float>({1, 700, 8}, random);
    for (Index i = 0; i < q.size(); i += 5) put(q.data() + i, what);
    CHECK_THROWS_AS(memory.read(state, q), NonFiniteError);
  }
  CHECK(infty::is_finite(state));
}

TEST_CASE("-ffast-math: NaN is the largest, and likelier than nothing") {
  Random random(infty::tests::seed);
  auto x = uniform_tensor<float>({1, 40}, random);
  put(x.data() + 7, Wrong::nan);
  put(x.data() + 30, Wrong::nan);
  put(x.data() + 12, Wrong::infinity);
  CHECK(infty::top_k(Variable<float>(x), 3).indices.to_vector() == std::vector<Index>{7, 30, 12});
  // A row that is long enough for the CPU's kernel, whose last elements fill no vector.
  auto row = uniform_tensor<float>({1, 605}, random);
  put(row.data() + 604, Wrong::nan);
  put(row.data() + 99, Wrong::infinity);
  auto found = infty::top_k(Variable<float>(row), 32).indices.to_vector();
  CHECK(found[0] == 604);
  CHECK(found[1] == 99);
  put(row.data() + 300, Wrong::nan);
  found = infty::top_k(Variable<float>(row), 32).indices.to_vector();
  CHECK(std::vector<Index>(found.begin(), found.begin() + 3) == std::vector<Index>{300, 604, 99});
  for (Index i = 0; i < row.size(); ++i) put(row.data() + i, Wrong::nan);
  found = infty::top_k(Variable<float>(row), 32).indices.to_vector();
  for (Index i = 0; i < 32; ++i) CHECK(found[static_cast<std::size_t>(i)] == i);
  auto scores = Tensor<float>::full({1, 3}, 1);
  put(scores.data(), Wrong::nan);
  CHECK(infty::argmax(scores).item() == 1);
}

TEST_CASE("-ffast-math: draws refuse scores and weights that are no numbers") {
  Random random(infty::tests::seed);
  std::vector<float> scores(9, 0.5f);
  put(&scores[4], Wrong::nan);
  CHECK_THROWS_AS(infty::sample(std::span<const float>(scores), {}, random), NonFiniteError);
  put(&scores[4], Wrong::infinity);
  CHECK_THROWS_AS(infty::sample(std::span<const float>(scores), {}, random), NonFiniteError);
  put(&scores[4], Wrong::minus_infinity);
  for (int i = 0; i < 200; ++i)
    CHECK(infty::sample(std::span<const float>(scores), {}, random) != 4);
  auto bins = Tensor<float>::full({1, 8}, .125f);
  std::vector<Random> generators{Random(1)};
  for (const Wrong what : all_wrong) {
    put(bins.data() + 3, what);
    CHECK_THROWS_AS(infty::sample_locations(bins, 4, std::span<Random>(generators)),
                    NonFiniteError);
  }
}

TEMPLATE_TEST_CASE("-ffast-math: an interpolation with NaN is NaN", "", float, double) {
  using T = TestType;
  const T half = std::log(T(.5));
  for (const int wrong : {0, 1, 2}) {
    auto x = Tensor<T>::full({9}, half), p = Tensor<T>::full({9}, T(.5)), shares = p.clone();
    put((wrong == 0 ? x : wrong == 1 ? p : shares).data() + 4, Wrong::nan);
    const auto y = infty::interpolated(Variable<T>(x), p, shares).value().to_vector();
    for (std::size_t i = 0; i < y.size(); ++i) {
      CAPTURE(wrong, i);
      CHECK(infty::math::is_nan(y[i]) == (i == 4));
      if (i != 4) CHECK(std::abs(y[i] - half) < T(1e-6));
    }
  }
}

TEST_CASE("-ffast-math: a setting of NaN is refused") {
  const double nan = *a_nan();
  Random random(infty::tests::seed);
  const Variable<float> x(Tensor<float>::full({2}, 1));
  CHECK_THROWS_AS(infty::dropout(x, nan, random), infty::ValueError);
  CHECK_THROWS_AS(infty::next_positions(4, 4, nan), infty::ValueError);
  CHECK_THROWS_AS((infty::CosineSchedule{.total_steps = 9, .floor = nan}(1)), infty::ValueError);
  const auto refuses = [](auto config, auto member) {
    config.validate();
    config.*member = *a_nan();
    CHECK_THROWS_AS(config.validate(), infty::ValueError);
  };
  for (const auto member : {&infty::LongTermConfig::tau, &infty::LongTermConfig::ridge,
                            &infty::LongTermConfig::variance_floor})
    refuses(infty::tests::small_config(), member);
  for (const auto member : {&infty::AdamConfig::learning_rate, &infty::AdamConfig::beta1,
                            &infty::AdamConfig::beta2, &infty::AdamConfig::epsilon})
    refuses(infty::AdamConfig{}, member);
  for (const auto member : {&infty::Sampling::temperature, &infty::Sampling::top_p})
    refuses(infty::Sampling{}, member);
  refuses(infty::TrainerConfig{.steps = 1}, &infty::TrainerConfig::max_norm);
}

TEST_CASE("fast math: keys of score 0 are among the nearest where others have found as near ones") {
  constexpr Index n = 64, width = 8, k = 3;
  using Tile = infty::detail::NearestTile<float, float>;
  for (const Index queries : {1, 8}) {
    const std::vector<float> keys(n * width, 0);
    const auto size = static_cast<std::size_t>(queries);
    const std::vector<float> asked(size * width, 1);
    std::vector<float> scores(size * k), memory(static_cast<std::size_t>(Tile::size(width)));
    std::vector<Index> at(size * k);
    const float* const blocks[1] = {keys.data()};
    const infty::NearestRow<float> row{asked.data(), blocks, 0, n, scores.data(), at.data()};
    infty::detail::Candidates<float> found(queries, k, n);
    std::vector<infty::detail::SharedFloor<float>> floors(size);
    for (auto& floor : floors) floor.store(0);  // of keys of higher indices
    const infty::NearestSize sizes{queries, 1, 1, width, n, k};
    const Tile tile{sizes, row, 0, 0, queries, 0, n, found, floors.data(), memory.data()};
    tile.run();
    for (Index i = 0; i < queries; ++i) CHECK(found.held(i) >= k);
  }
}
