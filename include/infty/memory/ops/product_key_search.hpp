// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/top_k.hpp>
#include <infty/core/checked.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/weighted_rows.hpp>

namespace infty {

/// The slots that a search by product keys has found, those of the highest scores first.
template <class T, class B>
struct ProductKeyMatches {
  Variable<T, B> scores;   ///< [..., heads, k], falling; before any softmax
  Tensor<Index, B> slots;  ///< [..., heads, k], i n + j of the i-th key of the first half and the
                           ///< j-th of the second, of n either
};

namespace detail {

/// The k largest of the sums first[p[i]] + second[q[j]], of falling first[p] and second[q], without
/// the k² of them: in the staircase of what has been taken only corners can be next. Of equal sums
/// that with the lower i k + j comes first. NaN in a half, which is the first there, is in the
/// first.
/// @param p, q  [k], places of the largest k of each half   @param taken  [k], to work in
/// @param n     keys of a half   @param score, slot  [k], what was found
template <class T>
INFTY_HOST_DEVICE void best_pairs(Index n, Index k, const T* first, const T* second, const Index* p,
                                  const Index* q, Index* taken, T* score, Index* slot) {
  for (Index i = 0; i < k; ++i) taken[i] = 0;  // how many j of each i
  for (Index next = 0; next < k; ++next) {
    Index row = -1;
    T best = T(0);
    for (Index i = 0; i < k; ++i) {
      const Index j = taken[i];
      if (j < k && (i == 0 || j < taken[i - 1])) {
        const T sum = first[p[i]] + second[q[j]];
        if (row < 0 || sum > best) {
          row = i;
          best = sum;
        }
      }
      if (j == 0) break;  // nothing below it is a corner
    }
    score[next] = best;
    slot[next] = p[row] * n + q[taken[row]];
    ++taken[row];
  }
}

/// Scores and slots of all queries, [rows, heads, k] each, from queries [rows, heads, 2, half].
template <class T, class B>
void search_product_keys(Index rows, Index k, const T* queries, const Tensor<T, B>& keys, T* scores,
                         Index* slots) {
  const Index heads = keys.dim(0), n = keys.dim(2), half = keys.dim(3);
  // So many rows at a time that the scores of the halves need not be held for all, and that a CPU
  // still has them in its caches when it looks for the best.
  constexpr Index most = Index{1} << (many_threads<B> ? 22 : 18);
  const Index each = (std::max)(Index{1}, (std::min)(rows, most / (2 * heads * n)));
  Tensor<T, B> halves(Shape{each, heads, 2, n});
  Tensor<Index, B> places(Shape{each, heads, 3, k});
  T* const half_scores = halves.data();
  Index* const found = places.data();
  for (Index begin = 0; begin < rows; begin += each) {
    const Index count = (std::min)(each, rows - begin);
    B::matmul({.m = count,
               .n = n,
               .k = half,
               .a = {.leading = 2 * heads * half, .inner = half},
               .b = {.leading = half, .inner = n * half, .transposed = true},
               .c = {.leading = 2 * heads * n, .inner = n},
               .inner = 2 * heads},
              T(1), queries + begin * 2 * heads * half, keys.data(), T(0), half_scores);
    B::for_each_row(count * heads * 2, 4 * n, [=] INFTY_HOST_DEVICE(Index i) {
      chosen_row_top_k<B>(n, k, half_scores + i * n, found + (i / 2 * 3 + i % 2) * k);
    });
    T* const score = scores + begin * heads * k;
    Index* const slot = slots + begin * heads * k;
    B::for_each_row(count * heads, k * k, [=] INFTY_HOST_DEVICE(Index i) {
      const T* const first = half_scores + 2 * i * n;
      Index* const p = found + 3 * i * k;
      best_pairs(n, k, first, first + n, p, p + k, p + 2 * k, score + i * k, slot + i * k);
    });
  }
}

}  // namespace detail

/// The k slots of n² whose keys meet a query best, by two searches among n: a slot's key is a pair
/// of halves, its score the sum of what either half scores with its half of the query, and the best
/// k pairs are among those of the best k halves [Lample et al. 2019, §3.1]. Scores are plain dot
/// products. The gradient reaches keys and queries through the slots that were found.
/// @param queries  [..., heads * key_dim], the first half of a head's key_dim numbers for the first
///                 set of keys
/// @param keys     [heads, 2, n, key_dim / 2]
/// @throws infty::ShapeError; infty::ValueError unless 1 <= k <= n
template <class T, class B>
ProductKeyMatches<T, B> product_key_search(const Variable<T, B>& queries,
                                           const Variable<T, B>& keys, Index k) {
  const Shape &in = queries.shape(), &set = keys.shape();
  require<ShapeError>(set.rank() == 4 && set[1] == 2 && set.size() > 0 && in.rank() >= 1 &&
                          in.rank() < Shape::max_rank && in[-1] == 2 * set[0] * set[3],
                      "product_key_search", "queries are ", in, ", keys are ", set,
                      ": they must be [..., heads * key_dim] and [heads, 2, n, key_dim / 2]");
  const Index heads = set[0], n = set[2], half = set[3], rows = in.size(0, in.rank() - 1);
  require(1 <= k && k <= n, "product_key_search", "k is ", k, ", keys are ", set,
          ": k must lie in [1, ", n, "]");
  const Shape found = detail::with_last(in.with(-1, heads), k);
  ProductKeyMatches<T, B> out{Variable<T, B>(Tensor<T, B>(found)), Tensor<Index, B>(found)};
  if (rows > 0)
    detail::search_product_keys(rows, k, queries.value().data(), keys.value(),
                                out.scores.value().data(), out.slots.data());
  const Tensor<Index, B> slots = out.slots;
  out.scores = record(
      out.scores,
      [queries, keys, slots, heads, n, k, half, rows](const Tensor<T, B>& dy) {
        // A score is q₁ · k₁ᵢ + q₂ · k₂ⱼ: each half is a list of keys with the score's gradient as
        // their weights, [rows, heads, 2, k].
        const Index lists = rows * heads * 2;
        if (lists == 0) return;
        Tensor<Index, B> list(Shape{lists, k});
        Tensor<T, B> weights(Shape{lists, k});
        const Index* const slot = slots.data();
        const T* const d = dy.data();
        Index* const key = list.data();
        T* const weight = weights.data();
        detail::for_each_element<B>(lists, k, [=] INFTY_HOST_DEVICE(Index i, Index j) {
          const Index pair = slot[i / 2 * k + j];
          key[i * k + j] = i % (2 * heads) * n + (i % 2 == 0 ? pair / n : pair % n);
          weight[i * k + j] = d[i / 2 * k + j];
        });
        if (queries.requires_grad()) {
          const GradTarget<T> to = queries.grad_target();
          detail::sum_weighted_rows<B>(lists, k, half, heads * 2 * n, weight, key,
                                       keys.value().data(), to.data, to.add);
        }
        if (keys.requires_grad()) {
          const RowGroups<B> groups = group_rows(list, heads * 2 * n);
          detail::sum_groups(groups, std::as_const(weights).data(), queries.value().data(), k, half,
                             keys.grad().data(), true);
        }
      },
      queries, keys, slots);
  return out;
}

}  // namespace infty
