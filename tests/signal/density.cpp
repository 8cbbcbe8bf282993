// SPDX-License-Identifier: MIT
#include <infty/signal/density.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>
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
                   infty::PowerBasis<double>, infty::FourierBasis<float>,
                   infty::FourierBasis<double>, infty::SineBasis<float>, infty::SineBasis<double>,
                   infty::CosineBasis<float>, infty::CosineBasis<double>,
                   infty::RectangularBasis<float>, infty::RectangularBasis<double>) {
  STATIC_REQUIRE(infty::DensityOver<infty::GaussianDensity, TestType>);
  STATIC_REQUIRE(infty::DensityOver<infty::TruncatedParabola, TestType>);
}

TEST_CASE("Density: what kernels ask for is there for the Gaussian basis, and only there") {
  // A typo would silently be the slow way.
  const auto shares = []<class D, class Psi>(D, const Psi& psi) {
    return requires { D::inverse_spread(psi, infty::Index{}, typename Psi::Scalar{}); } &&
           requires {
             D::expectation_gradient_at(psi, infty::Index{}, typename Psi::Scalar{},
                                        typename Psi::Scalar{});
           } && requires(typename Psi::Scalar t) { D::expectation_gradient_about(psi, t, t, t); };
  };
  const auto skips = []<class D, class Psi>(D, const Psi& psi) {
    return requires { D::reach(psi, typename Psi::Scalar{}, typename Psi::Scalar{}); };
  };
  const infty::GaussianBasis<float> gaussian(2, {.1});
  const infty::PowerBasis<float> power(2);
  CHECK(shares(infty::GaussianDensity{}, gaussian));
  CHECK(skips(infty::GaussianDensity{}, gaussian));
  CHECK_FALSE(shares(infty::GaussianDensity{}, power));
  CHECK_FALSE(skips(infty::GaussianDensity{}, power));
  CHECK_FALSE(shares(infty::TruncatedParabola{}, gaussian));
  CHECK_FALSE(skips(infty::TruncatedParabola{}, gaussian));
}

TEST_CASE("Density: a pair without a closed form is refused") {
  STATIC_REQUIRE_FALSE(infty::Density<NoDensity>);
  STATIC_REQUIRE_FALSE(infty::DensityOver<infty::GaussianDensity, ValuesOnly>);
  STATIC_REQUIRE_FALSE(infty::DensityOver<infty::TruncatedParabola, ValuesOnly>);
}
