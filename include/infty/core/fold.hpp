// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/config.hpp>

/// Folds to give to `reduce`.
namespace infty::detail {

struct Plus {
  template <class T>
  INFTY_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a + b;
  }
};

struct Larger {
  template <class T>
  INFTY_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a > b ? a : b;
  }
};

/// Of unsigned words: a bit is set if it is in one of them.
struct AnyBits {
  template <class T>
  INFTY_HOST_DEVICE T operator()(const T& a, const T& b) const {
    return a | b;
  }
};

/// Two sums at once.
template <class T>
struct SumPair {
  T first{}, second{};
  friend INFTY_HOST_DEVICE SumPair operator+(const SumPair& a, const SumPair& b) {
    return {a.first + b.first, a.second + b.second};
  }
};

}  // namespace infty::detail
