// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Constants of Adam [Kingma and Ba 2015, Algorithm 1, whose defaults these are]. The weight decay
/// is decoupled from the gradient [Loshchilov and Hutter 2019, Algorithm 2] and 0 turns it off.
struct AdamConfig {
  double learning_rate = 1e-3;  ///< α >= 0, of a step that is not given another
  double beta1 = 0.9;           ///< decay of the first moment, in [0, 1)
  double beta2 = 0.999;         ///< decay of the second moment, in [0, 1)
  /// ε >= 0, keeps the division by the second moment's root finite. A gradient below 3e-18 in
  /// float, 1e-152 in double, counts as 0 whatever it is: its square would be no normal number.
  double epsilon = 1e-8;
  /// Whether ε is added before the bias correction, as in Hugging Face's former AdamW, by
  /// which the authors' GPT-2 was trained; PyTorch's adds it behind.
  bool epsilon_first = false;
  double weight_decay = 0;  ///< λ >= 0, share of a parameter that goes with a step of rate 1

  /// Checks all constants.
  /// @throws infty::ValueError for a constant out of its range
  void validate() const {
    const auto check = [](bool ok, const char* name, double value, const char* rule) {
      require(ok, "AdamConfig", name, " is ", value, ": it must ", rule);
    };
    const auto not_negative = [&](const char* name, double value) {
      require_within("AdamConfig", name, value, 0, largest_constant);
    };
    not_negative("learning_rate", learning_rate);
    check(math::is_finite(beta1) && beta1 >= 0 && beta1 < 1, "beta1", beta1, "lie in [0, 1)");
    check(math::is_finite(beta2) && beta2 >= 0 && beta2 < 1, "beta2", beta2, "lie in [0, 1)");
    not_negative("epsilon", epsilon);
    not_negative("weight_decay", weight_decay);
  }
};

}  // namespace infty
