// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

namespace infty::bench {

/// The wall's clock; or, where the environment has INFTY_BENCH_CLOCK=cpu, the time that processors
/// have spent on this program. That one stands still while others are on the cores, so that with
/// one thread a rate is what it would be without them, but for the caches and the memory that they
/// share.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;

  static bool of_processors() {
    static const bool wanted = [] {
      const char* const chosen = std::getenv("INFTY_BENCH_CLOCK");
      return chosen && std::string_view(chosen) == "cpu";
    }();
    return wanted;
  }
  static time_point now() {
    if (!of_processors())
      return time_point(std::chrono::duration_cast<duration>(
          std::chrono::steady_clock::now().time_since_epoch()));
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
  }
};

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The middle one, or the mean of the two in the middle; 0 of none.
inline double median(std::vector<double> x) {
  if (x.empty()) return 0;
  const auto middle = x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2);
  std::nth_element(x.begin(), middle, x.end());
  if (x.size() % 2 != 0) return *middle;
  return (*std::max_element(x.begin(), middle) + *middle) / 2;
}

}  // namespace infty::bench
