// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/row_groups.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// A gradient of a table that is zero but for a few rows, of which it holds those alone.
template <class T, class Backend>
struct RowGradient {
  Tensor<Index, Backend> rows;  ///< [n], rising, each once
  Tensor<T, Backend> values;    ///< [n, ...], the gradient of each of these rows
  Index count = 0;              ///< rows of the table, all that are not listed zero

  /// Whether it is one of a table of this shape.
  bool fits(const Shape& table) const {
    return table.rank() >= 1 && table[0] == count && values.shape().with(0, count) == table;
  }
};

/// The sum of two gradients of one table: the rows of both, those in both summed.
template <class T, class B>
RowGradient<T, B> join_rows(const RowGradient<T, B>& a, const RowGradient<T, B>& b) {
  const Index n = a.rows.size(), m = b.rows.size();
  if (n == 0) return b;
  if (m == 0) return a;
  Tensor<Index, B> rows(Shape{n + m});
  B::copy(rows.data(), a.rows.data(), n);
  B::copy(rows.data() + n, b.rows.data(), m);
  Tensor<T, B> values(a.values.shape().with(0, n + m));
  B::copy(values.data(), a.values.data(), a.values.size());
  B::copy(values.data() + a.values.size(), b.values.data(), b.values.size());
  const RowGroups<B> groups = group_rows(rows, a.count);
  Tensor<T, B> sums(a.values.shape().with(0, groups.rows.size()));
  detail::sum_groups<T>(groups, nullptr, values.data(), 1, a.values.size() / n, sums.data(), false);
  return {groups.rows, sums, a.count};
}

}  // namespace infty
