// SPDX-License-Identifier: MIT
// Three ranks, of which the last stops itself: the others learn of it, and who, from every call,
// and MPI is aborted when they let go of it. Ends with a status that is not 0, behind a line that
// says what the first rank found.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include <infty/mpi/communicator.hpp>

int main() {
  infty::MpiCommunicator ranks({.silence = 2});
  const int last = ranks.size() - 1;
  // Whoever computes for longer than the silence says that it lives all the same.
  if (ranks.rank() == 0) std::this_thread::sleep_for(std::chrono::seconds(3));
  ranks.barrier();
  if (ranks.rank() == last) std::raise(SIGSTOP);
  const auto said = [&](auto&& call) -> std::string {
    try {
      call();
    } catch (const infty::CommunicationError& error) {
      return error.what();
    }
    return "nothing";
  };
  const std::string first = said([&] { ranks.barrier(); });
  const std::string second = said([&] { ranks.send((ranks.rank() + 1) % ranks.size(), {}); });
  if (ranks.rank() > 0) {  // the first is the one whose words are waited for
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return 0;
  }
  std::printf("first: %s\nsecond: %s\n", first.c_str(), second.c_str());
  std::fflush(stdout);
  return 0;
}
