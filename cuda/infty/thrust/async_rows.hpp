// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstring>

#include <infty/core/config.hpp>
#include <infty/thrust/item_order.hpp>

namespace infty::detail {

/// Rows of a matrix that are copied to shared memory while a block does other work, by cp.async on
/// the device: those from `first` on, and zeros for those that do not lie in [begin, end),
/// begin < end. Row i goes to place `place` + i of `places`, behind the last of which comes the
/// first; so a window over the rows moves on without copying what it has.
struct AsyncRows {
  const void* from;  ///< row 0
  Index stride;      ///< bytes between two rows
  int bytes;         ///< of a row, a multiple of 4
  bool wide;         ///< whether `bytes` and every row's address are multiples of 16
  int first, begin, end, rows;
  void* to;
  int leading, place, places;  ///< bytes between two places, the first row's place, their number

  INFTY_HOST_DEVICE bool inside(int row) const { return first + row >= begin && first + row < end; }
  /// Where a row lies; of one that is not there, where another does.
  INFTY_HOST_DEVICE const char* source(int row) const {
    const int at = inside(row) ? first + row : begin;
    return static_cast<const char*>(from) + Index{at} * stride;
  }
  INFTY_HOST_DEVICE char* target(int row) const {
    const int at = place + row < places ? place + row : place + row - places;
    return static_cast<char*>(to) + at * leading;
  }
};

/// The copies of a block of the host that are under way. Whether one is done early or late must not
/// matter: in the forward order it is done where it begins, in the others where it is waited for,
/// and until then NaN stands there. More than there is room for are never done.
template <ItemOrder order>
class HostCopies {
 public:
  INFTY_HOST_DEVICE void start(const AsyncRows& rows) {
    if constexpr (order == ItemOrder::forward) {
      copy(rows);
    } else {
      for (int i = 0; i < rows.rows; ++i)
        std::memset(rows.target(i), 0xff, static_cast<std::size_t>(rows.bytes));
      for (Pending& pending : pending_)
        if (pending.rows.rows == 0) {
          pending = {rows, group_};
          return;
        }
    }
  }
  INFTY_HOST_DEVICE void commit() { ++group_; }
  INFTY_HOST_DEVICE void wait(int younger) {
    if constexpr (order != ItemOrder::forward)
      for (Pending& pending : pending_)
        if (pending.rows.rows > 0 && pending.group < group_ - younger) {
          copy(pending.rows);
          pending.rows.rows = 0;
        }
  }

 private:
  static constexpr int most = 16;
  struct Pending {
    AsyncRows rows{};
    int group = 0;
  };

  INFTY_HOST_DEVICE static void copy(const AsyncRows& rows) {
    const auto bytes = static_cast<std::size_t>(rows.bytes);
    for (int i = 0; i < rows.rows; ++i)
      if (rows.inside(i))
        std::memcpy(rows.target(i), rows.source(i), bytes);
      else
        std::memset(rows.target(i), 0, bytes);
  }

  Pending pending_[order == ItemOrder::forward ? 1 : most];
  int group_ = 0;
};

}  // namespace infty::detail
