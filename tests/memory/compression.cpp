// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/memory/compression.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Compression;
using infty::Compressor;
using infty::Index;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

using Vectors = std::vector<std::vector<double>>;

/// b + W (first, second, ...), in plain loops.
template <class T, class B>
std::vector<double> mapped_together(const infty::Linear<T, B>& map, const Vectors& all) {
  std::vector<double> joined;
  for (const auto& x : all) joined.insert(joined.end(), x.begin(), x.end());
  const auto weight = map.weight.value().to_vector();
  std::vector<double> y;
  for (const T bias : map.bias.value().to_vector()) {
    const std::size_t row = y.size() * joined.size();
    y.push_back(static_cast<double>(bias));
    for (std::size_t j = 0; j < joined.size(); ++j)
      y.back() += static_cast<double>(weight[row + j]) * joined[j];
  }
  return y;
}

/// A group in plain loops; the dilated stack as it is defined, place by place, with zeros in front.
template <class T, class B>
std::vector<double> plainly_compressed(const Compressor<T, B>& layer, Compression kind,
                                       Vectors group) {
  const std::size_t c = group.size(), d = group[0].size();
  std::vector<double> y(d, 0.0);
  if (kind == Compression::convolution) return mapped_together(layer.maps[0], group);
  if (kind == Compression::dilated) {
    for (std::size_t level = 0, dilation = 1; level < layer.maps.size(); ++level, dilation *= 2) {
      if (level > 0)
        for (auto& x : group)
          for (double& v : x) v = std::max(v, 0.0);
      Vectors next;
      for (std::size_t i = 0; i < c; ++i)
        next.push_back(mapped_together(
            layer.maps[level],
            {i >= dilation ? group[i - dilation] : std::vector<double>(d, 0.0), group[i]}));
      group = next;
    }
    return group.back();
  }
  for (std::size_t j = 0; j < d; ++j) {
    double sum = 0, largest = group[0][j];
    for (const auto& x : group) {
      sum += x[j] / static_cast<double>(c);
      largest = std::max(largest, x[j]);
    }
    y[j] = kind == Compression::mean ? sum : largest;
  }
  return y;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Compressor: groups as plain loops compress them", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const auto kind :
       {Compression::mean, Compression::max, Compression::convolution, Compression::dilated})
    for (const Index c : {1, 2, 3, 4, 6}) {
      const Compressor<T, B> layer(kind, c, 3, Random(7));
      const auto x = infty::tests::uniform_tensor<T, B>({2, 2 * c, 3}, random);
      const auto y = layer.forward(Variable<T, B>(x));
      CHECK(y.shape() == Shape{2, 2, 3});
      const auto in = x.to_vector();
      std::vector<double> expected;
      for (std::size_t group = 0; group < 4; ++group) {
        Vectors vectors;
        for (std::size_t i = 0; i < static_cast<std::size_t>(c); ++i) {
          const auto from = in.begin() + static_cast<std::ptrdiff_t>(
                                             (group * static_cast<std::size_t>(c) + i) * 3);
          vectors.emplace_back(from, from + 3);
        }
        const auto one = plainly_compressed(layer, kind, vectors);
        expected.insert(expected.end(), one.begin(), one.end());
      }
      CAPTURE(static_cast<int>(kind), c);
      CHECK(infty::tests::error(y.value().to_vector(), expected) < infty::tests::tolerance<T>);
      const Variable<T, B> nothing(Tensor<T, B>::zeros({2, 0, 3}));
      CHECK(layer.forward(nothing).shape() == Shape{2, 0, 3});
    }
}

TEST_CASE("Compressor: gradients of what is learned and of the vectors") {
  Random random(infty::tests::seed);
  for (const auto kind :
       {Compression::mean, Compression::max, Compression::convolution, Compression::dilated})
    for (const Index c : {1, 3, 4}) {
      Compressor<double> layer(kind, c, 3, Random(7));
      const auto x = infty::tests::uniform_variable<double>({2, 2 * c, 3}, random);
      auto inputs = infty::parameters<double>(layer);
      inputs.push_back(x);
      const auto loss = [&] {
        const auto y = layer.forward(x);
        return infty::sum(y * y);
      };
      CAPTURE(static_cast<int>(kind), c);
      CHECK(infty::gradient_check(loss, inputs) < 1e-8);
    }
}

TEST_CASE("Compressor: vectors without numbers are refused") {
  for (const auto kind : {infty::Compression::mean, infty::Compression::max}) {
    const infty::Compressor<double> compressor(kind, 2, 3, infty::Random(1));
    CHECK_THROWS_AS(compressor.forward(Variable<double>(Tensor<double>::zeros({1, 4, 0}))),
                    infty::ShapeError);
  }
}

TEST_CASE("Compressor: of equal numbers the first has the gradient of their maximum") {
  const Compressor<double> layer(Compression::max, 3, 1, Random(0));
  const Variable<double> x(Tensor<double>::from({1, 3, 1}, {1, 2, 2}), true);
  infty::Tape tape;
  tape.backward(infty::sum(layer.forward(x)));
  CHECK(x.grad().to_vector() == std::vector<double>{0, 1, 0});
}

TEMPLATE_LIST_TEST_CASE("most_used: the vectors of highest average, in their order", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T nan = std::numeric_limits<T>::quiet_NaN();
  // Three rows of at most four vectors, two of which stay: averages 1, 3, 2, 3; the last two of a
  // row that has no more; none; and of equal averages the later ones.
  const infty::RowSequences<T, B> x{
      Tensor<T, B>::from({4, 4, 1}, {1, 2, 3, 4, 0, 0, 5, 6, 0, 0, 0, 0, 7, 8, 9, 10}),
      RowCounts{4, 2, 0, 4}};
  const auto usage =
      Tensor<T, B>::from({4, 4, 2}, {2, 2, 3, 1, 8, 4, 3, 1, 9, 1, 9, 1, 1, 1, 2, 2,
                                     9, 1, 9, 1, 9, 1, 9, 1, 1, 1, 1, 1, 2, 2, 0, 0});
  const auto y = infty::detail::most_used(x, usage, 2);
  CHECK(y.shape() == Shape{4, 2, 1});
  CHECK(y.to_vector() == std::vector<T>{2, 4, 0, 6, 0, 0, 8, 9});
  // Averages that are no numbers choose something, but nothing outside of the row.
  const auto wrong = infty::detail::most_used(x, Tensor<T, B>::full({4, 4, 2}, nan), 2);
  CHECK(wrong.shape() == Shape{4, 2, 1});
  CHECK(infty::detail::most_used(x, usage, 1).to_vector() == x.vectors.to_vector());
}

TEST_CASE("Compressor: what cannot be is refused") {
  CHECK_THROWS_WITH(Compressor<float>(Compression::mean, 0, 3, Random(0)),
                    "[Compressor] c is 0, d is 3: both must be >= 1");
  for (const auto kind : {Compression::mean, Compression::convolution, Compression::dilated})
    CHECK_THROWS_WITH(
        Compressor<float>(kind, std::numeric_limits<infty::Index>::max(), 3, Random(0)),
        Catch::Contains("[Compressor] c is 9223372036854775807: it must be at most"));
  const Compressor<float> layer(Compression::mean, 2, 3, Random(0));
  CHECK_THROWS_WITH(layer.forward(Variable<float>(Tensor<float>::zeros({1, 3, 3}))),
                    "[Compressor] x is [1, 3, 3]: it must be [B, n 2, d]");
}
