// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

#include <unistd.h>

#include <infty/train/progress.hpp>

namespace support {

/// The progress line on standard error: ever the same line of a terminal, a new line every few
/// seconds elsewhere, the first behind two. What is over sooner says nothing.
class ProgressLine {
 public:
  /// @param first  steps of `total` that an earlier run has done
  /// @param unit   what is counted, in the singular
  ProgressLine(std::string name, infty::Index total, infty::Index first, std::string unit = "step")
      : name_(std::move(name)), unit_(std::move(unit)), progress_(total, first) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (unfinished_) std::fputc('\n', stderr);
  }

  /// Says that so many steps are done; `fields` go between the step and the rate.
  void update(infty::Index done, std::initializer_list<infty::Progress::Field> fields = {}) {
    progress_.update(done);
    const bool last = progress_.done() == progress_.total() && shown_;
    if (!last && progress_.seconds() < next_) return;
    next_ = progress_.seconds() + (terminal_ ? .1 : 5);
    shown_ = true;
    std::fprintf(stderr, "%s%-7s %s%s", terminal_ ? "\r\033[K" : "", name_.c_str(),
                 progress_.line(fields, unit_).c_str(), terminal_ && !last ? "" : "\n");
    unfinished_ = terminal_ && !last;
  }

  /// Takes an unfinished line off the terminal, for what else is to be printed.
  void clear() {
    if (unfinished_) std::fputs("\r\033[K", stderr);
    unfinished_ = false;
  }

 private:
  std::string name_, unit_;
  infty::Progress progress_;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0, unfinished_ = false, shown_ = false;
  double next_ = terminal_ ? .1 : 2;  // seconds from the start
};

}  // namespace support
