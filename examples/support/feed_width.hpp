// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

namespace support {

/// Sets the width of feed-forward layers so that a model has about so many parameters, and leaves
/// it where none of its layers has any. A unit of width has a row, a column and a bias in each
/// layer.
/// @param parameters_of  parameters_of(): of the model at the width that `width` is at the time
/// @return               false where the model has more without any; then it is as it was
template <class ParametersOf>
bool fit_feed_width(infty::Index& width, infty::Index parameters, ParametersOf&& parameters_of) {
  const infty::Index before = width, now = parameters_of();
  ++width;
  const infty::Index unit = parameters_of() - now, lacking = parameters - now;
  width = before;
  if (unit == 0) return true;
  const infty::Index fitted =
      before + (lacking >= 0 ? lacking + unit / 2 : lacking - unit / 2) / unit;
  if (fitted < 1) return false;
  width = fitted;
  return true;
}

}  // namespace support
