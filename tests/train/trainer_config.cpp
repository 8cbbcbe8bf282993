// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>

#include <infty/train/trainer_config.hpp>

#include "support/catch.hpp"

using infty::AdamConfig;
using infty::Index;
using infty::RateSchedule;
using infty::TrainerConfig;

TEST_CASE("TrainerConfig: the rate is that of its schedule") {
  TrainerConfig config{.steps = 20,
                       .adam = {.learning_rate = .1},
                       .schedule = RateSchedule::cosine,
                       .warmup_steps = 4,
                       .last_rate = .01};
  for (Index step = 0; step < 25; ++step) {
    config.schedule = RateSchedule::cosine;
    CHECK(config.rate(step) == infty::CosineSchedule{.1, 4, 20, .01}(step));
    config.schedule = RateSchedule::linear;
    CHECK(config.rate(step) == infty::LinearSchedule{.1, 4, 20, .01}(step));
    config.schedule = RateSchedule::constant;
    CHECK(config.rate(step) == infty::ConstantSchedule{.1, 4}(step));
  }
}

TEST_CASE("TrainerConfig: the rate may stay for an epoch") {
  const TrainerConfig config{.steps = 64 * 7, .adam = {.learning_rate = .1}, .rate_every = 7};
  for (Index step = 0; step < config.steps; ++step)  // as torch's CosineAnnealingLR of 64 epochs
    CHECK(config.rate(step) == infty::CosineSchedule{.1, 0, 64}(step / 7));
}

TEST_CASE("TrainerConfig: a max_norm of 0 is any") {
  CHECK(TrainerConfig{}.clipped_norm() == std::numeric_limits<double>::infinity());
  CHECK(TrainerConfig{.max_norm = .25}.clipped_norm() == .25);
}

TEST_CASE("TrainerConfig: what cannot be is refused by name") {
  CHECK_NOTHROW(TrainerConfig{}.validate());
  CHECK_THROWS_WITH(TrainerConfig{.steps = 0}.validate(),
                    "[TrainerConfig] steps is 0: it must be at least 1");
  CHECK_THROWS_WITH(TrainerConfig{.max_norm = -1}.validate(),
                    "[TrainerConfig] max_norm is -1: it must be at least 0");
  CHECK_THROWS_AS(TrainerConfig{.max_norm = std::nan("")}.validate(), infty::ValueError);
  CHECK_THROWS_AS(TrainerConfig{.adam = AdamConfig{.beta1 = 1}}.validate(), infty::ValueError);
  CHECK_THROWS_WITH((TrainerConfig{.steps = 5, .warmup_steps = 5}.validate()),
                    "[TrainerConfig] warmup_steps is 5: it must be below steps = 5");
  CHECK_THROWS_WITH(TrainerConfig{.warmup_steps = -1}.validate(),
                    "[TrainerConfig] warmup_steps is -1: it must be at least 0");
  CHECK_NOTHROW((
      TrainerConfig{.steps = 5, .schedule = RateSchedule::constant, .warmup_steps = 5}.validate()));
  for (const double wrong : {1., -1., std::nan("")})
    CHECK_THROWS_WITH(TrainerConfig{.last_rate = wrong}.validate(),
                      Catch::Contains("[TrainerConfig] last_rate is "));
  CHECK_THROWS_WITH(TrainerConfig{.rate_every = 0}.validate(),
                    "[TrainerConfig] rate_every is 0: it must be at least 1");
  CHECK_THROWS_WITH(TrainerConfig{.save_every = 0}.validate(),
                    "[TrainerConfig] save_every is 0: it must be at least 1");
  CHECK_THROWS_WITH(TrainerConfig{.save_minutes = -1}.validate(),
                    "[TrainerConfig] save_minutes is -1: it must be at least 0");
  CHECK_THROWS_AS(TrainerConfig{.save_minutes = std::nan("")}.validate(), infty::ValueError);
  CHECK_THROWS_AS(TrainerConfig{.schedule = static_cast<RateSchedule>(9)}.validate(),
                  infty::ValueError);
}
