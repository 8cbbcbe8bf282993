// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <thrust/sort.h>

#include <infty/core/config.hpp>
#include <infty/core/tensor.hpp>
#include <infty/thrust/system.hpp>
#include <infty/thrust/tile.hpp>

namespace infty::detail {

/// The composition that defines `scatter_add_rows`: a thread a column goes through all rows.
template <class B>
struct ComposedScatter {
  /// to (count, width) gains from (n, width): to[rows[i], :] += from[i, :], equal rows in the order
  /// of i; rows not in [0, count) are left out.
  template <class T>
  static void add(Index n, Index width, const T* from, const Index* rows, Index count, T* to) {
    B::for_each_row(width, n, [=] INFTY_HOST_DEVICE(Index j) {
      for (Index i = 0; i < n; ++i)
        if (rows[i] >= 0 && rows[i] < count) to[rows[i] * width + j] += from[i * width + j];
    });
  }
};

/// One place of the sorted rows a block. That of the first of equal rows adds all of them.
template <class T>
struct AddRuns {
  static constexpr int threads = 128;

  Index n, width, count;
  const Index *sorted, *place;  ///< [n], rows in rising order, and where each of them stood
  const T* from;
  T* to;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index begin = block.index(), row = sorted[begin];
    if (row < 0 || row >= count || (begin > 0 && sorted[begin - 1] == row)) return;
    Index end = begin + 1, last = n;  // the end of the run lies in [end, last]
    while (end < last) {
      const Index middle = end + (last - end) / 2;
      if (sorted[middle] == row)
        end = middle + 1;
      else
        last = middle;
    }
    block.each(width, [&](Index j) {
      T sum = to[row * width + j];
      for (Index i = begin; i < end; ++i) sum += from[place[i] * width + j];
      to[row * width + j] = sum;
    });
  }
};

/// `ComposedScatter` by a stable sort, so that equal rows stand in a run, in the order of i: no
/// atomics, and the composition's sums bit for bit.
template <class System>
struct TiledScatter {
  template <class T>
  static void add(Index n, Index width, const T* from, const Index* rows, Index count, T* to) {
    using B = ThrustBackend<System>;
    if (n == 0 || width == 0) return;
    Tensor<Index, B> sorted(Shape{n}), place(Shape{n});
    Index *const keys = sorted.data(), *const at = place.data();
    B::copy(keys, rows, n);
    B::for_each(n, [=] INFTY_HOST_DEVICE(Index i) { at[i] = i; });
    sort_by_key(n, keys, at);
    launch<System>(n, AddRuns<T>{n, width, count, keys, at, from, to});
  }

 private:
  static void sort_by_key(Index n, Index* keys, Index* values) {
    using Device = ThrustSystem<System>;
    Device::run("scatter_add_rows",
                [&] { thrust::stable_sort_by_key(Device::policy(), keys, keys + n, values); });
  }
};

}  // namespace infty::detail
