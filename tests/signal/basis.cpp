// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/signal/basis.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/power_basis.hpp>

#include "support/catch.hpp"

namespace {

// The smallest basis: one constant.
struct Constant {
  using Scalar = double;
  infty::Index size() const { return 1; }
  double operator()(infty::Index, double) const { return 1; }
};

// A kernel cannot carry a vector to the device.
struct Owning : Constant {
  std::vector<double> numbers;
};

struct WithoutSize {
  using Scalar = double;
  double operator()(infty::Index, double) const { return 1; }
};

}  // namespace

TEST_CASE("Basis: a trivially copyable value with size() and psi(j, t)") {
  STATIC_REQUIRE(infty::Basis<Constant>);
  STATIC_REQUIRE_FALSE(infty::IntegrableBasis<Constant>);
  STATIC_REQUIRE_FALSE(infty::Basis<Owning>);
  STATIC_REQUIRE_FALSE(infty::Basis<WithoutSize>);
  STATIC_REQUIRE_FALSE(infty::Basis<double>);
}

TEMPLATE_TEST_CASE("Basis: bases of the library that are smooth, and fit into a kernel", "",
                   infty::GaussianBasis<float>, infty::GaussianBasis<double>,
                   infty::PowerBasis<float>, infty::PowerBasis<double>, infty::FourierBasis<float>,
                   infty::FourierBasis<double>, infty::SineBasis<float>, infty::SineBasis<double>,
                   infty::CosineBasis<float>, infty::CosineBasis<double>) {
  STATIC_REQUIRE(infty::SmoothBasis<TestType>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<TestType>);
  STATIC_REQUIRE(sizeof(TestType) <= 128);
}
