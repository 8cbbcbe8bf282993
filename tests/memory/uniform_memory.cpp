// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/stability.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/testing/gradient_check.hpp>

#include "memory/uniform.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace uniform {

/// What a read sees at `places` even places of (0, 1], [places, d] of one row.
template <class M>
auto seen_at(const M& memory, const typename M::State& state, Index places) {
  using T = typename M::Scalar;
  using B = typename M::BackendType;
  return resample(memory.signal.basis(), memory.seen(state).coefficients.value(),
                  infty::even_locations<T, B>(places))
      .to_vector();
}

/// The largest size of a signal, at places between which none is hidden.
double largest_of(const infty::GaussianBasis<float>& basis, const Tensor<float>& coefficients) {
  const auto probes = infty::detail::probe_places(basis.cast<double>());
  const std::vector<float> places(probes.begin(), probes.end());
  const auto n = static_cast<Index>(places.size());
  double most = 0;
  for (const float v : resample(basis, coefficients, Tensor<float>::from({n}, places)).to_vector())
    most = std::fabs(static_cast<double>(v)) <= most ? most : std::fabs(static_cast<double>(v));
  return most;
}

}  // namespace uniform

TEST_CASE("UniformMemory: vector i of n stands at (i / n)^p, at log n refits") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = small<M>();
  config.gate = false;
  config.ridge = .01;
  for (const double power : {1., .5, 2.}) {
    config.power = power;
    const M memory(config, Random(3));
    for (const Index length : {100, 1000, 10000, 100000}) {
      if (power != 1 && length != 10000) continue;
      auto state = memory.make_state(1);
      for (Index at = 0; at < length; at += 1000)
        memory.write(state, Variable<double>(stream_of<double, infty::EigenBackend>(
                                length, at, (std::min)(length, at + 1000))));
      const auto values = seen_at(memory, state, 50);
      double worst = 0;
      for (Index i = 2; i < 47; ++i) {  // beyond the ends the signal falls to zero
        const double t = std::pow(static_cast<double>(i + 1) / 50, 1 / power);
        worst = (std::max)(worst, std::fabs(values[static_cast<std::size_t>(2 * i)] -
                                            std::sin(2 * std::numbers::pi * t)));
      }
      CAPTURE(power, length, state.refits.front(), state.rate.front(), worst);
      CHECK(worst < .25);
      const double bound = power * (2 + std::log2(static_cast<double>(length))) / (2 * .05);
      CHECK(static_cast<double>(state.refits.front()) <= bound);
    }
  }
}

TEST_CASE("UniformMemory: what waits is read at once, and its gradient is that of differences") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = small<M>();
  config.gate = false;
  const M memory(config, Random(3));
  config.waiting = infty::Waiting::left_out;
  const M blind(config, Random(3));
  for (const Index before : {3, 1000, 30000}) {
    auto state = memory.make_state(1);
    memory.write(state, Variable<double>(Tensor<double>::zeros({1, before, 2})));
    const Index missing = 4 * (std::max<Index>)(state.rate.front(), 1) - state.held.front();
    memory.write(state, Variable<double>(Tensor<double>::zeros({1, missing, 2})));
    memory.write(state, Variable<double>(Tensor<double>::full({1, 1, 2}, 1.)));
    CHECK(state.held.front() == 1);
    const auto values = seen_at(memory, state, 100), past = seen_at(blind, state, 100);
    const double last = *std::max_element(values.end() - 10, values.end());
    CAPTURE(before, state.rate.front(), last);
    CHECK(last > .3);
    CHECK(std::fabs(*std::max_element(past.end() - 10, past.end())) < 1e-9);
    CHECK(std::fabs(values[2 * 50]) < .05);
  }
  auto gated = small<M>();
  M learner(gated, Random(3));
  auto state = learner.make_state(2);
  Random random(5);
  for (const Index length : {60, 37}) {
    learner.write(state,
                  Variable<double>(infty::tests::uniform_tensor<double>({2, length, 2}, random)));
    if (length == 60) reset_row(state, 1);  // rows of different age
  }
  const auto x = infty::tests::uniform_variable<double>({2, 3, 2}, random),
             q = infty::tests::uniform_variable<double>({2, 3, 4}, random);
  const auto loss = [&] {
    auto branch = state;
    learner.write(branch, x, {2, 3});
    return mean(learner.read(branch, q));
  };
  // The gradient stops at what is written, so that both rows have room for these.
  REQUIRE(state.held[0] + 2 <= 4 * state.rate[0]);
  REQUIRE(state.held[1] + 3 <= 4 * state.rate[1]);
  std::vector<Variable<double>> all{x, q, learner.signal.gate_weight, learner.signal.key.weight};
  CHECK(infty::gradient_check(loss, all) < 1e-6);
}

