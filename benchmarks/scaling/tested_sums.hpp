// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <mpi.h>
#include <ucontext.h>

#include <infty/mpi/check.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/level_sums.hpp>

// Buckets of gradients that are summed over ranks by test calls of the thread that computes, where
// the library has another thread (`infty::detail::Background`): to be compared with it.

namespace infty::bench {

/// Does a job with one slice after the other on a stack of its own, in turns with what else its
/// thread does: whenever that calls `test`, the job goes on until it calls `pause`.
class InTurns {
 public:
  explicit InTurns(std::function<void(detail::Slice)> job)
      : job_(std::move(job)), stack_(std::size_t{1} << 18) {
    ::getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_.data();
    inside_.uc_stack.ss_size = stack_.size();
    inside_.uc_link = nullptr;
    started_ = this;
    ::makecontext(
        &inside_, [] { started_->run(); }, 0);
  }
  InTurns(const InTurns&) = delete;
  InTurns& operator=(const InTurns&) = delete;
  ~InTurns() = default;

  /// Has the job done with a slice, behind all others.
  void push(detail::Slice slice) { waiting_.push_back(slice); }
  /// Lets it go on.
  void test() {
    started_ = this;
    if (!waiting_.empty()) ::swapcontext(&outside_, &inside_);
  }
  /// Lets it go on until all is done: nothing else is to be done meanwhile.
  void finish() {
    finishes_ = true;
    test();
  }
  /// For the job: lets the thread do something else, or waits where there is nothing.
  /// @param patience  of what is waited for, as where the library's thread waits
  void pause(detail::Patience& patience) {
    if (finishes_)
      patience.wait();
    else
      leave();
  }

 private:
  void leave() { ::swapcontext(&inside_, &outside_); }
  [[noreturn]] void run() {
    for (;; leave())
      while (!waiting_.empty()) {
        job_(waiting_.front());
        waiting_.pop_front();
      }
  }

  static inline InTurns* started_ = nullptr;
  std::function<void(detail::Slice)> job_;
  std::vector<char> stack_;
  ::ucontext_t inside_{}, outside_{};
  std::deque<detail::Slice> waiting_;
  bool finishes_ = false;
};

/// Ranks of MPI, whose exchange pauses a job in turns where it would wait. All else is the
/// library's communicator's.
class TestedRanks {
 public:
  /// @param pause  called wherever an exchange is not done, with the patience of this exchange
  TestedRanks(AnyCommunicator ranks, MPI_Comm own, std::function<void(detail::Patience&)> pause)
      : ranks_(std::move(ranks)), own_(own), pause_(std::move(pause)) {}

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  void send(int to, std::span<const std::byte> bytes) { ranks_.send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) { ranks_.receive(from, bytes); }
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    MPI_Request requests[2];
    detail::check_mpi(MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, from, 0, own_,
                                &requests[0]),
                      "MPI_Irecv");
    detail::check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, 0, own_,
                                &requests[1]),
                      "MPI_Isend");
    for (detail::Patience patience;;) {
      int done = 0;
      detail::check_mpi(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE), "MPI_Testall");
      if (done != 0) return;
      pause_(patience);
    }
  }
  void all_reduce(std::span<float> values) { ranks_.all_reduce(values); }
  void all_reduce(std::span<double> values) { ranks_.all_reduce(values); }
  void broadcast(std::span<std::byte> bytes, int root) { ranks_.broadcast(bytes, root); }
  void barrier() { ranks_.barrier(); }
  void abort(const std::string& why) { ranks_.abort(why); }

 private:
  AnyCommunicator ranks_;
  MPI_Comm own_;
  std::function<void(detail::Patience&)> pause_;
};

}  // namespace infty::bench
