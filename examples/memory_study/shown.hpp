// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>

#include "../support/model.hpp"

namespace memory_study {

using infty::Index;
using support::Shown;

/// Calls f(place, at) for every number of a tensor of this shape, with its place in each dimension.
template <class F>
void for_each_place(const std::vector<Index>& shape, const F& f) {
  std::vector<Index> place(shape.size());
  const Index size = std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>());
  for (Index at = 0; at < size; ++at) {
    f(std::as_const(place), static_cast<std::size_t>(at));
    for (std::size_t i = shape.size(); i-- > 0 && ++place[i] == shape[i];) place[i] = 0;
  }
}

/// Sums over some dimensions of numbers, to means of them.
struct Averaged {
  std::vector<std::string> axes;  ///< that are left
  std::vector<Index> shape;
  std::vector<double> sum;
  double count = 0;  ///< numbers that are added to each

  /// The value of each.
  double operator[](std::size_t at) const { return sum[at] / count; }

  /// Adds what layers have shown, but for the dimensions that `drops(axis)` says.
  /// @throws infty::ValueError if those that are left are not what they were
  template <class Drops>
  void add(const Shown& shown, const Drops& drops) {
    std::vector<std::size_t> left;
    double dropped = 1;
    Averaged now;
    for (std::size_t i = 0; i < shown.axes.size(); ++i)
      if (drops(shown.axes[i])) {
        dropped *= static_cast<double>(shown.shape[i]);
      } else {
        left.push_back(i);
        now.axes.push_back(shown.axes[i]);
        now.shape.push_back(shown.shape[i]);
      }
    if (count == 0) {
      axes = now.axes, shape = now.shape;
      sum.resize(static_cast<std::size_t>(
          std::accumulate(shape.begin(), shape.end(), Index{1}, std::multiplies<>())));
    }
    infty::require(axes == now.axes && shape == now.shape, "memory_study", shown.name,
                   " has other sizes in another segment: only its words may differ in number");
    for_each_place(shown.shape, [&](const std::vector<Index>& place, std::size_t at) {
      std::size_t to = 0;
      for (const std::size_t i : left)
        to = to * static_cast<std::size_t>(shown.shape[i]) + static_cast<std::size_t>(place[i]);
      sum[to] += static_cast<double>(shown.values[at]);
    });
    count += dropped;
  }
};

/// Into how many equal parts these shares would have to be cut to be as even: e^entropy.
inline double spread(const std::vector<double>& shares) {
  double entropy = 0;
  for (const double p : shares)
    if (p > 0) entropy -= p * std::log(p);
  return std::exp(entropy);
}

/// All that a layer shows under a name, over the texts that are read.
struct ShownByLayer {
  Averaged mean;     ///< over the words
  Averaged passage;  ///< of the words of one segment, by what is looked at or else by head

  /// Of the numbers.
  double low = 0, high = 0, sum = 0, count = 0;
  /// Behind words and heads: sums over what is looked at, of which one query's are said to be
  /// shares if they are 1.
  double groups = 0, least_group = 0, most_group = 0;
  double spreads = 0;          ///< over all queries
  std::vector<double> shares;  ///< of all queries together

  /// Whether sums over what is looked at are shares of one, or all of it.
  bool looks() const { return shares.size() > 1 && most_group < 1.001 && low >= 0; }
  bool are_shares() const { return looks() && least_group > .999; }

  /// Adds a segment; it is the passage if `keep`.
  void add(const Shown& shown, bool keep) {
    mean.add(shown, [](const std::string& axis) { return axis == "word"; });
    if (keep) {
      passage = {};
      const bool has_word = std::count(shown.axes.begin(), shown.axes.end(), "word") > 0;
      const std::string by = looked_at(shown.axes);
      if (has_word)
        passage.add(shown, [&](const std::string& axis) { return axis != "word" && axis != by; });
    }
    // The last dimensions that are neither words nor heads are one list.
    std::size_t size = 1;
    for (std::size_t i = shown.axes.size(); i-- > 0;) {
      if (shown.axes[i] == "word" || shown.axes[i] == "head") break;
      size *= static_cast<std::size_t>(shown.shape[i]);
    }
    shares.resize(size);
    for (std::size_t begin = 0; begin < shown.values.size(); begin += size) {
      std::vector<double> group;
      for (std::size_t i = begin; i < begin + size; ++i) {
        const auto x = static_cast<double>(shown.values[i]);
        low = count == 0 ? x : std::min(low, x);
        high = count == 0 ? x : std::max(high, x);
        sum += x, ++count;
        shares[i - begin] += x;
        group.push_back(x);
      }
      const double all = std::accumulate(group.begin(), group.end(), 0.);
      least_group = groups == 0 ? all : std::min(least_group, all);
      most_group = groups == 0 ? all : std::max(most_group, all);
      ++groups;
      spreads += spread(group);
    }
  }

  /// In a line: what the numbers say of all queries.
  std::string told() const {
    char text[160];
    std::vector<double> all;
    for (const double share : shares) all.push_back(share / groups);
    if (are_shares())
      std::snprintf(text, sizeof text, "each looks at %.1f of %zu, all together at %.1f",
                    spreads / groups, shares.size(), spread(all));
    else if (looks())
      std::snprintf(text, sizeof text, "%.4f in sum over %zu, from %.4f to %.4f", sum / groups,
                    shares.size(), least_group, most_group);
    else
      std::snprintf(text, sizeof text, "%.4f in the mean, from %.4f to %.4f", sum / count, low,
                    high);
    return text;
  }

  /// The last dimension that is neither words nor heads; heads if there is none.
  static std::string looked_at(const std::vector<std::string>& axes) {
    for (std::size_t i = axes.size(); i-- > 0;)
      if (axes[i] != "word" && axes[i] != "head") return axes[i];
    return "head";
  }
};

/// What is shown under a name, by layer; -1 is around the stack.
using ShownByName = std::map<std::string, std::map<Index, ShownByLayer>>;

}  // namespace memory_study
