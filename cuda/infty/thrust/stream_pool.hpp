// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <infty/core/pool.hpp>

namespace infty::detail {

/// Whether INFTY_DEVICE_POOL=exact is in the environment: then a sanitizer sees each block as it
/// was asked for.
inline bool exact_pool_wanted() {
  const char* const how = std::getenv("INFTY_DEVICE_POOL");
  return how != nullptr && std::string_view(how) == "exact";
}

/// A cache of memory that is worked on through queues, which CUDA calls streams. A block belongs to
/// the place (a device and a queue) that it was asked for at, and what is given back goes to the
/// next who asks there: the queue's order keeps the two apart, so that no host waits. A block that
/// is given back at another place is marked there, and its own place runs behind the mark before it
/// has the block again.
///
/// An exact pool keeps nothing: every block is as large as asked, comes from the system and goes
/// back to it.
///
/// What CUDA does for the pool, a test does by itself:
///
///     Driver::Place, ordered                where work goes
///     place()                               that of the calling thread
///     allocate(bytes, place)                a block in the place's order, null if memory lacks
///     free(block, place)                    of `allocate`, when nothing works on it any more
///     allocate_alone(bytes), free_alone(block)  the same in no order, for an exact pool
///     Driver::Mark
///     mark(place)                           behind all that the place was given until now
///     wait(place, mark)                     what the place is given from now on runs behind it
///     finish(mark), finish(place)           the host waits for it, or for all of the place's
///     device raise_out_of_memory(bytes, place, in_use)
template <class Driver>
class StreamPool {
 public:
  using Statistics = PoolStatistics;  ///< what `statistics` returns

  /// Makes a pool without blocks, exact or not.
  explicit StreamPool(Driver driver = {}, bool exact = exact_pool_wanted())
      : driver_(std::move(driver)), exact_(exact) {}

  /// A block of at least `bytes` at the calling thread's place.
  /// @throws what the driver throws where memory lacks
  void* allocate(std::size_t bytes) {
    const std::size_t bin = pool_bin(bytes), size = size_of(bytes);
    const std::lock_guard lock(mutex_);
    const Place place = driver_.place();
    auto& free = free_[place][bin];
    void* data = nullptr;
    if (free.empty()) {
      data = from_system(size, place);
      owners_.emplace(data, place);
      ++statistics_.system_allocations;
      statistics_.bytes_held += size;
    } else {
      const Free& block = free.back();
      if (block.given_back) driver_.wait(place, *block.given_back);
      data = block.data;
      free.pop_back();
    }
    statistics_.take(size);
    return data;
  }

  /// Gives a block of `allocate(bytes)` back, from any thread. The thread's place may still work on
  /// it, and so may the place that it was asked for at.
  void release(void* data, std::size_t bytes) noexcept {
    const std::size_t size = size_of(bytes);
    const std::lock_guard lock(mutex_);
    statistics_.bytes_in_use -= size;
    const auto owner = owners_.find(data);
    try {
      if (exact_) {
        driver_.finish(owner->second);
        driver_.free_alone(data);
        statistics_.bytes_held -= size;
        owners_.erase(owner);
        return;
      }
      const Place here = driver_.place();
      Free block{data, {}};
      if (here < owner->second || owner->second < here) block.given_back = driver_.mark(here);
      free_[owner->second][pool_bin(bytes)].push_back(block);
    } catch (...) {
      // The device is gone, or refuses: nobody gets this block again.
    }
  }

  /// Waits for all devices and returns all cached blocks to the system.
  void trim() {
    const std::lock_guard lock(mutex_);
    trim_locked();
    free_.clear();  // of streams that are no more, too
  }

  /// The counters as they stand.
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
  using Place = typename Driver::Place;

  struct Free {
    void* data;
    std::optional<typename Driver::Mark> given_back;  ///< at another place, if it was
  };

  std::size_t size_of(std::size_t bytes) const {
    return exact_ ? (std::max)(bytes, std::size_t{1}) : pool_bin_bytes(pool_bin(bytes));
  }

  void* from_system(std::size_t size, const Place& place) {
    const auto ask = [&] {
      return exact_ ? driver_.allocate_alone(size) : driver_.allocate(size, place);
    };
    if (void* const block = ask()) return block;
    trim_locked();
    if (void* const block = ask()) return block;
    driver_.raise_out_of_memory(size, place, statistics_.bytes_in_use);
  }

  void trim_locked() {
    for (auto& [place, bins] : free_) {
      driver_.finish(place);
      for (std::size_t bin = 0; bin < bins.size(); ++bin)
        while (!bins[bin].empty()) {
          const Free block = bins[bin].back();
          if (block.given_back) driver_.finish(*block.given_back);
          bins[bin].pop_back();
          owners_.erase(block.data);
          statistics_.bytes_held -= pool_bin_bytes(bin);
          driver_.free(block.data, place);
        }
      driver_.finish(place);  // which is when CUDA's own pool lets go of them
    }
  }

  Driver driver_;
  const bool exact_;
  mutable std::mutex mutex_;
  std::map<Place, std::array<std::vector<Free>, pool_bins>> free_;
  std::unordered_map<void*, Place> owners_;
  Statistics statistics_;
};

}  // namespace infty::detail
