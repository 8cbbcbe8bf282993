// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <numbers>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// A learning rate for every step, the first of which is step 0. The smallest one:
/// `auto schedule = [](Index) { return 1e-3; };`
template <class S>
concept Schedule = requires(const S& schedule, Index step) {
  { schedule(step) } -> std::convertible_to<double>;
};

namespace detail {

/// Computes the part of the peak that step `step` of a linear warm-up gets: 1 / warmup_steps in
/// step 0, all of it from step warmup_steps - 1 on.
inline double warmup(Index step, Index warmup_steps) {
  return step >= warmup_steps ? 1
                              : static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
}

/// How much of the decay lies behind a step, in [0, 1].
inline double decayed(Index step, Index warmup_steps, Index total_steps) {
  const auto behind = static_cast<double>(step - warmup_steps);
  return std::clamp(behind / static_cast<double>(total_steps - warmup_steps), 0.0, 1.0);
}

inline void check_schedule(const char* name, Index step, double peak, Index warmup_steps) {
  require_at_least(name, "step", step, 0);
  require(math::is_finite(peak) && peak >= 0, name, "peak is ", peak,
          ": it must be finite and at least 0");
  require_at_least(name, "warmup_steps", warmup_steps, 0);
}

inline void check_decay(const char* name, double peak, Index warmup_steps, Index total_steps,
                        double floor) {
  require(total_steps > warmup_steps, name, "total_steps is ", total_steps,
          ": it must be above warmup_steps = ", warmup_steps);
  require(math::is_finite(floor) && floor >= 0 && floor <= peak, name, "floor is ", floor,
          ": it must lie in [0, peak = ", peak, "]");
}

}  // namespace detail

/// `peak` after a linear warm-up: step s < warmup_steps gets (s + 1) / warmup_steps of it.
struct ConstantSchedule {
  double peak = 1e-3;      ///< the learning rate behind the warm-up, >= 0; Adam's own default
  Index warmup_steps = 0;  ///< steps in which it rises, >= 0; 0: none

  /// Returns the learning rate of a step, the first of which is 0.
  /// @throws infty::ValueError for a negative step or a setting out of its range
  double operator()(Index step) const {
    detail::check_schedule("ConstantSchedule", step, peak, warmup_steps);
    return peak * detail::warmup(step, warmup_steps);
  }
};

/// Linear warm-up, then half a cosine from `peak` in step warmup_steps down to `floor` in step
/// total_steps and after [Loshchilov and Hutter 2017, Eq. 5, without restarts].
struct CosineSchedule {
  double peak = 1e-3;      ///< the highest learning rate, >= 0; Adam's own default
  Index warmup_steps = 0;  ///< steps in which it rises, >= 0; 0: none
  Index total_steps = 1;   ///< steps, warm-up and all, behind which it is `floor`
  double floor = 0;        ///< the lowest learning rate, in [0, peak]

  /// Returns the learning rate of a step, the first of which is 0.
  /// @throws infty::ValueError for a negative step or a setting out of its range
  double operator()(Index step) const {
    detail::check_schedule("CosineSchedule", step, peak, warmup_steps);
    detail::check_decay("CosineSchedule", peak, warmup_steps, total_steps, floor);
    if (step < warmup_steps) return peak * detail::warmup(step, warmup_steps);
    const double angle = std::numbers::pi * detail::decayed(step, warmup_steps, total_steps);
    return floor + (peak - floor) * (0.5 + 0.5 * std::cos(angle));
  }
};

/// Linear warm-up, then a straight line from `peak` in step warmup_steps down to `floor` in step
/// total_steps and after.
struct LinearSchedule {
  double peak = 1e-3;      ///< the highest learning rate, >= 0; Adam's own default
  Index warmup_steps = 0;  ///< steps in which it rises, >= 0; 0: none
  Index total_steps = 1;   ///< steps, warm-up and all, behind which it is `floor`
  double floor = 0;        ///< the lowest learning rate, in [0, peak]

  /// Returns the learning rate of a step, the first of which is 0.
  /// @throws infty::ValueError for a negative step or a setting out of its range
  double operator()(Index step) const {
    detail::check_schedule("LinearSchedule", step, peak, warmup_steps);
    detail::check_decay("LinearSchedule", peak, warmup_steps, total_steps, floor);
    if (step < warmup_steps) return peak * detail::warmup(step, warmup_steps);
    const double decayed = detail::decayed(step, warmup_steps, total_steps);
    // What is rounded may leave the line's end, and go below it.
    return decayed < 1 ? (std::max)(floor, peak + (floor - peak) * decayed) : floor;
  }
};

static_assert(Schedule<ConstantSchedule> && Schedule<CosineSchedule> && Schedule<LinearSchedule>);

}  // namespace infty
