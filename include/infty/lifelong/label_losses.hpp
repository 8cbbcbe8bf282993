// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/verify.hpp>
#include <infty/nn/cross_entropy.hpp>

namespace infty::detail {

/// `token_losses` of labels, none of which is ignored.
/// @throws as `token_losses`, and infty::ValueError for `ignore_index`
template <class T, class B>
Variable<T, B> label_losses(const Variable<T, B>& scores, const Tensor<Index, B>& labels) {
  const Index* const label = labels.data();
  verify<B>(
      labels.size(), [=] INFTY_HOST_DEVICE(Index i) { return label[i] == ignore_index; },
      [](Index wrong) {
        raise<ValueError>("label_losses", "label ", ignore_index, " at place ", wrong,
                          ": no label is ignored");
      });
  return token_losses(scores, labels);
}

/// Refuses scores of which none is the largest, as a model has them that went too far down a slope.
/// @throws infty::NonFiniteError that names `op` if one is NaN
template <class T>
void require_no_nan(std::string_view op, const std::vector<T>& scores) {
  for (const T& score : scores)
    require<NonFiniteError>(!math::is_nan_at(&score), op, "a score is NaN");
}

}  // namespace infty::detail
