// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>

#include <infty/core/kernel/attention.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/gemm.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/scratch.hpp>

// Attention query by query, with keys and values where they stand: they are read once and little
// else is done, in full whatever products are made of.
namespace infty::detail {

/// As `FusedAttention::forward`.
template <class T>
void attend_few(const AttentionSize& s, const AttentionInputs<T>& in, T* y, T* log_sum) {
  const Index e = s.model(), D = s.head_dim;
  using Row = Eigen::Map<Eigen::Matrix<T, 1, Eigen::Dynamic>>;
  using Column = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>;
  const T factor = T(1) / std::sqrt(static_cast<T>(D));
  parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
    Scratch<T> scratch(2 * s.keys + 2 * D);
    T *const p = scratch.data(), *const distant = p + s.keys, *const qu = distant + s.keys,
             *const qw = qu + D;
    for (Index job = begin; job < end; ++job) {
      const Index head = job % s.heads, row = job / s.heads, first = in.first_key(s, row);
      for (Index i = 0; i < s.queries; ++i) {
        const Index at = (row * s.queries + i) * e + head * D, n = in.end_key(s, row, i) - first;
        for (Index d = 0; d < D; ++d) {
          qu[d] = (in.q[at + d] + in.u[head * D + d]) * factor;
          qw[d] = (in.q[at + d] + in.w[head * D + d]) * factor;
        }
        const auto rows = [&](const T* x, Index begin_row) {
          return ConstStrided<T>(x + begin_row * e + head * D, n, D, Eigen::OuterStride<>(e));
        };
        Column(p, n).noalias() = rows(in.k, row * s.keys + first) * Column(qu, D);
        Column(distant, n).noalias() = rows(in.r, s.queries - 1 - i + first) * Column(qw, D);
        for (Index j = 0; j < n; ++j) p[j] += distant[j];
        const T top = row_max<T>(n, [=](Index j) { return p[j]; });
        for (Index j = 0; j < n; ++j) p[j] = math::exp_of_share(p[j] - top);
        const T sum = row_sum<T>(n, [=](Index j) { return p[j]; });
        Row(y + at, D).noalias() = Row(p, n) * rows(in.v, row * s.keys + first);
        Row(y + at, D) /= sum;
        log_sum[(row * s.queries + i) * s.heads + head] = top + std::log(sum);
      }
    }
  });
}

/// As `FusedPlainAttention::forward`.
template <class Size, class Inputs, class T>
void attend_few_plainly(const Size& s, const Inputs& in, T* y, T* log_sum) {
  const Index e = s.model(), D = s.head_dim;
  using Row = Eigen::Map<Eigen::Matrix<T, 1, Eigen::Dynamic>>;
  using Column = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>>;
  parallel_for(s.batch * s.heads, 1, [&](Index begin, Index end) {
    Scratch<T> scratch(s.keys + D);
    T *const p = scratch.data(), *const query = p + s.keys;
    for (Index job = begin; job < end; ++job) {
      const Index head = job % s.heads, row = job / s.heads, first = in.first_key(s, row);
      for (Index i = 0; i < s.queries; ++i) {
        const Index at = (row * s.queries + i) * e + head * D, n = in.end_key(s, i) - first;
        T& log_of_sum = log_sum[(row * s.queries + i) * s.heads + head];
        if (n <= 0) {
          std::fill_n(y + at, D, T(0));
          log_of_sum = -math::infinity<T>;
          continue;
        }
        for (Index d = 0; d < D; ++d) query[d] = in.q[at + d] * in.scale;
        const auto rows = [&](const T* x) {
          return ConstStrided<T>(x + (row * s.keys + first) * e + head * D, n, D,
                                 Eigen::OuterStride<>(e));
        };
        Column(p, n).noalias() = rows(in.k) * Column(query, D);
        const T top = row_max<T>(n, [=](Index j) { return p[j]; });
        for (Index j = 0; j < n; ++j) p[j] = math::exp_of_share(p[j] - top);
        const T sum = row_sum<T>(n, [=](Index j) { return p[j]; });
        Row(y + at, D).noalias() = Row(p, n) * rows(in.v);
        Row(y + at, D) /= sum;
        log_of_sum = top + std::log(sum);
      }
    }
  });
}

}  // namespace infty::detail
