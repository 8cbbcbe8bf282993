// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>

#include <infty/autograd/shape.hpp>
#include <infty/core/error.hpp>
#include <infty/memory/row_chunks.hpp>
#include <infty/nn/pass.hpp>

namespace infty::detail {

/// Where vectors stand that a pass puts in front of those which attention holds: behind a row's
/// older vectors follow at once those that it holds, and behind these the segment.
template <class T, class B>
class InFront {
 public:
  using V = Variable<T, B>;

  /// Both must outlive this.
  /// @param held  [batch], vectors that attention holds of every row
  /// @throws infty::ShapeError that names `op` unless the older ones are [batch, P, d]
  InFront(const char* op, const OlderVectors<T, B>& older, const RowCounts& held, Index d)
      : older_(older.vectors), own_(held), memory_(most_of(held)), places_(memory_) {
    if (older_.size() == 0) return;
    const RowCounts& counts = older.length;
    const auto batch = static_cast<Index>(held.size());
    const Index most = older_.shape().rank() == 3 ? older_.dim(1) : 0;
    require<ShapeError>(
        older_.shape() == Shape{batch, most, d} && counts.size() == held.size() &&
            std::all_of(counts.begin(), counts.end(), [=](Index n) { return 0 <= n && n <= most; }),
        op, "older vectors are ", older_.shape(), " of ", counts.size(), " rows: they must be [",
        batch, ", P, ", d, "], and each row has 0 to P of them");
    any_ = std::any_of(counts.begin(), counts.end(), [](Index n) { return n > 0; });
    if (!any_) return;
    both_ = held;
    for (std::size_t row = 0; row < both_.size(); ++row) both_[row] += counts[row];
    places_ = most_of(both_);
  }

  /// Whether any row has one.
  bool any() const { return any_; }
  /// The older vectors.
  const V& older() const { return older_; }
  /// Places that a row may have them at.
  Index most() const { return any_ ? older_.dim(1) : 0; }
  /// Vectors of every row that stand in front of the segment.
  const RowCounts& held() const { return any_ ? both_ : own_; }
  /// Of these, the most that a row has of what attention holds.
  Index memory() const { return memory_; }
  /// The most that a row has.
  Index places() const { return places_; }

  /// Puts something of the older vectors in front of the same of what is held and of the segment.
  /// @param older    [B, P, n]
  /// @param context  [B, M + L, n], where the row that holds most holds M
  /// @return         [B, places() + L, n]; what stands in front of a shorter row is of any value
  V place(const V& older, const V& context) const {
    const Index P = older.dim(1), M = memory_, length = context.dim(1) - M;
    return pick(concat(older, context), places_ + length, [&](Index row, Index i) {
      if (i >= places_) return P + M + i - places_;
      const Index own = own_[static_cast<std::size_t>(row)], back = places_ - i;
      return back <= own ? P + M - back : (std::max)(Index{0}, P - (back - own));
    });
  }

 private:
  const V& older_;
  const RowCounts& own_;
  RowCounts both_;  // of every row, where any has older ones
  Index memory_, places_;
  bool any_ = false;
};

}  // namespace infty::detail
