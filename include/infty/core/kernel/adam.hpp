// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>

#include <infty/core/config.hpp>

namespace infty {

/// One parameter in a step of Adam: elements p, gradient g and moments m and v, in the backend's
/// memory, and the factors that bias correction makes of the parameter's own count of steps t.
template <class T>
struct AdamItem {
  T* p;        ///< [size], the parameter, updated in place
  const T* g;  ///< [size], its gradient
  T *m, *v;    ///< [size] each, first and second moment, updated in place
  Index size;  ///< elements of the parameter
  T rate;      ///< learning rate / (1 - β1^t)
  T root;      ///< 1 / sqrt(1 - β2^t)
};

/// A few rows of a table in a step of Adam, each of which counts its own steps.
template <class T>
struct AdamRows {
  T* p;               ///< [count, width], the table, updated in place
  const T* g;         ///< [n, width], the gradients of the rows
  T *m, *v;           ///< [count, width] each, first and second moment, updated in place
  const Index* rows;  ///< [n], each once; null: row i is row i
  T* steps;           ///< [count], of each row, advanced in place
  T* scratch;         ///< [n, 2], for the factors of each row
  Index n, width;     ///< rows in this step, and elements of each
  double learning_rate, beta1, beta2;  ///< what a row's factors are made of

  /// Which row of the table is row u of this step.
  INFTY_HOST_DEVICE Index row(Index u) const { return rows ? rows[u] : u; }

  /// Row u of this step as a parameter of its own, once its factors are there.
  INFTY_HOST_DEVICE AdamItem<T> item(Index u) const {
    const Index at = row(u) * width;
    return {p + at, g + u * width, m + at, v + at, width, scratch[2 * u], scratch[2 * u + 1]};
  }
};

/// What all parameters have in common in a step of Adam.
template <class T>
struct AdamFactors {
  T beta1, new1, beta2, new2;  ///< new = 1 - beta
  T keep;                      ///< 1 - learning rate * weight decay
  T epsilon;                   ///< ε, added to the root of the second moment
  T early = T(0);              ///< ε that is added to it before the bias correction

  /// The update of element i. Moments without a gradient end as 0 and not among the numbers below
  /// the least normal one, for which many processors take ten times as long. A gradient whose
  /// square would make v such a number (below 3e-18 in float, 1e-152 in double) counts as 0, and
  /// where v is 0 so is m.
  INFTY_HOST_DEVICE void operator()(const AdamItem<T>& x, Index i) const {
    // m = β1 m + (1 - β1) g,  v = β2 v + (1 - β2) g²,
    // p = (1 - rate decay) p - rate m / (1 - β1^t) / (sqrt(v / (1 - β2^t)) + ε)
    const T g = at_least(least_root, x.g[i]);
    const T v = at_least(least_normal, beta2 * x.v[i] + new2 * g * g);
    const T m = v == T(0) ? T(0) : at_least(least_step, beta1 * x.m[i] + new1 * g);
    // Zero over zero is no step: with epsilon 0, or where float rounds it away.
    const T denominator = (std::sqrt(v) + early) * x.root + epsilon;
    x.m[i] = m;
    x.v[i] = v;
    x.p[i] = keep * x.p[i] - (denominator > T(0) ? x.rate * m / denominator : T(0));
  }

 private:
  static constexpr T power_of_two(int n) { return n < 0 ? power_of_two(n + 1) / 2 : T(1); }
  static constexpr T least_normal = (std::numeric_limits<T>::min)();
  /// Its square is 2^10 times that, for 1 - β2 is .001 by default.
  static constexpr T least_root = power_of_two((std::numeric_limits<T>::min_exponent + 9) / 2);
  /// So much above the least normal number that the rate times it is none below that.
  static constexpr T least_step = least_normal / std::numeric_limits<T>::epsilon();

  /// x, or 0 if its size is below `least`.
  INFTY_HOST_DEVICE static T at_least(T least, T x) { return x < least && x > -least ? T(0) : x; }
};

}  // namespace infty
