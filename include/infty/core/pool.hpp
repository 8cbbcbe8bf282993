// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>

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
    peak_bytes_in_use = (std::max)(peak_bytes_in_use, bytes_in_use);
    most_bytes_in_use = (std::max)(most_bytes_in_use, bytes_in_use);
  }
};

/// A cache of host memory blocks: what is given back is handed out again, so that a loop over the
/// same sizes allocates in its first passes only. Sizes are rounded up by at most an eighth.
///
/// Where sizes grow, as a cache of keys does with each token, the blocks of the smaller ones would
/// stay for nobody. So where the system is asked for more than half as much again as was ever in
/// use at once, and 64 MiB, the large blocks of the sizes that were handed out longest ago go back
/// to it. What is missed later, for its size comes once more, may stay from then on. If the system
/// has no more, all that is cached goes back before the request fails.
///
/// A program that is started with INFTY_NO_POOL=1 in its environment keeps and counts nothing: then
/// a sanitizer sees every block from `new` to `delete`, and a lock that would order threads which
/// have nothing else in common is not taken.
class HostPool {
 public:
  static constexpr std::size_t alignment = detail::pool_unit;  ///< of every block, in bytes

  using Statistics = PoolStatistics;  ///< what `statistics` returns

  /// Returns the pool of the process. It is never destroyed: tensors may outlive every static
  /// object.
  static HostPool& instance() {
    static HostPool* const pool = new HostPool;
    return *pool;
  }

  /// Hands out a block of at least `bytes`, aligned to 64. @throws std::bad_alloc
  void* allocate(std::size_t bytes) {
    if (!keeps_) return ::operator new(bytes, std::align_val_t(alignment));
    const std::size_t bin = detail::pool_bin(bytes), rounded = detail::pool_bin_bytes(bin);
    const std::lock_guard lock(mutex_);
    Free* block = bins_[bin];
    if (block) {
      bins_[bin] = block->next;
    } else {
      if (missing_[bin] > 0) {
        --missing_[bin];
        statistics_.bytes_missed += rounded;
      }
      block = static_cast<Free*>(from_system(rounded));
    }
    statistics_.take(rounded);
    handed_out_[bin] = statistics_.blocks;
    return block;
  }

  /// Gives a block of `allocate(bytes)` back.
  void release(void* data, std::size_t bytes) noexcept {
    if (!keeps_) return ::operator delete(data, std::align_val_t(alignment));
    const std::size_t bin = detail::pool_bin(bytes), rounded = detail::pool_bin_bytes(bin);
    const std::lock_guard lock(mutex_);
    statistics_.bytes_in_use -= rounded;
    bins_[bin] = ::new (data) Free{bins_[bin]};
  }

  /// Returns all cached blocks to the system.
  void trim() noexcept {
    const std::lock_guard lock(mutex_);
    give_all_back();
  }

  /// Returns the counters as they stand.
  Statistics statistics() const {
    const std::lock_guard lock(mutex_);
    return statistics_;
  }

  /// Starts `peak_bytes_in_use` anew from what is in use now.
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
  }

 private:
  struct Free {
    Free* next;
  };

  static constexpr std::size_t large = std::size_t{1} << 20;  ///< bytes of blocks worth giving back
  static constexpr std::size_t spare = std::size_t{64} << 20;  ///< bytes that may always be cached

  HostPool() {
    const char* const off = std::getenv("INFTY_NO_POOL");
    keeps_ = off == nullptr || std::string_view(off) != "1";
  }

  /// A new block of a bin's size. @throws std::bad_alloc
  void* from_system(std::size_t bytes) {
    const std::size_t most =
        (std::max)(statistics_.most_bytes_in_use, statistics_.bytes_in_use + bytes);
    give_back_down_to(most + most / 2 + spare + statistics_.bytes_missed, bytes);
    constexpr std::align_val_t aligned{alignment};
    void* block = ::operator new(bytes, aligned, std::nothrow);
    if (!block) {
      give_all_back();
      block = ::operator new(bytes, aligned);
    }
    ++statistics_.system_allocations;
    statistics_.bytes_held += bytes;
    return block;
  }

  /// Gives large blocks back until no more than `limit` would be held with `more`, or none is left.
  void give_back_down_to(std::size_t limit, std::size_t more) noexcept {
    while (statistics_.bytes_held + more > limit) {
      std::size_t oldest = bins_.size();
      for (std::size_t bin = detail::pool_bin(large); bin < bins_.size(); ++bin)
        if (bins_[bin] && (oldest == bins_.size() || handed_out_[bin] < handed_out_[oldest]))
          oldest = bin;
      if (oldest == bins_.size()) return;
      give_back(oldest);
      ++missing_[oldest];
    }
  }

  void give_all_back() noexcept {
    for (std::size_t bin = 0; bin < bins_.size(); ++bin)
      while (bins_[bin]) give_back(bin);
  }

  /// Gives the first free block of a bin back to the system.
  void give_back(std::size_t bin) noexcept {
    Free* const block = bins_[bin];
    bins_[bin] = block->next;
    statistics_.bytes_held -= detail::pool_bin_bytes(bin);
    ::operator delete(block, std::align_val_t(alignment));
  }

  bool keeps_;
  mutable std::mutex mutex_;
  std::array<Free*, detail::pool_bins> bins_{};
  std::array<std::size_t, detail::pool_bins> handed_out_{};  ///< `blocks` when a bin last gave one
  std::array<std::size_t, detail::pool_bins> missing_{};     ///< blocks given back for others
  Statistics statistics_;
};

/// Standard allocator over `HostPool`, for what lives as long as a step.
template <class T>
struct PoolAllocator {
  using value_type = T;  ///< what there is room for

  PoolAllocator() = default;
  /// Makes an allocator of another type: all of them share the one pool.
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}

  /// Hands out room for n objects. @throws std::bad_alloc
  T* allocate(std::size_t n) {
    if (n > (std::size_t{1} << 62) / sizeof(T)) detail::raise_bad_alloc();
    return static_cast<T*>(HostPool::instance().allocate(n * sizeof(T)));
  }
  /// Gives the room of `allocate(n)` back.
  void deallocate(T* data, std::size_t n) noexcept {
    HostPool::instance().release(data, n * sizeof(T));
  }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

}  // namespace infty
