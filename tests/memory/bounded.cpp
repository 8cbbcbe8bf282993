// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/stability.hpp>
#include <infty/testing/gradient_check.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

// What docs/reliability.md promises of a long-term memory; tests/endurance tries it for longer.

using infty::Index;
using infty::LongTermConfig;
using infty::LongTermMemory;
using infty::Random;
using infty::Resampling;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::tests::numbers_of;
using infty::tests::small_config;
using infty::tests::uniform_tensor;

namespace {

LongTermConfig plain(Index basis = 32, Index samples = 64) {
  return {.model_dim = 2,
          .heads = 1,
          .basis = basis,
          .widths = {.02, .1},
          .samples = samples,
          .tau = .75,
          .ridge = .5,
          .gate = false};
}

template <class T, class B>
double largest_signal(
    const LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>& memory,
    const infty::LongTermState<T, B>& state) {
  double most = 0;
  for (const T v :
       resample(memory.basis(), state.coefficients.value(), infty::even_locations<T, B>(100))
           .to_vector()) {
    const double size = std::fabs(static_cast<double>(v));
    most = size <= most ? most : size;
  }
  return most;
}

}  // namespace

TEST_CASE(
    "LongTermMemory: vector by vector, the paper's form overflows and ours stays within bounds") {
  Random random(infty::tests::seed);
  auto config = plain();
  const LongTermMemory<float> ours(config);
  config.bounded = config.hold_short_writes = false;
  const LongTermMemory<float> paper(config);
  auto a = ours.make_state(1), b = paper.make_state(1);
  const double bound = infty::stability(plain(), 1).bound;
  for (int i = 0; i < 1000; ++i) {
    const auto x = uniform_tensor<float>({1, 1, 2}, random, -1, 1);
    ours.write(a, x);
    paper.write(b, x);
    if (i % 20 == 0) REQUIRE(largest_signal(ours, a) <= bound);
  }
  CHECK(!(largest_signal(paper, b) < 1e30));  // it is NaN or about to be
  CHECK(infty::is_finite(a));
}

TEMPLATE_LIST_TEST_CASE(
    "LongTermMemory: samples stay within what was written, coordinate by coordinate", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  // One function and samples where it is largest: the fit of 1 is 1 there, the signal overshoots.
  const LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B> memory(plain(16, 16));
  auto state = memory.make_state(2);
  const auto x = uniform_tensor<T, B>({2, 40, 2}, random, -1, 1);
  memory.write(state, x);
  const auto c = state.largest.to_vector();
  for (Index row = 0; row < 2; ++row)
    for (Index j = 0; j < 2; ++j) {
      T most = 0;
      for (Index i = 0; i < 40; ++i)
        most = std::max(most,
                        std::fabs(x.to_vector()[static_cast<std::size_t>((row * 40 + i) * 2 + j)]));
      CHECK(c[static_cast<std::size_t>(row * 2 + j)] == most);
    }
  // The next write, by hand: sampled, clamped, fitted with the new vectors.
  const auto places = uniform_tensor<T, B>({2, 16}, random, 0, 1);
  auto samples = resample(memory.basis(), state.coefficients.value(), places).to_vector();
  bool clipped = false;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const T most = c[i / 32 * 2 + i % 2];
    clipped = clipped || std::fabs(samples[i]) > most;
    samples[i] = std::max(-most, std::min(most, samples[i]));
  }
  CHECK(clipped);
  const auto more = uniform_tensor<T, B>({2, 24, 2}, random, -1, 1);
  const auto next = memory.ridge().next(24);
  auto want = fit(next.next_old, Tensor<T, B>::from({2, 16, 2}, samples)).to_vector();
  const auto of_new = fit(next.next_new, more).to_vector();
  for (std::size_t i = 0; i < want.size(); ++i) want[i] += of_new[i];
  memory.write_at(state, more, {24, 24}, places);
  CHECK(infty::tests::error(state.coefficients.value().to_vector(), want) <
        10 * infty::tests::tolerance<T>);
}

