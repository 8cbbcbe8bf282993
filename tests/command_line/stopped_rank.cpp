// SPDX-License-Identifier: MIT
// stopped_rank start|end|behind: two ranks, of which the second is stopped in MPI_Init, in
// MPI_Finalize, or behind it when it is the last: it is named and killed, and all ends.
// stopped_rank late: two ranks that are not, and take longer to end than MPI may: all is well.
// stopped_rank abort: two ranks, of which the second fails, and MPI_Abort waits for ever: all ends.

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "../../examples/support/ranks.hpp"

namespace {

bool abort_waits = false;

int stop_in_finalize(MPI_Comm, int, void*, void*) { return std::raise(SIGSTOP); }

}  // namespace

// In the place of MPI's own, which is PMPI_Abort.
int MPI_Abort(MPI_Comm ranks, int status) {
  while (abort_waits) ::pause();
  return PMPI_Abort(ranks, status);
}

int main(int argc, char** argv) {
  const std::string when = argc == 2 ? argv[1] : "";
  const bool second = support::rank_started() == 1;
  const auto sleep = [](int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  // The first begins when the second has waited for it, and been stopped.
  if (when == "start" && !second) sleep(2000);
  if (when == "start" && second)
    std::thread([sleep] {
      sleep(1000);
      std::raise(SIGSTOP);
    }).detach();
  const int status = support::on_ranks("stopped_rank", 2, 1, [&](infty::AnyCommunicator& ranks) {
    ranks.barrier();
    abort_waits = when == "abort";
    if (abort_waits && second) throw std::runtime_error("it gives up");
    if (when == "end" && second) {
      int key = 0;
      MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stop_in_finalize, &key, nullptr);
      MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
    }
    if (when == "behind" && second) std::atexit([] { std::raise(SIGSTOP); });
    return 0;
  });
  if (when == "late") sleep(4500);
  return status;
}
