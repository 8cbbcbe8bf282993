// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/for_each.hpp>
#include <infty/core/tensor.hpp>

namespace infty::detail {

/// Compressed ids of every row's tokens, and of those before them, which a state holds as numbers:
/// id + 1, or 0 in front of the first token.
template <class T>
struct CompressedIds {
  const Index *tokens, *lookup;  ///< [batch, length], [vocabulary]
  const T* last;                 ///< [batch, reach]
  Index length, reach, vocabulary, ids, pad;

  /// The id at place t, negative ones in the past, of at least -reach.
  INFTY_HOST_DEVICE Index at(Index row, Index t) const {
    if (t >= 0) {
      const Index token = tokens[row * length + t];
      return token >= 0 && token < vocabulary ? lookup[token] : pad;
    }
    const T held = last[row * reach + reach + t];
    return held >= T(1) && held <= static_cast<T>(ids) ? static_cast<Index>(held) - 1 : pad;
  }
};

/// Rows of the n-grams that end at each place, n = 2, ..., reach + 1, in each of the n's tables:
/// (x_t m₀ xor x_(t-1) m₁ xor ...) mod prime, behind the table's first row.
/// @param primes, offsets  [reach * heads], tables of 2-grams first   @param multipliers  [reach+1]
/// @return [batch, length, reach * heads]
template <class B, class T>
Tensor<Index, B> ngram_rows(const CompressedIds<T>& ids, Index batch, Index heads,
                            const Tensor<Index, B>& multipliers, const Tensor<Index, B>& primes,
                            const Tensor<Index, B>& offsets) {
  const Index tables = primes.size(), length = ids.length;
  Tensor<Index, B> rows(Shape{batch, length, tables});
  const Index *const m = multipliers.data(), *const prime = primes.data(),
                     *const offset = offsets.data();
  Index* const to = rows.data();
  const CompressedIds<T> x = ids;
  for_each_element<B>(batch * length, tables, [=] INFTY_HOST_DEVICE(Index place, Index table) {
    const Index n = table / heads + 2;
    Index hash = 0;
    for (Index k = 0; k < n; ++k) hash ^= x.at(place / length, place % length - k) * m[k];
    to[place * tables + table] = offset[table] + hash % prime[table];
  });
  return rows;
}

/// What the state holds behind these tokens: the last `reach` ids and 1, [batch, reach].
template <class B, class T>
Tensor<T, B> last_ids(const CompressedIds<T>& ids, const Tensor<T, B>& last) {
  Tensor<T, B> next(last.shape());
  T* const to = next.data();
  const T* const from = last.data();
  const CompressedIds<T> x = ids;
  for_each_element<B>(last.dim(0), x.reach, [=] INFTY_HOST_DEVICE(Index row, Index i) {
    const Index t = x.length - x.reach + i;
    to[row * x.reach + i] =
        t >= 0 ? static_cast<T>(x.at(row, t) + 1) : from[row * x.reach + x.reach + t];
  });
  return next;
}

}  // namespace infty::detail
