// SPDX-License-Identifier: MIT
#include <cmath>
#include <vector>

#include <infty/memory/resampling.hpp>
#include <infty/signal/contraction.hpp>

#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Resampling;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::detail::Resampler;
using infty::tests::small_config;
using infty::tests::uniform_tensor;

namespace {

Resampler resampler_of(Resampling kind) {
  auto config = small_config();
  config.resampling = kind;
  config.bins = 5;
  config.samples = 10;
  return Resampler(config);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Resampler: an even one notes nothing and names no places", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto even = resampler_of(Resampling::even);
  CHECK((even.even() && !even.notes_reads() && even.bins() == 0));
  Random random(infty::tests::seed);
  auto attention = Tensor<T, B>::zeros({2, 0});
  const T* const before = attention.data();
  even.template note<infty::GaussianDensity>(attention,
                                             uniform_tensor<T, B>({2, 2, 1, 3}, random, .1, .9));
  even.forget(attention, {1, 1});
  CHECK((attention.data() == before && attention.shape() == Shape{2, 0}));
  CHECK(even.locations(attention, {3, 4}, {{0, 1}}).empty());
}

TEMPLATE_LIST_TEST_CASE("Resampler: what is noted adds up, row by row, until it is forgotten", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const auto kind : {Resampling::sticky, Resampling::sticky_quantiles}) {
    const auto sticky = resampler_of(kind);
    CHECK((!sticky.even() && sticky.notes_reads() && sticky.bins() == 5));
    // All of row 0's attention in the second bin, of row 1's in the fifth; mu, then sigma².
    const auto density = Tensor<T, B>::from({2, 2, 1, 1}, {T(.3), T(.9), T(1e-4), T(1e-4)});
    auto attention = Tensor<T, B>::zeros({2, 5});
    sticky.template note<infty::GaussianDensity>(attention, Tensor<T, B>(Shape{2, 2, 1, 0}));
    CHECK(attention.to_vector() == std::vector<T>(10, T(0)));
    for (int reads = 1; reads <= 3; ++reads) {
      const auto copy = attention;
      const auto held = copy.to_vector();
      sticky.template note<infty::GaussianDensity>(attention, density);
      CHECK(copy.to_vector() == held);  // states that share it keep what they had
      CHECK(attention.to_vector()[1] == Approx(reads));
      CHECK(attention.to_vector()[5 + 4] == Approx(reads));
    }
    const auto places = sticky.locations(attention, {0, 0}, {{0, 1}});
    REQUIRE(places.shape() == Shape{2, 10});
    const auto t = places.to_vector();
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK((static_cast<double>(t[i]) >= .2 - 1e-6 && static_cast<double>(t[i]) <= .4 + 1e-6));
      CHECK(static_cast<double>(t[10 + i]) >= .8 - 1e-6);
    }
    const auto copy = attention;
    sticky.forget(attention, {2, 0});
    CHECK(attention.to_vector()[1] == T(0));
    CHECK(attention.to_vector()[9] == Approx(3));
    CHECK(copy.to_vector()[1] == Approx(3));
  }
}

TEST_CASE("Resampler: draws are of the seed, the row's name and its writes; quantiles of none") {
  const auto attention = Tensor<double>::full({1, 5}, 1);
  const auto draws = resampler_of(Resampling::sticky);
  const auto at = [&](Index stream, Index writes) {
    return draws.locations(attention, {writes}, {{stream}}).to_vector();
  };
  CHECK(at(0, 1) == at(0, 1));
  CHECK(at(0, 1) != at(0, 2));
  CHECK(at(0, 1) != at(1, 1));
  const auto quantiles = resampler_of(Resampling::sticky_quantiles);
  CHECK(quantiles.locations(attention, {1}, {{0}}).to_vector() ==
        quantiles.locations(attention, {2}, {{7}}).to_vector());
  // Rows that were not read since the last write are sampled evenly.
  const auto none = Tensor<double>::zeros({1, 5});
  CHECK(infty::tests::error(quantiles.locations(none, {1}, {{0}}).to_vector(),
                            infty::even_locations<double, infty::EigenBackend>(10).to_vector()) <
        1e-15);
}
