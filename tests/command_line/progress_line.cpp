// SPDX-License-Identifier: MIT
// What the progress line of the programs writes on a terminal.

#include "../../examples/support/progress_line.hpp"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "support/catch.hpp"

namespace {

/// What job(line) has a line of ten steps write on a terminal of so many columns.
template <class Job>
std::string written(unsigned short columns, Job&& job) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE((terminal >= 0 && ::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0));
  const int end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(end >= 0);
  const ::winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::ioctl(end, TIOCSWINSZ, &size) == 0);
  std::fflush(stderr);
  const int before = ::dup(STDERR_FILENO);
  ::dup2(end, STDERR_FILENO);
  {
    support::ProgressLine line("a long name", 10, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));  // what is sooner says nothing
    job(line);
  }
  std::fflush(stderr);
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  ::close(end);
  std::string text;
  char some[4096];
  for (ssize_t got; (got = ::read(terminal, some, sizeof some)) > 0;)  // until nobody writes there
    text.append(some, static_cast<std::size_t>(got));
  ::close(terminal);
  return text;
}

/// The lines of a terminal's text, which begin by wiping what stands there.
std::size_t lines_in(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find("\r\033[K", at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("ProgressLine: on a narrow terminal a line stays in its row, until it is the last") {
  const auto half = [](support::ProgressLine& line) { line.update(5); };
  CHECK(written(20, half) == "\r\033[Ka long name step 5/\r\n");
  const std::string wide = written(200, half);
  CHECK(wide.starts_with("\r\033[Ka long name step 5/10  "));
  CHECK(wide.ends_with(" left\r\n"));
  const std::string whole = written(20, [](support::ProgressLine& line) {
    line.update(5);
    line.update(10);
  });
  CHECK(whole.ends_with(" 0s left\r\n"));
}

TEST_CASE("ProgressLine: what is over says so once, however often it is told") {
  const std::string text = written(200, [](support::ProgressLine& line) {
    line.update(5);
    for (int i = 0; i < 10; ++i) line.update(10, {{"runs done", i}});
  });
  CAPTURE(text);
  CHECK(lines_in(text) == 2);
  CHECK(text.ends_with(" 0s left\r\n"));
}
