// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include <mpi.h>

#include <infty/core/number.hpp>
#include <infty/mpi/check.hpp>
#include <infty/mpi/heartbeat.hpp>
#include <infty/mpi/session.hpp>
#include <infty/parallel/communicator.hpp>

namespace infty {

/// A rank of a program that MPI has started (`mpirun -n 4 program`). Copies are the same rank. It
/// initialises MPI if nobody has, and finalises it then, when the last copy is gone; it talks in a
/// communicator of its own, a duplicate of that of all processes or of one that the user has.
///
/// No call of it blocks in MPI: every wait asks again and again, ever more slowly, and throws
/// infty::CommunicationError when a rank has been given up, for it shows no sign of life
/// (`MpiConfig::silence`). For that a second thread calls MPI, and this asks for
/// MPI_THREAD_MULTIPLE. It never calls MPI from both at once; where MPI offers no more than
/// MPI_THREAD_SERIALIZED there may be one of these, and no calls of the user's own beside it. Where
/// a user has initialised MPI for less than MPI_THREAD_MULTIPLE, or there is one rank alone, no
/// rank is ever given up.
///
/// All ranks destroy it together, as they made it. Where an exception destroys it, or a rank has
/// been given up, the program is aborted: the others would wait for ever.
class MpiCommunicator {
 public:
  /// Talks to all processes that were started together.
  /// @throws infty::CommunicationError, such as behind MPI_Finalize; infty::ValueError unless
  /// silence is finite and at least 0, and on all ranks where it is 0 on some and not on others
  explicit MpiCommunicator(MpiConfig config = {})
      : state_(std::make_shared<State>(MPI_COMM_WORLD, std::move(config))) {}

  /// Talks to those of a user's own communicator, which stays untouched. @throws likewise
  explicit MpiCommunicator(MPI_Comm ranks, MpiConfig config = {})
      : state_(std::make_shared<State>(ranks, std::move(config))) {}

  // A move copies as well, so that no rank is left empty.
  MpiCommunicator(const MpiCommunicator&) = default;             ///< The same rank.
  MpiCommunicator& operator=(const MpiCommunicator&) = default;  ///< The same rank.

  /// Returns this process's number among the ranks.
  int rank() const { return state_->rank; }
  /// Returns how many ranks there are.
  int size() const { return state_->size; }
  /// Returns how many of them share this machine.
  int local_size() const { return state_->local_size; }
  /// Returns whether MPI lets other threads than the one that initialised it call this, one at a
  /// time.
  bool any_thread() const { return state_->session.any_thread(); }

  /// Sends bytes to another rank. @throws infty::ValueError for a rank that is none or its own;
  /// infty::CommunicationError
  void send(int to, std::span<const std::byte> bytes) {
    detail::require_other_rank("send", to, rank(), size());
    pass(to, bytes, -1, {});
  }
  /// Waits for the next bytes of another rank, which must be as many. @throws as `send`
  void receive(int from, std::span<std::byte> bytes) {
    detail::require_other_rank("receive", from, rank(), size());
    pass(-1, {}, from, bytes);
  }
  /// Sends to one rank and receives from one, both at once. @throws as `send`
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    detail::require_other_rank("exchange", to, rank(), size());
    detail::require_other_rank("exchange", from, rank(), size());
    pass(to, bytes, from, into);
  }
  /// Replaces the values by their sum over ranks, by MPI_Iallreduce.
  /// @throws infty::CommunicationError
  void all_reduce(std::span<float> values) { reduce(values, MPI_FLOAT); }
  /// Replaces the values by their sum over ranks, by MPI_Iallreduce.
  /// @throws infty::CommunicationError
  void all_reduce(std::span<double> values) { reduce(values, MPI_DOUBLE); }
  /// Replaces the bytes by those of `root`, by MPI_Ibcast. @throws infty::ValueError for a root
  /// that is no rank; infty::CommunicationError
  void broadcast(std::span<std::byte> bytes, int root) {
    detail::require_root("broadcast", root, size());
    do {
      const auto part = bytes.first((std::min)(bytes.size(), detail::most_at_once));
      state_->run("MPI_Ibcast", [&](MPI_Request* request) {
        return MPI_Ibcast(part.data(), static_cast<int>(part.size()), MPI_BYTE, root, state_->talk,
                          request);
      });
      bytes = bytes.subspan(part.size());
    } while (!bytes.empty());
  }
  /// Waits for all, by MPI_Ibarrier. @throws infty::CommunicationError
  void barrier() { state_->barrier(); }
  /// Ends all processes at once, by MPI_Abort with status 1: `why` is for the caller to say.
  void abort(const std::string& /*why*/) { state_->abort(); }

 private:
  struct State {
    State(MPI_Comm ranks, MpiConfig config)
        : session((check(config), config.silence > 0)), exceptions(std::uncaught_exceptions()) {
      detail::check_mpi(MPI_Comm_dup(ranks, &talk), "MPI_Comm_dup");
      detail::check_mpi(MPI_Comm_set_errhandler(talk, MPI_ERRORS_RETURN),
                        "MPI_Comm_set_errhandler");
      detail::check_mpi(MPI_Comm_rank(talk, &rank), "MPI_Comm_rank");
      detail::check_mpi(MPI_Comm_size(talk, &size), "MPI_Comm_size");
      MPI_Comm here = MPI_COMM_NULL;
      detail::check_mpi(MPI_Comm_split_type(talk, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here),
                        "MPI_Comm_split_type");
      detail::check_mpi(MPI_Comm_size(here, &local_size), "MPI_Comm_size");
      MPI_Comm_free(&here);
      if (require_agreed(config) && size > 1) {
        detail::check_mpi(MPI_Comm_dup(talk, &ring), "MPI_Comm_dup");
        beat = std::make_unique<detail::Heartbeat>(ring, mpi, std::move(config));
      }
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      if (std::uncaught_exceptions() > exceptions || !all_have_come()) abort();
      if (beat) beat->stop();
      if (lost() >= 0) abort();  // meanwhile: what is freed next, all free together
      beat.reset();
      if (ring != MPI_COMM_NULL) MPI_Comm_free(&ring);
      MPI_Comm_free(&talk);
    }

