// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/lifelong/fwd.hpp>
#include <infty/lifelong/label_losses.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// Where the answer to a question stands in a text: probabilities of being its first token, and its
/// last, softmaxes over all tokens of w_start · x_m and w_end · x_m [de Masson d'Autume et al.
/// 2019].
template <class T, class Backend>
struct SpanHead {
  using V = Variable<T, Backend>;
  static constexpr Index labels = 2;         ///< of an example: the first and the last token
  static constexpr bool first_only = false;  ///< whether it reads the first vector alone

  Linear<T, Backend> map;  ///< d -> 2, without a bias, which a softmax over tokens does not see

  SpanHead() = default;

  /// Draws the map as `Linear` does. @throws infty::ValueError unless d >= 1
  SpanHead(Index d, Random random) : map(d, 2, random, false) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    map.visit(see);
  }

  /// Scores of the tokens as the first and as the last one, [n, L, d] -> [n, 2, L].
  /// @throws infty::ShapeError
  V logits(const V& hidden) const { return transpose(map.forward(hidden), 1, 2); }

  /// -log p of first and last tokens, [n, L, d] and [n, 2] -> [n, 2].
  /// @throws infty::ShapeError; infty::ValueError for a token that is not there
  V losses(const V& hidden, const Tensor<Index, Backend>& ends) const {
    return detail::label_losses(logits(hidden), ends);
  }

  /// The first and the last token of the span that has the highest product of both probabilities,
  /// of those that end where they begin or behind; the first of equals.
  /// @throws infty::NonFiniteError for a score that is NaN
  std::vector<std::vector<Index>> answers(const V& hidden) const {
    const V scores = logits(hidden);
    const std::vector<T> all = scores.value().to_vector();
    detail::require_no_nan("SpanHead", all);
    const Index length = scores.dim(2);
    std::vector<std::vector<Index>> out;
    for (const T* row = all.data(); row != all.data() + all.size(); row += 2 * length) {
      // The best first token up to each last one: the normalisers are the same for all spans.
      Index first = 0, best_first = 0, best_last = 0;
      for (Index last = 0; last < length; ++last) {
        if (row[last] > row[first]) first = last;
        if (row[first] + row[length + last] > row[best_first] + row[length + best_last]) {
          best_first = first;
          best_last = last;
        }
      }
      out.push_back({best_first, best_last});
    }
    return out;
  }
};

}  // namespace infty
