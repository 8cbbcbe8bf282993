// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include <infty/train/progress.hpp>

namespace support {

/// The progress line on standard error: ever the same line of a terminal, as much of it as a row
/// holds, and a new line every few seconds elsewhere, the first behind two. What is over sooner
/// says nothing, and what is over says so once.
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
    const bool over = progress_.done() == progress_.total(), last = over && shown_;
    if (last ? said_over_ : progress_.seconds() < next_) return;
    next_ = progress_.seconds() + (terminal_ ? .1 : 5);
    shown_ = true;
    said_over_ = over;
    std::string line = name_ + std::string(name_.size() < 7 ? 7 - name_.size() : 0, ' ') + ' ' +
                       progress_.line(fields, unit_);
    // Of a line that goes on in another row, only that row could be taken off.
    if (const std::size_t columns = terminal_ && !last ? columns_now() : 0; columns > 0)
      line.resize(std::min(line.size(), columns - 1));
    std::fprintf(stderr, "%s%s%s", terminal_ ? "\r\033[K" : "", line.c_str(),
                 terminal_ && !last ? "" : "\n");
    unfinished_ = terminal_ && !last;
  }

  /// Takes an unfinished line off the terminal, for what else is to be printed.
  void clear() {
    if (unfinished_) std::fputs("\r\033[K", stderr);
    unfinished_ = false;
  }

 private:
  /// Of the terminal; 0 where it does not say.
  static std::size_t columns_now() {
    ::winsize size{};
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  }

  std::string name_, unit_;
  infty::Progress progress_;
  bool terminal_ = ::isatty(STDERR_FILENO) != 0, unfinished_ = false;
  bool shown_ = false, said_over_ = false;
  double next_ = terminal_ ? .1 : 2;  // seconds from the start
};

}  // namespace support
