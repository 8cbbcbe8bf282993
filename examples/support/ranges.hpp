// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

namespace support {

using infty::Index;

/// The values that an option may have: all numbers from `least` to `most`, finite ones only.
template <class T>
struct Range {
  T least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  bool above = false, below = false;  ///< whether the ends themselves are none of them
  bool or_zero = false;               ///< whether 0, which lies outside, is one, too

  bool holds(T value) const {
    if (or_zero && value == T{}) return true;
    return (above ? value > least : value >= least) && (below ? value < most : value <= most);
  }
};
template <>
struct Range<bool> {};
template <>
struct Range<std::string> {};

/// What a value in the range is called.
template <class T>
std::string wanted(const Range<T>& range) {
  std::ostringstream out;
  if constexpr (std::same_as<T, bool>) {
    out << "true or false";
  } else if constexpr (std::integral<T>) {
    out << "an integer in [" << range.least << ", " << range.most << ']';
  } else if constexpr (std::floating_point<T>) {
    if (range.or_zero) out << "0, or ";
    const bool any = range.least == std::numeric_limits<T>::lowest();
    if (range.most < std::numeric_limits<T>::max())
      out << "a number in "
          << "[("[range.above] << range.least << ", " << range.most << "])"[range.below];
    else
      out << "a finite number";
    if (!any && range.most == std::numeric_limits<T>::max())
      out << (range.above ? " above " : ", at least ") << range.least;
  }
  return out.str();
}

namespace detail {
template <class T>
struct Element {
  using type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using type = T;
};
}  // namespace detail

/// What a list is made of; of anything else the type itself.
template <class T>
using ElementOf = typename detail::Element<T>::type;

/// No machine holds more of anything, and nobody waits for it: sums of sizes and counts, and a step
/// times the rows of a batch, are far from overflowing. What sizes need together is another
/// question: see need.hpp.
inline constexpr Index most_of_all = 1'000'000'000'000;
/// Of threads, of processes, and of runs that are compared.
inline constexpr Index most_at_once = 1024;

/// A count or a size.
constexpr Range<Index> from(Index least) { return {least, most_of_all}; }

/// The ranges of settings by their names, which mean the same in all programs.
template <class T>
Range<T> range_of(std::string_view name) {
  // Models compute in float: there these are neither 0 nor infinite.
  constexpr Range<double> positive{1e-30, 1e30}, not_negative{0, 1e30}, inside{0, 1, true, true},
      share{0, 1, false, true};
  static const std::map<std::string_view, Range<Index>> counts{{"basis", from(1)},
                                                               {"answers", from(0)},
                                                               {"adjectives", from(1)},
                                                               {"batch", from(1)},
                                                               {"beam", from(1)},
                                                               {"bins", from(1)},
                                                               {"block", from(1)},
                                                               {"bptt", from(1)},
                                                               {"clauses", from(1)},
                                                               {"bytes", from(1)},
                                                               {"compressed", from(-1)},
                                                               {"compressed-length", from(1)},
                                                               {"compression-rate", from(1)},
                                                               {"compression-rates", from(1)},
                                                               {"copy-gap", from(0)},
                                                               {"curve-bytes", from(1)},
                                                               {"cutoffs", from(0)},
                                                               {"div-value", from(1)},
                                                               {"epochs", from(0)},
                                                               {"evaluate-every", from(0)},
                                                               {"evaluation-batch", from(1)},
                                                               {"evaluation-sequences", from(1)},
                                                               {"feed-forward", from(1)},
                                                               {"head-dim", from(0)},
                                                               {"heads", from(1)},
                                                               {"items", from(1)},
                                                               {"key-heads", {0, 1}},
                                                               {"keys", from(1)},
                                                               {"layers", from(1)},
                                                               {"length", from(1)},
                                                               {"lengths", from(1)},
                                                               {"local-cache", from(0)},
                                                               {"local-window", from(0)},
                                                               {"longest", from(1)},
                                                               {"lookup-heads", from(1)},
                                                               {"lookup-layers", from(-1)},
                                                               {"lookup-slots", from(0)},
                                                               {"max-vocabulary", from(0)},
                                                               {"memory-blocks", from(0)},
                                                               {"memory-length", from(0)},
                                                               {"min-count", from(1)},
                                                               {"modifiers", from(0)},
                                                               {"neighbours", from(0)},
                                                               {"nouns", from(1)},
                                                               {"mqar-examples", from(0)},
                                                               {"mqar-heads", from(1)},
                                                               {"mqar-lengths", from(4)},
                                                               {"mqar-steps", from(1)},
                                                               {"mqar-vocabulary", from(4)},
                                                               {"dialogues", from(0)},
                                                               {"document-tokens", from(0)},
                                                               {"distances", from(0)},
                                                               {"needle-decoys", from(0)},
                                                               {"needle-fillers", from(1)},
                                                               {"needle-keys", from(1)},
                                                               {"needle-rows", from(1)},
                                                               {"needle-steps", from(1)},
                                                               {"needle-trained", from(0)},
                                                               {"needle-values", from(1)},
                                                               {"pairs", from(1)},
                                                               {"parameters", from(0)},
                                                               {"places", from(2)},
                                                               {"recall-gap", from(0)},
                                                               {"samples", from(1)},
                                                               {"scored", from(0)},
                                                               {"segment", from(1)},
                                                               {"self-slots", from(1)},
                                                               {"shards", {0, most_at_once}},
                                                               {"short-term", from(0)},
                                                               {"slots", from(1)},
                                                               {"spalm-neighbours", {1, 1024}},
                                                               {"steps", from(1)},
                                                               {"sub-keys", from(1)},
                                                               {"token-count", from(1)},
                                                               {"sticky-bins", from(1)},
                                                               {"stride", from(0)},
                                                               {"symbols", from(1)},
                                                               {"test-lengths", from(1)},
                                                               {"test-sequences", from(1)},
                                                               {"threshold", from(0)},
                                                               {"top-k", from(0)},
                                                               {"values", from(1)},
                                                               {"vectors", from(1)},
                                                               {"verbs", from(1)},
                                                               {"warmup", from(0)},
                                                               {"window", from(0)},
                                                               {"agem-sample", from(1)},
                                                               {"class-words", from(1)},
                                                               {"classes", from(1)},
                                                               {"fillers", from(1)},
                                                               {"orders", from(1)},
                                                               {"candidates", from(0)},
                                                               {"pretrain", from(0)},
                                                               {"pretrain-batch", from(1)},
                                                               {"spans", from(0)},
                                                               {"support", from(1)},
                                                               {"tasks", from(1)},
                                                               {"test", from(1)},
                                                               {"together", from(1)},
                                                               {"topic-words", from(1)},
                                                               {"training", from(1)},
                                                               {"width", from(2)}};
  static const std::map<std::string_view, Range<double>> numbers{
      {"alpha", not_negative},
      {"auxiliary-weight", not_negative},
      {"auxiliary-weights", not_negative},
      {"beta1", share},
      {"beta2", share},
      {"clip", not_negative},
      {"compression-weight", not_negative},
      {"dropout", share},
      {"embedding-deviation", not_negative},
      {"epsilon", not_negative},
      {"hours", {0, 10000}},
      {"kl-weight", not_negative},
      {"pretrain-rate", positive},
      {"last-rate", not_negative},
      {"memory-rate", not_negative},
      {"mqar-mix-rates", positive},
      {"power", {.01, 100}},  // where shares of a past in double are neither 0 nor 1
      {"powers", {0, 100}},
      {"rate", not_negative},
      {"rates", positive},
      {"ridge", positive},
      {"share", inside},
      {"sigma0", {1e-4, 1e4}},  // whose divergence float holds
      {"tau", inside},
      {"taus", inside},
      {"temperature", not_negative},
      {"top-p", {0, 1, true}},
      {"values-rate", not_negative},
      {"variance-floor", positive},
      {"weight-decay", not_negative},
      {"class-share", {0, 1}},
      {"topic-share", {0, 1}},
      {"inner-rate", not_negative},
      {"widths", {1e-18, 1e18}}};  // whose squares it does
  if constexpr (std::same_as<T, Index>) {
    if (const auto at = counts.find(name); at != counts.end()) return at->second;
  } else if constexpr (std::same_as<T, double>) {
    if (const auto at = numbers.find(name); at != numbers.end()) return at->second;
  }
  return {};
}

/// Throws infty::ValueError unless the list of option --NAME has an element, and none twice.
template <class T>
void require_some_once(const char* program, const char* name, const std::vector<T>& list) {
  infty::require(!list.empty(), program, "--", name, " is empty");
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      infty::require(list[i] != list[j], program, "--", name, " has ", list[i], " twice");
}

/// Throws infty::ValueError that names the first setting out of its range: settings need not come
/// from a command line.
template <class Settings>
void validate_ranges(const char* program, const Settings& settings) {
  each_setting(const_cast<Settings&>(settings), [&]<class T>(const char*, const char* name,
                                                             const T& field, const auto&...) {
    using Element = ElementOf<T>;
    if constexpr (!std::same_as<Element, bool> && !std::same_as<Element, std::string>) {
      const auto range = range_of<Element>(name);
      const auto check = [&](const Element& value, const char* is, const char* it) {
        infty::require(range.holds(value), program, "--", name, is, value, it, " must be ",
                       wanted(range));
      };
      if constexpr (std::same_as<T, Element>)
        check(field, " is ", ": it");
      else
        for (const Element& value : field) check(value, " has ", ": each");
    }
  });
}

}  // namespace support
