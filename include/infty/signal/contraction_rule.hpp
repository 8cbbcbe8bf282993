// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Says what share tau of [0, 1] the past keeps when `added` vectors come behind `written`, both at
/// least 1: in (0, 1). It must depend on these two alone, and may be asked by several threads.
using ContractionRule = std::function<double(Index written, Index added)>;

/// The paper's: the same share with every write, so that what was written is forgotten
/// exponentially [Martins et al. 2022, Eq. 13].
struct FixedContraction {
  double tau = .75;  ///< in (0, 1)

  /// Returns tau.
  double operator()(Index /*written*/, Index /*added*/) const { return tau; }
};

/// tau = (w / (w + L))^p of w vectors written and L that come: vector i of w stands at (i / w)^p,
/// whatever the writes that brought it there. For p = 1 all of the past is equally dense, for p < 1
/// the older is denser, for p > 1 the newer. Rounding ends at 1e-300 and 1 - 1e-15.
struct PowerContraction {
  double power = 1;  ///< p > 0

  /// Returns the share. @throws infty::ValueError unless the power is positive and finite
  double operator()(Index written, Index added) const {
    require(math::is_finite(power) && power > 0, "PowerContraction", "power is ", power,
            ": it must be positive and finite");
    const auto w = static_cast<double>(written), n = static_cast<double>(added);
    return std::clamp(std::pow(w / (w + n), power), 1e-300, 1 - 1e-15);
  }
};

/// Where a share changes with every write it is taken from a grid, so that there are some hundreds
/// of matrices from the first write to the billionth: (1 - tau) / tau is a power of 1.05, and the
/// logarithm of tau off by at most a fortieth of it, where 1 - tau is 1e-13 at least. It is within
/// [1e-300, 1 - 1e-15]. So a vector that belongs at t stands between
/// t^1.025 and t^(1 / 1.025), behind any number of writes.
/// @throws infty::ValueError that names `op` unless tau is in (0, 1)
inline double gridded_share(const char* op, double tau) {
  require(math::is_finite(tau) && tau > 0 && tau < 1, op, "the contraction's tau is ", tau,
          ": it must be in (0, 1)");
  const double step = std::log(1.05), stretch = (1 - tau) / tau;
  const double share = 1 / (1 + std::exp(step * std::round(std::log(stretch) / step)));
  return std::clamp(share, 1e-300, 1 - 1e-15);
}

}  // namespace infty
