// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include <infty/memory/retention.hpp>

#include "memories.hpp"

// How much of vectors of all ages is found in a memory's state.

namespace retention {

/// Vector i of a stream, [d], independent and standard normal.
inline void draw(Index seed, Index i, Index d, float* to) {
  Random random(static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(i));
  for (Index j = 0; j < d; ++j) to[j] = static_cast<float>(random.normal());
}

/// Ages from..to - 1, at most so many of them, evenly.
inline std::vector<Index> some_of(Index from, Index to, Index most) {
  std::vector<Index> ages;
  const Index count = std::min(most, to - from);
  for (Index i = 0; i < count; ++i) ages.push_back(from + i * (to - from) / count);
  return ages;
}

/// Ages that are measured together, two bands to every doubling.
struct Band {
  std::vector<Index> ages;
  double count;   ///< of all ages in it
  double middle;  ///< of age + 1, geometrically
};

inline std::vector<Band> bands_of(const Settings& s) {
  std::vector<Band> bands;
  for (Index from = 0; from < s.vectors;) {
    const auto next = static_cast<Index>(std::ceil(static_cast<double>(from + 1) * std::sqrt(2.)));
    const Index to = std::min(s.vectors, next - 1 > from ? next - 1 : from + 1);
    bands.push_back({some_of(from, to, s.ages), static_cast<double>(to - from),
                     std::sqrt(static_cast<double>(from + 1) * static_cast<double>(to))});
    from = to;
  }
  return bands;
}

/// What was found for one memory and seed: a share a band by the best read and, where there is one,
/// at the place; and the mean square of the same for vectors that were never written.
struct Found {
  std::vector<double> best, at_place;
  double nothing = 0;
};

/// Sums of products of two rows over the first and the second half of the coordinates.
struct Halves {
  double first = 0, second = 0;
  double all() const { return first + second; }
};
inline Halves products(const float* a, const float* b, Index d) {
  Halves sums;
  for (Index j = 0; j < d / 2; ++j) sums.first += double(a[j]) * double(b[j]);
  for (Index j = d / 2; j < d; ++j) sums.second += double(a[j]) * double(b[j]);
  return sums;
}

/// The best linear read of numbers [F, d] with an error of a hundredth of their size. It is a ridge
/// regression on the state, fitted to the same d coordinates as it is judged by, so that a share
/// h / d of anything is explained by chance, with h the numbers that are free in it: F but for the
/// ridge.
class BestRead {
 public:
  explicit BestRead(const Tensor<float>& numbers) : z_(numbers) {
    const Index F = z_.dim(0);
    const auto exact = z_.cast<double>();
    auto gram = infty::detail::matrix_product(exact, false, exact, true);
    double trace = 0;
    for (Index i = 0; i < F; ++i) trace += gram.data()[i * F + i];
    const double ridge = 1e-4 * trace / static_cast<double>(F);
    inverse_ = Tensor<double>::zeros(Shape{F, F});
    for (Index i = 0; i < F; ++i) {
      gram.data()[i * F + i] += ridge;
      inverse_.data()[i * F + i] = 1;
    }
    infty::require(infty::EigenBackend::cholesky_solve(F, F, gram.data(), inverse_.data()),
                   "BestRead", "the state holds nothing");
    double free = static_cast<double>(F);
    for (Index i = 0; i < F; ++i) free -= ridge * inverse_.data()[i * F + i];
    chance_ = free / static_cast<double>(z_.dim(1));
  }

  /// The share of a vector [d] that is in the state: what is explained, xᵀ Zᵀ (Z Zᵀ)⁻¹ Z x / |x|²,
  /// less what chance explains. That is adjusted R²: 0 on average where there is nothing, and 1
  /// where the vector itself is held.
  double operator()(const float* x) const {
    const Index F = z_.dim(0), d = z_.dim(1);
    Tensor<double> c(Shape{F, 1});
    for (Index i = 0; i < F; ++i) c.data()[i] = products(z_.data() + i * d, x, d).all();
    const auto read = infty::detail::matrix_product(inverse_, false, c, false);
    double explained = 0;
    for (Index i = 0; i < F; ++i) explained += read.data()[i] * c.data()[i];
    return (explained / products(x, x, d).all() - chance_) / (1 - chance_);
  }

 private:
  Tensor<float> z_;
  Tensor<double> inverse_;
  double chance_ = 0;
};

/// How many vectors a memory is asked for.
inline Index asked_for(const Settings& s, const std::vector<Band>& bands) {
  Index count = s.ages;  // those that were never written
  for (const Band& band : bands) count += std::ssize(band.ages);
  return count;
}

/// Calls step() behind each vector that is asked for.
template <class Step>
Found measure(const retention::Reader& reader, const Settings& s, const std::vector<Band>& bands,
              Index seed, Step&& step) {
  const Index d = s.coordinates;
  const BestRead best(reader.numbers());
  std::vector<float> x(static_cast<std::size_t>(d));
  Found found;
  for (const Band& band : bands) {
    const auto count = static_cast<double>(band.ages.size());
    Tensor<float> read;
    if (reader.at_place) read = reader.at_place(band.ages);
    double sum = 0, gains = 0, square = 0;
    for (std::size_t i = 0; i < band.ages.size(); ++i) {
      draw(seed, s.vectors - 1 - band.ages[i], d, x.data());
      sum += best(x.data());
      step();
      if (read.empty()) continue;
      const float* const y = read.data() + static_cast<Index>(i) * d;
      const Halves with = products(y, x.data(), d), own = products(y, y, d);
      gains += with.first * with.second;
      square += own.all();
    }
    found.best.push_back(sum / count);
    // Squared covariances, each of one half with the other, over the square of what is read.
    if (!read.empty()) found.at_place.push_back(4 * gains / (square * static_cast<double>(d)));
  }
  for (Index i = 0; i < s.ages; ++i) {
    draw(seed, s.vectors + i, d, x.data());
    const double share = best(x.data());
    found.nothing += share * share / static_cast<double>(s.ages);
    step();
  }
  return found;
}

/// A mean over seeds and its standard error, of which one seed says nothing.
struct Statistics {
  double mean = 0;
  std::optional<double> error = {};
};
inline Statistics over_seeds(const std::vector<double>& by_seed) {
  Statistics s;
  const auto n = static_cast<double>(by_seed.size());
  for (const double x : by_seed) s.mean += x / n;
  double squares = 0;
  for (const double x : by_seed) squares += (x - s.mean) * (x - s.mean);
  if (by_seed.size() > 1) s.error = std::sqrt(squares / (n - 1) / n);
  return s;
}
inline Statistics over_seeds(const std::vector<Found>& found, std::vector<double> Found::*member,
                             std::size_t band) {
  std::vector<double> by_seed;
  for (const Found& f : found) by_seed.push_back((f.*member)[band]);
  return over_seeds(by_seed);
}

}  // namespace retention
