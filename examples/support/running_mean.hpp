// SPDX-License-Identifier: MIT
#pragma once

namespace support {

/// An exponentially weighted mean with its bias corrected: each value weighs 1 - 1/window of the
/// one behind it, and the weights of those that there are add up to 1 from the first on.
class RunningMean {
 public:
  /// In values; about two thirds of the weight are on the last so many.
  static constexpr int window = 50;

  double add(double value) {
    weight_ = weight_ * (1 - 1. / window) + 1;
    mean_ += (value - mean_) / weight_;
    return mean_;
  }

 private:
  double weight_ = 0, mean_ = 0;
};

}  // namespace support
