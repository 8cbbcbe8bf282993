// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/io/file.hpp>

#include "interrupt.hpp"

// Work in processes of its own: what kills one of them, such as a system that is short of memory,
// ends neither the others nor what started them.

namespace support {

using infty::Index;

/// What a process does. It calls its argument with how many more steps are done, and throws
/// Interrupted where a signal stops it. What it makes, it leaves in files.
using Job = std::function<void(const std::function<void(Index)>& done)>;

namespace detail {

/// Writes all of it to a pipe; where nobody reads there any more, SIGPIPE ends the process.
inline void send(int pipe, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ::ssize_t put = ::write(pipe, at, size);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) ::_exit(1);
    at += put;
    size -= static_cast<std::size_t>(put);
  }
}

/// Does a job in the process that was made for it, and ends with 0, with 128 and the signal that
/// stopped it, or with 1. To the pipe go steps, and what went wrong behind a -1.
[[noreturn]] inline void work(const Job& job, int pipe) {
  const auto fail = [&](std::string_view why) {
    const Index begin = -1;
    send(pipe, &begin, sizeof begin);
    send(pipe, why.data(), why.size());
    ::_exit(1);
  };
  std::signal(SIGPIPE, SIG_DFL);
  InterruptGuard::be_silent();
  InterruptGuard::hear_sigterm();
  // Where memory is short, the system ends this and not what watches over it.
  std::ofstream("/proc/self/oom_score_adj") << 500;
  try {
    job([&](Index steps) { send(pipe, &steps, sizeof steps); });
  } catch (const Interrupted& interrupted) {
    ::_exit(interrupted.status());
  } catch (const std::bad_alloc&) {
    fail("out of memory");
  } catch (const std::exception& error) {
    fail(error.what());
  }
  ::_exit(0);
}

/// A process that does a job. Where it is left before it has ended, it is killed.
class Worker {
 public:
  /// @param others  whose pipes are not this one's to hold
  Worker(std::size_t number, const Job& job, const std::vector<Worker>& others) : number_(number) {
    int ends[2];
    if (::pipe(ends) != 0) infty::detail::raise_errno("pipe", "a run");
    pipe_ = infty::detail::Descriptor(ends[0]);
    infty::detail::Descriptor its(ends[1]);
    std::fflush(nullptr);
    const ::pid_t parent = ::getpid();
    process_ = ::fork();
    if (process_ < 0) infty::detail::raise_errno("fork", "a run");
    if (process_ > 0) return;
    ::setpgid(0, 0);  // a signal to all of the parent's group comes from the parent, once
#if defined(__linux__)
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (::getppid() != parent) ::_exit(1);
    ::close(pipe_.number());
    for (const Worker& other : others) ::close(other.pipe());
    work(job, its.number());
  }
  Worker(Worker&& other) noexcept
      : number_(other.number_),
        process_(std::exchange(other.process_, 0)),
        pipe_(std::move(other.pipe_)),
        said_(std::move(other.said_)) {}
  Worker& operator=(Worker&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(process_, other.process_);
    std::swap(pipe_, other.pipe_);
    std::swap(said_, other.said_);
    return *this;
  }
  ~Worker() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    wait();
  }

  std::size_t number() const { return number_; }
  int pipe() const { return pipe_.number(); }

  void stop() const { ::kill(process_, SIGTERM); }

  /// Reads what it says and calls stepped(steps); false where it has ended.
  template <class Stepped>
  bool listen(Stepped&& stepped) {
    std::array<char, 4096> some;
    const ::ssize_t got = ::read(pipe(), some.data(), some.size());
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    said_.append(some.data(), static_cast<std::size_t>(got));
    Index steps = 0;
    while (said_.size() >= sizeof steps) {
      std::memcpy(&steps, said_.data(), sizeof steps);
      if (steps < 0) break;  // text until the end
      said_.erase(0, sizeof steps);
      stepped(steps);
    }
    return got > 0;
  }

  /// Waits until it is gone; why, where it has not done its job. Empty if it has.
  std::string end() {
    const int status = wait();
    if (WIFSIGNALED(status)) {
      const int signal = WTERMSIG(status);
      return std::string("it was ended by signal ") + std::to_string(signal) +
             (signal == SIGKILL ? ", as the system does where memory is short" : "");
    }
    if (WEXITSTATUS(status) == 0) return "";
    if (said_.size() > sizeof(Index)) return said_.substr(sizeof(Index));
    if (WEXITSTATUS(status) > 128) return "a signal has stopped it";
    return "it ended with " + std::to_string(WEXITSTATUS(status));
  }

 private:
  int wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = 0;
    return status;
  }

  std::size_t number_;
  ::pid_t process_ = 0;
  infty::detail::Descriptor pipe_;
  std::string said_;
};

}  // namespace detail

/// Does the jobs in processes of their own, so many at once, in their order. Calls stepped(job,
/// steps) for what they say, and ended(job, why), with an empty `why` where a job is done. Where a
/// signal comes, no other begins, and those that go on are asked to stop; of these nothing is said.
/// There must be an InterruptGuard, and no other thread.
template <class Stepped, class Ended>
void farm(const std::vector<Job>& jobs, Index at_once, Stepped&& stepped, Ended&& ended) {
  std::vector<detail::Worker> workers;
  std::size_t next = 0;
  bool told = false;
  while (true) {
    const bool stopping = InterruptGuard::signal() != 0;
    for (; !stopping && next < jobs.size() && std::ssize(workers) < at_once; ++next)
      workers.emplace_back(next, jobs[next], workers);
    if (workers.empty()) return;
    if (stopping && !std::exchange(told, true))
      for (const detail::Worker& worker : workers) worker.stop();
    std::vector<::pollfd> pipes;
    for (const detail::Worker& worker : workers) pipes.push_back({worker.pipe(), POLLIN, 0});
    // A signal that comes right before this is seen a moment later.
    if (::poll(pipes.data(), static_cast<::nfds_t>(pipes.size()), 200) <= 0) continue;
    for (std::size_t i = pipes.size(); i-- > 0;) {
      if (pipes[i].revents == 0) continue;
      const std::size_t job = workers[i].number();
      if (workers[i].listen([&](Index steps) { stepped(job, steps); })) continue;
      const std::string why = workers[i].end();
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
      if (why.empty() || !told) ended(job, why);
    }
  }
}

}  // namespace support
