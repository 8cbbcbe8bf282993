// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

namespace support {

/// What a model makes of a segment: what is wanted of it.
struct Reading {
  std::vector<float> losses;    ///< (batch, length), 0 where the target is ignored
  infty::Tensor<float> keys;    ///< [batch * length, d]
  infty::Tensor<float> hidden;  ///< [batch * length, d]
  infty::Tensor<float> scores;  ///< [batch * length, vocabulary]
};

}  // namespace support
