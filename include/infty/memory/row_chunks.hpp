// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/state.hpp>
#include <infty/nn/embedding.hpp>

// Chunks of C vectors that every row counts from its own first one: what does not fill one waits.
namespace infty::detail {

/// Which of the vectors [waiting; segment] of every row fill its chunks. The waiting ones are
/// C - 1 places, the segment's L; of both a row's own are the last.
struct RowChunks {
  Index size;                 ///< C
  Index length;               ///< L
  RowCounts waiting, counts;  ///< of each row, vectors that wait and that the segment brings
  RowCounts full, left;       ///< chunks that these fill, and vectors that wait then
  Index most = 0;             ///< the most chunks that a row fills
  Index begun = 0;            ///< the most that a row has a vector in

  /// Counts them: `waiting[row]` < C, `counts[row]` <= L.
  RowChunks(Index C, Index L, RowCounts waiting_, RowCounts counts_)
      : size(C), length(L), waiting(std::move(waiting_)), counts(std::move(counts_)) {
    for (std::size_t row = 0; row < counts.size(); ++row) {
      const Index total = waiting[row] + counts[row];
      full.push_back(total / C);
      left.push_back(total % C);
      most = (std::max)(most, full[row]);
      begun = (std::max)(begun, (total + C - 1) / C);
    }
  }

  /// Where in [waiting; segment] a row's vector i is, from the first that waits.
  Index place(Index row, Index i) const {
    const auto r = static_cast<std::size_t>(row);
    return size - 1 + (i < waiting[r] ? i : length - counts[r] + i) - waiting[r];
  }

  /// Where vector i of a row's chunks is; somewhere, if the row does not fill so many.
  Index learned(Index row, Index i) const {
    return i < full[static_cast<std::size_t>(row)] * size ? place(row, i) : 0;
  }
  /// Where place i of those that wait then is; somewhere in front of them.
  Index kept(Index row, Index i) const {
    const auto r = static_cast<std::size_t>(row);
    const Index front = size - 1 - left[r];
    return i < front ? 0 : place(row, full[r] * size + i - front);
  }
  /// Which of L queries, one a vector of the segment, stands at place i of a row's chunks.
  Index query(Index row, Index i) const {
    return std::clamp<Index>(i - waiting[static_cast<std::size_t>(row)], 0, length - 1);
  }
  /// And back.
  Index answer(Index row, Index i) const { return i + waiting[static_cast<std::size_t>(row)]; }

  /// 1 for the places of those that wait then, [batch, C - 1, 1], 0 in front.
  template <class T, class B>
  Tensor<T, B> kept_mask() const {
    std::vector<T> on;
    for (const Index n : left)
      for (Index i = 1; i < size; ++i) on.push_back(size - i <= n ? T(1) : T(0));
    return Tensor<T, B>::from(Shape{static_cast<Index>(left.size()), size - 1, 1}, on);
  }
};

/// Vectors `place(row, i)`, i < width, of every row of x [B, L, d] -> [B, width, d].
template <class T, class B, class Place>
Variable<T, B> pick(const Variable<T, B>& x, Index width, Place place) {
  const Index batch = x.dim(0), length = x.dim(1);
  std::vector<Index> places;
  bool all = width == length;
  for (Index row = 0; row < batch; ++row)
    for (Index i = 0; i < width; ++i) {
      const Index at = place(row, i);
      all = all && at == i;
      places.push_back(row * length + at);
    }
  if (all) return x;
  return embedding(Tensor<Index, B>::from(Shape{batch, width}, places),
                   reshape(x, Shape{batch * length, x.dim(2)}));
}

/// 1 for rows of which `is(row)`, [batch, 1, 1, 1]; nothing if it is true of all.
template <class T, class B, class Is>
Variable<T, B> row_mask(Index batch, Is is) {
  std::vector<T> on;
  for (Index row = 0; row < batch; ++row) on.push_back(is(row) ? T(1) : T(0));
  if (std::all_of(on.begin(), on.end(), [](T one) { return one > T(0); })) return {};
  return Variable<T, B>(Tensor<T, B>::from(Shape{batch, 1, 1, 1}, on));
}

/// `to` where the mask is 1 or there is none, `from` elsewhere.
template <class T, class B>
Variable<T, B> chosen(const Variable<T, B>& mask, const Variable<T, B>& from,
                      const Variable<T, B>& to) {
  return mask.size() > 0 ? add(multiply(T(1) - mask, from), multiply(mask, to)) : to;
}

/// Parts [B, n, ...], one behind the other along dimension 1. They are joined in pairs, so that
/// each is copied log₂ times of their number.
template <class T, class B>
Variable<T, B> joined(std::vector<Variable<T, B>> parts) {
  while (parts.size() > 1) {
    std::vector<Variable<T, B>> pairs;
    for (std::size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(i + 1 < parts.size() ? concat(parts[i], parts[i + 1]) : parts[i]);
    parts = std::move(pairs);
  }
  return parts.front();
}

}  // namespace infty::detail
