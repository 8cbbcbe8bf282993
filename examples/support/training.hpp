// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/core/error.hpp>
#include <infty/model/settings.hpp>
#include <infty/train/trainer_config.hpp>

#include "settings.hpp"

// What programs that train share of their settings: any struct with the members `steps`, `adam`,
// `schedule`, `warmup`, `last_rate` and `clip`.

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
