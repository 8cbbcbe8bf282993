// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/core/error.hpp>
#include <infty/model/settings.hpp>
#include <infty/train/trainer_config.hpp>

#include "products.hpp"
#include "settings.hpp"

// What programs that train share of their settings: any struct with the members `steps`, `adam`,
// `schedule`, `warmup`, `last_rate`, `clip` and `products`.

namespace support {

/// Calls see(group, name, field, help, choice...) for each of them.
template <class Settings, class See>
void each_training_setting(const char* group, Settings& s, See&& see) {
  see(group, "steps", s.steps, "in all");
  each_chosen(group, s.adam, {{"learning_rate", "rate"}}, see);
  see(group, "schedule", s.schedule, "of the rate", "cosine", "linear", "constant");
  see(group, "warmup", s.warmup, "steps in which the rate rises");
  see(group, "last-rate", s.last_rate, "what cosine and linear fall to");
  see(group, "clip", s.clip, "greatest global norm of the gradients; 0: any");
  each_chosen(group, s.adam, {{"beta1"}, {"beta2"}, {"epsilon"}, {"weight_decay", "weight-decay"}},
              see);
  each_products_setting(group, s.products, see);
}

/// The same for how a batch is shared out over ranks: the members `shards`, 0 for none, and
/// `reduce`.
template <class Settings, class See>
void each_shard_setting(const char* group, Settings& s, See&& see) {
  see(group, "shards", s.shards,
      "parts of a batch that ranks share out, the same numbers on any number of them; 0: none");
  see(group, "reduce", s.reduce,
      "how they are summed: along one tree, or fast, by MPI, whose last bits are its own", "tree",
      "fast");
}

/// Throws infty::ValueError that names the one of them that cannot be.
template <class Settings>
void validate_shards(const char* program, const Settings& s) {
  infty::require(s.shards <= s.batch, program, "--shards is ", s.shards,
                 ": it must lie in [0, --batch = ", s.batch, "], for each has a row");
  infty::require(s.shards > 0 || s.reduce == "tree", program, "--reduce fast goes with --shards");
}

/// When checkpoints are due, which changes no number.
struct Saving {
  infty::Index every = infty::TrainerConfig{}.save_every;
  double minutes = infty::TrainerConfig{}.save_minutes;
};

/// The same for the library's trainer.
template <class Settings>
infty::TrainerConfig trainer_config(const Settings& s, const Saving& saving = {}) {
  return {.steps = s.steps,
          .adam = s.adam,
          .schedule = infty::value_of<infty::RateSchedule>(s.schedule),
          .warmup_steps = s.warmup,
          .last_rate = s.last_rate,
          .max_norm = s.clip,
          .save_every = saving.every,
          .save_minutes = saving.minutes};
}

/// Throws infty::ValueError that names the first of them that does not fit the others; each is in
/// its range.
template <class Settings>
void validate_training(const char* program, const Settings& s) {
  infty::require(s.schedule == "constant" || s.steps > s.warmup, program, "--steps is ", s.steps,
                 ": it must be above --warmup = ", s.warmup);
  infty::require(s.schedule == "constant" || s.last_rate <= s.adam.learning_rate, program,
                 "--last-rate is ", s.last_rate,
                 ": it must lie in [0, --rate = ", s.adam.learning_rate, ']');
  trainer_config(s).validate();
}

}  // namespace support
