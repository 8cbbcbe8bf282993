// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/signal/contraction.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/low_rank.hpp>
#include <infty/signal/matrix_product.hpp>
#include <infty/signal/ridge_cache.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::low_rank;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::detail::frobenius_norm;
using infty::detail::matrix_product;
using infty::tests::uniform_tensor;

namespace {

/// |M - left right| / |M|.
template <class B, class T>
double left_over(const Tensor<double, B>& M, const infty::LowRank<T, B>& factors) {
  auto rest = M.clone();
  infty::detail::multiply_into(-1.0, factors.left.template cast<double>(), false,
                               factors.right.template cast<double>(), false, 1.0, rest);
  return frobenius_norm(rest) / frobenius_norm(M);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("low_rank: a product of thin matrices is found again", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  // Rounding of the factors themselves, T's of r terms, and what may be left.
  const double tolerance =
      std::max(4.0 * static_cast<double>(std::numeric_limits<T>::epsilon()), 0x1p-49);
  Random random(infty::tests::seed);
  for (int i = 0; i < 12; ++i) {
    const Index m = 40 + random.below(90), n = 40 + random.below(90), r = 1 + random.below(12);
    const double scale = i % 3 == 0 ? 1 : i % 3 == 1 ? 1e30 : 1e-30;
    const auto left = uniform_tensor<double, B>({m, r}, random),
               right = uniform_tensor<double, B>({r, n}, random, -scale, scale);
    const auto M = matrix_product(left, false, right, false);
    const auto factors = low_rank<T>(M);
    INFO("[" << m << ", " << n << "] of rank " << r << ", scale " << scale);
    REQUIRE(factors.rank() >= r);
    CHECK(factors.rank() < r + 16);  // of two blocks, where rounding leaves as much as may be left
    CHECK(factors.left.shape() == Shape{m, factors.rank()});
    CHECK(factors.right.shape() == Shape{factors.rank(), n});
    CHECK(left_over(M, factors) < tolerance);
  }
}

TEST_CASE("low_rank: no factors where they would take as many operations") {
  Random random(infty::tests::seed);
  CHECK(low_rank<float>(uniform_tensor<double>({96, 80}, random)).rank() == 0);  // of full rank
  CHECK(low_rank<float>(Tensor<double>::zeros({50, 50})).rank() == 0);
  CHECK(low_rank<float>(Tensor<double>({0, 50})).rank() == 0);
  for (const auto& [m, n] : {std::pair<Index, Index>{1, 500}, {500, 1}, {8, 8}, {1, 1}}) {
    auto one = Tensor<double>({m, n});
    one.fill(1);
    CHECK(low_rank<float>(one).rank() == 0);
  }
  auto nan = uniform_tensor<double>({64, 64}, random);
  nan.data()[7] = std::numeric_limits<double>::quiet_NaN();
  CHECK(low_rank<float>(nan).rank() == 0);
  auto large = Tensor<double>({64, 64});  // of rank 1, which float cannot hold the factors of
  large.fill(3e38);
  CHECK(low_rank<float>(large).rank() == 0);
  CHECK(low_rank<double>(large).rank() == 8);
  CHECK_THROWS_WITH(low_rank<float>(Tensor<double>::zeros({2, 3, 4})),
                    "[low_rank] M is [2, 3, 4]: it must be [m, n]");
}

TEST_CASE("low_rank: the same bits every time") {
  Random random(infty::tests::seed);
  const auto M = matrix_product(uniform_tensor<double>({70, 9}, random), false,
                                uniform_tensor<double>({9, 60}, random), false);
  const auto a = low_rank<float>(M), b = low_rank<float>(M);
  CHECK(a.left.to_vector() == b.left.to_vector());
  CHECK(a.right.to_vector() == b.right.to_vector());
}

// The paper's sorting experiment a quarter the size, and GPT-2's widths.
TEMPLATE_LIST_TEST_CASE(
    "update: by factors it is nearly as close to double as without, and may be closer", "",
    infty::tests::Types) {
  using B = typename TestType::B;
  if constexpr (std::is_same_v<typename TestType::T, float>) {
    const auto [N, L, widths] =
        GENERATE(std::tuple<Index, Index, std::vector<double>>{256, 300, {.02, .1}},
                 std::tuple<Index, Index, std::vector<double>>{160, 96, {.05}},
                 std::tuple<Index, Index, std::vector<double>>{256, 256, {.01, .02}});
    const infty::RidgeSettings settings{.penalty = 1, .samples = 128, .tau = .75};
    const infty::RidgeCache<float, B, infty::GaussianBasis<float>> cache(
        infty::GaussianBasis<float>(N, widths), settings);
    const infty::RidgeCache<double, infty::EigenBackend, infty::GaussianBasis<double>> exact(
        infty::GaussianBasis<double>(N, widths), settings);
    const auto next = cache.next(L);
    auto dense = next;
    dense.thin_new = dense.thin_carry = {};
    CHECK(next.thin_new.rank() > 0);
    Random random(infty::tests::seed);
    const auto first = uniform_tensor<double>({2, L, 5}, random);
    auto want = fit(exact.first(L), first);
    auto by_factors = fit(cache.first(L), first.template cast<float>().template to<B>()),
         plain = by_factors;
    double of_factors = 0, of_plain = 0;
    for (int write = 0; write < 6; ++write) {
      const auto x = uniform_tensor<double>({2, L, 5}, random);
      const auto given = x.template cast<float>().template to<B>();
      want = update(exact.next(L), want, x);
      by_factors = update(next, by_factors, given);
      plain = update(dense, plain, given);
      const auto error = [&](const Tensor<float, B>& got) {
        return infty::tests::error(got.to_vector(), want.template cast<float>().to_vector());
      };
      of_factors = std::max(of_factors, static_cast<double>(error(by_factors)));
      of_plain = std::max(of_plain, static_cast<double>(error(plain)));
    }
    CHECK(of_factors < 4 * of_plain);
  }
}
