// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/row.hpp>
#include <infty/core/row_groups.hpp>
#include <infty/core/verify.hpp>

namespace infty {

namespace detail {

/// Has n numbers brought into a CPU's caches, from wherever they are; nothing elsewhere.
template <class T>
INFTY_HOST_DEVICE void ask_for([[maybe_unused]] const T* x, [[maybe_unused]] Index n) {
#if defined(__GNUC__) && !defined(__CUDACC__)
  for (Index i = 0; i < n; i += 64 / static_cast<Index>(sizeof(T))) __builtin_prefetch(x + i);
#endif
}

/// y[i, :] = sum over j of weights[i, j] table[list[i, j], :], for i < n, j < m, of a table's
/// `count` rows of numbers as they are stored; added to y if `add`. Where many threads are, a row
/// that is not there, of which a check has yet to be read, is one of zeros.
template <class B, class T, class Stored>
void sum_weighted_rows(Index n, Index m, Index width, Index count, const T* weights,
                       const Index* list, const Stored* table, T* y, bool add = false) {
  if (many_threads<B>) {
    for_each_element<B>(n, width, [=] INFTY_HOST_DEVICE(Index i, Index column) {
      T sum = add ? y[i * width + column] : T(0);
      for (Index j = i * m; j < (i + 1) * m; ++j)
        if (list[j] >= 0 && list[j] < count)
          sum += weights[j] * static_cast<T>(table[list[j] * width + column]);
      y[i * width + column] = sum;
    });
    return;
  }
  B::for_each_row(n, (m + 1) * width, [=] INFTY_HOST_DEVICE(Index i) {
    T* const out = y + i * width;
    if (!add)
      for (Index column = 0; column < width; ++column) out[column] = T(0);
    // Four rows together, in order: a sum is read and written once for all of them, while the next
    // four, which lie anywhere, are on their way.
    Index j = i * m;
    const Index end = j + m;
    for (; j + 4 <= end; j += 4) {
      for (Index next = j + 4; next < j + 8 && next < n * m; ++next)
        ask_for(table + list[next] * width, width);
      const Stored *const a = table + list[j] * width, *const b = table + list[j + 1] * width,
                          *const c = table + list[j + 2] * width,
                          *const d = table + list[j + 3] * width;
      const T wa = weights[j], wb = weights[j + 1], wc = weights[j + 2], wd = weights[j + 3];
      for (Index column = 0; column < width; ++column) {
        T sum = out[column];
        sum += wa * static_cast<T>(a[column]);
        sum += wb * static_cast<T>(b[column]);
        sum += wc * static_cast<T>(c[column]);
        sum += wd * static_cast<T>(d[column]);
        out[column] = sum;
      }
    }
    for (; j < end; ++j) {
      const T weight = weights[j];
      const Stored* const row = table + list[j] * width;
      for (Index column = 0; column < width; ++column)
        out[column] += weight * static_cast<T>(row[column]);
    }
  });
}

/// Adds the gradient of the rows that were read, sum of weights times dy, to the table's: by rows
/// if it keeps it so. No other row is touched, and what it costs is the list's size.
/// @param list     rows of the table, m entries   @param weights  [m], or null for ones
/// @param from     [m / share, width]
template <class T, class B>
void add_rows_to_grad(const Variable<T, B>& table, const Tensor<Index, B>& list, const T* weights,
                      const T* from, Index share) {
  const Index count = table.dim(0), width = table.size() / (count > 0 ? count : 1);
  const RowGroups<B> groups = group_rows(list, count);
  const Index n = groups.rows.size();
  if (table.grad_by_rows()) {
    Tensor<T, B> sums(table.shape().with(0, n));
    sum_groups(groups, weights, from, share, width, sums.data(), false);
    table.add_sound_row_grad({groups.rows, std::move(sums), count});
  } else {
    sum_groups(groups, weights, from, share, width, table.grad().data(), true);
  }
}

}  // namespace detail

/// Sums of a few rows of a table: y = Σ_j weights[..., j] table[rows[..., j], :], as
/// torch.nn.functional.embedding_bag with `per_sample_weights`. The gradient of the table touches
/// the rows that were read and no others; where the table keeps it by rows
/// (`Variable::grad_by_rows`), its cost and memory do not depend on the table's size.
/// @param weights, rows  [..., m]   @param table  [count, width]   @return [..., width]
/// @throws infty::ShapeError; infty::ValueError for a row outside [0, count)
template <class T, class B>
Variable<T, B> weighted_rows(const Variable<T, B>& weights, const Tensor<Index, B>& rows,
                             const Variable<T, B>& table) {
  require<ShapeError>(
      weights.shape().rank() >= 1 && weights.shape() == rows.shape() && table.shape().rank() == 2,
      "weighted_rows", "weights are ", weights.shape(), ", rows ", rows.shape(), ", the table is ",
      table.shape(), ": they must be [..., m] both, and [count, width]");
  const Index m = rows.dim(-1), n = rows.shape().size(0, rows.rank() - 1);
  const Index count = table.dim(0), width = table.dim(1);
  const Index* const list = rows.data();
  detail::verify<B>(
      rows.size(), [=] INFTY_HOST_DEVICE(Index i) { return list[i] < 0 || list[i] >= count; },
      [rows, count](Index wrong) {
        raise<ValueError>("weighted_rows", "row ",
                          rows.reshape(Shape{rows.size()}).slice(wrong, wrong + 1).item(),
                          " at place ", wrong, ": rows must lie in [0, ", count, ")");
      });
  Variable<T, B> y(Tensor<T, B>(rows.shape().with(-1, width)));
  const auto sum_rows_of = [&](const auto& numbers) {
    detail::sum_weighted_rows<B>(n, m, width, count, weights.value().data(), list, numbers.data(),
                                 y.value().data());
  };
  if (const auto* const stored = table.stored_in_bfloat16())
    sum_rows_of(*stored);
  else
    sum_rows_of(table.value());
  return record(
      y,
      [weights, rows, table, n, m, width, count](const Tensor<T, B>& dy) {
        const T* const d = dy.data();
        if (weights.requires_grad()) {
          const GradTarget<T> target = weights.grad_target();
          const Index* const known = rows.data();
          const T* const from = table.value().data();
          T* const to = target.data;
          const bool add = target.add;
          B::for_each_row(n * m, width, [=] INFTY_HOST_DEVICE(Index i) {
            if (i + 4 < n * m) detail::ask_for(from + known[i + 4] * width, width);
            const bool there = known[i] >= 0 && known[i] < count;
            const T *const a = d + i / m * width, *const b = from + (there ? known[i] : 0) * width;
            const T dot =
                there ? detail::row_sum<T>(width, [=](Index j) { return a[j] * b[j]; }) : T(0);
            to[i] = add ? to[i] + dot : dot;
          });
        }
        if (table.requires_grad() && m > 0)
          detail::add_rows_to_grad(table, rows, weights.value().data(), d, m);
      },
      weights, table, rows);
}

}  // namespace infty
