// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/row_groups.hpp>
#include <infty/core/tensor.hpp>
#include <infty/core/verify.hpp>

namespace infty {

/// A gradient of a table that is zero but for a few rows, of which it holds those alone.
template <class T, class Backend>
struct RowGradient {
  Tensor<Index, Backend> rows;  ///< [n], rising, each once
  Tensor<T, Backend> values;    ///< [n, ...], the gradient of each of these rows
  Index count = 0;              ///< rows of the table, all that are not listed zero

  /// Whether it is one of a table of this shape.
  bool fits(const Shape& table) const {
    return table.rank() >= 1 && table[0] == count && values.shape().rank() == table.rank() &&
           values.dim(0) == rows.size() && values.shape().with(0, count) == table;
  }

  /// Adds the rows to those of a table that it `fits`.
  void add_to(T* table) const {
    const Index n = rows.size();
    if (n > 0)
      Backend::scatter_add_rows(n, values.size() / n, values.data(), rows.data(), count, table);
  }
};

namespace detail {

/// Whether row i of a list lies in no table of `count` rows, or not behind the row before it.
struct IsNoNextRow {
  const Index* list;
  Index count;

  INFTY_HOST_DEVICE bool operator()(Index i) const {
    return list[i] < 0 || list[i] >= count || (i > 0 && list[i - 1] >= list[i]);
  }
};

/// @throws infty::ShapeError unless there is a row of values for each that is listed;
/// infty::ValueError unless the rows rise in [0, count)
template <class T, class B>
void require_rows_of_table(const char* op, const RowGradient<T, B>& gradient) {
  const Shape &rows = gradient.rows.shape(), &values = gradient.values.shape();
  require<ShapeError>(rows.rank() == 1 && values.rank() >= 1 && values[0] == rows[0], op,
                      "the rows are ", rows, ", their values ", values,
                      ": they must be [n] and [n, ...]");
  // The answer is waited for: what lies elsewhere would be written to.
  const Index wrong =
      B::reduce(rows[0], Index{-1}, Larger{},
                PlaceOf<IsNoNextRow>{{std::as_const(gradient.rows).data(), gradient.count}});
  if (wrong >= 0)
    raise<ValueError>(op, "row ", gradient.rows.slice(wrong, wrong + 1).item(), " at place ", wrong,
                      ": rows must rise in [0, ", gradient.count, ')');
}

}  // namespace detail

namespace detail {

/// The sum of some gradients of one table, in their order: the rows of all, those in several
/// summed.
template <class T, class B>
RowGradient<T, B> join_row_gradients(const PoolVector<const RowGradient<T, B>*>& parts) {
  const RowGradient<T, B>& first = *parts.front();
  Index n = 0, size = 0;
  for (const auto* const part : parts) n += part->rows.size(), size += part->values.size();
  if (n == 0) return first;
  Tensor<Index, B> rows(Shape{n});
  Tensor<T, B> values(first.values.shape().with(0, n));
  Index at = 0, value_at = 0;
  for (const auto* const part : parts) {
    B::copy(rows.data() + at, part->rows.data(), part->rows.size());
    B::copy(values.data() + value_at, part->values.data(), part->values.size());
    at += part->rows.size();
    value_at += part->values.size();
  }
  const RowGroups<B> groups = group_rows(rows, first.count);
  Tensor<T, B> sums(first.values.shape().with(0, groups.rows.size()));
  sum_groups<T>(groups, nullptr, values.data(), 1, size / n, sums.data(), false);
  return {groups.rows, sums, first.count};
}

}  // namespace detail

/// The sum of two gradients of one table: the rows of both, those in both summed.
template <class T, class B>
RowGradient<T, B> join_rows(const RowGradient<T, B>& a, const RowGradient<T, B>& b) {
  if (a.rows.size() == 0) return b;
  if (b.rows.size() == 0) return a;
  return detail::join_row_gradients<T, B>({&a, &b});
}

}  // namespace infty