    static void check(const MpiConfig& config) {
      require(math::is_finite(config.silence) && config.silence >= 0, "MpiCommunicator",
              "silence is ", config.silence, ": it must be finite and at least 0");
    }

    /// Whether all ranks are to show signs of life: none waits for those of one that shows none.
    /// Throws on all where only some want them.
    bool require_agreed(const MpiConfig& config) {
      const int wanted = config.silence > 0 ? 1 : 0;
      int least[] = {wanted, -wanted, session.threaded() ? 1 : 0};
      detail::check_mpi(MPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_INT, MPI_MIN, talk),
                        "MPI_Allreduce");
      if (least[0] != -least[1]) {
        MPI_Comm_free(&talk);
        raise<ValueError>("MpiCommunicator", "silence is ", config.silence,
                          ", and on another rank ", wanted == 1 ? "0" : "above 0",
                          ": it must be 0 on all or on none");
      }
      return wanted == 1 && least[2] == 1;
    }

    void abort() {
      const std::lock_guard lock(mpi);
      MPI_Abort(talk, 1);
    }

    int lost() const { return beat ? beat->lost() : -1; }

    /// Throws where a rank has been given up. Called while the mutex is held, behind which MPI is
    /// not called any more.
    void require_all(const char* call) const {
      require<CommunicationError>(lost() < 0, call, "rank ", lost(), " of ", size,
                                  " shows no sign of life: it was killed, stopped, or cut off");
    }

    void barrier() {
      run("MPI_Ibarrier", [&](MPI_Request* request) { return MPI_Ibarrier(talk, request); });
    }
    /// A barrier that throws nothing.
    bool all_have_come() noexcept {
#if defined(__cpp_exceptions)
      try {
        barrier();
        return true;
      } catch (const std::exception&) {
        return false;
      }
#else
      barrier();
      return true;
#endif
    }

    /// Begins something and waits until it is done.
    template <class Begin>
    void run(const char* call, Begin&& begin) {
      MPI_Request request = MPI_REQUEST_NULL;
      {
        const std::lock_guard lock(mpi);
        require_all(call);
        detail::check_mpi(begin(&request), call);
      }
      wait(call, &request, 1, MPI_STATUSES_IGNORE);
    }

    /// Waits until all are done, or a rank is given up.
    void wait(const char* call, MPI_Request* requests, int count, MPI_Status* found) {
      detail::Patience patience;
      for (;;) {
        int done = 0;
        {
          const std::lock_guard lock(mpi);
          require_all(call);
          detail::check_mpi(MPI_Testall(count, requests, &done, found), call);
        }
        if (done != 0) return;
        patience.wait();
      }
    }

    detail::MpiSession session;
    int exceptions;
    std::mutex mpi;  // held by whoever calls it
    MPI_Comm talk = MPI_COMM_NULL, ring = MPI_COMM_NULL;
    int rank = 0, size = 1, local_size = 1;
    std::unique_ptr<detail::Heartbeat> beat;
  };

  /// Sends to a rank, if there is one, and receives from one, part by part.
  void pass(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    bool sends = to >= 0, receives = from >= 0;
    while (sends || receives) {
      MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      const auto out = bytes.first((std::min)(bytes.size(), detail::most_at_once));
      const auto in = into.first((std::min)(into.size(), detail::most_at_once));
      {
        const std::lock_guard lock(state_->mpi);
        state_->require_all(receives ? "MPI_Irecv" : "MPI_Isend");
        if (receives)
          detail::check_mpi(MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_BYTE, from, 0,
                                      state_->talk, &requests[0]),
                            "MPI_Irecv");
        if (sends)
          detail::check_mpi(MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_BYTE, to, 0,
                                      state_->talk, &requests[1]),
                            "MPI_Isend");
      }
      MPI_Status found[2];
      state_->wait("MPI_Testall", requests, 2, found);
      int got = static_cast<int>(in.size());
      if (receives) {
        const std::lock_guard lock(state_->mpi);
        detail::check_mpi(MPI_Get_count(&found[0], MPI_BYTE, &got), "MPI_Get_count");
      }
      require<CommunicationError>(got == static_cast<int>(in.size()), "receive", "rank ", from,
                                  " sends ", got, " bytes, rank ", rank(), " waits for ",
                                  in.size());
      bytes = bytes.subspan(out.size());
      into = into.subspan(in.size());
      sends = !bytes.empty();
      receives = !into.empty();
    }
  }

  template <class T>
  void reduce(std::span<T> values, MPI_Datatype type) {
    while (!values.empty()) {
      const auto part = values.first((std::min)(values.size(), detail::most_at_once));
      state_->run("MPI_Iallreduce", [&](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), type,
                              MPI_SUM, state_->talk, request);
      });
      values = values.subspan(part.size());
    }
  }

  std::shared_ptr<State> state_;
};

}  // namespace infty
