// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>
#include <vector>

#include <infty/core/state.hpp>

namespace infty {

/// Copies rows of a state into a new one, in any order and as often as wanted: row i of the answer
/// is row `rows[i]` of the state. What a beam search does to a state behind every step. Gradients
/// do not flow through the copies.
/// @throws infty::ShapeError for a row that is not there, or members with different numbers of rows
template <Visitable State>
State select_rows(const State& state, const RowCounts& rows) {
  const Index batch = detail::checked_rows("select_rows", state);
  for (const Index row : rows)
    require<ShapeError>(row >= 0 && row < batch, "select_rows", "row is ", row,
                        ": it must be one of ", batch, " rows, from 0");
  bool stores = false;  // which only know ranges of rows
  detail::each_member(state, [&](auto& member) {
    stores = stores || RowStore<std::remove_cvref_t<decltype(member)>>;
  });
  if (stores && !rows.empty()) {
    std::vector<State> parts;
    for (const Index row : rows) parts.push_back(take_rows(state, row, row + 1));
    return join_rows(parts);
  }
  if (rows.empty()) return take_rows(state, 0, 0);
  State out = state;
  detail::each_member(out, [&](auto& member) {
    using M = std::remove_reference_t<decltype(member)>;
    if constexpr (detail::is_tensor<M>) {
      const auto& from = detail::tensor_of(member);
      std::remove_cvref_t<decltype(from)> to(from.shape().with(0, std::ssize(rows)));
      for (Index i = 0; i < std::ssize(rows); ++i) {
        const Index row = rows[static_cast<std::size_t>(i)];
        to.slice(i, i + 1).copy_from(from.slice(row, row + 1));
      }
      member = M(to);
    } else if constexpr (!RowStore<M>) {
      RowCounts& counts = detail::counts_of(member);
      RowCounts chosen;
      for (const Index row : rows) chosen.push_back(counts[static_cast<std::size_t>(row)]);
      counts = std::move(chosen);
    }
  });
  return out;
}

}  // namespace infty
