// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <infty/autograd/recording_scope.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/pool.hpp>

namespace infty::detail {

/// Whether `count` vectors behind `held` ones are few enough that room for more is worth its
/// memory.
inline bool few_behind(Index count, Index held) { return count <= held / 4; }

/// Memory with room behind the vectors of one row, so that another one is written to its place and
/// those before it are not copied. What it returns are views; copies share the memory, and the
/// first that goes on from a view takes the room behind it. No part of what a state remembers.
template <class T, class Backend>
class RoomBehind {
 public:
  using V = Variable<T, Backend>;

  /// Vectors [B, K, W] from place `first` on and [B, L, W] behind them, as `concat` of a `narrow`
  /// has them: for one row, and while no tape records, without a copy of the former where these
  /// came from here and nobody has gone on from them.
  V append(const V& held, Index first, const V& added) {
    const Index most = held.dim(1), kept = most - first;
    if (!views(held)) return concat(narrow(held, first, most), added);
    if (kept == 0) return added;
    const Index width = held.dim(2), all = kept + added.dim(1);
    const Tensor<T, Backend> old = rows_of(held).slice(first, most);
    if (!take(old, added.dim(1))) {
      const Index room = all + (std::max)(least_room, all / 2);
      block_ = std::allocate_shared<Block>(PoolAllocator<Block>{});
      block_->rows = Tensor<T, Backend>(Shape{room, width});
      Backend::copy(block_->rows.data(), old.data(), old.size());
      block_->used = all;
      begin_ = 0;
    }
    const auto behind = block_->rows.slice(begin_ + kept, begin_ + all);
    // No view shows these rows yet, so what was computed from views is not out of date.
    Backend::copy(const_cast<T*>(behind.data()), std::as_const(added).value().data(), added.size());
    return V(block_->rows.slice(begin_, begin_ + all).reshape(Shape{1, all, width}));
  }

  /// The last `kept` of vectors [B, K, W]: a view where `append` makes them.
  static V last(const V& held, Index kept) {
    const Index most = held.dim(1);
    if (kept == most || !views(held)) return narrow(held, most - kept, most);
    return V(rows_of(held).slice(most - kept, most).reshape(Shape{1, kept, held.dim(2)}));
  }

 private:
  static constexpr Index least_room = 64;
  struct Block {
    Tensor<T, Backend> rows;      ///< [room, W]
    std::atomic<Index> used = 0;  ///< rows that belong to somebody
  };

  static bool views(const V& held) {
    return held.dim(0) == 1 && RecordingScope::active() == nullptr;
  }
  static Tensor<T, Backend> rows_of(const V& held) {
    return held.value().reshape(Shape{held.dim(1), held.dim(2)});
  }

  /// Whether `count` rows behind `old` are there and nobody's; then they are this one's, and begin_
  /// is old's place.
  bool take(const Tensor<T, Backend>& old, Index count) {
    if (!block_ || block_->rows.dim(1) != old.dim(1)) return false;
    Index used = block_->used.load();
    const Tensor<T, Backend>& rows = block_->rows;
    if (old.data() + old.size() != rows.data() + used * rows.dim(1) || used + count > rows.dim(0) ||
        !block_->used.compare_exchange_strong(used, used + count))
      return false;
    begin_ = used - old.dim(0);
    return true;
  }

  std::shared_ptr<Block> block_;
  Index begin_ = 0;  ///< where the view that was returned last begins
};

}  // namespace infty::detail
