// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>

#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// A list of rows by the rows that are in it: what is needed to sum over equal ones, each sum in
/// one thread, in the order of the list. Its size is the list's, whatever the table's.
template <class Backend>
struct RowGroups {
  Tensor<Index, Backend> rows;    ///< [n], the rows that occur, rising, each once
  Tensor<Index, Backend> begin;   ///< [n + 1], where the places of each row begin in `places`
  Tensor<Index, Backend> places;  ///< [m], places in the list, by row, rising within a row
};

namespace detail {

/// `group_rows` by counting, in m + count steps, one after the other: for backends of few threads,
/// and tables that are not much longer than the list.
template <class B>
RowGroups<B> group_rows_by_counting(const Tensor<Index, B>& list, Index count) {
  const Index m = list.size();
  const Index* const row_of = list.data();
  // How many places each row has, then where its next one goes; and how many rows occur.
  Tensor<Index, B> counts(Shape{count + 1});
  Index* const next = counts.data();
  const auto row_at = [=] INFTY_HOST_DEVICE(Index i) {
    return row_of[i] >= 0 && row_of[i] < count ? row_of[i] : Index{0};
  };
  B::for_each(1, [=] INFTY_HOST_DEVICE(Index) {
    for (Index row = 0; row <= count; ++row) next[row] = 0;
    for (Index i = 0; i < m; ++i) ++next[row_at(i)];
    Index n = 0;
    for (Index row = 0; row < count; ++row) n += next[row] > 0 ? 1 : 0;
    next[count] = n;
  });
  const Index n = counts.slice(count, count + 1).item();
  RowGroups<B> groups{Tensor<Index, B>(Shape{n}), Tensor<Index, B>(Shape{n + 1}),
                      Tensor<Index, B>(Shape{m})};
  Index *const rows = groups.rows.data(), *const begin = groups.begin.data();
  Index* const places = groups.places.data();
  B::for_each(1, [=] INFTY_HOST_DEVICE(Index) {
    Index before = 0, group = 0;
    for (Index row = 0; row < count; ++row) {
      const Index of_row = next[row];
      next[row] = before;
      if (of_row == 0) continue;
      rows[group] = row;
      begin[group++] = before;
      before += of_row;
    }
    begin[n] = m;
    for (Index i = 0; i < m; ++i) places[next[row_at(i)]++] = i;
  });
  return groups;
}

}  // namespace detail

/// Sorts a list of rows, of any shape and of m entries, into groups of equal ones, in m log m
/// steps, or in m + count where that is less. The host waits once, for the number of groups.
/// @param list   rows in [0, count); what is not counts as row 0
/// @param count  rows of the table
/// @throws infty::ValueError if count times m, rounded up to a power of two, is more than 2^62
template <class B>
RowGroups<B> group_rows(const Tensor<Index, B>& list, Index count) {
  const Index m = list.size();
  if (m == 0)
    return {Tensor<Index, B>(Shape{0}), Tensor<Index, B>::zeros({1}), Tensor<Index, B>(Shape{0})};
  // Row and place in one number, which sorts by both.
  const int shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(m - 1)));
  require(count >= 1 && count <= (Index{1} << 62) >> shift, "group_rows", "the table has ", count,
          " rows, the list ", m, " entries: their product must be at most 2^62");
  if constexpr (!detail::many_threads<B>)
    if (count <= 4 * m) return detail::group_rows_by_counting(list, count);
  Tensor<Index, B> sorted(Shape{m}), runs(Shape{m});
  Index *const key = sorted.data(), *const run = runs.data();
  const Index* const row_of = list.data();
  B::for_each(m, [=] INFTY_HOST_DEVICE(Index i) {
    const Index row = row_of[i];
    key[i] = ((row >= 0 && row < count ? row : Index{0}) << shift) | i;
  });
  B::sort(key, m);
  B::for_each(m, [=] INFTY_HOST_DEVICE(Index i) {
    run[i] = i == 0 || key[i] >> shift != key[i - 1] >> shift ? 1 : 0;
  });
  B::inclusive_scan(run, run, m);
  const Index n = runs.slice(m - 1, m).item();
  RowGroups<B> groups{Tensor<Index, B>(Shape{n}), Tensor<Index, B>(Shape{n + 1}),
                      Tensor<Index, B>(Shape{m})};
  Index *const rows = groups.rows.data(), *const begin = groups.begin.data();
  Index* const places = groups.places.data();
  B::for_each(m, [=] INFTY_HOST_DEVICE(Index i) {
    places[i] = key[i] & ((Index{1} << shift) - 1);
    if (i == 0 || run[i] != run[i - 1]) {
      rows[run[i] - 1] = key[i] >> shift;
      begin[run[i] - 1] = i;
    }
    if (i == m - 1) begin[n] = m;
  });
  return groups;
}

namespace detail {

/// What every group sums up to, in order: group u becomes, or with `in_table` is added to, a row.
///
///     to[in_table ? rows[u] : u, :] (+)= sum over the places p of group u of
///                                        weights[p] from[p / share, :]
///
/// @param weights  [m], or null for ones
/// @param from     [m / share, width], of which `share` entries of the list share a row
template <class T, class B>
void sum_groups(const RowGroups<B>& groups, const T* weights, const T* from, Index share,
                Index width, T* to, bool in_table) {
  const Index n = groups.rows.size(), m = groups.places.size();
  if (n == 0) return;
  const Index *const rows = groups.rows.data(), *const begin = groups.begin.data();
  const Index* const places = groups.places.data();
  if (many_threads<B>) {
    for_each_element<B>(n, width, [=] INFTY_HOST_DEVICE(Index u, Index j) {
      T* const out = to + (in_table ? rows[u] : u) * width + j;
      T sum = in_table ? *out : T(0);
      for (Index i = begin[u]; i < begin[u + 1]; ++i)
        sum += (weights ? weights[places[i]] : T(1)) * from[places[i] / share * width + j];
      *out = sum;
    });
    return;
  }
  B::for_each_row(n, (m / n + 1) * width, [=] INFTY_HOST_DEVICE(Index u) {
    T* const out = to + (in_table ? rows[u] : u) * width;
    if (!in_table)
      for (Index j = 0; j < width; ++j) out[j] = T(0);
    const auto row_of = [=](Index i) { return from + places[i] / share * width; };
    const auto weight_of = [=](Index i) { return weights ? weights[places[i]] : T(1); };
    // Four together, in order: a sum is read and written once for all of them.
    Index i = begin[u];
    for (; i + 4 <= begin[u + 1]; i += 4) {
      const T *const a = row_of(i), *const b = row_of(i + 1), *const c = row_of(i + 2),
                     *const d = row_of(i + 3);
      const T wa = weight_of(i), wb = weight_of(i + 1), wc = weight_of(i + 2),
              wd = weight_of(i + 3);
      for (Index j = 0; j < width; ++j) {
        T sum = out[j];
        sum += wa * a[j];
        sum += wb * b[j];
        sum += wc * c[j];
        sum += wd * d[j];
        out[j] = sum;
      }
    }
    for (; i < begin[u + 1]; ++i) {
      const T* const row = row_of(i);
      const T weight = weight_of(i);
      for (Index j = 0; j < width; ++j) out[j] += weight * row[j];
    }
  });
}

}  // namespace detail

}  // namespace infty
