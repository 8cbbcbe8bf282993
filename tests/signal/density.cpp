// SPDX-License-Identifier: MIT
#include <infty/signal/density.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "support/catch.hpp"

namespace {

// A basis that knows nothing but its values.
struct ValuesOnly {
  using Scalar = double;
  infty::Index size() const { return 1; }
  double operator()(infty::Index, double) const { return 1; }
};

struct NoDensity {
  static double pdf(double, double, double) { return 1; }
};

}  // namespace

TEMPLATE_TEST_CASE("Density: both densities are over every basis", "", infty::GaussianBasis<float>,
                   infty::GaussianBasis<double>, infty::PowerBasis<float>,
                   infty::PowerBasis<double>, infty::SineBasis<float>, infty::SineBasis<double>,
                   infty::CosineBasis<float>, infty::CosineBasis<double>) {
  STATIC_REQUIRE(infty::DensityOver<infty::GaussianDensity, TestType>);
  STATIC_REQUIRE(infty::DensityOver<infty::TruncatedParabola, TestType>);
}

TEST_CASE("Density: a pair without a closed form is refused") {
  STATIC_REQUIRE_FALSE(infty::Density<NoDensity>);
  STATIC_REQUIRE_FALSE(infty::DensityOver<infty::GaussianDensity, ValuesOnly>);
  STATIC_REQUIRE_FALSE(infty::DensityOver<infty::TruncatedParabola, ValuesOnly>);
}
