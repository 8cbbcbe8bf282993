// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/schedule.hpp>

namespace infty {

/// How the learning rate falls behind the warm-up.
enum class RateSchedule {
  cosine,    ///< `CosineSchedule`
  linear,    ///< `LinearSchedule`
  constant,  ///< `ConstantSchedule`
};

/// How a `Trainer` trains.
struct TrainerConfig {
  Index steps = 1000;                            ///< in all
  AdamConfig adam = {};                          ///< its learning rate is that of the peak
  RateSchedule schedule = RateSchedule::cosine;  ///< of the learning rate
  Index warmup_steps = 0;                        ///< in which the rate rises
  double last_rate = 0;                          ///< that `cosine` and `linear` fall to
  Index rate_every = 1;      ///< the rate changes every so many steps: an epoch's, say
  double max_norm = 0;       ///< of all gradients together; 0: any
  Index save_every = 100;    ///< steps between checkpoints, at most
  double save_minutes = 10;  ///< the same in minutes; 0: by steps alone

  /// The learning rate of a step, the first of which is 0: the schedule's at the last multiple of
  /// `rate_every`. @throws infty::ValueError as the schedule
  double rate(Index step) const {
    require_at_least("TrainerConfig", "rate_every", rate_every, 1);
    const double peak = adam.learning_rate;
    if (step > 0) step -= step % rate_every;
    switch (schedule) {
      case RateSchedule::cosine:
        return CosineSchedule{peak, warmup_steps, steps, last_rate}(step);
      case RateSchedule::linear:
        return LinearSchedule{peak, warmup_steps, steps, last_rate}(step);
      case RateSchedule::constant:
        return ConstantSchedule{peak, warmup_steps}(step);
    }
    raise<ValueError>("TrainerConfig", "schedule is ", static_cast<int>(schedule),
                      ": there is none of this number");
  }

  /// What gradients are clipped to: `max_norm`, or infinity.
  double clipped_norm() const { return max_norm > 0 ? max_norm : math::infinity<double>; }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("TrainerConfig", "steps", steps, 1);
    adam.validate();
    require(!math::is_nan(max_norm) && max_norm >= 0, "TrainerConfig", "max_norm is ", max_norm,
            ": it must be at least 0");
    require_at_least("TrainerConfig", "save_every", save_every, 1);
    require(!math::is_nan(save_minutes) && save_minutes >= 0, "TrainerConfig", "save_minutes is ",
            save_minutes, ": it must be at least 0");
    require_at_least("TrainerConfig", "warmup_steps", warmup_steps, 0);
    if (schedule != RateSchedule::constant) {
      require(warmup_steps < steps, "TrainerConfig", "warmup_steps is ", warmup_steps,
              ": it must be below steps = ", steps);
      require(last_rate >= 0 && last_rate <= adam.learning_rate, "TrainerConfig", "last_rate is ",
              last_rate, ": it must lie in [0, learning_rate = ", adam.learning_rate, "]");
    }
    rate(0);
  }
};

}  // namespace infty
