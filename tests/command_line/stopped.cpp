// SPDX-License-Identifier: MIT
// A rank that is stopped while no other listens is killed by a process of its own, and is not where
// it goes on in time, or others listen.

#include "../../examples/support/stopped.hpp"

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/catch.hpp"

namespace stopped_tests {

// A process that does something and ends with 0; what it, and those that it has started, say on
// standard error, until the last of them is gone.
class Child {
 public:
  template <class Job>
  explicit Child(Job&& job) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      job();
      ::_exit(0);
    }
    ::close(ends[1]);
    said_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { ::close(said_); }

  ::pid_t process() const { return process_; }

  // Waits until it is stopped.
  void wait_for_stop() const {
    int status = 0;
    REQUIRE(::waitpid(process_, &status, WUNTRACED) == process_);
    REQUIRE(WIFSTOPPED(status));
  }
  // Waits until it has ended, and returns the signal, or 0.
  int signal() const {
    int status = 0;
    REQUIRE(::waitpid(process_, &status, 0) == process_);
    if (WIFEXITED(status)) REQUIRE(WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  bool ended() const {
    siginfo_t found{};
    return ::waitid(P_PID, static_cast<::id_t>(process_), &found, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           found.si_pid == process_;
  }
  std::string said() const {
    std::string all;
    char some[256];
    for (::ssize_t size; (size = ::read(said_, some, sizeof some)) > 0;)
      all.append(some, static_cast<std::size_t>(size));
    return all;
  }

 private:
  ::pid_t process_ = 0;
  int said_ = -1;
};

class StatFile {
 public:
  explicit StatFile(::pid_t process)
      : file_(::open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY)) {
    REQUIRE(file_ >= 0);
  }
  StatFile(const StatFile&) = delete;
  StatFile& operator=(const StatFile&) = delete;
  ~StatFile() { ::close(file_); }
  int number() const { return file_; }

 private:
  int file_;
};

TEST_CASE("is_stopped: whatever the program is called") {
  const Child child([] {
    ::prctl(PR_SET_NAME, "a) R (b");
    std::raise(SIGSTOP);
    ::prctl(PR_SET_NAME, "a) T (b");
    ::pause();
  });
  child.wait_for_stop();
  const StatFile stat(child.process());
  CHECK(support::is_stopped(stat.number()));
  ::kill(child.process(), SIGCONT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_FALSE(support::is_stopped(stat.number()));
  ::kill(child.process(), SIGKILL);
  CHECK(child.signal() == SIGKILL);
  CHECK_FALSE(support::is_stopped(stat.number()));
}

TEST_CASE("StoppedGuard: kills what is stopped for too long, behind a line") {
  const Child child([] {
    support::StoppedGuard guard(.5, "it was stopped");
    std::raise(SIGSTOP);
  });
  CHECK(child.signal() == SIGKILL);
  CHECK(child.said() == "it was stopped\n");
}

TEST_CASE(
    "StoppedGuard: watches on where its group is told to end, and the process keeps its mask") {
  const Child child([] {
    ::setpgid(0, 0);
    support::StoppedGuard guard(.5, "it was stopped");
    std::signal(SIGTERM, [](int) { ::prctl(PR_SET_NAME, "told"); });
    ::kill(0, SIGTERM);
    char name[16] = "";
    ::prctl(PR_GET_NAME, name);
    if (std::string(name) == "told") std::raise(SIGSTOP);
  });
  CHECK(child.signal() == SIGKILL);
  CHECK(child.said() == "it was stopped\n");
}

TEST_CASE(
    "StoppedGuard: leaves alone what goes on in time, and what others watch; it ends with it") {
  const Child sooner([] {
    support::StoppedGuard guard(2, "it was stopped");
    std::raise(SIGSTOP);
  });
  const Child watched([] {
    support::StoppedGuard guard(.2, "it was stopped");
    guard.watch(false);
    std::raise(SIGSTOP);
  });
  const Child unguarded([] {
    support::StoppedGuard guard(0, "it was stopped");
    std::raise(SIGSTOP);
  });
  const Child together([] {
    ::setpgid(0, 0);
    support::StoppedGuard guard(.3, "it was stopped");
    ::kill(0, SIGSTOP);
  });
  for (const Child* const child : {&sooner, &watched, &unguarded, &together})
    child->wait_for_stop();
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  for (const Child* const child : {&sooner, &watched, &unguarded, &together}) {
    CHECK_FALSE(child->ended());
    ::kill(child == &together ? -child->process() : child->process(), SIGCONT);
    CHECK(child->signal() == 0);
    CHECK(child->said().empty());
  }
}

}  // namespace stopped_tests
