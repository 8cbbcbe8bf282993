// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/feature_map.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace feature_map_tests {

using infty::FeatureMap;
using infty::HeadFeatures;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;

constexpr infty::AttentionSizes sizes{.model_dim = 5, .heads = 2, .head_dim = 3};

/// Features of vectors [n, H 3], as the papers write them.
std::vector<double> by_definition(FeatureMap map, Index D, const std::vector<double>& x,
                                  const std::vector<double>& weight,
                                  const std::vector<double>& other) {
  std::vector<double> out;
  for (std::size_t at = 0; at < x.size(); at += 3) {
    const std::size_t h = at / 3 % 2, n = static_cast<std::size_t>(D);
    const double length = std::sqrt(x[at] * x[at] + x[at + 1] * x[at + 1] + x[at + 2] * x[at + 2]);
    std::vector<double> first, second;
    for (std::size_t i = 0; i < n; ++i) {
      double sum = map == FeatureMap::learned ? other[h * n + i] : 0;
      for (std::size_t c = 0; c < 3; ++c)
        sum += weight[(h * n + i) * 3 + c] *
               (map == FeatureMap::learned ? x[at + c] : other[h * 3 + c] * x[at + c] / length);
      const double root = std::sqrt(1. / static_cast<double>(D));
      if (map == FeatureMap::learned)
        first.push_back(std::max(sum, 0.));
      else if (map == FeatureMap::arc_cosine)
        first.push_back(root * std::max(sum, 0.));
      else
        first.push_back(root * std::sin(sum)), second.push_back(root * std::cos(sum));
    }
    out.insert(out.end(), first.begin(), first.end());
    out.insert(out.end(), second.begin(), second.end());
  }
  return out;
}

template <class T, class B>
std::vector<double> doubles(const Variable<T, B>& x) {
  const auto numbers = x.value().to_vector();
  return {numbers.begin(), numbers.end()};
}

/// The largest difference between φ(x)·φ(y) and what it stands for, of pairs of vectors of length
/// 1 on a circle.
double largest_error(FeatureMap map, Index D, double sigma) {
  HeadFeatures<double> features(map, D, {.model_dim = 1, .heads = 1, .head_dim = 2}, Random(4));
  features.deviations.value().fill(sigma);
  std::vector<double> circle;
  for (int i = 0; i < 16; ++i) {
    circle.push_back(std::cos(i * .39));
    circle.push_back(std::sin(i * .39));
  }
  const auto phi = features.forward(Variable<double>(Tensor<double>::from({1, 16, 2}, circle)))
                       .value()
                       .to_vector();
  const auto width = static_cast<std::size_t>(features.width());
  double worst = 0;
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 16; ++j) {
      double product = 0;
      for (std::size_t n = 0; n < width; ++n) product += phi[i * width + n] * phi[j * width + n];
      const double cosine = circle[2 * i] * circle[2 * j] + circle[2 * i + 1] * circle[2 * j + 1];
      const double angle = std::acos(std::clamp(cosine, -1., 1.)), pi = std::acos(-1.);
      const double kernel =
          map == FeatureMap::gaussian
              ? std::exp(sigma * sigma * (cosine - 1))
              : sigma * sigma * (std::sin(angle) + (pi - angle) * std::cos(angle)) / (2 * pi);
      worst = std::max(worst, std::abs(product - kernel));
    }
  return worst;
}

