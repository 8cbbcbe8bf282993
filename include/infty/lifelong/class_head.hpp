// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/lifelong/fwd.hpp>
#include <infty/lifelong/label_losses.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// Which class a text is of: a linear map of the vector of its first token, and a softmax, p(y = c)
/// ∝ exp(w_c · x_0 + b_c) [de Masson d'Autume et al. 2019]. The first token has to have seen the
/// others, as it has behind `SelfAttention`; behind layers that see the past alone it has not.
template <class T, class Backend>
struct ClassHead {
  using V = Variable<T, Backend>;
  static constexpr Index labels = 1;        ///< of an example: its class
  static constexpr bool first_only = true;  ///< whether it reads the first vector alone

  Linear<T, Backend> map;  ///< d -> classes

  ClassHead() = default;

  /// Draws the map as `Linear` does. @throws infty::ValueError unless d, classes >= 1
  ClassHead(Index d, Index classes, Random random) : map(d, classes, random) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    map.visit(see);
  }

  /// Scores of the classes, [n, L, d] -> [n, 1, classes]. @throws infty::ShapeError
  V logits(const V& hidden) const { return map.forward(narrow(hidden, 0, 1)); }

  /// -log p of each class named, [n, L, d] and [n, 1] -> [n, 1].
  /// @throws infty::ShapeError; infty::ValueError for a class out of range
  V losses(const V& hidden, const Tensor<Index, Backend>& classes) const {
    return detail::label_losses(logits(hidden), classes);
  }

  /// The most probable class of each text [n, L, d], the first of equals.
  /// @throws infty::NonFiniteError for a score that is NaN
  std::vector<std::vector<Index>> answers(const V& hidden) const {
    const V scores = logits(hidden);
    const std::vector<T> all = scores.value().to_vector();
    detail::require_no_nan("ClassHead", all);
    std::vector<std::vector<Index>> out;
    for (auto row = all.begin(); row != all.end(); row += scores.dim(2))
      out.push_back({std::max_element(row, row + scores.dim(2)) - row});
    return out;
  }
};

}  // namespace infty
