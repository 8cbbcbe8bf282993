// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

#include <infty/core/config.hpp>

namespace support {

using infty::Index;

/// How the samples of a write warp the old signal: `operator()` is the share of them at or before a
/// place. Draws of a bin stand for all of it.
class Warp {
 public:
  /// Even: what is at t stays at t.
  Warp() = default;

  /// @param locations  of a sticky write, in [0, 1]; none: even
  Warp(const std::vector<float>& locations, Index bins) {
    if (locations.empty()) return;
    end_.resize(static_cast<std::size_t>(bins) + 1);
    for (const float t : locations) {
      const auto bin =
          static_cast<Index>(std::floor(static_cast<double>(t) * static_cast<double>(bins) + 1e-3));
      end_[static_cast<std::size_t>(std::clamp<Index>(bin, 0, bins - 1)) + 1] += 1;
    }
    for (std::size_t i = 1; i < end_.size(); ++i)
      end_[i] = end_[i - 1] + end_[i] / static_cast<double>(locations.size());
  }

  double operator()(double t) const {
    if (end_.empty()) return t;
    const auto bins = static_cast<double>(end_.size() - 1);
    const double bin = std::clamp(std::floor(t * bins), 0., bins - 1);
    const auto i = static_cast<std::size_t>(bin);
    return end_[i] + (end_[i + 1] - end_[i]) * (t * bins - bin);
  }

 private:
  std::vector<double> end_;  // the share up to the end of each bin, behind a 0
};

/// Places of [0, 1], both ends included, at which a density of any shape is kept.
inline constexpr std::size_t kept_places = 101;

/// The share of a query's attention that lies before a place of a long-term memory.
class Below {
 public:
  /// Of a Gaussian density.
  Below(double mu, double sigma) : mu_(mu), sigma_(sigma) {}

  /// Of one of any shape, by the shares before even places; it must outlive this.
  explicit Below(std::span<const float> shares) : shares_(shares) {}

  double operator()(double t) const {
    if (shares_.empty()) return .5 * std::erfc((mu_ - t) / (sigma_ * std::numbers::sqrt2));
    return between(shares_, t);
  }

  /// What numbers at even places of [0, 1], both ends included, are at t, by straight lines.
  template <class Numbers>
  static double between(const Numbers& numbers, double t) {
    const auto last = static_cast<double>(numbers.size() - 1), at = std::clamp(t, 0., 1.) * last;
    const double from = std::min(std::floor(at), last - 1);
    const auto i = static_cast<std::size_t>(from);
    const auto a = static_cast<double>(numbers[i]), b = static_cast<double>(numbers[i + 1]);
    return a + (at - from) * (b - a);
  }

 private:
  double mu_ = 0, sigma_ = 1;
  std::span<const float> shares_;
};

/// The shares before `kept_places` of many densities, each given by its values at so many even
/// places, both ends included, and integrated as these are by the trapezoid rule.
inline std::vector<float> shares_before(const std::vector<float>& densities, std::size_t points) {
  std::vector<float> out;
  std::vector<double> until(points);
  for (std::size_t first = 0; first < densities.size(); first += points) {
    for (std::size_t i = 1; i < points; ++i)
      until[i] = until[i - 1] + (static_cast<double>(densities[first + i - 1]) +
                                 static_cast<double>(densities[first + i])) /
                                    2 / static_cast<double>(points - 1);
    for (std::size_t i = 0; i < kept_places; ++i)
      out.push_back(static_cast<float>(
          Below::between(until, static_cast<double>(i) / static_cast<double>(kept_places - 1))));
  }
  return out;
}

/// Where each word stands in a long-term memory, and the cell of [0, 1] around it that is nearer to
/// it than to any other: the space that it has.
class Cells {
 public:
  Index size() const { return static_cast<Index>(places_.size()); }
  double place(Index word) const { return places_[static_cast<std::size_t>(word)]; }
  double begin(Index word) const { return borders_[static_cast<std::size_t>(word)]; }
  double end(Index word) const { return borders_[static_cast<std::size_t>(word) + 1]; }
  double space(Index word) const { return end(word) - begin(word); }

  /// A write of `count` words [Martins et al. 2022, Eq. 13-17]: what was there is warped and
  /// contracted to tau, and the words behind it have even cells.
  void write(Index count, double tau, const Warp& warp) {
    const bool first = places_.empty();
    const double from = first ? 0 : tau;
    for (double& t : places_) t = tau * warp(t);
    for (double& t : borders_) t = tau * warp(t);
    for (Index i = 0; i < count; ++i) {
      // The first write's words stand in the middle of their cells, later ones at the end.
      const double at = static_cast<double>(i) + (first ? .5 : 1);
      places_.push_back(from + (1 - from) * at / static_cast<double>(count));
      borders_.push_back(from +
                         (1 - from) * static_cast<double>(i + 1) / static_cast<double>(count));
    }
  }

  /// The share of a density that lies in a word's cell. @param below  its share before a place
  template <class Below>
  double mass(Index word, const Below& below) const {
    return below(end(word)) - below(begin(word));
  }

 private:
  std::vector<double> places_, borders_{0};
};

}  // namespace support
