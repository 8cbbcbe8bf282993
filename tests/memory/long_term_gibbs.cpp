// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/signal/gibbs_density.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/golden_gibbs.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

namespace long_term_gibbs_tests {

using infty::GibbsDensity;
using infty::Index;
using infty::LongTermConfig;
using infty::LongTermMemory;
using infty::Random;
using infty::Resampling;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::numbers_of;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

using Cells = infty::RectangularBasis<double>;
using OfCells = LongTermMemory<double, GibbsDensity, Cells>;
using OfBumps = LongTermMemory<double, GibbsDensity>;

LongTermConfig biased() {
  auto config = infty::tests::small_config();
  config.gate = false;
  config.bias = true;
  config.points = 60;
  return config;
}

TEST_CASE(
    "LongTermMemory, Gibbs: the authors' numbers in double, every value and gradient, to 1e-9") {
  const std::string name = GENERATE("gibbs_rectangular", "gibbs_sticky", "gibbs_gaussian");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = infty::tests::replay_gibbs<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst_name, result.worst);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared >= 30);
}

TEST_CASE("LongTermMemory, Gibbs: keeps what all memories keep, in a model") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_memory<OfCells>(biased(), folder / "cells");
  auto config = biased();
  config.resampling = Resampling::sticky_quantiles;
  config.bins = 16;
  infty::testing::require_memory<OfBumps>(config, folder / "bumps");
}

TEST_CASE("LongTermMemory, Gibbs: gradients through write and read, with a gate and without out") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({2, 7, 4}, random),
             q = uniform_variable<double>({2, 3, 6}, random, -2, 2);
  const Variable<double> by(uniform_tensor<double>({2, 3, 6}, random));
  auto config = biased();
  config.gate = true;
  config.project = false;
  OfBumps memory(config);
  CHECK(infty::parameters<double>(memory).size() == 6);
  const auto loss = [&] {
    auto state = memory.make_state(2);
    memory.write(state, x);
    return sum(memory.read(state, q) * by);
  };
  CHECK(infty::gradient_check(
            loss, std::vector{x, q, memory.key.weight, memory.key.bias, memory.value.weight,
                              memory.value.bias, memory.gate_weight}) < 1e-7);
}

TEST_CASE(
    "LongTermMemory, Gibbs: the density integrates to one, and a pass is shown it if it asks") {
  Random random(infty::tests::seed);
  const OfBumps memory(biased());
  auto state = memory.make_state(1);
  memory.write(state, uniform_variable<double>({1, 9, 4}, random));
  const auto q = uniform_variable<double>({1, 2, 6}, random, -3, 3);
  const auto density = memory.density(state, q);
  CHECK(density.shape() == Shape{1, 2, 2, 60});
  const auto p = density.to_vector();
  for (std::size_t row = 0; row < 4; ++row) {
    double integral = -(p[row * 60] + p[row * 60 + 59]) / 2;
    for (std::size_t i = 0; i < 60; ++i) integral += p[row * 60 + i];
    CHECK(integral / 59 == Approx(1));
  }
  infty::Pass<double> silent, traced{.traced = true};
  const auto read = memory.read(state, q, silent).value().to_vector();
  CHECK(silent.trace.empty());
  CHECK(memory.read(state, q, traced).value().to_vector() == read);
  REQUIRE(traced.trace.size() == 1);
  CHECK(traced.trace[0].name == "density");
  CHECK(traced.trace[0].value.value().to_vector() == p);
  CHECK(traced.losses.empty());  // there is no prior
}

TEST_CASE("LongTermMemory, Gibbs: a sticky memory samples by the density at the edges of bins") {
  Random random(infty::tests::seed);
  auto config = biased();
  config.resampling = Resampling::sticky;
  config.bins = 8;
  config.samples = 40;
  const auto x = uniform_variable<double>({2, 5, 4}, random),
             q = uniform_variable<double>({2, 3, 6}, random, -3, 3);
  const auto after_read = [&](const OfCells& memory) {
    auto state = memory.make_state(2);
    memory.write(state, x);
    memory.read(state, q);
    return state;
  };
  const OfCells memory(config);
  const auto state = after_read(memory);
  const auto edges =
      infty::sampled_basis<infty::EigenBackend>(memory.basis(), infty::edge_places(8), false);
  const auto keys = memory.key.forward(state.coefficients).value();
  CHECK(state.attention.to_vector() ==
        infty::gibbs_bin_probability(edges, q.value(), keys, 2, false).to_vector());
  const auto places = memory.next_locations(state).to_vector();
  CHECK(std::is_sorted(places.begin(), places.begin() + 40));

  config.sort_draws = false;  // the same places, as they are drawn
  auto drawn = OfCells(config).next_locations(state).to_vector();
  CHECK(drawn != places);
  std::sort(drawn.begin(), drawn.begin() + 40);
  std::sort(drawn.begin() + 40, drawn.end());
  CHECK(drawn == places);

  config.shifted_bins = true;  // as the authors' program
  const auto shifted = after_read(OfCells(config)).attention.to_vector();
  const auto right = state.attention.to_vector();
  for (std::size_t row = 0; row < 2; ++row) {
    const std::size_t begin = 8 * row;
    CHECK(shifted[begin + 7] == 0);
    for (std::size_t bin = 0; bin < 7; ++bin)
      CHECK(shifted[begin + bin] == Approx(right[begin + bin + 1] / (1 - right[begin])));
  }
}

