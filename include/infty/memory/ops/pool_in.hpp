// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <infty/autograd/tape.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/state.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// Counts of rows side by side where kernels read them, [lists, batch].
template <class B>
Tensor<Index, B> counts_for_kernels(std::initializer_list<const RowCounts*> lists) {
  RowCounts all;
  for (const RowCounts* const counts : lists) all.insert(all.end(), counts->begin(), counts->end());
  const auto n = static_cast<Index>(lists.size());
  return Tensor<Index, B>::from(Shape{n, static_cast<Index>(all.size()) / n}, all.data());
}

/// Adds vectors to the means that wait for their block to be full, one behind the other and in
/// double, so that the same vectors give the same means however they are cut, and the millionth of
/// a mean counts as the first. No gradient flows to the old means of a row that takes vectors in;
/// to those of a row that takes none all of it does.
/// @param means  [batch, P, d], sums over the rate; what stands behind `held` is of any value
/// @param sum    [batch, d], of the vectors of the mean that is not full; replaced by the new one
/// @param held   [batch], vectors in them
/// @param rate   [batch], m, vectors of a mean
/// @param x      [batch, L, d]; row b gives x[from_b, from_b + take_b)
/// @return       [batch, P, d]
template <class T, class B>
Variable<T, B> pool_in(const Variable<T, B>& means, Tensor<double, B>& sum, const RowCounts& held,
                       const RowCounts& rate, const Variable<T, B>& x, const RowCounts& from,
                       const RowCounts& take) {
  const Index batch = means.dim(0), P = means.dim(1), d = means.dim(2), L = x.dim(1);
  const auto counts = counts_for_kernels<B>({&held, &rate, &from, &take});
  const Index* const n = counts.data();
  Variable<T, B> y(means.value().clone());
  auto sums = sum.clone();
  T* const to = y.value().data();
  double* const kept = sums.data();
  const T* const in = x.value().data();
  for_each_element<B>(batch, d, [=] INFTY_HOST_DEVICE(Index row, Index j) {
    const Index before = n[row], m = n[batch + row], first = n[2 * batch + row],
                count = n[3 * batch + row];
    if (count == 0) return;
    const double share = 1 / static_cast<double>(m);
    double total = kept[row * d + j];
    Index entry = before / m, left = m - before % m;  // vectors that the entry lacks
    for (Index i = 0; i < count; ++i) {
      if (left == m) total = 0;
      total += static_cast<double>(in[(row * L + first + i) * d + j]);
      if (--left > 0 && i + 1 < count) continue;
      to[(row * P + entry) * d + j] = static_cast<T>(share * total);
      if (left > 0) continue;
      ++entry;
      left = m;
    }
    kept[row * d + j] = total;
  });
  sum = std::move(sums);
  const bool all_take = std::all_of(take.begin(), take.end(), [](Index some) { return some > 0; });
  const Variable<T, B> old = all_take ? Variable<T, B>() : means;
  return record(
      y,
      [x = Unread(x), old = Unread(old), counts, batch, P, d, L](const Tensor<T, B>& dy) {
        const Index* const of = counts.data();
        const T* const dm = dy.data();
        if (old.requires_grad()) {
          T* const through = old.grad().data();
          B::for_each_row(batch, P * d, [=] INFTY_HOST_DEVICE(Index row) {
            if (of[3 * batch + row] > 0) return;
            for (Index i = row * P * d; i < (row + 1) * P * d; ++i) through[i] += dm[i];
          });
        }
        if (!x.requires_grad()) return;
        T* const dx = x.grad().data();
        for_each_element<B>(batch, d, [=] INFTY_HOST_DEVICE(Index row, Index j) {
          const Index before = of[row], m = of[batch + row], first = of[2 * batch + row],
                      count = of[3 * batch + row];
          const T share = T(1) / static_cast<T>(m);
          for (Index i = 0, entry = before / m, left = m - before % m; i < count; ++i) {
            dx[(row * L + first + i) * d + j] += share * dm[(row * P + entry) * d + j];
            if (--left > 0) continue;
            ++entry;
            left = m;
          }
        });
      },
      Unread(x), Unread(old));
}

