// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/thrust/async_rows.hpp>
#include <infty/thrust/host_warp.hpp>
#include <infty/thrust/item_order.hpp>

namespace infty::detail {

/// Pieces of shared memory begin at multiples of this: no load is wider.
inline constexpr std::size_t shared_alignment = 16;

/// The bytes that a piece of n elements takes of a block's shared memory.
template <class T>
INFTY_HOST_DEVICE constexpr std::size_t shared_bytes(Index n) {
  return (static_cast<std::size_t>(n) * sizeof(T) + shared_alignment - 1) / shared_alignment *
         shared_alignment;
}

/// Lanes that fold one row in `reduce_rows`.
inline constexpr int reduce_lanes = 16;

/// A block of the host: one thread does the work of all.
template <int threads, ItemOrder order = ItemOrder::forward>
class HostBlock {
 public:
  INFTY_HOST_DEVICE HostBlock(Index index, unsigned char* memory)
      : index_(index), memory_(memory) {}

  /// Bytes behind a piece of shared memory that nobody may touch, in the orders for tests, and of
  /// how many pieces.
  static constexpr std::size_t guard = order == ItemOrder::forward ? 0 : 64, guarded = 16;

  /// Which block of the launch this is.
  INFTY_HOST_DEVICE Index index() const { return index_; }

  /// The next n elements of shared memory, the same for all threads, with no defined contents.
  template <class T>
  INFTY_HOST_DEVICE T* shared(Index n) {
    static_assert(std::is_trivially_copyable_v<T> && shared_alignment % alignof(T) == 0);
    unsigned char* const piece = memory_ + used_ + guard * static_cast<std::size_t>(pieces_);
    used_ += shared_bytes<T>(n);
    if (guard > 0 && pieces_ < static_cast<int>(guarded))
      end_[pieces_++] = piece + static_cast<std::size_t>(n) * sizeof(T);
    return reinterpret_cast<T*>(piece);
  }
  /// Bytes of shared memory given out.
  INFTY_HOST_DEVICE std::size_t used() const { return used_; }
  /// Whether what lies behind the pieces is as it was, all ones.
  INFTY_HOST_DEVICE bool intact() const {
    for (int i = 0; i < pieces_; ++i)
      for (std::size_t at = 0; at < guard; ++at)
        if (end_[i][at] != 0xff) return false;
    return true;
  }

  /// f(i) for i in [0, n) over the threads, then a barrier.
  template <class Int, class F>
  INFTY_HOST_DEVICE void each(Int n, const F& f) {
    for (Int i = 0; i < n; ++i) f(ordered<order>(i, n));
  }

  /// fold(init, f(0), ..., f(n - 1)), known to all threads, in an order that n alone determines.
  template <class T, class Int, class Fold, class F>
  INFTY_HOST_DEVICE T reduce(Int n, T init, const Fold& fold, const F& f) {
    if (n <= 0) return init;
    T lane[threads];
    const int lanes = n < threads ? static_cast<int>(n) : threads;
    for (int l = 0; l < lanes; ++l) lane[l] = strided<T>(l, threads, n, fold, f);
    // As the device does it: within warps, then over warps.
    const int warps = (lanes + 31) / 32;
    for (int warp = 0; warp < warps; ++warp) {
      join(lane + 32 * warp, 32, lanes - 32 * warp, fold);
      lane[warp] = lane[32 * warp];
    }
    join(lane, 32, warps, fold);
    return fold(init, lane[0]);
  }

  /// take(row, fold over j in [0, n) of f(row, j)) for row in [0, rows), n >= 1, then a barrier:
  /// for many short rows, each by a few neighbouring threads. Every f(row, j) is called once, and
  /// every take(row, ...) by one thread when all of the row's have been.
  template <class T, class Fold, class F, class Take>
  INFTY_HOST_DEVICE void reduce_rows(int rows, int n, const Fold& fold, const F& f,
                                     const Take& take) {
    const int lanes = n < reduce_lanes ? n : reduce_lanes;
    for (int i = 0; i < rows; ++i) {
      const int row = ordered<order>(i, rows);
      T lane[reduce_lanes];
      for (int l = 0; l < lanes; ++l)
        lane[l] = strided<T>(l, reduce_lanes, n, fold, [&](int j) { return f(row, j); });
      join(lane, reduce_lanes, lanes, fold);
      take(row, lane[0]);
    }
  }

  using Warp = HostWarp<order>;
  static constexpr int all_warps = threads / warp_lanes;

  /// f(warp) in every warp of the block, which touches nothing that another writes, then a barrier.
  template <class F>
  INFTY_HOST_DEVICE void each_warp(const F& f) {
    for (int i = 0; i < all_warps; ++i) f(Warp(ordered<order>(i, all_warps)));
  }
  /// What each warp keeps in registers.
  template <class State>
  struct OfWarps {
    State of[all_warps];
  };
  /// f(warp, its state) in every warp of the block, then a barrier.
  template <class State, class F>
  INFTY_HOST_DEVICE void each_warp(OfWarps<State>& states, const F& f) {
    each_warp([&](const Warp& warp) { f(warp, states.of[warp.index()]); });
  }

  /// Begins to copy rows of at most `most` bytes, a power of 2. Nobody may read or write their
  /// places until a `wait` for the group of copies that they belong to.
  template <int most>
  INFTY_HOST_DEVICE void start(const AsyncRows& rows) {
    static_assert((most & (most - 1)) == 0);
    copies_.start(rows);
  }
  /// Ends a group of copies, which may be empty.
  INFTY_HOST_DEVICE void commit() { copies_.commit(); }
  /// Waits for all groups but the last `younger` ones, then a barrier.
  template <int younger>
  INFTY_HOST_DEVICE void wait() {
    copies_.wait(younger);
  }

 private:
  template <class T, class Int, class Fold, class F>
  INFTY_HOST_DEVICE static T strided(int first, int stride, Int n, const Fold& fold, const F& f) {
    T sum = f(static_cast<Int>(first));
    for (Int i = static_cast<Int>(first) + stride; i < n; i += stride) sum = fold(sum, f(i));
    return sum;
  }
  template <class T, class Fold>
  INFTY_HOST_DEVICE static void join(T* lane, int width, int count, const Fold& fold) {
    for (int half = width / 2; half > 0; half /= 2)
      for (int l = 0; l < half && l + half < count; ++l) lane[l] = fold(lane[l], lane[l + half]);
  }

  Index index_;
  unsigned char* memory_;
  std::size_t used_ = 0;
  int pieces_ = 0;
  const unsigned char* end_[guard > 0 ? guarded : 1];
  HostCopies<order> copies_;
};

}  // namespace infty::detail
