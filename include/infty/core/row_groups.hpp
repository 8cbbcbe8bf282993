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

/// Sorts a list of rows, of any shape and of m entries, into groups of equal ones, in m log m
/// steps. The host waits once, for the number of groups.
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
    for (Index i = begin[u]; i < begin[u + 1]; ++i) {
      const T* const row = from + places[i] / share * width;
      const T weight = weights ? weights[places[i]] : T(1);
      for (Index j = 0; j < width; ++j) out[j] += weight * row[j];
    }
  });
}

}  // namespace detail

}  // namespace infty