TEST_CASE("UniformMemory: a row's gradient is its own, however much others take in") {
  using namespace uniform;
  using M = UniformOf<>;
  const M memory(small<M>(), Random(3));
  Random random(5);
  const auto x = infty::tests::uniform_tensor<double>({2, 11, 2}, random),
             q = infty::tests::uniform_tensor<double>({2, 3, 4}, random);
  // Of row 0, which takes in the last vectors of x, beside another that holds some and takes more.
  const auto gradient = [&](Index count, Index held, const std::vector<RowCounts>& later) {
    const Variable<double> given(x.clone(), true);
    auto state = memory.make_state(2);
    if (held > 0) memory.write(state, Variable<double>(x), {0, held});
    infty::Tape tape;
    memory.write(state, given, {count, later.front()[1]});
    for (std::size_t i = 1; i < later.size(); ++i)
      memory.write(state, Variable<double>(x), later[i]);
    tape.backward(sum(memory.read(state, Variable<double>(q))));
    return given.grad().slice(0, 1).to_vector();
  };
  for (const Index count : {2, 4, 6}) {
    CAPTURE(count);
    const auto expected = gradient(count, 0, {{0, 1}});
    REQUIRE(std::fabs(expected[2 * 10]) > 1e-3);
    // Others need rounds of their own, in this write or in one where the row takes nothing in.
    CHECK(gradient(count, 0, {{0, 9}}) == expected);
    CHECK(gradient(count, 3, {{0, 4}}) == expected);
    CHECK(gradient(count, 3, {{0, 11}}) == expected);
    CHECK(gradient(count, 0, {{0, 1}, {0, 9}, {0, 0}}) == expected);
  }
}

TEST_CASE("UniformMemory: bounded for ever, whatever is written and whatever the rule") {
  using namespace uniform;
  using M = UniformOf<float>;
  constexpr Index rows = 4;
  for (const auto& [power, samples] :
       {std::pair{.25, Index{16}}, {1., Index{32}}, {4., Index{16}}}) {
    auto config = small<M>();
    config.gate = false;
    config.power = power;
    config.samples = samples;
    config.widths = {.02, .1};
    const M memory(config, Random(3));
    // Beside it the signal itself, which writes short pieces at once and is never pooled.
    const infty::LongTermMemory<float> ruled(config.signal(), Random(3));
    auto state = memory.make_state(rows);
    auto plain = ruled.make_state(rows);
    Random random(5);
    double worst = 0, of_seen = 0, of_ruled = 0;
    for (int step = 0; step < 60; ++step) {
      const Index length = step % 7 == 0 ? 100 : 1 + random.below(2);
      Tensor<float> x({rows, length, 2});
      for (Index row = 0; row < rows; ++row)
        for (Index i = 0; i < length; ++i)
          for (Index j = 0; j < 2; ++j) {
            float& v = x.data()[(row * length + i) * 2 + j];
            if (row == 0) v = random.uniform() < .5 ? -1.F : 1.F;  // from the cube's corners
            if (row == 1) v = i % 2 == 0 ? 1.F : -1.F;             // in turn
            if (row == 2) v = step % 2 == 0 ? 1.F : -1.F;          // in turn by writes
            if (row == 3) v = step == 0 ? 1.F : 0.F;               // one, long ago
          }
      memory.write(state, Variable<float>(x));
      ruled.write(plain, Variable<float>(x));
      if (step % 6 > 0) continue;
      worst =
          std::fmax(worst, largest_of(memory.signal.basis(), state.signal.coefficients.value()));
      of_seen = std::fmax(
          of_seen, largest_of(memory.signal.basis(), memory.seen(state).coefficients.value()));
      of_ruled = std::fmax(of_ruled, largest_of(ruled.basis(), plain.coefficients.value()));
    }
    CAPTURE(power, samples, worst, of_seen, of_ruled);
    CHECK(worst <= infty::most_lebesgue);
    CHECK(of_seen <= infty::most_run);
    CHECK(of_ruled <= infty::most_lebesgue);
    CHECK(worst > .5);
  }
}

