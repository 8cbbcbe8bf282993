// SPDX-License-Identifier: MIT
#pragma once

#if defined(INFTY_THRUST_FENCE)
#include <array>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>

#include <infty/core/pool.hpp>

namespace infty::detail {

/// Host memory that faults when it is touched outside of a primitive, as a GPU's memory would. With
/// `INFTY_THRUST_FENCE` defined it is the memory of Thrust's host systems: a component that works
/// on it never reads or writes a tensor's elements behind its backend's back. It starts as NaN:
/// what is read before it is written shows.
class Fence {
 public:
  /// While one lives, on any thread, the memory can be touched.
  class Open {
   public:
    explicit Open(Fence& fence) : fence_(fence) {
      const std::lock_guard lock(fence_.mutex_);
      if (fence_.opened_++ == 0) fence_.protect(PROT_READ | PROT_WRITE);
    }
    ~Open() {
      const std::lock_guard lock(fence_.mutex_);
      if (--fence_.opened_ == 0) fence_.protect(PROT_NONE);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    Fence& fence_;
  };

  /// The fenced memory of the process.
  static Fence& instance() {
    static Fence* const fence = new Fence;
    return *fence;
  }

  Open open() { return Open(*this); }

  /// A block of at least `bytes`, aligned to 64. @throws std::bad_alloc
  void* allocate(std::size_t bytes) {
    const std::size_t bin = pool_bin(bytes), rounded = pool_bin_bytes(bin);
    const std::lock_guard lock(mutex_);
    ++blocks_;
    auto& free = free_[bin];
    std::byte* block = begin_ + used_;
    if (!free.empty()) {
      block = free.back();
      free.pop_back();
    } else {
      if (rounded > reserved - used_) throw std::bad_alloc();
      used_ += rounded;
      if (opened_ > 0) protect(PROT_READ | PROT_WRITE);
    }
    // Those of its pages alone: there may be much of the others.
    const std::size_t first = static_cast<std::size_t>(block - begin_) / page * page;
    const std::size_t pages = static_cast<std::size_t>(block - begin_) + rounded - first;
    if (opened_ == 0) mprotect(begin_ + first, pages, PROT_READ | PROT_WRITE);
    std::memset(block, 0xff, rounded);
    if (opened_ == 0) mprotect(begin_ + first, pages, PROT_NONE);
    return block;
  }

  /// Gives a block of `allocate(bytes)` back.
  void release(void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    free_[pool_bin(bytes)].push_back(static_cast<std::byte*>(data));
  }

  /// Whether an address lies in fenced memory.
  bool holds(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return at >= begin_ && at < begin_ + reserved;
  }

  /// How many blocks have been handed out.
  std::size_t blocks() {
    const std::lock_guard lock(mutex_);
    return blocks_;
  }

 private:
  static constexpr std::size_t reserved = std::size_t{1} << 36, page = 4096;

  Fence()
      : begin_(static_cast<std::byte*>(mmap(nullptr, reserved, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    if (begin_ == MAP_FAILED) throw std::bad_alloc();
  }

  void protect(int access) {
    if (used_ > 0) mprotect(begin_, (used_ + page - 1) / page * page, access);
  }

  std::mutex mutex_;
  std::byte* const begin_;
  std::size_t used_ = 0, blocks_ = 0;
  int opened_ = 0;
  std::array<std::vector<std::byte*>, pool_bins> free_;
};

}  // namespace infty::detail
#endif
