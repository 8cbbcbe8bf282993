// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/pool_blocks.hpp>
#include <infty/core/system_block.hpp>

namespace infty {

/// A cache of host memory blocks: what is given back is handed out again, so that a loop over the
/// same sizes allocates in its first passes only. Sizes are rounded up by at most an eighth.
///
/// Where sizes grow, as a cache of keys does with each token, the blocks of the smaller ones would
/// stay for nobody. So where the system is asked for more than half as much again as was ever in
/// use at once, and 64 MiB, the large blocks of the sizes that were handed out longest ago go back
/// to it. What is missed later, for its size comes once more, may stay from then on. If the system
/// has no more, all that is cached goes back before the request fails.
///
/// A thread keeps some of the blocks of less than 1 MiB that it gives back for itself, up to 4 MiB
/// in all, so that threads which make small tensors or need room for a tile side by side do not
/// wait for each other.
///
/// Blocks of 4 MiB and more are asked for in large pages, where the system has them for who asks.
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
    Thread* const mine = own();
    const bool kept = mine && bin < Thread::bins;
    if (kept)
      if (void* const block = mine->take(bin)) return block;
    const std::lock_guard lock(mutex_);
    if (mine) mine->count_into(statistics_);
    Free* block = bins_[bin];
    if (block) {
      bins_[bin] = block->next;
      if (kept) mine->fill(bin, bins_[bin]);
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
    Thread* const mine = own();
    const bool kept = mine && bin < Thread::bins;
    if (kept && !mine->give(bin, data)) return;
    const std::lock_guard lock(mutex_);
    if (mine) mine->count_into(statistics_);
    if (kept) return mine->shrink(bin, bins_);
    statistics_.bytes_in_use -= rounded;
    bins_[bin] = ::new (data) Free{bins_[bin]};
  }

  /// Returns all cached blocks to the system, those that threads keep, too.
  void trim() noexcept {
    const std::lock_guard lock(mutex_);
    give_all_back();
  }

  /// Returns the counters as they stand. The peak is exact while one thread works; where several
  /// do, what each of them had at most of blocks of less than 1 MiB is added up.
  Statistics statistics() const {
    const std::lock_guard lock(mutex_);
    count_threads();
    return statistics_;
  }

  /// Starts `peak_bytes_in_use` anew from what is in use now.
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    count_threads();
    statistics_.peak_bytes_in_use = statistics_.bytes_in_use;
  }

 private:
  using Free = detail::FreeBlock;
  using Thread = detail::ThreadBlocks;

  static constexpr std::size_t large = std::size_t{1} << 20;  ///< bytes of blocks worth giving back
  static constexpr std::size_t spare = std::size_t{64} << 20;  ///< bytes that may always be cached

  HostPool() {
    const char* const off = std::getenv("INFTY_NO_POOL");
    keeps_ = off == nullptr || std::string_view(off) != "1";
  }

  /// What this thread keeps; null where there is no memory for it, and behind the thread's end,
  /// when objects that outlive it are destroyed.
  Thread* own() noexcept {
    static thread_local Thread* mine = nullptr;
    static thread_local bool begun = false;
    if (begun) return mine;
    begun = true;
    mine = new (std::nothrow) Thread;
    if (!mine) return nullptr;
    const std::lock_guard lock(mutex_);
    mine->next = threads_;
    threads_ = mine;
    struct Ending {
      ~Ending() {
        instance().leave(mine);
        mine = nullptr;
      }
    };
    static thread_local const Ending ending;
    return mine;
  }

  /// Takes what a thread kept, which ends.
  void leave(Thread* thread) noexcept {
    const std::lock_guard lock(mutex_);
    thread->count_into(statistics_);
    thread->empty(bins_);
    Thread** at = &threads_;
    while (*at != thread) at = &(*at)->next;
    *at = thread->next;
    delete thread;
  }

  void count_threads() const {
    std::size_t most = statistics_.bytes_in_use;
    for (Thread* thread = threads_; thread; thread = thread->next) most += thread->peak();
    statistics_.reach(most);
    for (Thread* thread = threads_; thread; thread = thread->next) thread->count_into(statistics_);
  }

  /// A new block of a bin's size. @throws std::bad_alloc
  void* from_system(std::size_t bytes) {
    const std::size_t most =
        (std::max)(statistics_.most_bytes_in_use, statistics_.bytes_in_use + bytes);
    give_back_down_to(most + most / 2 + spare + statistics_.bytes_missed, bytes);
    void* block = detail::take_system_block(bytes, alignment);
    if (!block) {
      give_all_back();
      block = detail::take_system_block(bytes, alignment);
      if (!block) detail::raise_bad_alloc();
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
    for (Thread* thread = threads_; thread; thread = thread->next) thread->empty(bins_);
    for (std::size_t bin = 0; bin < bins_.size(); ++bin)
      while (bins_[bin]) give_back(bin);
  }

  /// Gives the first free block of a bin back to the system.
  void give_back(std::size_t bin) noexcept {
    Free* const block = bins_[bin];
    bins_[bin] = block->next;
    const std::size_t bytes = detail::pool_bin_bytes(bin);
    statistics_.bytes_held -= bytes;
    detail::give_system_block(block, bytes, alignment);
  }

  bool keeps_;
  mutable std::mutex mutex_;
  std::array<Free*, detail::pool_bins> bins_{};
  std::array<std::size_t, detail::pool_bins> handed_out_{};  ///< `blocks` when a bin last gave one
  std::array<std::size_t, detail::pool_bins> missing_{};     ///< blocks given back for others
  mutable Statistics statistics_;
  Thread* threads_ = nullptr;  ///< all that keep blocks
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

/// A vector in such room.
template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;

}  // namespace infty