TEST_CASE("LongTermMemory, Gibbs: what is at t = 1 is lost where the last cell is open") {
  auto config = biased();
  config.resampling = Resampling::even;
  config.bounded = false;
  config.hold_short_writes = false;
  Random random(infty::tests::seed);
  const auto x = uniform_tensor<double>({1, 4, 4}, random);
  auto other = x.clone();
  other.slice(0, 1).reshape({4, 4}).slice(3, 4).fill(9);
  const auto written = [&](const Tensor<double>& last) {
    const OfCells memory(config);
    auto state = memory.make_state(1);
    memory.write(state, Variable<double>(x));
    memory.write(state, Variable<double>(last));
    return state.coefficients.value().to_vector();
  };
  CHECK(written(x) != written(other));
  config.last_cell = infty::LastCell::open;
  CHECK(written(x) == written(other));
}

TEST_CASE(
    "LongTermMemory, Gibbs: a fresh row reads what the biases say, siblings share the nodes") {
  auto config = biased();
  config.project = false;
  const OfCells biases(config);
  config.bias = false;
  const OfCells none(config);
  Random random(infty::tests::seed);
  const auto q = uniform_variable<double>({1, 2, 6}, random);
  auto state = biases.make_state(1);
  const auto read = biases.read(state, q).value().to_vector(),
             bias = biases.value.bias.value().to_vector();
  for (std::size_t i = 0; i < read.size(); ++i) CHECK(read[i] == Approx(bias[i % 6]));
  CHECK(none.read(state, q).value().to_vector() == std::vector<double>(12, 0));
  const auto sibling = none.sibling(Random(7));
  CHECK(sibling.read(state, q).shape() == Shape{1, 2, 6});
  CHECK(sibling.key.weight.value().to_vector() != none.key.weight.value().to_vector());
}

TEST_CASE("LongTermMemory, Gibbs: what reads keep between writes is made anew when it changes") {
  Random random(infty::tests::seed);
  OfBumps memory(biased());
  const auto q = uniform_variable<double>({1, 2, 6}, random);
  auto state = memory.make_state(1);
  memory.write(state, uniform_variable<double>({1, 6, 4}, random));
  const auto check_read = [&] {  // against one with a tape, which keeps nothing
    auto fresh = state;
    infty::Tape tape;
    const auto expected = memory.read(fresh, q).value().to_vector();
    const auto guard = infty::no_grad();
    for (int again = 0; again < 2; ++again)
      CHECK(memory.read(state, q).value().to_vector() == expected);
    return expected;
  };
  const auto first = check_read();
  memory.value.bias.value().fill(.5);
  const auto second = check_read();
  memory.key.weight.value().fill(.25);
  const auto third = check_read();
  memory.write(state, uniform_variable<double>({1, 6, 4}, random));
  const auto fourth = check_read();
  CHECK((first != second && second != third && third != fourth));
}

TEST_CASE("LongTermMemory, Gibbs: products are counted with those of the nodes") {
  auto config = biased();  // N = 8, d = 4, H D = 6, 60 nodes
  CHECK(OfBumps(config).read_flops(2, 3) ==
        2 * 2 * (2 * (8 * 6 * 4 + 3 * 6 * 8 + 3 * 120 * 8) + 3 * 4 * 6));
  config.project = false;  // a node a cell
  CHECK(OfCells(config).read_flops(1, 3) == 2 * 2 * (8 * 6 * 4 + 3 * 6 * 8 + 3 * 16 * 8));
}

TEST_CASE("LongTermMemory, Gibbs: what cannot be is refused, and leaves the state as it was") {
  auto config = biased();
  CHECK_THROWS_WITH(
      LongTermMemory<float>(config),
      "[LongTermMemory] bias is true: only a density of scores, such as GibbsDensity, is read with "
      "biases");
  config.points = 1;
  CHECK_THROWS_WITH(OfCells(config), "[LongTermConfig] points is 1: it must be at least 2");
  config.points = Index{1} << 55;
  CHECK_THROWS_AS(OfCells(config), infty::ValueError);
  config = biased();
  config.resampling = Resampling::sticky;
  const OfCells memory(config);
  auto state = memory.make_state(1);
  Random random(infty::tests::seed);
  memory.write(state, uniform_variable<double>({1, 5, 4}, random));
  const auto before = numbers_of(state);
  auto queries = uniform_tensor<double>({1, 2, 6}, random);
  CHECK_THROWS_AS(memory.density(state, Variable<double>(queries.reshape({2, 1, 6}))),
                  infty::ShapeError);
  queries.data()[3] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(memory.read(state, Variable<double>(queries)), infty::NonFiniteError);
  CHECK(numbers_of(state) == before);
}

}  // namespace long_term_gibbs_tests
