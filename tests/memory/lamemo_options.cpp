// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <utility>

#include <infty/memory/lamemo.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/to.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "memory/lamemo.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

using infty::AttentionSizes;
using infty::Index;
using infty::LaMemo;
using infty::LaMemoConfig;
using infty::LaMemoPositions;
using infty::Random;
using infty::Shape;
using infty::tests::all_options;
using infty::tests::drawn_tokens;
using infty::tests::small_model;
using infty::tests::two_layers;

TEST_CASE("LaMemo: keeps to what every mixer keeps to, whatever is left out") {
  const infty::tests::TemporaryFolder folder;
  const auto option = GENERATE(range(0, 5));
  CAPTURE(option);
  infty::testing::require_mixer<LaMemo<double>>(all_options(4)[static_cast<std::size_t>(option)],
                                                folder / "state");
}

TEST_CASE("LaMemo: without look-ahead it answers as a Transformer-XL of the same parameters") {
  const bool pre_norm = GENERATE(false, true);
  CAPTURE(pre_norm);
  const auto model = small_model(pre_norm, {.capacity = 4, .look_ahead = false});
  infty::TransformerLM<infty::ShortTermMemory<double>> xl(two_layers(pre_norm),
                                                          {.capacity = 4, .stride = 1}, Random(9));
  infty::copy_parameters(model, xl);
  const auto full = small_model(pre_norm, {.capacity = 4});
  auto state = model.make_state(2);
  auto xl_state = xl.make_state(2);
  auto full_state = full.make_state(2);
  Random random(infty::tests::seed);
  double ahead = 0;
  for (const Index length : {3, 1, 6, 2}) {
    const auto x = drawn_tokens(2, length, random);
    const auto expected = xl.forward(xl_state, x).value().to_vector();
    CHECK(infty::tests::error(model.forward(state, x).value().to_vector(), expected) < 1e-13);
    ahead = std::max(
        ahead, infty::tests::error(full.forward(full_state, x).value().to_vector(), expected));
    if (length == 1) {
      infty::reset_row(state, 1);
      infty::reset_row(xl_state, 1);
      infty::reset_row(full_state, 1);
    }
  }
  CHECK(ahead > 1e-3);  // to look ahead makes a difference
}

TEST_CASE(
    "LaMemo: a state holds no more than its options need, and a parameter is one that is used") {
  constexpr AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 3};
  const auto of = [&](const LaMemoConfig& config) { return LaMemo<double>(config, sizes); };
  const auto shapes = [&](const LaMemoConfig& config) {
    const auto state = of(config).make_state(2);
    return std::pair(state.context.dim(2), state.log_sum.dim(2));
  };
  const auto widths = [](Index context, Index log_sum) { return std::pair(context, log_sum); };
  CHECK(shapes({.capacity = 5}) == widths(6, 2));
  CHECK(shapes({.capacity = 5, .look_ahead = false}) == widths(6, 0));
  CHECK(shapes({.capacity = 5, .interpolation = false}) == widths(0, 0));
  const Index all = infty::count_parameters(of({}));
  CHECK(infty::count_parameters(of({.look_ahead = false})) == all - 6);
  CHECK(infty::count_parameters(of({.interpolation = false})) == all);
  CHECK(infty::count_parameters(of({.positions = LaMemoPositions::transformer_xl})) == all - 6);
}

TEST_CASE("LaMemo: every layer shows its shares, and showing changes nothing") {
  const auto model = small_model(false, {.capacity = 4});
  auto state = model.make_state(2), same = state;
  Random random(infty::tests::seed);
  const auto first = drawn_tokens(2, 3, random), x = drawn_tokens(2, 2, random);
  model.observe(state, first);
  model.observe(same, first);
  infty::Pass<double> pass{.traced = true};
  const auto y = model.forward(state, x, pass);
  CHECK(y.value().to_vector() == model.forward(same, x).value().to_vector());
  CHECK(infty::tests::numbers_of(state) == infty::tests::numbers_of(same));
  REQUIRE(pass.trace.size() == 4);  // two layers
  std::vector<std::vector<double>> alphas;
  for (const auto& shown : pass.trace) {
    if (shown.name != "alpha") continue;
    alphas.push_back(shown.value.value().to_vector());
    CHECK(shown.value.shape() == Shape{2, 3, 2});
    for (const double share : shown.value.value().to_vector()) {
      CHECK(share > 0);
      CHECK(share < 1);
    }
  }
  REQUIRE(alphas.size() == 2);
  CHECK(alphas[0] != alphas[1]);
}

TEST_CASE("LaMemo: a model of a short memory is evaluated with a longer one") {
  const auto option = GENERATE(range(0, 5));
  CAPTURE(option);
  const auto with = [&](Index capacity) {
    return all_options(capacity)[static_cast<std::size_t>(option)];
  };
  const auto trained = small_model(false, with(3));
  const auto expected = small_model(false, with(8));  // of the same draws
  auto config = trained.memory_config();
  config.capacity = 8;
  infty::TransformerLM<LaMemo<double>> longer(trained.config(), config);
  infty::copy_parameters(trained, longer);
  auto short_state = trained.make_state(1), state = longer.make_state(1),
       expected_state = expected.make_state(1);
  Random random(infty::tests::seed);
  Index read = 0;
  for (const Index length : {2, 1, 2, 2, 3, 2}) {
    const auto x = drawn_tokens(1, length, random);
    const auto targets = drawn_tokens(1, length, random);
    const auto y = longer.forward(state, x);
    CHECK(y.value().to_vector() == expected.forward(expected_state, x).value().to_vector());
    CHECK(std::isfinite(infty::mean(longer.losses(y, targets)).value().item()));
    const auto as_trained = trained.forward(short_state, x).value().to_vector();
    // Until more has been read than the shorter one holds, both hold the same.
    if (read <= 3)
      CHECK(infty::tests::error(y.value().to_vector(), as_trained) < 1e-13);
    else
      CHECK(infty::tests::error(y.value().to_vector(), as_trained) > 1e-6);
    read += length;
  }
  CHECK(state.body.input.length == infty::RowCounts{8});
}
