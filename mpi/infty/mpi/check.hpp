// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <thread>

#include <mpi.h>

#include <infty/parallel/communicator.hpp>

namespace infty::detail {

/// Throws infty::CommunicationError in MPI's words unless a call went well.
inline void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(code, words, &length);
  raise<CommunicationError>(call, std::string(words, static_cast<std::size_t>(length)));
}

/// Waits a little, longer the more often it was asked: what is about to come is not kept waiting,
/// and ranks that wait for long leave the processors to others.
class Patience {
 public:
  /// Waits.
  void wait() {
    if (++asked_ <= 200) {
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(pause_);
    pause_ = (std::min)(pause_ * 5 / 4, std::chrono::microseconds(1000));
  }

 private:
  int asked_ = 0;
  std::chrono::microseconds pause_{20};
};

/// What MPI counts elements by is an int: a message of more is cut.
inline constexpr std::size_t most_at_once = std::size_t{1} << 30;
static_assert(most_at_once <= std::size_t{std::numeric_limits<int>::max()});

}  // namespace infty::detail
