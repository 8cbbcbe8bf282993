// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/io/fingerprint.hpp>
#include <infty/parallel/communicator.hpp>

// What ranks say to each other by sending and receiving alone: the same on every communicator.

namespace infty {

/// Returns the bytes of all ranks, in the order of these, on all of them; each gives as many.
template <Communicator C>
std::vector<std::byte> gather_bytes(C& ranks, std::span<const std::byte> own) {
  const auto size = static_cast<std::size_t>(ranks.size()), each = own.size();
  const auto rank = static_cast<std::size_t>(ranks.rank());
  std::vector<std::byte> all(size * each);
  if (each > 0) std::memcpy(all.data() + rank * each, own.data(), each);
  for (std::size_t i = 1; i < size; ++i) {
    const std::size_t to = (rank + i) % size, from = (rank + size - i) % size;
    ranks.exchange(static_cast<int>(to), own, static_cast<int>(from),
                   std::span(all).subspan(from * each, each));
  }
  return all;
}

/// Returns the values of all ranks, in the order of these, on all of them.
template <class T, Communicator C>
  requires std::is_trivially_copyable_v<T>
std::vector<T> gather(C& ranks, const T& own) {
  const auto bytes = gather_bytes(ranks, std::as_bytes(std::span(&own, 1)));
  std::vector<T> all(static_cast<std::size_t>(ranks.size()));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// Whether any of the ranks says yes: what all of them are to do, or none.
template <Communicator C>
bool any_rank(C& ranks, bool own) {
  double yes = own ? 1 : 0;
  ranks.all_reduce(std::span<double>(&yes, 1));
  return yes > 0;
}

/// Compares what all ranks must have the same of, by a fingerprint.
/// @param what  it is called, such as "the text"
/// @throws infty::ValueError, on all ranks in the same words, that names the first rank whose own
/// is another one than the first rank's
template <Communicator C>
void require_same(C& ranks, std::string_view what, std::uint64_t own) {
  const auto all = gather(ranks, own);
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    require(all[rank] == all.front(), "require_same", "rank ", rank, " of ", all.size(), " has ",
            what, " with the fingerprint ", detail::as_hex(all[rank]), ", rank 0 ",
            detail::as_hex(all.front()), ": it must be the same on all");
}

/// The same of a text.
template <Communicator C>
void require_same(C& ranks, std::string_view what, std::string_view own) {
  detail::Fingerprint fingerprint;
  fingerprint.add_text(own);
  require_same(ranks, what, fingerprint.bits());
}

namespace detail {

/// The bytes of one rank on all, each sent on to those that lack them: log2(size) messages behind
/// each other.
template <Communicator C>
void broadcast_by_messages(C& ranks, std::span<std::byte> bytes, int root) {
  require_root("broadcast", root, ranks.size());
  const int size = ranks.size(), rank = (ranks.rank() + size - root) % size;
  const auto real = [&](int r) { return (r + root) % size; };
  for (int have = 1; have < size; have *= 2) {
    if (rank < have && rank + have < size)
      ranks.send(real(rank + have), bytes);
    else if (rank >= have && rank < 2 * have)
      ranks.receive(real(rank - have), bytes);
  }
}

/// The sum over ranks, in their order, on all of them.
template <class T, Communicator C>
void all_reduce_by_messages(C& ranks, std::span<T> values) {
  const auto all = gather_bytes(ranks, std::as_bytes(values));
  std::vector<T> one(values.size());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (one.empty()) return;
    std::memcpy(one.data(), all.data() + static_cast<std::size_t>(rank) * values.size_bytes(),
                values.size_bytes());
    for (std::size_t i = 0; i < one.size(); ++i)
      values[i] = rank == 0 ? one[i] : values[i] + one[i];
  }
}

}  // namespace detail

}  // namespace infty
