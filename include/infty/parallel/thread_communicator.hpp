// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/messages.hpp>

namespace infty {

namespace detail {

/// What the threads of one group have said and not yet heard.
class ThreadMail {
 public:
  explicit ThreadMail(int size)
      : size_(size),
        boxes_(static_cast<std::size_t>(size) * static_cast<std::size_t>(size)),
        left_(static_cast<std::size_t>(size)) {}

  int size() const { return size_; }

  void send(int from, int to, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    if (aborted_) raise<CommunicationError>("send", *aborted_);
    box(from, to).emplace_back(bytes.begin(), bytes.end());
    changed_.notify_all();
  }

  void receive(int from, int to, std::span<std::byte> bytes) {
    std::unique_lock lock(mutex_);
    auto& mail = box(from, to);
    const auto gone = left_.begin() + from;
    changed_.wait(lock, [&] { return aborted_ || !mail.empty() || *gone; });
    if (aborted_) raise<CommunicationError>("receive", *aborted_);
    if (mail.empty())
      raise<CommunicationError>("receive", "rank ", from, " has ended, and rank ", to,
                                " waits for it");
    const std::vector<std::byte> message = std::move(mail.front());
    mail.pop_front();
    require<CommunicationError>(message.size() == bytes.size(), "receive", "rank ", from, " sends ",
                                message.size(), " bytes, rank ", to, " waits for ", bytes.size());
    if (!bytes.empty()) std::memcpy(bytes.data(), message.data(), bytes.size());
  }

  void abort(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!aborted_) aborted_ = why;
    changed_.notify_all();
  }

  /// Whoever waits for this rank from now on waits in vain.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  std::deque<std::vector<std::byte>>& box(int from, int to) {
    return boxes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(size_) +
                  static_cast<std::size_t>(to)];
  }

  int size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<std::vector<std::byte>>> boxes_;
  std::vector<bool> left_;
  std::optional<std::string> aborted_;
};

/// Threads that are waited for, whatever happens. Those of a group that cannot all be started are
/// aborted, for they would wait for the others.
struct JoinedThreads {
  explicit JoinedThreads(ThreadMail& group) : mail(group) {}
  JoinedThreads(const JoinedThreads&) = delete;
  JoinedThreads& operator=(const JoinedThreads&) = delete;
  ~JoinedThreads() {
    if (std::ssize(running) < mail.size()) mail.abort("not all threads could be started");
    for (std::thread& thread : running) thread.join();
  }

  ThreadMail& mail;
  std::vector<std::thread> running = {};
};

}  // namespace detail

/// A rank that is a thread of this process, as `on_threads` starts them: for tests, and for trying
/// out what is to run on many machines. A message is copied, so that sending never waits. Behind an
/// `abort`, and where the other rank has ended, every wait throws: none hangs.
class ThreadCommunicator {
 public:
  /// The rank of a group. @throws infty::ValueError unless it is one of its ranks
  ThreadCommunicator(std::shared_ptr<detail::ThreadMail> group, int rank)
      : group_(std::move(group)), rank_(rank) {
    detail::require_root("ThreadCommunicator", rank, group_->size());
  }

  // A move copies as well, so that no rank is left empty.
  ThreadCommunicator(const ThreadCommunicator&) = default;             ///< The same rank.
  ThreadCommunicator& operator=(const ThreadCommunicator&) = default;  ///< The same rank.

  /// Returns which of the threads this is.
  int rank() const { return rank_; }
  /// Returns how many there are.
  int size() const { return group_->size(); }

  /// Sends bytes to another rank. @throws infty::ValueError for a rank that is none or its own;
  /// infty::CommunicationError behind an abort
  void send(int to, std::span<const std::byte> bytes) {
    detail::require_other_rank("send", to, rank_, size());
    group_->send(rank_, to, bytes);
  }
  /// Waits for the next bytes of another rank. @throws infty::ValueError likewise;
  /// infty::CommunicationError behind an abort, if that rank has ended, or sent another number
  void receive(int from, std::span<std::byte> bytes) {
    detail::require_other_rank("receive", from, rank_, size());
    group_->receive(from, rank_, bytes);
  }
  /// Sends to one rank and receives from one. @throws as these
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    send(to, bytes);
    receive(from, into);
  }
  /// Replaces the values by their sum over ranks. @throws infty::CommunicationError
  void all_reduce(std::span<float> values) { detail::all_reduce_by_messages(*this, values); }
  /// Replaces the values by their sum over ranks. @throws infty::CommunicationError
  void all_reduce(std::span<double> values) { detail::all_reduce_by_messages(*this, values); }
  /// Replaces the bytes by those of `root`. @throws infty::CommunicationError
  void broadcast(std::span<std::byte> bytes, int root) {
    detail::broadcast_by_messages(*this, bytes, root);
  }
  /// Waits for all. @throws infty::CommunicationError
  void barrier() { gather_bytes(*this, {}); }
  /// Has every wait of every rank throw `why`, those of now and later.
  void abort(const std::string& why) { group_->abort(why); }

 private:
  std::shared_ptr<detail::ThreadMail> group_;
  int rank_;
};

/// Calls `job(communicator)` on `size` threads, a rank each, and waits for all. What one throws
/// aborts the others and is thrown here: that of the rank that threw first.
/// @throws infty::ValueError for a size below 1 or above 4096
inline void on_threads(int size, const std::function<void(ThreadCommunicator&)>& job) {
  require(size >= 1 && size <= 4096, "on_threads", "size is ", size,
          ": it must lie in [1, 4096], a thread each");
  const auto group = std::make_shared<detail::ThreadMail>(size);
#if defined(__cpp_exceptions)
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](int rank) {
    ThreadCommunicator own(group, rank);
    try {
      job(own);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
      own.abort("rank " + std::to_string(rank) + " has failed");
    }
    group->leave(rank);
  };
#else
  const auto run = [&](int rank) {
    ThreadCommunicator own(group, rank);
    job(own);
    group->leave(rank);
  };
#endif
  {
    detail::JoinedThreads threads{*group};
    for (int rank = 0; rank < size; ++rank) threads.running.emplace_back(run, rank);
  }
#if defined(__cpp_exceptions)
  if (first) std::rethrow_exception(first);
#endif
}

}  // namespace infty
