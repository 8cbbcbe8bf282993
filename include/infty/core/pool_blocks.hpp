// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <mutex>
#include <new>

#include <infty/core/error.hpp>

namespace infty {

namespace detail {

/// Pools keep blocks of like sizes together. Bin 8 e + m holds blocks of (8 + m) 2^e units of 64
/// bytes, which is 512 bytes at the least and at most an eighth more than what was asked.
inline constexpr std::size_t pool_unit = 64, pool_bins = 8 * 64;

/// Returns the bin of a request. @throws std::bad_alloc if no memory is that large
inline std::size_t pool_bin(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 62)) raise_bad_alloc();
  const std::size_t units = (bytes + pool_unit - 1) / pool_unit;
  if (units <= 8) return 0;
  const std::size_t exponent = static_cast<std::size_t>(std::bit_width(units - 1)) - 4;
  const std::size_t step = std::size_t{1} << exponent;
  return 8 * exponent + ((units + step - 1) / step - 8);
}

/// Returns the bytes of a block of a bin.
inline std::size_t pool_bin_bytes(std::size_t bin) {
  return ((8 + bin % 8) << (bin / 8)) * pool_unit;
}

}  // namespace detail

/// Counters of a pool for tests and reports: bytes, calls to the system's allocator and blocks.
struct PoolStatistics {
  std::size_t bytes_in_use = 0;        ///< of blocks that are out now
  std::size_t bytes_held = 0;          ///< in use or cached
  std::size_t peak_bytes_in_use = 0;   ///< the most there have been since the last reset
  std::size_t most_bytes_in_use = 0;   ///< the most there have ever been
  std::size_t bytes_missed = 0;        ///< given back to the system, and then asked for once more
  std::size_t system_allocations = 0;  ///< calls to the system's allocator until now
  std::size_t blocks = 0;              ///< handed out until now

  /// Counts a block handed out.
  void take(std::size_t bytes) {
    ++blocks;
    bytes_in_use += bytes;
    reach(bytes_in_use);
  }
  /// Counts that so many bytes were in use at once.
  void reach(std::size_t bytes) {
    peak_bytes_in_use = (std::max)(peak_bytes_in_use, bytes);
    most_bytes_in_use = (std::max)(most_bytes_in_use, bytes);
  }
};

namespace detail {

/// A block that nobody has.
struct FreeBlock {
  FreeBlock* next;
};

/// Blocks that a thread gave back, which it takes again without waiting for other threads, and what
/// it has counted meanwhile. Others come here for sums over all threads, and for the blocks when
/// the thread ends or the pool is trimmed.
class ThreadBlocks {
 public:
  static constexpr std::size_t bins = 88;  ///< of blocks of less than 1 MiB

  /// Takes a block out of a bin; null if there is none.
  void* take(std::size_t bin) {
    const std::lock_guard lock(mutex_);
    if (!first_[bin]) return nullptr;
    FreeBlock* const block = pop(bin, first_[bin]);
    ++blocks_;
    in_use_ += static_cast<std::ptrdiff_t>(pool_bin_bytes(bin));
    peak_ = (std::max)(peak_, in_use_);
    return block;
  }

  /// Puts a block into a bin; whether there are more of them now than are worth keeping.
  bool give(std::size_t bin, void* data) {
    const std::lock_guard lock(mutex_);
    in_use_ -= static_cast<std::ptrdiff_t>(pool_bin_bytes(bin));
    push(bin, ::new (data) FreeBlock{});
    return count_[bin] > most(bin) || kept_ > most_bytes;
  }

  /// Moves blocks from a bin's list to this one, until it is half full or has 64 KiB more.
  void fill(std::size_t bin, FreeBlock*& from) {
    const std::lock_guard lock(mutex_);
    for (std::size_t bytes = pool_bin_bytes(bin), more = bytes;
         from && count_[bin] < most(bin) / 2 && more <= some_bytes && kept_ + bytes <= most_bytes;
         more += bytes) {
      FreeBlock* const block = from;
      from = block->next;
      push(bin, block);
    }
  }

  /// Moves what is not worth keeping, now that there is one block more of a bin, to the lists of
  /// all bins: all but the newest of that bin, and where that is not enough the largest blocks.
  template <std::size_t all_bins>
  void shrink(std::size_t bin, std::array<FreeBlock*, all_bins>& to) {
    const std::lock_guard lock(mutex_);
    if (count_[bin] > most(bin)) move(bin, to[bin], most(bin) / 2);
    if (kept_ <= most_bytes) return;
    for (std::size_t large = bins; large-- > 0 && kept_ > most_bytes / 2;)
      move(large, to[large], 0);
  }

  /// Moves all blocks to the lists of all bins.
  template <std::size_t all_bins>
  void empty(std::array<FreeBlock*, all_bins>& to) {
    const std::lock_guard lock(mutex_);
    for (std::size_t bin = 0; bin < bins; ++bin) move(bin, to[bin], 0);
  }

  /// The most bytes that were out since `count_into`, of what was not counted before.
  std::size_t peak() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(peak_);
  }
  /// Adds what was counted since the last call.
  void count_into(PoolStatistics& statistics) {
    const std::lock_guard lock(mutex_);
    const auto with = [&](std::ptrdiff_t more) {
      return statistics.bytes_in_use + static_cast<std::size_t>(more);
    };
    statistics.reach(with(peak_));
    statistics.bytes_in_use = with(in_use_);
    statistics.blocks += blocks_;
    in_use_ = peak_ = 0;
    blocks_ = 0;
  }

  ThreadBlocks* next = nullptr;  ///< of the pool's list

 private:
  /// Blocks of a bin that are worth keeping: 64, and 64 KiB of large ones, but eight at the least.
  static std::size_t most(std::size_t bin) {
    return (std::min)(std::size_t{64},
                      (std::max)(std::size_t{8}, some_bytes / pool_bin_bytes(bin)));
  }
  void push(std::size_t bin, FreeBlock* block) {
    block->next = first_[bin];
    first_[bin] = block;
    ++count_[bin];
    kept_ += pool_bin_bytes(bin);
  }
  FreeBlock* pop(std::size_t bin, FreeBlock*& at) {
    FreeBlock* const block = at;
    at = block->next;
    --count_[bin];
    kept_ -= pool_bin_bytes(bin);
    return block;
  }
  /// Moves all blocks of a bin but the newest `but` to a list, the newest to its front.
  void move(std::size_t bin, FreeBlock*& to, std::size_t but) {
    FreeBlock** from = &first_[bin];
    for (std::size_t i = 0; i < but && *from; ++i) from = &(*from)->next;
    FreeBlock** behind = &to;
    while (*from) {
      FreeBlock* const block = pop(bin, *from);
      block->next = *behind;
      *behind = block;
      behind = &block->next;
    }
  }

  static constexpr std::size_t some_bytes = std::size_t{1} << 16;  ///< kept of one bin
  static constexpr std::size_t most_bytes = std::size_t{4} << 20;  ///< kept in all

  std::mutex mutex_;
  std::array<FreeBlock*, bins> first_{};
  std::array<std::size_t, bins> count_{};
  std::size_t kept_ = 0;                  ///< bytes of all of them
  std::ptrdiff_t in_use_ = 0, peak_ = 0;  ///< bytes handed out, less what came back: now, at most
  std::size_t blocks_ = 0;                ///< handed out
};

}  // namespace detail

}  // namespace infty
