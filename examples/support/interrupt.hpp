// SPDX-License-Identifier: MIT
#pragma once

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace support {

/// Thrown where a program stops because it was asked to, after it has saved: `main` prints the
/// message and ends with `status()`.
class Interrupted : public std::runtime_error {
 public:
  Interrupted(int signal, const std::string& message)
      : std::runtime_error(message), signal_(signal) {}

  /// 128 and the signal's number, as shells have it: 130 for Ctrl-C.
  int status() const { return 128 + signal_; }

 private:
  int signal_;
};

/// While it lives, Ctrl-C (SIGINT) and SIGTERM are only noted: the program asks `signal()` where it
/// can stop. The second of a kind ends it at once. What was ignored stays ignored. One at a time.
class InterruptGuard {
 public:
  InterruptGuard() {
    noted = 0;
    const struct ::sigaction action = noting();
    for (int i = 0; i < 2; ++i) {
      ::sigaction(signals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
    }
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard() {
    for (int i = 0; i < 2; ++i) ::sigaction(signals[i], &before_[i], nullptr);
    noted = 0;
  }

  /// The signal that came while there is one of these, or 0.
  static int signal() { return noted; }

  /// From now on nothing is said of a signal: of a process for which another speaks.
  static void be_silent() { silent = 1; }

  /// From now on SIGTERM is noted, though it was ignored: of a process that another one stops by
  /// it.
  static void hear_sigterm() {
    const struct ::sigaction action = noting();
    ::sigaction(SIGTERM, &action, nullptr);
  }

 private:
  static constexpr int signals[2] = {SIGINT, SIGTERM};
  static inline volatile std::sig_atomic_t noted = 0, silent = 0;

  static struct ::sigaction noting() {
    struct ::sigaction action {};
    action.sa_handler = note;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    return action;
  }

  static void note(int signal) {
    noted = signal;
    if (silent != 0) return;
    constexpr char text[] = "\nstopping as soon as this step is done; once more stops at once\n";
    [[maybe_unused]] const auto put = ::write(STDERR_FILENO, text, sizeof text - 1);
  }

  struct ::sigaction before_[2]{};
};

/// Throws Interrupted with what `message()` says if a signal has come.
template <class Message>
void stop_if_interrupted(Message&& message) {
  if (const int signal = InterruptGuard::signal(); signal != 0)
    throw Interrupted(signal, message());
}

/// The same where all that is to be said is that it stopped.
inline void stop_if_interrupted() {
  stop_if_interrupted([] { return "stopped"; });
}

/// The same of runs that are all saved in a folder: the command `again` goes on with them.
inline void stop_if_interrupted(const std::filesystem::path& out, const std::string& again) {
  stop_if_interrupted(
      [&] { return "stopped, all saved in " + out.string() + "; to go on: " + again; });
}

}  // namespace support
