// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <infty/core/error.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/io/file.hpp>
#include <infty/io/mapped_file.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#if defined(INFTY_MPI)
#include <infty/mpi/communicator.hpp>
#endif

#include "fingerprint.hpp"
#include "interrupt.hpp"
#include "options.hpp"
#include "processors.hpp"
#include "sharing.hpp"
#include "signals.hpp"
#include "started.hpp"
#include "stopped.hpp"

// Programs that train on the ranks that `mpirun` has started them on, where they were built with
// MPI (CMake's INFTY_MPI); without it, or started alone, there is one.

namespace support {

/// So many times as long may MPI take to start, which on many machines is longer.
inline constexpr double start_silences = 10;

/// So many seconds more has a rank that is stopped as MPI starts or ends: who listens names it
/// before.
inline constexpr double guard_seconds = 1;

/// So long a rank that is well may be silent, for the machine lets others compute.
inline constexpr double least_silence = .5;

/// The option that says when a rank is given up.
inline void add_silence(CLI::App& app, Sharing& sharing) {
  add_option(app, "--silence", sharing.silence,
             "on several ranks: seconds without a sign of life behind which one is given up; "
             "0: never",
             {.least = least_silence, .most = 1e6, .or_zero = true})
      ->capture_default_str();
}

/// The options of programs that train on ranks.
inline void add_ranks(CLI::App& app, Sharing& sharing) {
  add_silence(app, sharing);
  add_option(app, "--bucket", sharing.bucket,
             "on several ranks: MiB of gradients that are sent while others are computed; "
             "0: all, behind the backward pass",
             {0, 1e6})
      ->capture_default_str();
  app.add_flag("--zero", sharing.zero,
               "on several ranks: each has a part of the optimiser's state alone (ZeRO-1)");
}

/// Throws infty::ValueError unless each rank has a shard.
inline void require_shards(const std::string& program, const infty::AnyCommunicator& ranks,
                           infty::Index shards) {
  infty::require(ranks.size() <= std::max<infty::Index>(shards, 1), program, "--shards is ", shards,
                 ", and there are ", ranks.size(), " ranks: each needs one shard");
}

/// Tells builds of a program apart.
inline std::uint64_t program_fingerprint() {
  Fingerprint fingerprint;
  const infty::MappedFile program("/proc/self/exe");
  fingerprint.add_text(program.text());
  return fingerprint.bits();
}

/// Standard output and error, on which the first rank speaks, for all would say the same.
class FirstRankSpeaks {
 public:
  FirstRankSpeaks() : real_(::dup(STDERR_FILENO)) {}

  /// Makes this one of the other ranks.
  void be_silent() const {
    InterruptGuard::be_silent();
    const infty::detail::Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    ::dup2(nowhere.number(), STDOUT_FILENO);
    ::dup2(nowhere.number(), STDERR_FILENO);
  }

  /// Says a line all the same.
  void say(const std::string& line) const { say_whole(line + '\n'); }

  /// Says a line that has its end, for which no memory is asked.
  void say_whole(const std::string& line) const {
    [[maybe_unused]] const auto put = ::write(real_.number(), line.data(), line.size());
  }

