// SPDX-License-Identifier: MIT
#pragma once

// What `infty::compiled` has of training: see eigen/compiled.hpp.

#include <infty/eigen/compiled.hpp>
#include <infty/train/train_step.hpp>

/// The optimiser, and what a step of training does beside it.
#define INFTY_COMPILED_TRAIN(how, T)                                                   \
  how void detail::sums_of_squares(const std::vector<NamedParameter<T>>&, double*);    \
  how double detail::joint_norm(const std::vector<NamedParameter<T>>&, const double*); \
  how void detail::clip_to(const std::vector<NamedParameter<T>>&, double, double);     \
  how void detail::raise_non_finite(const std::string&, const Adam<T>&);               \
  how class Adam<T>;

#if defined(INFTY_COMPILED)
namespace infty {
INFTY_COMPILED_TRAIN(extern template, float)
INFTY_COMPILED_TRAIN(extern template, double)
}  // namespace infty
#endif
