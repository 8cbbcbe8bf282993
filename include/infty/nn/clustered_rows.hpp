// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/pool.hpp>
#include <infty/nn/adaptive_config.hpp>

namespace infty::detail {

/// Lists of rows, one a cluster that has any.
template <class B>
using RowLists = PoolVector<Tensor<Index, B>>;

/// Rows sorted by the cluster of their token.
template <class B>
struct ClusteredRows {
  Tensor<Index, B> row, token;  ///< [rows]; tokens count from the first of their cluster
  std::array<Index, most_clusters + 1> begin{};  ///< where the rows of each cluster begin

  Index size(Index cluster) const { return at(cluster + 1) - at(cluster); }
  Tensor<Index, B> rows(Index cluster) const { return row.slice(at(cluster), at(cluster + 1)); }
  Tensor<Index, B> tokens(Index cluster) const { return token.slice(at(cluster), at(cluster + 1)); }

 private:
  Index at(Index cluster) const { return begin[static_cast<std::size_t>(cluster)]; }
};

/// Whether clusters are computed for all rows, those of others as zeros, so that the host need not
/// know how many rows a cluster has: where it would have to wait for a queue, as a backend says by
/// a `verify` of its own. Such a backend leaves rows out that are not in a table.
template <class B>
concept ComputesAllRows =
    requires(bool (*bad)(Index), void (*report)(Index)) { B::verify(Index{}, bad, report); };

/// Tokens of one cluster, counted from its first, and `other` for those of others; of the shape of
/// `tokens`.
template <class B>
Tensor<Index, B> tokens_in_cluster(const ClusterBounds& bounds, const Tensor<Index, B>& tokens,
                                   Index cluster, Index other) {
  Tensor<Index, B> out(tokens.shape());
  const Index* const from = tokens.data();
  Index* const to = out.data();
  const Index begin = bounds.bound[cluster], end = bounds.bound[cluster + 1];
  B::for_each(tokens.size(), [=] INFTY_HOST_DEVICE(Index i) {
    to[i] = from[i] >= begin && from[i] < end ? from[i] - begin : other;
  });
  return out;
}

/// Finds which rows hold tokens of which cluster, in their order; rows whose token lies in none are
/// left out. The host waits once, for the numbers of rows.
template <class B>
ClusteredRows<B> clustered_rows(const ClusterBounds& bounds, const Tensor<Index, B>& tokens) {
  const Index n = tokens.size(), clusters = bounds.clusters;
  ClusteredRows<B> out{Tensor<Index, B>(Shape{n}), Tensor<Index, B>(Shape{n}), {}};
  if (n == 0) return out;
  Tensor<Index, B> flags(Shape{clusters, n}), places(flags.shape()), last(Shape{clusters});
  const Index* const id = tokens.data();
  Index *const flag = flags.data(), *const place = places.data(), *const end = last.data();
  B::for_each(clusters * n, [=] INFTY_HOST_DEVICE(Index i) {
    flag[i] = Index{bounds.cluster_of(id[i % n]) == i / n};
  });
  B::inclusive_scan(place, flag, clusters * n);
  Index *const row = out.row.data(), *const token = out.token.data();
  B::for_each(clusters * n, [=] INFTY_HOST_DEVICE(Index i) {
    if (!flag[i]) return;
    row[place[i] - 1] = i % n;
    token[place[i] - 1] = id[i % n] - bounds.bound[i / n];
  });
  B::for_each(clusters, [=] INFTY_HOST_DEVICE(Index i) { end[i] = place[i * n + n - 1]; });
  B::to_host(out.begin.data() + 1, end, clusters);
  return out;
}

/// Variables that an operation takes, where their number is not known beforehand.
template <class T, class B>
using Variables = PoolVector<Variable<T, B>>;

/// [n, d] of parts [k, d] whose vectors stand at rows [k] of it, zeros elsewhere. No row may come
/// twice.
template <class T, class B>
Variable<T, B> spread(Index n, Index d, const RowLists<B>& rows, const Variables<T, B>& parts) {
  Variable<T, B> y(Tensor<T, B>::zeros(Shape{n, d}));
  for (std::size_t i = 0; i < parts.size(); ++i)
    B::scatter_add_rows(rows[i].size(), d, parts[i].value().data(), rows[i].data(), n,
                        y.value().data());
  return record(
      y,
      [rows, parts, n, d](const Tensor<T, B>& dy) {
        for (std::size_t i = 0; i < parts.size(); ++i) {
          if (!parts[i].requires_grad()) continue;
          Tensor<T, B> there(parts[i].shape());
          B::gather_rows(rows[i].size(), d, dy.data(), rows[i].data(), n, there.data());
          add_to_grad(parts[i], there);
        }
      },
      parts);
}

}  // namespace infty::detail
