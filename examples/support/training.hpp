// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <infty/core/error.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/schedule.hpp>

// What programs that train share of their settings: any struct with the members `steps`, `adam`,
// `schedule`, `warmup`, `last_rate` and `clip`.

namespace support {

/// Calls see(group, name, field, help, choice...) for each of them.
template <class Settings, class See>
void each_training_setting(const char* group, Settings& s, See&& see) {
  see(group, "steps", s.steps, "in all");
  see(group, "rate", s.adam.learning_rate, "learning rate of Adam, at its peak");
  see(group, "schedule", s.schedule, "of the rate", "cosine", "linear", "constant");
  see(group, "warmup", s.warmup, "steps in which the rate rises");
  see(group, "last-rate", s.last_rate, "what cosine and linear fall to");
  see(group, "clip", s.clip, "greatest global norm of the gradients; 0: any");
  see(group, "beta1", s.adam.beta1, "of Adam");
  see(group, "beta2", s.adam.beta2, "of Adam");
  see(group, "epsilon", s.adam.epsilon, "of Adam");
  see(group, "weight-decay", s.adam.weight_decay, "of Adam, decoupled");
}

/// The learning rate of a step, the first of which is 0.
template <class Settings>
double rate_of(const Settings& s, infty::Index step) {
  const double peak = s.adam.learning_rate;
  if (s.schedule == "cosine")
    return infty::CosineSchedule{peak, s.warmup, s.steps, s.last_rate}(step);
  if (s.schedule == "linear")
    return infty::LinearSchedule{peak, s.warmup, s.steps, s.last_rate}(step);
  return infty::ConstantSchedule{peak, s.warmup}(step);
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
  s.adam.validate();
  rate_of(s, 0);
}

}  // namespace support
