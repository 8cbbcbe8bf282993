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
/// seconds elsewhere.
class ProgressLine {
 public:
  /// @param first  steps of `total` that an earlier run has done
  ProgressLine(std::string name, infty::Index total, infty::Index first)
      : name_(std::move(name)), progress_(total, first) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (unfinished_) std::fputc('\n', stderr);
  }

  /// Says that so many steps are done; `fields` go between the step and the rate.
  void update(infty::Index done, std::initializer_list<infty::Progress::Field> fields) {
    progress_.update(done);
    const bool last = progress_.done() == progress_.total();
    if (!last && progress_.seconds() - shown_ < (terminal_ ? 0.1 : 5)) return;
    shown_ = progress_.seconds();
    std::fprintf(stderr, "%s%-7s %s%s", terminal_ ? "\r\033[K" : "", name_.c_str(),
                 progress_.line(fields).c_str(), terminal_ && !last ? "" : "\n");
    unfinished_ = terminal_ && !last;
  }

  /// Steps a second until now.
  double rate() const { return progress_.rate(); }

 private:
  std::string name_;
  infty::Progress progress_;
  double shown_ = 0;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0, unfinished_ = false;
};

}  // namespace support
