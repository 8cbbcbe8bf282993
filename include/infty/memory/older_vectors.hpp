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

  /// @param held  [batch], vectors that attention holds of every row
  /// @throws infty::ShapeError that names `op` unless the older ones are [batch, P, d]
  InFront(const char* op, const OlderVectors<T, B>& older, const RowCounts& held, Index d)
      : older_(older.vectors),
        counts_(older.length),
        own_(held),
        memory_(*std::max_element(held.begin(), held.end())) {
    const auto batch = static_cast<Index>(held.size());
    if (older_.size() == 0) counts_.assign(held.size(), 0);
    const Index most = older_.size() == 0 ? 0 : older_.dim(1);
    require<ShapeError>((older_.size() == 0 || older_.shape() == Shape{batch, most, d}) &&
                            counts_.size() == held.size() &&
                            std::all_of(counts_.begin(), counts_.end(),
                                        [=](Index n) { return 0 <= n && n <= most; }),
                        op, "older vectors are ", older_.shape(), " of ", counts_.size(),
                        " rows: they must be [", batch, ", P, ", d,
                        "], and each row has 0 to P of them");
    held_ = held;
    for (std::size_t row = 0; row < held_.size(); ++row) held_[row] += counts_[row];
    places_ = *std::max_element(held_.begin(), held_.end());
  }

  /// Whether any row has one.
  bool any() const {
    return std::any_of(counts_.begin(), counts_.end(), [](Index n) { return n > 0; });
  }
  /// The older vectors.
  const V& older() const { return older_; }
  /// Places that a row may have them at.
  Index most() const { return any() ? older_.dim(1) : 0; }
  /// Vectors of every row that stand in front of the segment.
  const RowCounts& held() const { return held_; }
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
  V older_;
  RowCounts counts_, own_, held_;
  Index memory_, places_ = 0;
};

}  // namespace infty::detail