/// The block of P vectors that means stand for before it is full: each mean over as many places as
/// the others, and one that ends short over what it has. Of a full block these are the means.
/// @return  [batch, P, d]; zeros where nothing is held
template <class T, class B>
Variable<T, B> spread_means(const Variable<T, B>& means, const RowCounts& held,
                            const RowCounts& rate) {
  const Index batch = means.dim(0), P = means.dim(1), d = means.dim(2);
  const auto counts = counts_for_kernels<B>({&held, &rate});
  const Index* const n = counts.data();
  Variable<T, B> y(Tensor<T, B>(Shape{batch, P, d}));
  T* const to = y.value().data();
  const T* const from = means.value().data();
  B::for_each_row(batch * P, d, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / P, count = n[row], m = n[batch + row];
    const Index entries = (count + m - 1) / m, entry = at % P * entries / P,
                rest = entry + 1 == entries ? count - entry * m : m;
    const T whole = count == 0 ? T(0) : static_cast<T>(m) / static_cast<T>(rest);
    const T* const mean = from + (row * P + entry) * d;
    for (Index j = 0; j < d; ++j) to[at * d + j] = count == 0 ? T(0) : mean[j] * whole;
  });
  return record(
      y,
      [means = Unread(means), counts, batch, P, d](const Tensor<T, B>& dy) {
        const Index* const of = counts.data();
        T* const dx = means.grad().data();
        const T* const dm = dy.data();
        B::for_each_row(batch * P, d, [=] INFTY_HOST_DEVICE(Index at) {
          const Index row = at / P, entry = at % P, count = of[row], m = of[batch + row];
          const Index entries = (count + m - 1) / m;
          if (entry >= entries) return;
          const Index rest = entry + 1 == entries ? count - entry * m : m;
          const T whole = static_cast<T>(m) / static_cast<T>(rest);
          // The places p with p entries / P == entry, rounded down.
          const Index begin = (entry * P + entries - 1) / entries,
                      end = ((entry + 1) * P + entries - 1) / entries;
          for (Index place = begin; place < end; ++place)
            for (Index j = 0; j < d; ++j) dx[at * d + j] += whole * dm[(row * P + place) * d + j];
        });
      },
      Unread(means));
}

/// The means that wait, each over the vectors that it has, at the last places of a block, where
/// attention looks for what rows have in different numbers.
/// @return  [batch, P, d]; zeros in front of them
template <class T, class B>
Variable<T, B> last_means(const Variable<T, B>& means, const RowCounts& held,
                          const RowCounts& rate) {
  const Index batch = means.dim(0), P = means.dim(1), d = means.dim(2);
  const auto counts = counts_for_kernels<B>({&held, &rate});
  const Index* const n = counts.data();
  Variable<T, B> y(Tensor<T, B>(Shape{batch, P, d}));
  T* const to = y.value().data();
  const T* const from = means.value().data();
  // Mean `entry` of a row stands at place P - entries + entry.
  B::for_each_row(batch * P, d, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / P, count = n[row], m = n[batch + row];
    const Index entries = (count + m - 1) / m, entry = at % P - (P - entries);
    const Index rest = entry + 1 == entries ? count - entry * m : m;
    const T whole = entry < 0 ? T(0) : static_cast<T>(m) / static_cast<T>(rest);
    const T* const mean = from + (row * P + (entry < 0 ? 0 : entry)) * d;
    for (Index j = 0; j < d; ++j) to[at * d + j] = entry < 0 ? T(0) : mean[j] * whole;
  });
  return record(
      y,
      [means = Unread(means), counts, batch, P, d](const Tensor<T, B>& dy) {
        const Index* const of = counts.data();
        T* const dx = means.grad().data();
        const T* const dm = dy.data();
        B::for_each_row(batch * P, d, [=] INFTY_HOST_DEVICE(Index at) {
          const Index row = at / P, entry = at % P, count = of[row], m = of[batch + row];
          const Index entries = (count + m - 1) / m;
          if (entry >= entries) return;
          const Index rest = entry + 1 == entries ? count - entry * m : m;
          const T whole = static_cast<T>(m) / static_cast<T>(rest);
          const T* const given = dm + (row * P + P - entries + entry) * d;
          for (Index j = 0; j < d; ++j) dx[at * d + j] += whole * given[j];
        });
      },
      Unread(means));
}

}  // namespace infty::detail