 private:
  infty::detail::Descriptor real_;
};

#if defined(INFTY_MPI)
/// Ends the program in so many seconds, rounded up, unless it is called again; 0: never. For
/// MPI_Init and MPI_Finalize, in which a rank that is stopped keeps all others, and nobody listens.
inline void end_within(double seconds) {
  ::alarm(0);
  if (seconds == 0) return;
  std::signal(SIGALRM, [](int) {
    constexpr char text[] = "another rank does not start or end: it was stopped, or cut off\n";
    [[maybe_unused]] const auto put = ::write(STDERR_FILENO, text, sizeof text - 1);
    ::_exit(1);
  });
  ::alarm(static_cast<unsigned>(std::ceil(seconds)));
}

/// Ends the program in five seconds with status 1, should MPI_Abort, which is called next, wait for
/// ever: the launcher ends the others then, too.
inline void end_though_abort_waits() {
  std::signal(SIGALRM, [](int) { ::_exit(1); });
  ::alarm(5);
}

/// Lets the program end as late as it likes, once MPI is finalised.
struct EndsInTime {
  EndsInTime() = default;
  EndsInTime(const EndsInTime&) = delete;
  EndsInTime& operator=(const EndsInTime&) = delete;
  ~EndsInTime() { end_within(0); }
};

/// Does a job on the ranks of MPI, and returns its status. What one of them throws ends all, behind
/// a line that names it; so does a rank that falls silent.
template <class Job>
int on_mpi_ranks(const std::string& program, double silence, int threads, Job&& job) {
  const FirstRankSpeaks speaks;
  StoppedGuard guard(silence > 0 ? silence + guard_seconds : 0,
                     name_among_ranks(program) +
                         " was stopped as MPI starts or ends: it is killed, "
                         "and the others end");
  const EndsInTime behind_mpi;
  end_within(start_silences * silence);
  infty::MpiCommunicator mpi({.silence = silence, .lost = [&](int rank, double seconds) {
                                char text[16];
                                std::snprintf(text, sizeof text, "%.1f", seconds);
                                speaks.say(program + ": rank " + std::to_string(rank) +
                                           " has shown no sign of life for " + text +
                                           " s: it was killed, stopped, or cut off; the others "
                                           "end, and go on from the last checkpoint when they "
                                           "are started again");
                                end_though_abort_waits();
                                MPI_Abort(MPI_COMM_WORLD, 1);
                              }});
  end_within(0);
  guard.watch(false);  // the other ranks do, from now on
  if (mpi.rank() > 0) speaks.be_silent();
  const SharedProcessors shared = shared_processors(mpi);
  if (threads == 0 && std::getenv("OMP_NUM_THREADS") == nullptr)
    infty::set_num_threads(std::max(1, infty::num_threads() / shared.ranks));
  const int pinned = pin(shared, infty::num_threads());
  std::fprintf(stderr, "%d ranks, %d on this machine, of %d threads each%s\n", mpi.size(),
               mpi.local_size(), infty::num_threads(), said_of_pinning(pinned).c_str());
  const auto line = [&](const std::string& why) {
    return program + ": rank " + std::to_string(mpi.rank()) + " of " + std::to_string(mpi.size()) +
           ": " + why + '\n';
  };
  const std::string no_memory = line("out of memory");  // while there is some
  const auto fail = [&](const std::string& said) {
    // What all ranks find wrong at once, the first says alone.
    if (mpi.rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    speaks.say_whole(said);
    end_though_abort_waits();
    mpi.abort({});
    return 1;
  };
  infty::AnyCommunicator ranks(mpi);
  try {
    int status = 0;
    try {
      status = job(ranks);
    } catch (const Interrupted& interrupted) {
      if (mpi.rank() == 0) speaks.say(program + ": " + interrupted.what());
      status = interrupted.status();
    }
    mpi.barrier();
    guard.watch(true);
    end_within(silence > 0 ? silence + 2 * guard_seconds : 0);
    return status;
  } catch (const std::bad_alloc&) {
    return fail(no_memory);
  } catch (const std::exception& error) {
    return fail(line(error.what()));
  }
}
#endif

/// Does a job, which returns the status that the program ends with, on the ranks that it was
/// started on.
/// @param threads  of each rank, which the caller has set; 0: OMP_NUM_THREADS, or else those of the
/// processors that it may use, shared out among the ranks that may use the same, each of which gets
/// its own of these
/// @throws infty::ValueError where there are several, and the program was built without MPI; alone,
/// what the job throws
template <class Job>
int on_ranks(const std::string& program, [[maybe_unused]] double silence,
             [[maybe_unused]] int threads, Job&& job) {
#if defined(INFTY_MPI)
  if (ranks_started() > 1) return on_mpi_ranks(program, silence, threads, job);
#else
  infty::require(ranks_started() <= 1, program, "there are ", ranks_started(),
                 " ranks, and it was built without MPI: install Open MPI or MPICH, and build it "
                 "with INFTY_MPI=ON");
#endif
  infty::AnyCommunicator alone;
  return job(alone);
}

}  // namespace support
