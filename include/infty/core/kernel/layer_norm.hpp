// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace infty {

/// The inputs of `layer_norm`: x [rows, d], gain and bias [d]. A backward pass does not read bias.
template <class T>
struct LayerNormInputs {
  Index rows, d;             ///< vectors, and the width of each
  T epsilon;                 ///< added to the variance of each vector
  const T *x, *gain, *bias;  ///< what is normed, multiplied by and added
};

/// Where a backward pass adds the gradients of the inputs; null where none is wanted. Without
/// `add`, x is overwritten.
template <class T>
struct LayerNormGradients {
  T *x, *gain, *bias;  ///< of the input of this name, in its shape
  bool add = true;     ///< whether the gradient is added to what x holds
};

}  // namespace infty
