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
/// The work of a place may be captured, to be done later and more than once. Until that is
/// forgotten its blocks are no other place's, and blocks that are given back meanwhile, to it or by
/// it, are nobody's.
///
/// What CUDA does for the pool, a test does by itself:
///
///     Driver::Place, ordered                where work goes
///     place()                               that of the calling thread
///     allocate(bytes, place)                a block in the place's order, null if memory lacks
///     allocate_alone(bytes)                 the same in no order
///     free(block)                           of either, when nothing works on it any more
///     Driver::Mark
///     mark(place)                           behind all that the place was given until now
///     wait(place, mark)                     what the place is given from now on runs behind it
///     finish(mark), finish(place)           the host waits for it, or for all of the place's
///     device raise_out_of_memory(bytes, place, in_use)
template <class Driver>
class StreamPool {
 public:
  using Place = typename Driver::Place;  ///< where work goes
  using Statistics = PoolStatistics;     ///< what `statistics` returns

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
    const Place& owner = owners_.find(data)->second;
    try {
      const Place here = driver_.place();
      const bool elsewhere = here < owner || owner < here;
      const auto work = captured_.find(here), other = captured_.find(owner);
      if (work != captured_.end() && (elsewhere || exact_)) {
        work->second.push_back({{data, {}}, bytes});
        return;
      }
      Free block{data, {}};
      if (elsewhere && !exact_) block.given_back = driver_.mark(here);
      if (other != captured_.end() && (elsewhere || exact_)) {
        other->second.push_back({block, bytes});
        return;
      }
      put_back(block, bytes, owner);
    } catch (...) {
      // The device is gone, or refuses: nobody gets this block again.
    }
  }

  /// Says that what `place`, a new one, will be given is captured.
  void capture(const Place& place) {
    const std::lock_guard lock(mutex_);
    captured_.try_emplace(place);
  }
  /// Says that what was captured at `place` is done and will not be done any more. Returns its
  /// blocks to the system, and those that were kept for it to where they belong.
  void forget(const Place& place) {
    const std::lock_guard lock(mutex_);
    const auto work = captured_.extract(place);
    for (const auto& [block, bytes] : work.mapped()) {
      const Place& owner = owners_.find(block.data)->second;
      if (const auto other = captured_.find(owner); other != captured_.end())
        other->second.push_back({block, bytes});
      else
        put_back(block, bytes, owner);
    }
    if (const auto cached = free_.extract(place)) empty(cached.mapped());
  }

  /// Waits for all devices and returns all cached blocks to the system, but for those of work that
  /// is captured.
  void trim() {
    const std::lock_guard lock(mutex_);
    trim_locked();
    // Of streams that are no more, too.
    std::erase_if(free_, [&](const auto& cached) { return !captured_.contains(cached.first); });
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
  struct Free {
    void* data;
    std::optional<typename Driver::Mark> given_back;  ///< at another place, if it was
  };
  struct Kept {
    Free block;
    std::size_t bytes;  ///< that were asked for
  };

  using Bins = std::array<std::vector<Free>, pool_bins>;

  std::size_t size_of(std::size_t bytes) const {
    return exact_ ? (std::max)(bytes, std::size_t{1}) : pool_bin_bytes(pool_bin(bytes));
  }

  void* from_system(std::size_t size, const Place& place) {
    const bool captured = captured_.contains(place);
    const auto ask = [&] {
      return exact_ || captured ? driver_.allocate_alone(size) : driver_.allocate(size, place);
    };
    if (void* const block = ask()) return block;
    if (!captured) {  // for nobody may wait then
      trim_locked();
      if (void* const block = ask()) return block;
    }
    driver_.raise_out_of_memory(size, place, statistics_.bytes_in_use);
  }

  void trim_locked() {
    for (auto& [place, bins] : free_) {
      if (captured_.contains(place)) continue;
      driver_.finish(place);
      empty(bins);
      driver_.finish(place);  // which is when CUDA's own pool lets go of them
    }
  }

  void empty(Bins& bins) {
    for (std::size_t bin = 0; bin < bins.size(); ++bin)
      while (!bins[bin].empty()) {
        const Free block = bins[bin].back();
        if (block.given_back) driver_.finish(*block.given_back);
        bins[bin].pop_back();
        let_go(block.data, pool_bin_bytes(bin));
      }
  }

  void put_back(const Free& block, std::size_t bytes, const Place& owner) {
    if (!exact_) return free_[owner][pool_bin(bytes)].push_back(block);
    driver_.finish(owner);
    let_go(block.data, size_of(bytes));
  }

  void let_go(void* data, std::size_t size) {
    owners_.erase(data);
    statistics_.bytes_held -= size;
    driver_.free(data);
  }

  Driver driver_;
  const bool exact_;
  mutable std::mutex mutex_;
  std::map<Place, Bins> free_;
  std::unordered_map<void*, Place> owners_;
  std::map<Place, std::vector<Kept>> captured_;  ///< places whose work is, and what is kept for it
  Statistics statistics_;
};

}  // namespace infty::detail
