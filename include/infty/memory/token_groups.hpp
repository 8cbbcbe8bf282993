// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/shape.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/memory/past_weights.hpp>
#include <infty/nn/distance_table.hpp>
#include <infty/nn/relative_attention.hpp>
#include <infty/nn/token_parts.hpp>
#include <infty/nn/two_way_attention.hpp>

namespace infty::detail {

/// Rows [begin, end) of x [n, e].
template <class T, class B>
Variable<T, B> narrow_rows(const Variable<T, B>& x, Index begin, Index end) {
  return reshape(narrow(reshape(x, Shape{1, x.dim(0), x.dim(1)}), begin, end),
                 Shape{end - begin, x.dim(1)});
}

/// Rows of a [n, e] and then those of b [m, e].
template <class T, class B>
Variable<T, B> concat_rows(const Variable<T, B>& a, const Variable<T, B>& b) {
  const Index n = a.dim(0), m = b.dim(0), e = a.dim(1);
  return reshape(concat(reshape(a, Shape{1, n, e}), reshape(b, Shape{1, m, e})), Shape{n + m, e});
}

/// Shows a traced pass what words read of the memory tokens in front, "tokens_read"
/// [B, H, words, tokens], and the tokens behind of the words, "words_read" [B, H, tokens, words];
/// and what words read of the past, "past_weights" [B, H, words, places].
/// @param weights  (H, B, L, K), of the queries [begin, begin + L) of a segment, of all its keys up
/// to the last query's behind `past` others; of none of them where a part has no words
/// @param held     [B], how many of the past each row has  @param places  most that a row may have
template <class T, class B>
void show_weights(const Tensor<T, B>& weights, Index begin, Index past, Index length,
                  const RowCounts& held, Index places, Pass<T, B>& pass) {
  const Index words = length - pass.before - pass.behind, end = begin + weights.dim(2);
  const auto part = [&](Index first, Index queries, Index key, Index keys) {
    return Variable<T, B>(weights_by_row(weights, first - begin, queries, past + key, keys));
  };
  if (pass.before > 0 && words > 0 && begin <= pass.before && end >= pass.before + words)
    pass.show("tokens_read", part(pass.before, words, 0, pass.before), "row head word token");
  if (pass.behind > 0 && words > 0 && end == length)
    pass.show("words_read", part(length - pass.behind, pass.behind, pass.before, words),
              "row head token word");
  if (past > 0 && words > 0 && begin <= pass.before && end >= pass.before + words)
    show_past_weights("past_weights", weights_by_row(weights, pass.before - begin, words, 0, past),
                      RowCounts(held.size(), past), held, places, pass);
}

/// What heads read by `attention.read` in a segment behind the past, with the rules of the pass's
/// memory tokens. A pass that is traced is shown what tokens and words read of each other, and
/// words of the past.
/// @param queries    [B, L, H D]
/// @param keys       [B, M + L, H D], those of the past first; values as well
/// @param positions  [M + L, H D], projected encodings of the distances M + L - 1, ..., 0
/// @param held       of the M vectors of the past, how many each row has
/// @param places     the most that a row may have
/// @return           [B, L, H D]
template <class T, class B>
Variable<T, B> read_groups(const RelativeAttention<T, B>& attention, const Variable<T, B>& queries,
                           const Variable<T, B>& keys, const Variable<T, B>& values,
                           const Variable<T, B>& positions, const RowCounts& held, Index places,
                           Pass<T, B>& pass) {
  const Index all = keys.dim(1), length = queries.dim(1), past = all - length;
  const bool shows = pass.traced && pass.before + pass.behind + past > 0;
  if (tokens_are_causal(pass, past)) {
    const Tensor<Index, B> seen = visible<B>(held, past);
    if (shows)
      show_weights(attention.weights(queries, keys, positions, seen), 0, past, length, held, places,
                   pass);
    return attention.read(queries, keys, values, positions, seen);
  }
  return read_parts<T, B>(
      length, past, pass, [&](Index begin, Index end, Index first, bool tokens) {
        const Index K = past + end - first, L = end - begin, in_front = K - L;
        const auto q = narrow(queries, begin, end), k = narrow(keys, first, first + K),
                   v = narrow(values, first, first + K);
        const auto by_distance = narrow_rows(positions, all - K, all);
        RowCounts seen = held;  // of the keys in front of this part's own
        for (Index& n : seen) n = first > 0 ? in_front : n + begin;
        const Tensor<Index, B> shown = visible<B>(seen, in_front);
        if (!tokens || !pass.tokens.both_ways || L == 1) {
          if (shows)
            show_weights(attention.weights(q, k, by_distance, shown), begin, past - first, length,
                         held, places, pass);
          return attention.read(q, k, v, by_distance, shown);
        }
        const bool shifted = pass.tokens.ahead == AheadPositions::shifted;
        const Variable<T, B> ahead(distance_encoding<T, B>(L - 1, attention.position.weight.dim(1),
                                                           shifted ? all - L + 2 : 1 - L)),
            placed = concat_rows(by_distance, attention.position.forward(ahead));
        if (shows)
          show_weights(two_way_weights(q, k, placed, attention.content_bias,
                                       attention.position_bias, pass.tokens.ahead, shown),
                       begin, past - first, length, held, places, pass);
        return two_way_attention(q, k, v, placed, attention.content_bias, attention.position_bias,
                                 pass.tokens.ahead, shown);
      });
}

}  // namespace infty::detail
