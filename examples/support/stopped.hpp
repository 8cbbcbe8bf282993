// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <csignal>
#include <new>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

namespace support {

/// Returns whether a process is stopped, as by SIGSTOP and not by a debugger: what its file in
/// Linux's /proc, PID/stat, says. Nothing but system calls.
/// @param stat  the open file
inline bool is_stopped(int stat) {
  char text[512];
  const auto size = ::pread(stat, text, sizeof text, 0);
  // The state stands behind the program's name, which is in brackets and may have some itself.
  for (auto i = size - 3; i >= 0; --i)
    if (text[i] == ')') return text[i + 2] == 'T';
  return false;
}

/// A process that kills this one where it is stopped for too long: for a rank as MPI starts and
/// ends, when no other rank listens for its signs of life, and all would wait. It ends with this
/// one. Made before MPI starts, which some networks want no process to be started behind.
class StoppedGuard {
 public:
  /// Starts the process, which watches from now on, where it can be started. From the main thread,
  /// whose end is taken for that of this process.
  /// @param seconds  to be stopped for without a break; 0: never is too long
  /// @param line     what is said then, on standard error
  StoppedGuard(double seconds, const std::string& line) {
    if (seconds == 0) return;
    // By no number, which another process may have where /proc is that of other PIDs.
    const int stat = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (stat < 0) return;
    void* const page = ::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) {
      watches_ = new (page) std::atomic<bool>(true);
      const std::string said = line + '\n';
      const ::pid_t parent = ::getpid();
      const ::sigset_t before = block();  // what a group is sent is for the other one
      if (::fork() == 0) guard(parent, stat, seconds, said);
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    ::close(stat);
  }
  StoppedGuard(const StoppedGuard&) = delete;
  StoppedGuard& operator=(const StoppedGuard&) = delete;
  /// Leaves the process: it watches, or does not, until this one is gone.
  ~StoppedGuard() {
    if (watches_ != nullptr) ::munmap(watches_, sizeof *watches_);
  }

  /// Says whether this process is watched from now on.
  void watch(bool on) {
    if (watches_ != nullptr) *watches_ = on;
  }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free);

  static double now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  /// Blocks all signals but those that stop what a terminal has started: so whoever is stopped with
  /// its group is stopped together with its guard. Returns what was blocked before.
  static ::sigset_t block() {
    ::sigset_t all, before;
    ::sigfillset(&all);
    for (const int stop : {SIGTSTP, SIGTTIN, SIGTTOU}) ::sigdelset(&all, stop);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    return before;
  }

  /// Nothing but system calls, for this process may have had threads.
  [[noreturn]] void guard(::pid_t parent, int stat, double seconds, const std::string& said) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int file = 0; file < 1024; ++file)  // the launcher waits until its pipes are closed
      if (file != STDERR_FILENO && file != stat) ::close(file);
    double looked = now(), since = looked;
    for (;;) {
      constexpr timespec pause{0, 200'000'000};
      ::nanosleep(&pause, nullptr);
      if (::getppid() != parent) ::_exit(0);  // its number may be another's now
      const double time = now();
      // What was stopped together with this one begins to count anew.
      if (!*watches_ || time - looked > 2 || !is_stopped(stat)) since = time;
      looked = time;
      if (time - since < seconds) continue;
      [[maybe_unused]] const auto put = ::write(STDERR_FILENO, said.data(), said.size());
      if (::getppid() == parent) ::kill(parent, SIGKILL);
      ::_exit(0);
    }
  }

  std::atomic<bool>* watches_ = nullptr;  ///< shared by both; nullptr: nobody watches
};

}  // namespace support
