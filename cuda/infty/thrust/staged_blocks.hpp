// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace infty::detail {

/// Host memory that a device reads by itself, used again as soon as it is done with it, by
/// whichever thread comes next: threads that end leave nothing behind.
///
/// What CUDA does for it, a test does by itself:
///
///     device()           that of the calling thread
///     allocate(bytes)    a block that every device can read
///     Driver::Mark, make()  a mark on the calling thread's device
///     record(mark)       puts it behind all work that the thread's queue was given until now
///     done(mark)         whether that work is
template <class Driver>
class StagedBlocks {
 public:
  /// A block in hand. Without `sent` nothing works on it when it is given back.
  class Block {
   public:
    ~Block() { pool_.give_back(held_); }
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;

    /// Where the bytes are.
    void* data() const { return held_.data; }
    /// Says that the calling thread's queue has been given work that reads the block.
    void sent() {
      pool_.driver_.record(held_.done);
      held_.recorded = true;
    }

   private:
    friend class StagedBlocks;
    struct Held {
      void* data;
      std::size_t bytes;
      int device;
      typename Driver::Mark done;
      bool recorded = false;
    };
    Block(StagedBlocks& pool, const Held& held) : pool_(pool), held_(held) {}

    StagedBlocks& pool_;
    Held held_;
  };

  /// Makes it without blocks.
  explicit StagedBlocks(Driver driver = {}) : driver_(std::move(driver)) {}

  /// A block of at least `bytes` that no work reads.
  Block take(std::size_t bytes) {
    const int device = driver_.device();
    const std::lock_guard lock(mutex_);
    auto& free = free_[device];
    for (auto held = free.begin(); held != free.end(); ++held)
      if (held->bytes >= bytes && held->bytes <= 8 * bytes + least &&
          (!held->recorded || driver_.done(held->done))) {
        Held found = *held;
        found.recorded = false;
        free.erase(held);
        return Block(*this, found);
      }
    // Room for its return, which must not fail.
    free.reserve(free.size() + ++out_);
    const std::size_t size = (std::max)(bytes, least);
    Held made{driver_.allocate(size), size, device, driver_.make()};
    ++blocks_;
    return Block(*this, made);
  }

  /// How many blocks there are, in hand or not.
  std::size_t blocks() const {
    const std::lock_guard lock(mutex_);
    return blocks_;
  }

 private:
  using Held = typename Block::Held;
  static constexpr std::size_t least = 4096;

  void give_back(const Held& held) {
    const std::lock_guard lock(mutex_);
    free_[held.device].push_back(held);
  }

  Driver driver_;
  mutable std::mutex mutex_;
  std::map<int, std::vector<Held>> free_;
  std::size_t blocks_ = 0, out_ = 0;
};

}  // namespace infty::detail
