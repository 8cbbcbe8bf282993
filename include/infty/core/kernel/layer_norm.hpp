// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// The inputs of `layer_norm`: x [rows, d], gain and bias [d]. A backward pass does not read bias.
template <class T>
struct LayerNormInputs {
  Index rows, d;
  T epsilon;
  const T *x, *gain, *bias;
};

/// Where a backward pass adds the gradients of the inputs; null where none is wanted. Without
/// `add`, x is overwritten.
template <class T>
struct LayerNormGradients {
  T *x, *gain, *bias;
  bool add = true;
};

}  // namespace infty
