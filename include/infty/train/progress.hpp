// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cmath>
#include <initializer_list>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Writes seconds as people read them: `8s`, `1:38`, `2:03:05`; `?` if they are not finite or
/// negative.
inline std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e15)) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 60) return std::to_string(whole) + 's';
  const auto two_digits = [](long long n) {
    return std::string(n < 10 ? "0" : "") + std::to_string(n);
  };
  const long long minutes = whole / 60, hours = minutes / 60;
  const std::string rest = two_digits(whole % 60);
  if (hours == 0) return std::to_string(minutes) + ':' + rest;
  return std::to_string(hours) + ':' + two_digits(minutes % 60) + ':' + rest;
}

/// Counts steps against the clock: rate, time left, and a line that says so. It prints nothing.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;            ///< what time is taken by
  using Field = std::pair<std::string_view, double>;  ///< a name and a number, for the line

  /// Starts the clock.
  /// @param total  steps in all, >= 0   @param first  steps that an earlier run has done
  /// @throws infty::ValueError unless 0 <= first <= total
  explicit Progress(Index total, Index first = 0, Clock::time_point start = Clock::now())
      : total_(total), first_(first), done_(first), start_(start), now_(start) {
    require(0 <= first && first <= total, "Progress", "first is ", first, ", total is ", total,
            ": 0 <= first <= total must hold");
  }

  /// Says that `done` steps of `total` are done by now. @throws infty::ValueError unless
  /// first <= done <= total
  void update(Index done, Clock::time_point now = Clock::now()) {
    require(first_ <= done && done <= total_, "Progress::update", "done is ", done,
            ": it must lie in [", first_, ", ", total_, "]");
    done_ = done;
    now_ = now;
  }

  /// Steps behind us.
  Index done() const { return done_; }
  /// Steps in all.
  Index total() const { return total_; }

  /// From the start to the last update.
  double seconds() const { return std::chrono::duration<double>(now_ - start_).count(); }

  /// Steps a second since the start, those of an earlier run not counted; 0 until it is known.
  double rate() const {
    return seconds() > 0 ? static_cast<double>(done_ - first_) / seconds() : 0;
  }

  /// Seconds that the other steps will take at this rate; infinite until it is known.
  double seconds_left() const {
    if (done_ == total_) return 0;
    const double speed = rate();
    return speed > 0 ? static_cast<double>(total_ - done_) / speed : math::infinity<double>;
  }

  /// Writes one line, without a line break: `step 300/1500  loss 1.234  12.3 steps/s  1:38 left`.
  /// @param fields  names and values that go between the step and the rate
  /// @param unit    what is counted, in the singular
  std::string line(std::initializer_list<Field> fields = {}, std::string_view unit = "step") const {
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << unit << ' ' << done_ << '/' << total_;
    out.precision(4);
    for (const auto& [name, value] : fields) out << "  " << name << ' ' << value;
    out.precision(3);
    out << "  " << rate() << ' ' << unit << "s/s  " << format_duration(seconds_left()) << " left";
    return out.str();
  }

 private:
  Index total_, first_, done_;
  Clock::time_point start_, now_;
};

}  // namespace infty
