// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <infty/core/error.hpp>
#include <infty/mpi/check.hpp>

namespace infty::detail {

/// MPI itself, for as long as there is one of these: initialised if nobody has, and finalised then.
class MpiSession {
 public:
  /// @param threaded  whether two threads are to call MPI, whichever comes first; else there is one
  /// at a time, of those that send gradients while others compute
  explicit MpiSession(bool threaded) {
    int begun = 0, ended = 0;
    check_mpi(MPI_Initialized(&begun), "MPI_Initialized");
    check_mpi(MPI_Finalized(&ended), "MPI_Finalized");
    require<CommunicationError>(ended == 0, "MpiCommunicator",
                                "MPI has been finalised: it cannot be begun twice");
    if (begun == 0) {
      const int wanted = threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
      check_mpi(MPI_Init_thread(nullptr, nullptr, wanted, &level_), "MPI_Init_thread");
      own_ = true;
    } else {
      check_mpi(MPI_Query_thread(&level_), "MPI_Query_thread");
    }
  }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession() {
    if (own_) MPI_Finalize();
  }

  /// Whether another thread may call MPI: a user who has initialised it calls it, too, and does not
  /// ask us before. Where this one has, and MPI offers no more, one call at a time will do.
  bool threaded() const { return level_ >= (own_ ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE); }

  /// Whether another thread may call MPI while this one does not.
  bool any_thread() const { return level_ >= MPI_THREAD_SERIALIZED; }

 private:
  int level_ = MPI_THREAD_SINGLE;
  bool own_ = false;
};

}  // namespace infty::detail
