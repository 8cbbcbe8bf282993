// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/gibbs.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace gibbs_tests {

using infty::even_places;
using infty::GaussianBasis;
using infty::Index;
using infty::LastCell;
using infty::Random;
using infty::RectangularBasis;
using infty::sampled_basis;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

/// The definition, in double: p(t) of every place [B, H, Q, P] by the trapezoid rule over them, and
/// what is read [B, Q, H D].
struct Definition {
  std::vector<double> density, read;
};

template <class Psi>
Definition definition(const Psi& psi, const std::vector<double>& t, const std::vector<double>& q,
                      const std::vector<double>& k, const std::vector<double>& v, Index batch,
                      Index queries, Index heads, Index D) {
  const Index N = psi.size(), e = heads * D, P = static_cast<Index>(t.size());
  Definition out;
  out.read.assign(q.size(), 0);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < queries; ++i) {
        std::vector<double> p;
        for (const double place : t) {
          double score = 0;
          for (Index j = 0; j < N; ++j)
            for (Index c = 0; c < D; ++c)
              score += q[at((b * queries + i) * e + h * D + c)] *
                       k[at((b * N + j) * e + h * D + c)] * psi(j, place);
          p.push_back(std::exp(score / std::sqrt(static_cast<double>(D))));
        }
        double z = 0;
        for (Index u = 0; u + 1 < P; ++u)
          z += (p[at(u)] + p[at(u + 1)]) / 2 * (t[at(u + 1)] - t[at(u)]);
        for (double& x : p) out.density.push_back(x /= z);
        for (Index c = 0; c < D; ++c)
          for (Index u = 0; u + 1 < P; ++u)
            for (const Index w : {u, u + 1})
              for (Index j = 0; j < N; ++j)
                out.read[at((b * queries + i) * e + h * D + c)] +=
                    p[at(w)] * psi(j, t[at(w)]) * v[at((b * N + j) * e + h * D + c)] / 2 *
                    (t[at(u + 1)] - t[at(u)]);
      }
  return out;
}

template <class T, class B>
std::vector<double> numbers(const Tensor<T, B>& x) {
  const auto host = x.to_vector();
  return std::vector<double>(host.begin(), host.end());
}

/// Holds reads and densities over a basis to the definition; how many nodes 101 places make.
template <class T, class B, class Psi, class Exact>
Index nodes_of_right_reads(const Psi& psi, const Exact& exact, Random& random) {
  using V = Variable<T, B>;
  const Index N = psi.size();
  const auto t = even_places(101);
  const auto merged = sampled_basis<B>(psi, t, true), all = sampled_basis<B>(psi, t, false);
  const auto q = uniform_tensor<T, B>({2, 3, 4}, random, -3, 3),
             k = uniform_tensor<T, B>({2, N, 4}, random),
             v = uniform_tensor<T, B>({2, N, 4}, random);
  const auto expected = definition(exact, t, numbers(q), numbers(k), numbers(v), 2, 3, 2, 2);
  for (const auto& at : {merged, all}) {
    CHECK(error(infty::gibbs_expectation(at, V(q), V(k), V(v), 2).value().to_vector(),
                expected.read) < 10 * infty::tests::tolerance<T>);
    CHECK(error(infty::gibbs_density(at, q, k, 2).to_vector(), expected.density) <
          10 * infty::tests::tolerance<T>);
  }
  return merged.psi.dim(0);
}

TEMPLATE_LIST_TEST_CASE("gibbs_expectation: the definition, of smooth functions and of cells", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const GaussianBasis<T> smooth(6, {.1, .3});
  CHECK(nodes_of_right_reads<T, B>(smooth, GaussianBasis<double>(6, {.1, .3}), random) == 101);
  const RectangularBasis<T> cells(8), open(8, LastCell::open);
  CHECK(nodes_of_right_reads<T, B>(cells, RectangularBasis<double>(8), random) == 8);
  CHECK(nodes_of_right_reads<T, B>(open, RectangularBasis<double>(8, LastCell::open), random) ==
        9);  // a node a cell, and t = 1
}

TEST_CASE("gibbs_expectation: two cells by hand") {
  // Places 0, 1/4 in the first cell, weights 1/8 + 1/4; 1/2, 3/4, 1 in the second, 1/4 + 1/4 + 1/8.
  const auto at =
      sampled_basis<infty::EigenBackend>(RectangularBasis<double>(2), even_places(5), true);
  CHECK(at.weight.to_vector() == std::vector<double>{.375, .625});
  CHECK(at.node.to_vector() == std::vector<Index>{0, 0, 1, 1, 1});
  // .375 e^(log 5) = .625 e^(log 3)
  const Variable<double> q(Tensor<double>::from({1, 1, 1}, {1})),
      k(Tensor<double>::from({1, 2, 1}, {std::log(5.0), std::log(3.0)})),
      v(Tensor<double>::from({1, 2, 1}, {2, 8}));
  CHECK(infty::gibbs_expectation(at, q, k, v, 1).value().item() == Approx(5));
  CHECK(infty::gibbs_density(at, q.value(), k.value(), 1).to_vector()[0] == Approx(.5 / .375));
}

template <class Psi>
void check_gradients(const Psi& psi) {
  Random random(infty::tests::seed);
  const auto at = sampled_basis<infty::EigenBackend>(psi, even_places(50), true);
  const auto q = uniform_variable<double>({2, 3, 4}, random, -2, 2),
             k = uniform_variable<double>({2, 6, 4}, random),
             v = uniform_variable<double>({2, 6, 4}, random);
  const Variable<double> by(uniform_tensor<double>({2, 3, 4}, random));
  const auto loss = [&] { return sum(infty::gibbs_expectation(at, q, k, v, 2) * by); };
  CHECK(infty::gradient_check(loss, std::vector{q, k, v}) < 1e-8);
  // One alone.
  const Variable<double> fixed_q(q.value()), fixed_k(k.value());
  const auto alone = [&] { return sum(infty::gibbs_expectation(at, fixed_q, fixed_k, v, 2) * by); };
  CHECK(infty::gradient_check(alone, std::vector{v}) < 1e-8);
}

