// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// The inputs of `token_losses`: logits [rows, classes] and targets [rows], of which no loss is
/// counted for those that are `ignored`.
template <class T>
struct TokenLossInputs {
  Index rows, classes;
  const T* logits;
  const Index* targets;
  Index ignored;
};

}  // namespace infty