TEST_CASE("UniformMemory: refuses what it cannot keep, and stays as it was") {
  using namespace uniform;
  using M = UniformOf<float>;
  const auto refused = [](auto change, const char* words) {
    auto config = small<M>();
    change(config);
    CHECK_THROWS_WITH(M(config), Catch::Matchers::Contains(words));
  };
  refused([](auto& c) { c.block = 0; }, "[UniformConfig] block is 0");
  refused([](auto& c) { c.group = 2; }, "[UniformConfig] group is 2");
  refused([](auto& c) { c.least_share = 1; }, "[UniformConfig] least_share is 1");
  refused([](auto& c) { c.least_share = -.1; }, "[UniformConfig] least_share is -0.1");
  refused([](auto& c) { c.least_share = std::nan(""); }, "[UniformConfig] least_share is ");
  refused([](auto& c) { c.threshold = 9; }, "[UniformConfig] threshold is 9");
  refused([](auto& c) { c.power = -1; }, "[LongTermConfig] power is -1");
  refused([](auto& c) { c.contraction = [](Index, Index) { return 1.; }; }, "tau is 1");
  const M memory(small<M>(), Random(3));
  auto state = memory.make_state(1);
  memory.write(state, Variable<float>(stream_of<float, infty::EigenBackend>(50, 0, 50)));
  const auto before = state;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e35F}) {
    auto x = Tensor<float>::zeros({1, 40, 2});
    x.data()[79] = bad;
    CHECK_THROWS_AS(memory.write(state, Variable<float>(x)), infty::NonFiniteError);
    CHECK(state.taken == before.taken);
    CHECK(state.held == before.held);
    CHECK(state.means.value().to_vector() == before.means.value().to_vector());
  }
  // The largest that is taken in is written and read, too.
  auto large = Tensor<float>::full({1, 500, 2}, 1e29F);
  memory.write(state, Variable<float>(large));
  Random random(5);
  memory.read(state, infty::tests::uniform_variable<float>({1, 3, 4}, random));
  CHECK(infty::is_finite(state));
  auto foreign = state;
  foreign.held[0] = 1000000;
  CHECK_THROWS_AS(memory.write(foreign, Variable<float>(large)), infty::ValueError);
  foreign = state;
  foreign.sum = Tensor<double>::zeros({1, 3});
  CHECK_THROWS_AS(memory.seen(foreign), infty::ShapeError);
}

TEST_CASE("docs/memories.md: a uniform memory") {
  infty::Random random(infty::tests::seed);
  const auto vectors = infty::tests::uniform_tensor<float>({1, 1000, 64}, random);
  const auto queries = infty::tests::uniform_tensor<float>({1, 3, 64}, random);

  using Memory = infty::UniformMemory<float>;
  Memory::Config config;
  config.model_dim = 64;
  config.heads = 4;
  config.basis = 32;
  config.samples = 64;
  config.power = 1;   // all of the past equally dense
  config.block = 16;  // vectors, later means of vectors, that are written together
  const Memory memory(config);
  auto state = memory.make_state(1);
  memory.write(state, vectors);  // any number of them
  const auto read = memory.read(state, queries);

  CHECK(read.shape() == infty::Shape{1, 3, 64});
  CHECK(state.taken.front() == 1000);
}