TEST_CASE(
    "LongTermMemory: a write multiplies behind one as long or the first, others sample and clamp") {
  Random random(infty::tests::seed);
  const LongTermMemory<double> memory(plain());
  REQUIRE(memory.ridge().next(64).limits.multiplies);
  REQUIRE(memory.ridge().next(64).limits.run(memory.ridge().first_limits(32).lebesgue) < 64);
  auto state = memory.make_state(1);
  for (const Index length : {32, 64, 64, 32, 64, 64}) {
    const auto x = uniform_tensor<double>({1, length, 2}, random, -1, 1);
    const auto next = memory.ridge().next(length);
    state.largest.fill(.01);  // so that what is clamped and what is not can be told apart
    auto before = state;
    before.largest = state.largest.clone();
    memory.write(state, x);
    if (before.written[0] == 0) continue;
    const auto product = update(next, before.coefficients.value(), x).to_vector();
    auto samples = resample(memory.basis(), before.coefficients.value(),
                            infty::even_locations<double, infty::EigenBackend>(64));
    infty::detail::clamp_samples(samples, before.largest.data());
    auto sampled = fit(next.next_old, samples).to_vector();
    const auto of_new = fit(next.next_new, x).to_vector();
    for (std::size_t i = 0; i < sampled.size(); ++i) sampled[i] += of_new[i];
    const auto got = state.coefficients.value().to_vector();
    CAPTURE(length, before.last[0]);
    const bool multiplied = before.last[0] == length || before.writes[0] == 1;
    CHECK(infty::tests::error(got, multiplied ? product : sampled) < 1e-12);
    CHECK(infty::tests::error(product, sampled) > 1e-6);
  }
  CHECK(state.last == RowCounts{64});
}

TEST_CASE("LongTermMemory: any places and lengths, in float: the bound of docs/stability.md") {
  Random random(infty::tests::seed);
  for (const auto resampling : {Resampling::even, Resampling::sticky, Resampling::sticky_quantiles})
    for (const double size : {1.0, 1e-38, 1e30}) {
      auto config = plain(16, 16);
      config.resampling = resampling;
      config.tau = .9;
      const LongTermMemory<float> memory(config);
      auto state = memory.make_state(1);
      for (int i = 0; i < 60; ++i) {
        const Index length = 1 + static_cast<Index>(random.uniform() * 9) * (i % 3);
        auto x = uniform_tensor<float>({1, length, 2}, random, -1, 1);
        for (Index k = 0; k < x.size(); ++k) x.data()[k] *= static_cast<float>(size);
        if (i % 2)
          memory.write(state, x);
        else
          memory.write_at(state, x, {length}, uniform_tensor<float>({1, 16}, random, 0, 1));
        REQUIRE(largest_signal(memory, state) <= infty::most_run * size);
      }
    }
}

TEST_CASE(
    "LongTermMemory: NaN, infinity and what would overflow are refused, and nothing changes") {
  Random random(infty::tests::seed);
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  for (const auto resampling : {Resampling::even, Resampling::sticky, Resampling::sticky_quantiles})
    for (const bool bounded : {true, false})
      for (const bool gate : {true, false})
        for (const Index group : {1, 16}) {
          auto config = small_config();
          config.resampling = resampling;
          config.bounded = bounded;
          config.gate = gate;
          config.group = group;
          const LongTermMemory<float> memory(config, Random(3));
          auto state = memory.make_state(2);
          memory.write(state, uniform_tensor<float>({2, 20, 4}, random));
          const auto before = numbers_of(state);
          for (const float bad : {nan, infinity, -infinity}) {
            auto x = uniform_tensor<float>({2, 3, 4}, random);
            x.data()[3 * 4 + 2 * 4 + 1] = bad;
            CHECK_THROWS_AS(memory.write(state, x), infty::NonFiniteError);
            if (!gate)
              CHECK_THROWS_WITH(memory.write(state, x),
                                "[write] coordinate 1 of a vector of row 1 is not finite");
            auto q = uniform_tensor<float>({2, 3, 6}, random);
            q.data()[0] = bad;
            CHECK_THROWS_WITH(memory.read(state, q),
                              "[read] what is read is not finite: a query is not");
          }
          CHECK(numbers_of(state) == before);
        }
  auto config = small_config();
  config.gate = false;
  const LongTermMemory<float> memory(config);
  auto state = memory.make_state(1);
  CHECK_THROWS_WITH(memory.write(state, Tensor<float>::full({1, 9, 4}, 3e38f)),
                    Catch::Contains("is 3e+38: coefficients would overflow above"));
  // What waits for its group would be in the way of all that follows.
  auto waits = config;
  waits.group = 4;
  const LongTermMemory<float> grouped(waits);
  auto waiting = grouped.make_state(1);
  CHECK_THROWS_WITH(grouped.write(waiting, Tensor<float>::full({1, 1, 4}, 3e38f)),
                    Catch::Contains("is 3e+38: coefficients would overflow above"));
  CHECK(waiting.waiting.length == RowCounts{0});
  auto broken = LongTermMemory<float>(config);
  broken.write(state, uniform_tensor<float>({1, 9, 4}, random));
  broken.out.weight.value().fill(nan);
  CHECK_THROWS_WITH(broken.read(state, uniform_tensor<float>({1, 2, 6}, random)),
                    "[read] what is read is not finite: queries and state are, but not what the "
                    "parameters make of them");
  state.coefficients.value().fill(nan);
  CHECK_THROWS_WITH(memory.read(state, uniform_tensor<float>({1, 2, 6}, random)),
                    "[read] what is read is not finite: the state is not");
}

