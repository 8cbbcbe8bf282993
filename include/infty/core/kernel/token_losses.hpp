// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// The inputs of `token_losses`: logits [rows, classes] and targets [rows], of which no loss is
/// counted for those that are `ignored`.
template <class T>
struct TokenLossInputs {
  Index rows, classes;   ///< tokens that are predicted, and what each may be
  const T* logits;       ///< [rows, classes], scores before the softmax
  const Index* targets;  ///< [rows], the right class of each
  Index ignored;         ///< the target that stands for none
};

}  // namespace infty
