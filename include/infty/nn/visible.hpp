// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>

#include <infty/core/error.hpp>
#include <infty/core/state_members.hpp>
#include <infty/core/tensor.hpp>
#include <infty/core/verify.hpp>

namespace infty::detail {

/// How many of the `memory` vectors in front of a segment each row may see, of which it holds
/// `held`; empty if all rows see all.
template <class Backend>
Tensor<Index, Backend> visible(const RowCounts& held, Index memory) {
  if (std::all_of(held.begin(), held.end(), [=](Index n) { return n == memory; })) return {};
  return Tensor<Index, Backend>::from(Shape{static_cast<Index>(held.size())}, held.data());
}

/// Throws unless `visible`, how many keys each of `rows` rows has, is empty or lies in [0, most].
/// @throws infty::ShapeError, infty::ValueError that names `op`
template <class B>
void require_visible(const char* op, const Tensor<Index, B>& visible, Index rows, Index most) {
  require<ShapeError>(visible.empty() || visible.shape() == Shape{rows}, op, "visible is ",
                      visible.shape(), ": it must be [B] or empty");
  const Index* const seen = visible.data();
  verify<B>(
      visible.size(), [=] INFTY_HOST_DEVICE(Index i) { return seen[i] < 0 || seen[i] > most; },
      [op, visible, most](Index row) {
        raise<ValueError>(op, "visible is ", visible.slice(row, row + 1).item(), " for row ", row,
                          ": it must lie in [0, ", most, "]");
      });
}

}  // namespace infty::detail
