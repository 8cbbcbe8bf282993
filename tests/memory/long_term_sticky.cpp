// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/signal/contraction.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::LongTermMemory;
using infty::Random;
using infty::Resampling;
using infty::Shape;
using infty::Tensor;
using infty::tests::small_config;
using infty::tests::uniform_tensor;

TEST_CASE("LongTermMemory: sticky by quantiles of even attention is even") {
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<double>({1, 5, 4}, random);
  const auto after = [&](Resampling resampling, bool attention) {
    auto settings = small_config();
    settings.resampling = resampling;
    settings.bounded = false;  // or drawn places are clamped, and even ones multiply
    const LongTermMemory<double> memory(settings);
    auto state = memory.make_state(1);
    memory.write(state, x);
    if (attention) state.attention.fill(.25);
    memory.write(state, x);
    return state.coefficients.value().to_vector();
  };
  const auto even = after(Resampling::even, false);
  CHECK(infty::tests::error(after(Resampling::sticky_quantiles, true), even) < 1e-12);
  // Without any read in between there is nothing to go by, which is even attention too.
  CHECK(infty::tests::error(after(Resampling::sticky_quantiles, false), even) < 1e-12);
}

TEST_CASE("LongTermMemory: sticky memories sample where attention was") {
  auto settings = small_config();
  settings.resampling = Resampling::sticky_quantiles;
  const LongTermMemory<double> memory(settings);
  Random random(infty::tests::seed);
  auto state = memory.make_state(1);
  memory.write(state, uniform_tensor<double>({1, 12, 4}, random));
  for (Index bin = 0; bin < 8; ++bin) state.attention.data()[bin] = 1;
  // All of the attention in the first sixteenth, so m / samples of it.
  auto places = infty::even_locations<double, infty::EigenBackend>(settings.samples);
  for (Index m = 0; m < settings.samples; ++m) places.data()[m] /= 16;
  CHECK(infty::tests::error(memory.next_locations(state).to_vector(), places.to_vector()) < 1e-15);
  const auto x = uniform_tensor<double>({1, 3, 4}, random);
  auto by_hand = state;
  memory.write_at(by_hand, x, {3}, places.reshape({1, settings.samples}));
  memory.write(state, x);
  CHECK(infty::tests::error(state.coefficients.value().to_vector(),
                            by_hand.coefficients.value().to_vector()) < 1e-12);
}

TEST_CASE("LongTermMemory: a read is noted once, and forgotten with the next write") {
  auto settings = small_config();
  settings.resampling = Resampling::sticky;
  const LongTermMemory<double> memory(settings);
  Random random(infty::tests::seed);
  auto state = memory.make_state(2);
  memory.write(state, uniform_tensor<double>({2, 5, 4}, random));
  CHECK(state.attention.to_vector() == std::vector<double>(256, 0.0));
  const auto copy = state;
  memory.read(state, uniform_tensor<double>({2, 3, 6}, random));
  const auto p = state.attention.to_vector();
  double sum = 0;
  for (const double x : p) sum += x;
  CHECK(sum == Approx(2));
  CHECK(copy.attention.to_vector() == std::vector<double>(256, 0.0));
  memory.write(state, uniform_tensor<double>({2, 5, 4}, random), {5, 0});
  const auto after = state.attention.to_vector();
  for (std::size_t i = 0; i < 128; ++i) CHECK((after[i] == 0 && after[128 + i] == p[128 + i]));
}

TEST_CASE("LongTermMemory: sampled places depend on seed, row and write, not on the batch") {
  auto settings = small_config();
  settings.resampling = Resampling::sticky;
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<double>({1, 5, 4}, random);
  const auto q = uniform_tensor<double>({1, 3, 6}, random);
  const auto run = [&](std::uint64_t seed, Index stream, Index batch, Index row) {
    settings.sampling_seed = seed;
    const LongTermMemory<double> memory(settings);
    auto state = memory.make_state(batch, stream);
    Tensor<double> xs(Shape{batch, 5, 4}), qs(Shape{batch, 3, 6});
    for (Index b = 0; b < batch; ++b) {
      xs.slice(b, b + 1).copy_from(x);
      qs.slice(b, b + 1).copy_from(q);
    }
    for (int i = 0; i < 3; ++i) {
      memory.write(state, xs);
      memory.read(state, qs);
    }
    return state.coefficients.value().slice(row, row + 1).to_vector();
  };
  const auto one = run(1, 0, 1, 0);
  CHECK(run(1, 0, 1, 0) == one);
  CHECK(infty::tests::error(run(1, 0, 4, 0), one) < 1e-12);
  CHECK(infty::tests::error(run(1, 2, 1, 0), run(1, 0, 4, 2)) < 1e-12);
  CHECK(infty::tests::error(run(1, 0, 4, 1), one) > 1e-6);
  CHECK(infty::tests::error(run(2, 0, 1, 0), one) > 1e-6);
}
