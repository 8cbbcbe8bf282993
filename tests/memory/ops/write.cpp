// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/write.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace writing {

using infty::GaussianBasis;
using infty::Index;
using infty::Random;
using infty::RidgeCache;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

constexpr Index N = 8, d = 3, samples = 6;

template <class T, class B>
auto make_cache() {
  return RidgeCache<T, B, GaussianBasis<T>>(GaussianBasis<T>(N, {.05, .2}),
                                            {.penalty = .5, .samples = samples, .tau = .75});
}

template <class T, class B>
struct Rows {
  Random random{infty::tests::seed};
  RidgeCache<T, B, GaussianBasis<T>> cache = make_cache<T, B>();
  Tensor<T, B> old = infty::tests::uniform_tensor<T, B>({4, N, d}, random);
  Variable<T, B> x = infty::tests::uniform_variable<T, B>({4, 5, d}, random);
  const RowCounts none = {};
  const Tensor<T, B> largest = {};

  infty::WrittenSignal<T, B> before(const RowCounts& written) const {
    return {old, written, none, none, largest};
  }
};

}  // namespace

TEST_CASE("write_coefficients: rows are cut into runs of equal length and age") {
  using infty::detail::OldSignal;
  const auto runs = infty::detail::write_runs(
      {0, 0, 3, 3, 0, 3, 3}, {2, 2, 2, 4, 4, 4, 0}, [](std::size_t row) { return row == 3; },
      [](std::size_t, std::size_t) { return true; });
  REQUIRE(runs.size() == 6);
  CHECK((runs[0].begin == 0 && runs[0].end == 2 && runs[0].length == 2));
  CHECK(runs[0].old == OldSignal::none);
  CHECK((runs[1].begin == 2 && runs[1].end == 3 && runs[1].old == OldSignal::sampled));
  CHECK((runs[2].length == 4 && runs[2].old == OldSignal::multiplied));
  CHECK((runs[3].end == 5 && runs[3].old == OldSignal::none));
  CHECK((runs[4].length == 4 && runs[4].old == OldSignal::sampled));
  CHECK((runs[5].length == 0 && runs[5].old == OldSignal::kept));
}

TEMPLATE_LIST_TEST_CASE("write_coefficients: rows of any age and count as if each were alone", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Rows<T, B> r;
  const RowCounts written{0, 7, 7, 0}, counts{5, 5, 3, 0};
  const auto places = infty::tests::uniform_tensor<T, B>({4, samples}, r.random, 0, 1);
  for (const auto& locations : {Tensor<T, B>(), places}) {
    const auto together =
        infty::write_coefficients(r.cache, r.before(written), r.x, counts, locations).value();
    for (Index row = 0; row < 4; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const auto own = infty::detail::aligned(r.x.value().slice(row, row + 1), counts[at]);
      const auto alone = infty::write_coefficients(
          r.cache, {r.old.slice(row, row + 1), {written[at]}, r.none, r.none, r.largest},
          Variable<T, B>(own), {counts[at]},
          locations.empty() ? locations : locations.slice(row, row + 1));
      CAPTURE(row);
      CHECK(
          infty::tests::error(alone.value().to_vector(), together.slice(row, row + 1).to_vector()) <
          infty::tests::tolerance<T>);
    }
    CHECK(together.slice(3, 4).to_vector() == r.old.slice(3, 4).to_vector());
  }
}

TEMPLATE_LIST_TEST_CASE("write_coefficients: evenly spaced locations are the carry matrix", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Rows<T, B> r;
  const RowCounts written(4, 9), counts(4, 5);
  Tensor<T, B> even(Shape{4, samples});
  for (Index row = 0; row < 4; ++row)
    even.slice(row, row + 1).reshape({samples}).copy_from(infty::even_locations<T, B>(samples));
  const auto a = infty::write_coefficients(r.cache, r.before(written), r.x, counts, {});
  const auto b = infty::write_coefficients(r.cache, r.before(written), r.x, counts, even);
  // The carry matrix multiplies numbers up to 1 / (width sqrt(2 pi)) = 8 beforehand.
  CHECK(infty::tests::error(a.value().to_vector(), b.value().to_vector()) <
        10 * infty::tests::tolerance<T>);
}

