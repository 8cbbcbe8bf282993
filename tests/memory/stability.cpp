// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/stability.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::LongTermConfig;
using infty::retention;
using infty::stability;

namespace {

/// The defaults of examples/language_model.
LongTermConfig language_model_config() {
  return {.model_dim = 64,
          .heads = 4,
          .basis = 32,
          .widths = {.02, .1},
          .samples = 64,
          .tau = .75,
          .ridge = .5};
}

LongTermConfig paper(LongTermConfig config) {
  config.bounded = config.hold_short_writes = false;
  return config;
}

}  // namespace

TEST_CASE("stability: single vectors make the paper's recursion grow, held ones do not") {
  const auto config = language_model_config();
  const auto before = stability(paper(config), 1), after = stability(config, 1);
  CHECK(before.radius == Approx(1.116).epsilon(1e-3));
  CHECK(before.points == 1);
  CHECK(before.lebesgue > 30);
  CHECK(std::isinf(before.bound));
  CHECK(after.radius == Approx(.587).epsilon(1e-3));
  CHECK(after.points == 22);
  CHECK(after.penalty == .5);
  CHECK(after.lebesgue < 2.5);
  CHECK(after.bound <= infty::most_run);
}

TEST_CASE("stability: writes that are long enough are not held, keep their penalty, and multiply") {
  auto demo = language_model_config();  // of examples/sorting
  demo.widths = {.05, .2};
  demo.samples = 48;
  demo.ridge = 1;
  for (const auto& config : {language_model_config(), demo}) {
    const auto s = stability(config, 64);
    CAPTURE(s.lebesgue, s.bound);
    CHECK(s.points == 64);
    CHECK(s.penalty == config.ridge);
    CHECK(s.radius < 1);
    CHECK(s.lebesgue < 2.6);
    CHECK(s.multiplies);
    const auto as_published = stability(paper(config), 64);
    CHECK(as_published.radius == s.radius);
    CHECK(as_published.multiplies);
  }
  auto sticky = demo;
  sticky.resampling = infty::Resampling::sticky;
  CHECK(!stability(sticky, 64).multiplies);
  CHECK(stability(sticky, 64).bound == stability(sticky, 64).lebesgue);
}

TEST_CASE("stability: too coarse a sampling gets a larger penalty and is sampled, not multiplied") {
  auto config = language_model_config();
  config.basis = config.samples = 16;
  config.widths = {.01, .05};
  config.tau = .9;
  config.ridge = .1;
  CHECK(stability(paper(config), 64).radius > 6);
  const auto s = stability(config, 64);
  CHECK(s.penalty > 10 * config.ridge);
  CHECK(!s.multiplies);
  CHECK(s.lebesgue <= infty::most_lebesgue);
}

TEST_CASE("retention: the share of a write is what its part of the signal keeps") {
  infty::Random random(infty::tests::seed);
  auto config = language_model_config();
  config.model_dim = config.heads = 1;
  config.gate = config.bounded = false;
  const infty::LongTermMemory<double> memory(config);
  // Two signals that differ in one write alone, by one vector at a time: the difference is its
  // part.
  const std::vector<Index> lengths{24, 30, 24, 40};
  std::vector<Index> done;
  const auto shares = retention(config, lengths, 0, [&](Index count) { done.push_back(count); });
  REQUIRE(shares.size() == 4);
  CHECK(shares[0] == 1);
  CHECK(done == std::vector<Index>{1, 2, 3, 4});
  std::vector<double> energy(lengths.size(), 0);
  constexpr Index places = 4000;
  for (Index at = 0; at < lengths[0]; ++at) {
    auto with = memory.make_state(1), without = memory.make_state(1);
    const auto first = infty::tests::uniform_tensor<double>({1, 24, 1}, random);
    memory.write(with, first);
    memory.write(without, first);
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      auto x = infty::tests::uniform_tensor<double>({1, lengths[k], 1}, random);
      memory.write(without, x);
      if (k == 0) {
        x = x.clone();
        x.data()[at] += 1;
      }
      memory.write(with, x);
      const auto a = with.coefficients.value().to_vector(),
                 b = without.coefficients.value().to_vector();
      for (Index i = 0; i < places; ++i) {
        double value = 0;
        for (Index j = 0; j < config.basis; ++j)
          value += (a[static_cast<std::size_t>(j)] - b[static_cast<std::size_t>(j)]) *
                   memory.basis()(j, (static_cast<double>(i) + .5) / static_cast<double>(places));
        energy[k] += value * value;
      }
    }
  }
  for (std::size_t k = 0; k < lengths.size(); ++k)
    CHECK(shares[k] == Approx(energy[k] / energy[0]).epsilon(.01));
}

