// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/autograd/linear.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/math.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/adaptive_config.hpp>
#include <infty/nn/clustered_rows.hpp>
#include <infty/nn/cross_entropy.hpp>

namespace infty::detail {

/// The logarithm of each row's sum of exp(x), [rows, n] -> [rows], by the kernel of token losses.
template <class T, class B>
Tensor<T, B> log_sums(const Tensor<T, B>& x) {
  const Index rows = x.dim(0);
  const auto none = Tensor<Index, B>::full(Shape{rows}, ignore_index);
  Tensor<T, B> sums(Shape{rows}), losses(Shape{rows});
  chosen_t<ComposedTokenLosses<B>>::forward(
      TokenLossInputs<T>{rows, x.dim(1), x.data(), none.data(), ignore_index}, sums.data(),
      losses.data());
  return sums;
}

/// Targets in the first cluster as they are, for others the place of their cluster in the head:
/// behind the first cluster's tokens, the last cluster first. What is ignored becomes
/// `ignore_index`.
template <class B>
Tensor<Index, B> head_targets(const ClusterBounds& bounds, const Tensor<Index, B>& targets,
                              Index ignored) {
  Tensor<Index, B> out(Shape{targets.size()});
  const Index* const from = targets.data();
  Index* const to = out.data();
  B::for_each(targets.size(), [=] INFTY_HOST_DEVICE(Index i) {
    const Index target = from[i], cluster = bounds.cluster_of(target);
    to[i] = target == ignored || cluster < 0 ? ignore_index
            : cluster == 0                   ? target
                                             : bounds.bound[1] + bounds.clusters - 1 - cluster;
  });
  return out;
}

/// What lies in no cluster for `clustered_rows`, where targets are ignored.
template <class B>
Tensor<Index, B> without_ignored(const Tensor<Index, B>& targets, Index ignored) {
  Tensor<Index, B> out(targets.shape());
  const Index* const from = targets.data();
  Index* const to = out.data();
  B::for_each(targets.size(),
              [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] == ignored ? Index{-1} : from[i]; });
  return out;
}

/// log p of all tokens, [n, vocabulary], from the scores of the head, [n, tokens + clusters - 1],
/// and those of all other clusters, [n, tokens]: log softmax of a cluster's scores plus log p of
/// the cluster.
template <class T, class B>
Variable<T, B> joined_log_probabilities(const ClusterBounds& bounds,
                                        const Variables<T, B>& scores) {
  const Index n = scores[0].dim(0), clusters = bounds.clusters;
  const Index vocabulary = bounds.bound[clusters], columns = scores[0].dim(1);
  PoolVector<Tensor<T, B>> sums;
  for (const auto& part : scores) sums.push_back(log_sums(part.value()));
  Variable<T, B> y(Tensor<T, B>(Shape{n, vocabulary}));
  T* const out = y.value().data();
  const T *const head = scores[0].value().data(), *const head_sum = sums[0].data();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const T *const score = scores[i].value().data(), *const sum = sums[i].data();
    const Index begin = bounds.bound[i], size = bounds.bound[i + 1] - begin,
                width = scores[i].dim(1), place = columns - static_cast<Index>(i);
    for_each_element<B>(n, size, [=] INFTY_HOST_DEVICE(Index row, Index j) {
      const T cluster = begin == 0 ? T(0) : head[row * columns + place] - head_sum[row];
      out[row * vocabulary + begin + j] = score[row * width + j] - sum[row] + cluster;
    });
  }
  return record(
      y,
      [bounds, scores, sums, n, clusters, vocabulary, columns](const Tensor<T, B>& dy) {
        // With s_i the sum of dy over cluster i: d tail_i = dy - p_i s_i, and for the head the same
        // with s_i in the place of dy for cluster i's column.
        Tensor<T, B> totals(Shape{n, clusters}), whole(Shape{n});
        const T* const d = dy.data();
        T *const total = totals.data(), *const all = whole.data();
        B::for_each_row(n, vocabulary, [=] INFTY_HOST_DEVICE(Index row) {
          all[row] = T(0);
          for (Index i = 0; i < clusters; ++i) {
            const T* const of = d + row * vocabulary + bounds.bound[i];
            const T sum =
                row_sum<T>(bounds.bound[i + 1] - bounds.bound[i], [=](Index j) { return of[j]; });
            total[row * clusters + i] = sum;
            all[row] += sum;
          }
        });
        for (std::size_t i = 0; i < scores.size(); ++i) {
          if (!scores[i].requires_grad()) continue;
          const T *const score = scores[i].value().data(), *const sum = sums[i].data();
          const Index cluster = static_cast<Index>(i), begin = bounds.bound[i],
                      size = bounds.bound[i + 1] - begin, width = scores[i].dim(1);
          add_to_grad(scores[i], [=] INFTY_HOST_DEVICE(Index at) {
            const Index row = at / width, j = at % width;
            const T arrived =
                j < size ? d[row * vocabulary + begin + j] : total[row * clusters + columns - j];
            const T of = cluster == 0 ? all[row] : total[row * clusters + cluster];
            return arrived - math::exp(score[at] - sum[row]) * of;
          });
        }
      },
      scores);
}

}  // namespace infty::detail