TEMPLATE_LIST_TEST_CASE("sines_and_cosines: by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const double half_pi = std::acos(0.);
  const Variable<T, B> x(
      Tensor<T, B>::from({2, 2}, {T(0), T(half_pi), T(-half_pi), T(half_pi / 3)}));
  CHECK(error(infty::sines_and_cosines(x, T(2)).value().to_vector(),
              std::vector<double>{0, 2, 2, 0, -2, 1, 0, std::sqrt(3.)}) <
        infty::tests::tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("sines_and_cosines: angles of any size, among others and alone", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Limits = std::numeric_limits<T>;
  std::vector<T> angles;
  for (const double x : {0., 1e-30, .7, -3., 99., -8191., 8193., 1e5, -1e8, 1e9, 1e15, -1e30})
    angles.push_back(static_cast<T>(x));
  for (const T x : {Limits::max(), Limits::infinity(), Limits::quiet_NaN()}) angles.push_back(x);
  const auto n = static_cast<Index>(angles.size());
  const auto all =
      infty::sines_and_cosines(Variable<T, B>(Tensor<T, B>::from({1, n}, angles))).value();
  const auto alone =
      infty::sines_and_cosines(Variable<T, B>(Tensor<T, B>::from({n, 1}, angles))).value();
  const auto found = all.to_vector(), one = alone.to_vector();
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const auto x = static_cast<long double>(angles[i]);
    const T sine = found[i], cosine = found[angles.size() + i];
    CAPTURE(x);
    if (!std::isfinite(x)) {
      CHECK(std::isnan(sine));
      CHECK(std::isnan(cosine));
      continue;
    }
    CHECK(std::abs(static_cast<long double>(sine) - std::sin(x)) < 2 * Limits::epsilon());
    CHECK(std::abs(static_cast<long double>(cosine) - std::cos(x)) < 2 * Limits::epsilon());
    CHECK(std::abs(one[2 * i] - sine) <= Limits::epsilon());
    CHECK(std::abs(one[2 * i + 1] - cosine) <= Limits::epsilon());
  }
}

TEMPLATE_LIST_TEST_CASE("HeadFeatures: every map as the papers write it", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const Variable<T, B> x(uniform_tensor<T, B>({2, 4, 6}, random));
  for (const auto map : {FeatureMap::gaussian, FeatureMap::arc_cosine, FeatureMap::learned}) {
    HeadFeatures<T, B> features(map, 5, sizes, Random(2));
    const bool learned = map == FeatureMap::learned;
    if (!learned) fill_uniform(features.deviations.value(), .5, 2, random);
    CHECK(features.width() == (map == FeatureMap::gaussian ? 10 : 5));
    const auto y = features.forward(x);
    CHECK(y.shape() == Shape{2, 4, 2, features.width()});
    CHECK(error(doubles(y), by_definition(map, 5, doubles(x),
                                          doubles(learned ? features.weight : features.projections),
                                          doubles(learned ? features.bias : features.deviations))) <
          infty::tests::tolerance<T>);
  }
  HeadFeatures<T, B> same(FeatureMap::identity, 5, sizes, Random(2));
  CHECK(same.forward(x).value().to_vector() == x.value().to_vector());
  CHECK(same.width() == 3);
}

TEST_CASE("HeadFeatures: gradients of vectors and of all parameters") {
  Random random(infty::tests::seed);
  const auto x = uniform_variable<double>({2, 3, 6}, random);
  for (const auto map : {FeatureMap::elu_plus_one, FeatureMap::gaussian, FeatureMap::arc_cosine,
                         FeatureMap::learned}) {
    HeadFeatures<double> features(map, 4, sizes, Random(2));
    const Variable<double> by(uniform_tensor<double>({2, 3, 2, features.width()}, random));
    auto all = infty::named_parameters<double>(features);
    all.push_back({"x", x});
    CHECK(infty::gradient_check([&] { return infty::sum(features.forward(x) * by); }, all) < 1e-8);
  }
  const auto angles = uniform_variable<double>({3, 4}, random);
  CHECK(infty::gradient_check(
            [&] {
              const auto y = infty::sines_and_cosines(angles, 1.5);
              return infty::sum(y * y * y);
            },
            std::vector{angles}) < 1e-8);
}

TEST_CASE("HeadFeatures: random ones approach their kernel as there are more of them") {
  for (const auto map : {FeatureMap::gaussian, FeatureMap::arc_cosine})
    for (const double sigma : {.5, 1., 1.5}) {
      const double few = largest_error(map, 64, sigma), many = largest_error(map, 64 * 256, sigma);
      CAPTURE(sigma, few, many);
      CHECK(many < .05 * sigma * sigma);
      CHECK(many < few / 4);  // by 16, but for chance
    }
}

TEST_CASE("HeadFeatures: projections are drawn once, by seed and head, and anew where asked to") {
  HeadFeatures<double> features(FeatureMap::gaussian, 4, sizes, Random(2)),
      again(FeatureMap::gaussian, 4, sizes, Random(2)),
      other(FeatureMap::gaussian, 4, sizes, Random(3));
  const auto first = features.projections.value().to_vector();
  CHECK(again.projections.value().to_vector() == first);
  CHECK(other.projections.value().to_vector() != first);
  CHECK(std::vector<double>(first.begin(), first.begin() + 12) !=
        std::vector<double>(first.begin() + 12, first.end()));
  CHECK_FALSE(features.projections.requires_grad());
  CHECK(features.deviations.requires_grad());
  features.redraw(Random(5));
  CHECK(features.projections.value().to_vector() != first);
  HeadFeatures<double> learned(FeatureMap::learned, 4, sizes, Random(2));
  CHECK_THROWS_WITH(learned.redraw(Random(5)),
                    "[HeadFeatures::redraw] the map has no random projections");
  CHECK_THROWS_AS(HeadFeatures<double>(FeatureMap::learned, 0, sizes, Random(2)),
                  infty::ValueError);
  CHECK_THROWS_AS(HeadFeatures<double>(FeatureMap::learned, Index(1) << 62, sizes, Random(2)),
                  infty::ValueError);
  CHECK_THROWS_AS(infty::sines_and_cosines(Variable<double>(Tensor<double>::zeros({2, 0}))),
                  infty::ShapeError);
}

}  // namespace feature_map_tests

TEST_CASE("HeadFeatures: no heads are refused, also of a map without parameters") {
  CHECK_THROWS_WITH(
      (infty::HeadFeatures<float>(infty::FeatureMap::identity, 1, {.heads = 0}, infty::Random(1))),
      "[HeadFeatures] heads is 0: it must be at least 1");
}