TEST_CASE("a vector that is written alone is kept as so many copies of it are") {
  // What is left of a signal of one behind 8 writes of 250 zeros, against the contraction's share.
  const auto left = [](Index copies, bool held) {
    auto config = language_model_config();
    config.model_dim = config.heads = 1;
    config.gate = false;
    config.hold_short_writes = held;
    const infty::LongTermMemory<double> memory(config);
    auto state = memory.make_state(1);
    memory.write(state, infty::Tensor<double>::full({1, copies, 1}, 1));
    for (int i = 0; i < 8; ++i) memory.write(state, infty::Tensor<double>::zeros({1, 250, 1}));
    const auto b = state.coefficients.value().to_vector();
    constexpr Index places = 2000;
    double energy = 0;
    for (Index i = 0; i < places; ++i) {
      double value = 0;
      for (Index j = 0; j < config.basis; ++j)
        value += b[static_cast<std::size_t>(j)] *
                 memory.basis()(j, (static_cast<double>(i) + .5) / static_cast<double>(places));
      energy += value * value / static_cast<double>(places);
    }
    return energy / std::pow(config.tau, 8);
  };
  const double copies = left(250, true), alone = left(1, true);
  CHECK(copies > .4);  // the rest is blur
  CHECK(alone == Approx(copies).epsilon(.05));
  CHECK(left(1, false) < .05 * copies);  // as in the paper
}

TEST_CASE("retention: many short writes keep less than one long one") {
  const auto config = language_model_config();
  const auto after = [&](Index length, Index vectors) {
    return retention(config,
                     std::vector<Index>(static_cast<std::size_t>(1 + vectors / length), length))
        .back();
  };
  CHECK(after(1, 64) < 1e-3 * after(64, 64));
  CHECK(after(8, 64) < after(64, 64));
  CHECK_THROWS_WITH(retention(config, {}),
                    "[retention] there are no lengths: the first is that of the write");
  CHECK_THROWS_WITH(retention(config, std::vector<Index>{4, 0}), Catch::Contains("length is 0"));
}

TEST_CASE("warnings: what a configuration cannot keep, and nothing of those that keep it") {
  using infty::warnings;
  auto config = language_model_config();
  for (const Index length : {1, 8, 64}) CHECK(warnings(config, length).empty());
  config.ridge = 1000;
  REQUIRE(warnings(config, 64).size() == 1);
  CHECK_THAT(warnings(config, 64).front(),
             Catch::Contains("of writes of 64 vectors, 0.0082 is left three writes later") &&
                 Catch::Contains("ridge 1e+03"));
  config = language_model_config();
  config.widths = {.005};  // narrower than the places are dense
  CHECK(warnings(config, 64).size() == 1);
  config = language_model_config();
  config.bounded = config.hold_short_writes = false;  // as in the paper
  CHECK(warnings(config, 64).empty());
  const auto alone = warnings(config, 1);
  REQUIRE(alone.size() == 2);
  CHECK_THAT(alone[0], Catch::Contains("of writes of 1 vector, each fills 0.19 of its part") &&
                           Catch::Contains("hold_short_writes"));
  CHECK_THAT(alone[1], Catch::Contains("the past is amplified"));
  CHECK_THROWS_AS(warnings(config, 0), infty::ValueError);
}

TEST_CASE("stability: under a rule, of a write behind so many; bounded by any share") {
  auto config = language_model_config();
  config.power = 1;
  for (const infty::Index written : {1, 64, 1000, 1'000'000})
    for (const infty::Index length : {1, 64}) {
      const auto s = stability(config, length, written);
      CAPTURE(written, length, s.lebesgue, s.penalty);
      CHECK(s.lebesgue <= infty::most_lebesgue);
      CHECK(s.bound == s.lebesgue);
      CHECK(!s.multiplies);
    }
  // A second write as long as the first halves what there is.
  auto half = language_model_config();
  half.tau = infty::gridded_share("test", .5);
  CHECK(stability(config, 64).lebesgue == stability(half, 64).lebesgue);
  CHECK(stability(config, 64).radius == stability(half, 64).radius);
  CHECK_THROWS_WITH(stability(config, 64, -1), Catch::Contains("written is -1"));
}

TEST_CASE("retention, warnings: under a rule the past is contracted less and less") {
  auto config = language_model_config();
  config.power = 1;
  const std::vector<Index> lengths(10, 64);
  const auto early = retention(config, lengths), late = retention(config, lengths, 640);
  // Contraction leaves a second write 2 / 11 of its part behind nine others, and an eleventh 11 /
  // 20; the rest is blur.
  CHECK(early.back() < 2. / 11);
  CHECK(late.back() > early.back());
  CHECK(late.back() < 11. / 20);
  CHECK(infty::warnings(config, 64).empty());
  // A vector behind a million is narrower than any function: nothing of it can be told.
  CHECK(!infty::warnings(config, 1, 1'000'000).empty());
}