TEST_CASE("gibbs_expectation: gradients of queries, keys and values") {
  check_gradients(GaussianBasis<double>(6, {.1, .3}));
  check_gradients(RectangularBasis<double>(6, LastCell::open));
}

TEST_CASE("sampled_basis: in float nothing is so small that its products are denormal") {
  const GaussianBasis<double> exact(64, {.01, .02});
  const auto places = even_places(300);
  const auto all = sampled_basis<infty::EigenBackend>(exact, places, false).psi.to_vector();
  const auto rounded =
      sampled_basis<infty::EigenBackend>(exact.cast<float>(), places, false).psi.to_vector();
  REQUIRE(rounded.size() == all.size());
  std::size_t small = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float value = rounded[i];
    REQUIRE((value == 0 || std::isnormal(value * value)));
    REQUIRE(std::fabs(static_cast<double>(value) - all[i]) <= 1e-5 * all[i] + 1.1e-19);
    if (value == 0 && all[i] > 1e-30) ++small;
  }
  CHECK(small > 100);  // which float has, and which are left out
}

TEST_CASE("gibbs_expectation: scores that exp would overflow at choose the largest") {
  const auto at =
      sampled_basis<infty::EigenBackend>(RectangularBasis<float>(4), even_places(100), true);
  const Variable<float> q(Tensor<float>::from({1, 2, 1}, {1000, -1000}), true),
      k(Tensor<float>::from({1, 4, 1}, {1, 2, -3, 0}), true),
      v(Tensor<float>::from({1, 4, 1}, {10, 20, 30, 40}), true);
  infty::Tape tape;
  const auto y = infty::gibbs_expectation(at, q, k, v, 1);
  CHECK(y.value().to_vector() == std::vector<float>{20, 30});
  tape.backward(sum(y));
  CHECK(k.grad().to_vector() == std::vector<float>(4, 0));
  CHECK(v.grad().to_vector() == std::vector<float>{0, 1, 1, 0});
}

TEMPLATE_LIST_TEST_CASE("gibbs_bin_probability: where queries look, and the program's shift", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  constexpr Index bins = 8;
  const auto at = sampled_basis<B>(RectangularBasis<T>(4), infty::edge_places(bins), false);
  const auto even = infty::gibbs_bin_probability(at, Tensor<T, B>::zeros({2, 3, 2}),
                                                 Tensor<T, B>::zeros({2, 4, 2}), 2, false);
  CHECK(even.shape() == Shape{2, bins});
  for (const T p : even.to_vector()) CHECK(p == Approx(1. / bins).epsilon(1e-5));
  // Row 0 looks at the second of four cells, [1/4, 1/2): at the edges 2/8 and 3/8, so that by the
  // trapezoid rule half of a bin's width lies on either side.
  const auto q = Tensor<T, B>::from({2, 1, 1}, {1, 0});
  const auto k = Tensor<T, B>::from({2, 4, 1}, {0, 40, 0, 0, 0, 0, 0, 0});
  const auto right = infty::gibbs_bin_probability(at, q, k, 1, false).to_vector();
  const std::vector<double> expected{0, .25, .5, .25, 0, 0, 0, 0};
  CHECK(error(std::vector<T>(right.begin(), right.begin() + bins), expected) < 1e-6);
  const auto shifted = infty::gibbs_bin_probability(at, q, k, 1, true).to_vector();
  const std::vector<double> moved{.25, .5, .25, 0, 0, 0, 0, 0};
  CHECK(error(std::vector<T>(shifted.begin(), shifted.begin() + bins), moved) < 1e-6);
  CHECK(shifted.back() == 0);  // row 1 looks everywhere: 7 bins share what 8 had
  CHECK(shifted[bins] == Approx(1. / 7).epsilon(1e-5));
}

TEST_CASE("gibbs_expectation, sampled_basis: what does not fit is refused in words") {
  const RectangularBasis<double> psi(4);
  const auto at = sampled_basis<infty::EigenBackend>(psi, even_places(10), true);
  const auto zeros = [](Shape shape) { return Variable<double>(Tensor<double>::zeros(shape)); };
  const auto good = zeros({1, 4, 6});
  CHECK_NOTHROW(infty::gibbs_expectation(at, zeros({1, 0, 6}), good, good, 2));
  CHECK_THROWS_AS(infty::gibbs_expectation(at, zeros({1, 2, 6}), good, zeros({1, 5, 6}), 2),
                  infty::ShapeError);
  CHECK_THROWS_AS(infty::gibbs_expectation(at, zeros({1, 2, 6}), good, good, 4), infty::ShapeError);
  CHECK_THROWS_AS(infty::gibbs_expectation(at, zeros({2, 2, 6}), good, good, 2), infty::ShapeError);
  CHECK_THROWS_AS(
      infty::gibbs_bin_probability(at, zeros({1, 2, 6}).value(), good.value(), 2, false),
      infty::ShapeError);
  CHECK_THROWS_WITH(even_places(1), "[even_places] points is 1: it must be at least 2");
  CHECK_THROWS_AS(infty::edge_places(0), infty::ValueError);
  CHECK_THROWS_AS((sampled_basis<infty::EigenBackend>(psi, {0., .5, .5}, true)), infty::ValueError);
  CHECK_THROWS_AS((sampled_basis<infty::EigenBackend>(psi, {0.}, true)), infty::ValueError);
}

}  // namespace gibbs_tests
