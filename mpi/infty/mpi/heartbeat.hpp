// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include <mpi.h>

#include <infty/mpi/check.hpp>

namespace infty {

/// How ranks of an `MpiCommunicator` find out that one of them is no more.
struct MpiConfig {
  /// Seconds without a sign of life behind which a rank is given up; 0: never, on all ranks.
  double silence = 7;
  /// Called then, once, with the rank and the seconds, on a thread of its own. It holds the lock
  /// that every call of the communicator takes: it may call MPI itself, MPI_Abort, say, and nothing
  /// of the communicator, which would wait for ever. Without it, the next wait of this rank throws.
  std::function<void(int rank, double seconds)> lost = {};
};

namespace detail {

/// Signs of life: a thread that sends one to the next rank every now and then, and listens to the
/// one before it, in a ring. What the rank itself computes meanwhile does not matter; a process
/// that is stopped, or gone, falls silent. It calls MPI only while it holds the mutex, and not at
/// all any more once a rank is lost: so the next rank gives this one up, and no rank waits for
/// ever.
class Heartbeat {
  using Clock = std::chrono::steady_clock;

 public:
  Heartbeat(MPI_Comm ring, std::mutex& mpi, MpiConfig config)
      : ring_(ring), mpi_(mpi), config_(std::move(config)) {
    MPI_Comm_rank(ring, &rank_);
    MPI_Comm_size(ring, &size_);
    thread_ = std::thread([this] { run(); });
  }
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;
  ~Heartbeat() { stop(); }

  /// The rank that was given up, or -1.
  int lost() const { return lost_.load(); }

  /// Ends the thread: when all ranks have said that they do, or the silence lasts too long.
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  enum Sign : char { alive, goodbye };

  static double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }

  /// Sends a sign if the last one has left.
  bool send(Sign sign) {
    int left = 1;
    if (request_ != MPI_REQUEST_NULL) MPI_Test(&request_, &left, MPI_STATUS_IGNORE);
    if (left == 0) return false;
    sent_ = sign;
    return MPI_Isend(&sent_, 1, MPI_CHAR, (rank_ + 1) % size_, 0, ring_, &request_) == MPI_SUCCESS;
  }

  /// Takes what has come; whether anything has.
  bool hear() {
    bool heard = false;
    for (int there = 1; there != 0;) {
      const int before = (rank_ + size_ - 1) % size_;
      if (MPI_Iprobe(before, 0, ring_, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS) return heard;
      if (there == 0) return heard;
      char sign = alive;
      MPI_Recv(&sign, 1, MPI_CHAR, before, 0, ring_, MPI_STATUS_IGNORE);
      heard = true;
      left_ = left_ || sign == goodbye;
    }
    return heard;
  }

  void run() {
    // Of a short silence there are several signs, too.
    const double silence = config_.silence;
    const double interval = (std::min)(.5, silence / 4), pause = interval / 10;
    auto heard = Clock::now(), looked = heard;
    auto spoken = heard - std::chrono::seconds(1);
    bool said_goodbye = false;
    for (;;) {
      bool news = false;
      {
        const std::lock_guard lock(mpi_);
        const auto now = Clock::now();
        if (stopping_) {  // goodbye is the last word: nobody hears another one
          if (!said_goodbye) said_goodbye = send(goodbye);
        } else if (seconds(now - spoken) >= interval && send(alive)) {
          spoken = now;
        }
        news = hear();
        if (said_goodbye && left_) {
          MPI_Wait(&request_, MPI_STATUS_IGNORE);
          return;
        }
      }
      const auto now = Clock::now();
      // Who was stopped itself has heard nothing meanwhile, and begins to count anew.
      if (news || left_ || seconds(now - looked) > (std::min)(5., silence / 2)) heard = now;
      looked = now;
      if (seconds(now - heard) > silence) {
        const std::lock_guard lock(mpi_);
        lost_ = (rank_ + size_ - 1) % size_;
        if (config_.lost) config_.lost(lost_, seconds(now - heard));
        return;
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    }
  }

  MPI_Comm ring_;
  std::mutex& mpi_;
  MpiConfig config_;
  int rank_ = 0, size_ = 1;
  std::atomic<int> lost_{-1};
  std::atomic<bool> stopping_{false};
  bool left_ = false;  // the rank before this one
  char sent_ = alive;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::thread thread_;
};

}  // namespace detail

}  // namespace infty
