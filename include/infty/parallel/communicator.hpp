// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

#include <infty/core/error.hpp>

namespace infty {

/// Ranks cannot be reached, have been given up, or say what does not fit together.
class CommunicationError : public Error {
 public:
  using Error::Error;
};

/// What a program on several ranks talks by: processes, threads, or this one alone. Each rank has a
/// communicator of its own and calls what all take part in (`all_reduce`, `broadcast`, `barrier`)
/// in the same order as the others. A message of 0 bytes is one. What goes wrong is an
/// infty::CommunicationError, and behind one nothing can be said any more but `abort`.
///
///     c.rank(), c.size()                 // 0 <= rank < size
///     c.send(to, bytes)                  // to another rank, in the order of the calls
///     c.receive(from, bytes)             // as many as were sent
///     c.exchange(to, bytes, from, into)  // both at once
///     c.all_reduce(values)               // the sum over ranks, its last bits the engine's own
///     c.broadcast(bytes, root)           // those of one rank
///     c.barrier()                        // returns when all have come
///     c.abort(why)                       // ends all ranks, or has them throw in their next wait
///
/// One thread at a time calls it, whichever; one that is for the thread alone that made it says so
/// by a `bool any_thread() const` that is false.
template <class C>
concept Communicator = requires(C& c, const C& known, int rank, std::span<const std::byte> from,
                                std::span<std::byte> to, std::span<float> singles,
                                std::span<double> doubles, const std::string& why) {
  { known.rank() } -> std::same_as<int>;
  { known.size() } -> std::same_as<int>;
  c.send(rank, from);
  c.receive(rank, to);
  c.exchange(rank, from, rank, to);
  c.all_reduce(singles);
  c.all_reduce(doubles);
  c.broadcast(to, rank);
  c.barrier();
  c.abort(why);
};

namespace detail {

/// Whether other threads than the one that made a communicator may call it, one at a time.
template <Communicator C>
bool any_thread(const C& ranks) {
  if constexpr (requires { ranks.any_thread(); })
    return ranks.any_thread();
  else
    return true;
}

/// Throws infty::ValueError unless `other` is a rank, and another one than `rank`.
inline void require_other_rank(const char* op, int other, int rank, int size) {
  require(0 <= other && other < size && other != rank, op, "the other rank is ", other,
          ": it must lie in [0, ", size, ") and not be ", rank, ", the rank itself");
}

/// Throws infty::ValueError unless `root` is a rank.
inline void require_root(const char* op, int root, int size) {
  require(0 <= root && root < size, op, "root is ", root, ": it must lie in [0, ", size, ")");
}

}  // namespace detail

/// The communicator of a process that is alone.
class SelfCommunicator {
 public:
  /// Returns 0.
  int rank() const { return 0; }
  /// Returns 1.
  int size() const { return 1; }

  /// Throws: there is nobody to send to. @throws infty::ValueError
  void send(int to, std::span<const std::byte>) const {
    detail::require_other_rank("send", to, 0, 1);
  }
  /// Throws: there is nobody to receive from. @throws infty::ValueError
  void receive(int from, std::span<std::byte>) const {
    detail::require_other_rank("receive", from, 0, 1);
  }
  /// Throws: there is nobody to exchange with. @throws infty::ValueError
  void exchange(int to, std::span<const std::byte>, int, std::span<std::byte>) const {
    detail::require_other_rank("exchange", to, 0, 1);
  }

  /// Leaves the values as they are: they are the sum.
  void all_reduce(std::span<float>) const {}
  /// Leaves the values as they are: they are the sum.
  void all_reduce(std::span<double>) const {}
  /// Leaves the bytes as they are. @throws infty::ValueError for another root than 0
  void broadcast(std::span<std::byte>, int root) const {
    detail::require_root("broadcast", root, 1);
  }
  /// Returns at once.
  void barrier() const {}
  /// Does nothing: there is nobody else to end.
  void abort(const std::string&) const {}
};

}  // namespace infty
