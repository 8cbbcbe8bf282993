// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/eigen/include.hpp>

/// Rows in vector registers, whatever the compiler makes of a loop: sums run in lanes, so that they
/// depend on the length of the row alone.
namespace infty::detail {

/// Enough that an addition need not wait for the one before it.
inline constexpr int lane_count = 32;

/// W elements.
template <class T, int W>
using Lanes = Eigen::Array<T, W, 1>;

/// A sum that pieces of a row are added to, each width in lanes of its own.
template <class T>
class LaneSum {
 public:
  template <int W, class Piece>
  [[gnu::always_inline]] void add(const Piece& piece) {
    if constexpr (W == lane_count)
      wide_ += piece;
    else if constexpr (W == 4)
      narrow_ += piece;
    else
      single_ += piece.value();
  }
  T total() const { return wide_.sum() + (narrow_.sum() + single_); }

 private:
  Lanes<T, lane_count> wide_ = Lanes<T, lane_count>::Zero();
  Lanes<T, 4> narrow_ = Lanes<T, 4>::Zero();
  T single_ = T(0);
};

/// W elements of memory, to read or to write.
template <int W, class T>
auto lanes(T* at) {
  if constexpr (std::is_const_v<T>)
    return Eigen::Map<const Lanes<std::remove_const_t<T>, W>>(at);
  else
    return Eigen::Map<Lanes<T, W>>(at);
}

/// f.template operator()<W>(j) for pieces [j, j + W) that make up [0, n), W being 32, 4 or 1.
template <class F>
[[gnu::always_inline]] inline void for_each_lanes(Index n, F&& f) {
  Index j = 0;
  for (; j + lane_count <= n; j += lane_count) f.template operator()<lane_count>(j);
  for (; j + 4 <= n; j += 4) f.template operator()<4>(j);
  for (; j < n; ++j) f.template operator()<1>(j);
}

/// The sum of f.template operator()<W>(j) over the pieces of [0, n).
template <class T, class F>
[[gnu::always_inline]] inline T sum_lanes(Index n, F&& f) {
  LaneSum<T> sum;
  for_each_lanes(n, [&]<int W>(Index j) { sum.template add<W>(f.template operator()<W>(j)); });
  return sum.total();
}

}  // namespace infty::detail
