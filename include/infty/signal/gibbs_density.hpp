// SPDX-License-Identifier: MIT
#pragma once

#include <infty/signal/density.hpp>

namespace infty {

/// The Gibbs density of a query's scores, p(t) = exp(q · k(t) / √D) / Z with k(t) = Kᵀ psi(t), on
/// [0, 1] [Santos et al. 2025, §3]. It may have as many modes as the keys give it. Where a memory
/// is read with it, Z and the expectation are integrated by the trapezoid rule.
struct GibbsDensity {
  static constexpr bool of_scores = true;  ///< it is not made of a mean and a variance
};

static_assert(ScoreDensity<GibbsDensity> && !Density<GibbsDensity>);

}  // namespace infty
