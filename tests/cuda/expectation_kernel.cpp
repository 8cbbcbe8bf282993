// SPDX-License-Identifier: MIT
#include <cmath>
#include <type_traits>
#include <vector>

#include <infty/memory/ops/expected_values.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::ComposedExpectation;
using infty::GaussianBasis;
using infty::GaussianDensity;
using infty::Index;
using infty::Random;
using infty::ReadSize;
using infty::Shape;
using infty::Tensor;
using infty::TruncatedParabola;
using infty::tests::uniform_tensor;

namespace {

/// [2, B, H, Q] with means around [0, 1] and variances from narrow to wide.
template <class T, class B>
Tensor<T, B> densities(const ReadSize& s, Random& random) {
  const Index n = s.batch * s.heads * s.queries;
  std::vector<T> numbers;
  for (Index i = 0; i < n; ++i) numbers.push_back(static_cast<T>(-.1 + 1.2 * random.uniform()));
  for (Index i = 0; i < n; ++i)
    numbers.push_back(static_cast<T>(std::exp(-8 + 8 * random.uniform())));
  return Tensor<T, B>::from({2, s.batch, s.heads, s.queries}, numbers);
}

/// out, and the gradients by all and by each alone, added to ones.
template <class Kernel, class T, class B, class Psi>
std::vector<std::vector<T>> results(const ReadSize& s, const Psi& psi) {
  Random random(infty::tests::seed);
  const Index e = s.heads * s.head_dim;
  const auto density = densities<T, B>(s, random);
  const auto values = uniform_tensor<T, B>({s.batch, s.basis, e}, random);
  const auto d_out = uniform_tensor<T, B>({s.batch, s.queries, e}, random);
  auto out = Tensor<T, B>::full(d_out.shape(), T(9));
  Kernel::forward(s, psi, density.data(), values.data(), out.data());
  std::vector<std::vector<T>> all{out.to_vector()};
  for (const bool of_density : {true, false})
    for (const bool of_values : {true, false}) {
      auto d_density = Tensor<T, B>::full(density.shape(), T(1));
      auto d_values = Tensor<T, B>::full(values.shape(), T(1));
      Kernel::backward(s, psi, density.data(), values.data(), d_out.data(),
                       of_density ? d_density.data() : nullptr,
                       of_values ? d_values.data() : nullptr);
      all.push_back(d_density.to_vector());
      all.push_back(d_values.to_vector());
    }
  return all;
}

/// Sizes whose last tiles are partly empty, heads of odd width, heads for which tiles are smaller
/// or, in double, too wide for any, and several of everything.
const std::vector<ReadSize>& read_sizes() {
  static const std::vector<ReadSize> all{{1, 1, 1, 1, 1},     {2, 7, 6, 3, 5},
                                         {3, 130, 66, 2, 4},  {2, 65, 128, 1, 64},
                                         {1, 30, 40, 2, 130}, {1, 5, 9, 1, 1100}};
  return all;
}

template <class B, class D, class Psi, class T = typename Psi::Scalar>
void compare(const ReadSize& s, const Psi& psi) {
  using Kernel = typename infty::detail::ChosenExpectation<D, B>::type;
  static_assert(std::is_same_v<Kernel, typename B::template FusedExpectation<D>>);
  const auto tiled = results<Kernel, T, B>(s, psi);
  const auto composed = results<ComposedExpectation<D, B>, T, B>(s, psi);
  for (std::size_t i = 0; i < tiled.size(); ++i) {
    CAPTURE(s.batch, s.queries, s.basis, s.heads, s.head_dim, i);
    CHECK(infty::tests::error(tiled[i], composed[i]) < infty::tests::tolerance<T>);
  }
}

template <class T>
GaussianBasis<T> gaussians(Index n) {
  return n % 2 ? GaussianBasis<T>(n, {.3}) : GaussianBasis<T>(n, {.05, .2});
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("expectation by tiles: the composition's values and gradients", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const ReadSize& s : read_sizes()) {
    compare<B, GaussianDensity>(s, gaussians<T>(s.basis));
    compare<B, TruncatedParabola>(s, gaussians<T>(s.basis));
  }
}

TEMPLATE_LIST_TEST_CASE("expectation by tiles: any basis", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  compare<B, GaussianDensity>({2, 10, 4, 2, 3}, infty::PowerBasis<T>(4));
  compare<B, GaussianDensity>({2, 10, 6, 2, 3}, infty::SineBasis<T>(6));
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("expectation by tiles: the kernels have no race") {
  for (const ReadSize& s : read_sizes())
    CHECK(infty::tests::same_in_all_orders([&]<class B>() {
      return results<typename B::template FusedExpectation<GaussianDensity>, float, B>(
          s, gaussians<float>(s.basis));
    }));
}
#endif