TEST_CASE("write_coefficients: rows under a rule have matrices of their own; what is only read") {
  Rows<double, infty::EigenBackend> r;
  const GaussianBasis<double> psi(N, {.05, .2});
  const RidgeCache<double, infty::EigenBackend, GaussianBasis<double>> ruled(
      psi, {.penalty = .5,
            .samples = samples,
            .contraction = infty::PowerContraction{1},
            .bounded = true});
  const RowCounts written{5, 50, 50, 0}, counts{5, 5, 5, 5}, zero(4, 0);
  const auto largest = Tensor<double>::full({4, d}, .5);
  auto before =
      infty::WrittenSignal<double, infty::EigenBackend>{r.old, written, zero, zero, largest};
  const auto clamped = infty::write_coefficients(ruled, before, r.x, counts, {}).value();
  Tensor<double> carried;
  before.only_read = &carried;
  const auto shown = infty::write_coefficients(ruled, before, r.x, counts, {}).value();
  REQUIRE(carried.shape() == r.old.shape());
  CHECK(infty::write_coefficients(ruled, before, r.x, counts, {}).value().to_vector() ==
        shown.to_vector());
  const auto kept = carried.clone();
  carried.slice(1, 2).fill(0);  // what is there is taken from there
  CHECK(
      infty::tests::error(
          infty::write_coefficients(ruled, before, r.x, counts, {}).value().slice(1, 2).to_vector(),
          fit(ruled.next(5, 50).next_new, r.x.value().slice(1, 2)).to_vector()) < 1e-13);
  carried = kept;
  for (Index row = 0; row < 3; ++row) {
    const auto next = ruled.next(5, written[static_cast<std::size_t>(row)]);
    const auto old = r.old.slice(row, row + 1), x = r.x.value().slice(row, row + 1);
    CHECK(infty::tests::error(shown.slice(row, row + 1).to_vector(),
                              update(next, old, x).to_vector()) < 1e-13);
    auto sampled = resample(psi, old, infty::even_locations<double, infty::EigenBackend>(samples));
    infty::detail::clamp_samples(sampled, largest.data());
    auto want = fit(next.next_old, sampled).to_vector();
    const auto of_new = fit(next.next_new, x).to_vector();
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += of_new[i];
    CHECK(infty::tests::error(clamped.slice(row, row + 1).to_vector(), want) < 1e-13);
    CHECK(infty::tests::error(clamped.slice(row, row + 1).to_vector(),
                              shown.slice(row, row + 1).to_vector()) > .01);
  }
  CHECK(clamped.slice(3, 4).to_vector() ==
        fit(ruled.first(5), r.x.value().slice(3, 4)).to_vector());
}

TEST_CASE("write_coefficients: shapes and counts that do not fit are refused") {
  const auto cache = make_cache<double, infty::EigenBackend>();
  const Tensor<double> old = Tensor<double>::zeros({2, N, d}),
                       largest = Tensor<double>::zeros({2, d});
  const RowCounts none{0, 0};
  const auto write = [&](const Tensor<double>& before, const Shape& x, const RowCounts& counts) {
    infty::write_coefficients(cache, {before, none, none, none, largest},
                              Variable<double>(Tensor<double>::zeros(x)), counts, {});
  };
  CHECK_NOTHROW(write(old, {2, 3, d}, {3, 2}));
  CHECK_THROWS_AS(write(old, {2, 3, d}, {3, 4}), infty::ShapeError);
  CHECK_THROWS_AS(write(old, {2, 3, d}, {3, -1}), infty::ShapeError);
  CHECK_THROWS_AS(write(old, {2, 3, d}, {3}), infty::ShapeError);
  CHECK_THROWS_AS(write(old, {1, 3, d}, {3}), infty::ShapeError);
  CHECK_THROWS_AS(write(Tensor<double>::zeros({2, N + 1, d}), {2, 3, d}, {3, 3}),
                  infty::ShapeError);
}

TEST_CASE("write_coefficients: gradient of the new vectors, none of the old coefficients") {
  Rows<double, infty::EigenBackend> r;
  const RowCounts written{0, 7, 7, 0}, counts{5, 5, 3, 0};
  const Variable<double> by(infty::tests::uniform_tensor<double>({4, N, d}, r.random));
  const auto places = infty::tests::uniform_tensor<double>({4, samples}, r.random, 0, 1);
  for (const auto& locations : {Tensor<double>(), places}) {
    const auto loss = [&] {
      return infty::sum(
          infty::write_coefficients(r.cache, r.before(written), r.x, counts, locations) * by);
    };
    CHECK(infty::gradient_check(loss, std::vector{r.x}) < 1e-8);
    // The first two of five stand before the three that row 2 takes in.
    for (Index i = 0; i < 2 * d; ++i) CHECK(r.x.grad().data()[2 * 5 * d + i] == 0);
    // All of it flows to the old ones of a row that takes nothing in, also where x needs none.
    const Variable<double> old(r.old, true);
    const Variable<double> given(r.x.value(), locations.empty());
    const RowCounts many{3, 7, 7, 9};
    infty::Tape tape;
    tape.backward(
        infty::sum(infty::write_coefficients(r.cache, {old, many, r.none, r.none, r.largest}, given,
                                             counts, locations) *
                   by));
    CHECK(given.has_grad() == locations.empty());
    const auto dy = by.value().to_vector(), dold = old.grad().to_vector();
    for (std::size_t i = 0; i < dold.size(); ++i)
      CHECK(dold[i] == (i < dold.size() / 4 * 3 ? 0 : dy[i]));
  }
}

}  // namespace writing