TEST_CASE("LongTermMemory: locations outside of [0, 1] are refused") {
  const LongTermMemory<float> memory(small_config());
  auto state = memory.make_state(1);
  memory.write(state, Tensor<float>::full({1, 9, 4}, 1));
  for (const float bad : {-1e-6f, 1.001f, std::numeric_limits<float>::quiet_NaN()}) {
    auto places = Tensor<float>::full({1, 6}, .5f);
    places.data()[4] = bad;
    CHECK_THROWS_WITH(memory.write_at(state, Tensor<float>::full({1, 9, 4}, 1), {9}, places),
                      "[write] location 4 of row 0 does not lie in [0, 1]");
  }
}

TEST_CASE("LongTermMemory: grouped vectors wait, and are then written as one segment") {
  Random random(infty::tests::seed);
  auto config = small_config();
  const LongTermMemory<double> whole(config, Random(5));
  config.group = 8;
  const LongTermMemory<double> grouped(config, Random(5));
  const auto x = uniform_tensor<double>({1, 24, 4}, random);
  auto a = whole.make_state(1), b = grouped.make_state(1);
  for (Index begin = 0; begin < 24; begin += 8) {
    Tensor<double> segment({1, 8, 4});
    std::copy(x.data() + begin * 4, x.data() + begin * 4 + 32, segment.data());
    whole.write(a, segment);
    for (Index i = 0; i < 8; ++i) {
      Tensor<double> one({1, 1, 4});
      std::copy(x.data() + (begin + i) * 4, x.data() + (begin + i + 1) * 4, one.data());
      grouped.write(b, one);
      const auto reading = grouped.attend(b, uniform_tensor<double>({1, 1, 6}, random));
      CHECK(reading.unseen == RowCounts{i == 7 ? 0 : i + 1});
    }
    CHECK(b.coefficients.value().to_vector() == a.coefficients.value().to_vector());
    CHECK(b.written == a.written);
    CHECK(b.writes == a.writes);
  }
  // Rows fill their groups by themselves.
  auto rows = grouped.make_state(2);
  grouped.write(rows, uniform_tensor<double>({2, 5, 4}, random), {5, 5});
  auto more = uniform_tensor<double>({2, 3, 4}, random);
  for (Index i = 0; i < 12; ++i) more.data()[i] = 0;
  grouped.write(rows, more, {0, 3});
  CHECK(rows.written == RowCounts{0, 8});
  CHECK(rows.waiting.length == RowCounts{5, 0});
  grouped.flush(rows);
  CHECK(rows.written == RowCounts{5, 8});
  CHECK(rows.waiting.length == RowCounts{0, 0});
  CHECK_THROWS_WITH(LongTermMemory<float>(LongTermConfig{.group = 0}),
                    "[LongTermConfig] group is 0: it must be at least 1");
}

TEST_CASE("LongTermMemory: a row that is cleared at its threshold keeps what waits") {
  Random random(infty::tests::seed);
  auto config = small_config();
  config.group = 4;
  config.threshold = 8;
  const LongTermMemory<float> memory(config);
  auto state = memory.make_state(1);
  memory.write(state, uniform_tensor<float>({1, 10, 4}, random));
  CHECK((state.written == RowCounts{8} && state.waiting.length == RowCounts{2}));
  memory.write(state, uniform_tensor<float>({1, 3, 4}, random));
  CHECK((state.written == RowCounts{4} && state.waiting.length == RowCounts{1}));
}
