// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace infty {

/// Ranks all symbols 0, ..., symbols - 1 by falling frequency in `tokens`, equal ones by their
/// first occurrence; symbols that do not occur come last, by number. The exact answer of the
/// sorting task [Martins et al. 2022, §4.1], and on the last tokens alone the best that a model
/// without longer memory could count.
/// @throws infty::ValueError if symbols < 1 or a token is outside [0, symbols)
/// @post a permutation of the symbols
inline std::vector<std::int64_t> rank_by_frequency(std::span<const std::int64_t> tokens,
                                                   Index symbols) {
  require_at_least("rank_by_frequency", "symbols", symbols, 1);
  require_sizes("rank_by_frequency", {{"symbols", symbols}});
  const auto count = static_cast<std::size_t>(symbols);
  std::vector<std::size_t> frequency(count, 0), first(count, tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    require(tokens[t] >= 0 && tokens[t] < symbols, "rank_by_frequency", "token ", t, " is ",
            tokens[t], ": it must be in [0, ", symbols, ")");
    const auto symbol = static_cast<std::size_t>(tokens[t]);
    if (frequency[symbol]++ == 0) first[symbol] = t;
  }
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    if (frequency[i] != frequency[j]) return frequency[i] > frequency[j];
    return first[i] != first[j] ? first[i] < first[j] : a < b;
  });
  return order;
}

/// Gives the answer of an exact counter that sees the last `window` tokens only, an honest floor
/// for a model with a memory of that reach.
/// @throws infty::ValueError if symbols < 1, one of the last `window` tokens is outside
/// [0, symbols), or window < 0
inline std::vector<std::int64_t> rank_by_recent_frequency(std::span<const std::int64_t> tokens,
                                                          Index symbols, Index window) {
  require_at_least("rank_by_recent_frequency", "window", window, 0);
  return rank_by_frequency(tokens.last((std::min)(tokens.size(), static_cast<std::size_t>(window))),
                           symbols);
}

namespace detail {

// The place of each symbol's first occurrence; `symbols` for those that do not occur.
inline std::vector<std::size_t> first_places(std::span<const std::int64_t> order,
                                             std::size_t symbols) {
  std::vector<std::size_t> place(symbols, symbols);
  std::size_t next = 0;
  for (const std::int64_t token : order) {
    if (token < 0 || token >= static_cast<std::int64_t>(symbols)) continue;
    std::size_t& at = place[static_cast<std::size_t>(token)];
    if (at == symbols) at = next++;
  }
  return place;
}

}  // namespace detail

/// Kendall's tau-a between a predicted and the true order: (concordant - discordant pairs) / all
/// pairs of symbols, 1 for the same order, -1 for the reverse, 0 in the mean for a random one.
///
/// A model may predict any tokens. A symbol's rank is its first occurrence among them; tokens that
/// are no symbols are passed over; symbols that are missing share the last rank, and a pair of two
/// such symbols counts 0. So a prediction gains nothing by repeating or leaving out.
/// @param predicted  any tokens
/// @param truth      a permutation of 0, ..., n - 1 with n >= 2
/// @throws infty::ValueError if truth is not
inline double kendall_tau(std::span<const std::int64_t> predicted,
                          std::span<const std::int64_t> truth) {
  const std::size_t n = truth.size();
  require(n >= 2, "kendall_tau", "the true order has ", n, " symbols: it needs at least 2");
  const auto true_place = detail::first_places(truth, n);
  require(std::find(true_place.begin(), true_place.end(), n) == true_place.end(), "kendall_tau",
          "the true order is no permutation of 0, ..., ", n - 1);
  const auto place = detail::first_places(predicted, n);
  Index score = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const std::size_t a = place[static_cast<std::size_t>(truth[i])];
      const std::size_t b = place[static_cast<std::size_t>(truth[j])];
      score += a < b ? 1 : a > b ? -1 : 0;
    }
  }
  return static_cast<double>(score) / (static_cast<double>(n) * static_cast<double>(n - 1) / 2);
}

/// Computes the share of places at which two orders of the same length agree, in [0, 1]; 1/n in the
/// mean for a random permutation of n symbols.
/// @throws infty::ValueError if the lengths differ or are 0
inline double accuracy(std::span<const std::int64_t> predicted,
                       std::span<const std::int64_t> truth) {
  require(predicted.size() == truth.size() && !truth.empty(), "accuracy", predicted.size(),
          " predictions for ", truth.size(), " places");
  std::size_t hits = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) hits += predicted[i] == truth[i] ? 1 : 0;
  return static_cast<double>(hits) / static_cast<double>(truth.size());
}

/// What an order predicts under teacher forcing: at place i the first of its symbols that the truth
/// has not shown at places 0, ..., i - 1. So a counter is compared with a model that has seen them.
/// @param order  a permutation of the symbols of `truth`, another permutation
/// @throws infty::ValueError if they are not permutations of 0, ..., n - 1
inline std::vector<std::int64_t> teacher_forced(std::span<const std::int64_t> order,
                                                std::span<const std::int64_t> truth) {
  const std::size_t n = truth.size();
  for (const auto& permutation : {order, truth}) {
    const auto place = detail::first_places(permutation, n);
    require(permutation.size() == n && std::find(place.begin(), place.end(), n) == place.end(),
            "teacher_forced", "the orders are no permutations of 0, ..., n - 1");
  }
  std::vector<bool> shown(n, false);
  std::vector<std::int64_t> predicted;
  predicted.reserve(n);
  std::size_t next = 0;
  for (const std::int64_t symbol : truth) {
    while (shown[static_cast<std::size_t>(order[next])]) ++next;
    predicted.push_back(order[next]);
    shown[static_cast<std::size_t>(symbol)] = true;
  }
  return predicted;
}

/// Computes the mean accuracy of guessing: 1/n for a random permutation of n symbols; (1 + 1/2 +
/// ... + 1/n) / n under teacher forcing for a guess among the symbols that the truth has not shown
/// yet.
/// @throws infty::ValueError if symbols < 1
inline double chance_accuracy(Index symbols, bool is_teacher_forced) {
  require_at_least("chance_accuracy", "symbols", symbols, 1);
  const auto n = static_cast<double>(symbols);
  if (!is_teacher_forced) return 1 / n;
  // Of so many the sum is ln n + gamma + 1 / 2n to rounding: what is left out is 1 / 12n².
  if (symbols > 10'000'000) return (std::log(n) + std::numbers::egamma + .5 / n) / n;
  double sum = 0;
  for (Index left = 1; left <= symbols; ++left) sum += 1 / static_cast<double>(left);
  return sum / n;
}

}  // namespace infty
