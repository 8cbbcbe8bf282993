// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/metrics/overlap.hpp>
#include <infty/metrics/porter.hpp>
#include <infty/metrics/wordnet.hpp>

namespace infty {

/// The constants of METEOR [Banerjee and Lavie 2005], with nltk's defaults.
struct MeteorConfig {
  double alpha = .9;  ///< weight of precision in the mean, in [0, 1]
  double beta = 3;    ///< power of the penalty, at least 0
  double gamma = .5;  ///< most of the score that it takes, in [0, 1]

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    const auto within = [](const char* name, double value, double most) {
      require(math::is_finite(value) && value >= 0 && value <= most, "MeteorConfig", name, " is ",
              value, ": it must be at least 0", most == 1 ? " and at most 1" : "");
    };
    within("alpha", alpha, 1);
    within("beta", beta, math::infinity<double>);
    within("gamma", gamma, 1);
  }
};

/// How a text stands to a reference.
struct Meteor {
  double score = 0;  ///< in [0, 1]
  /// Which word of the text is which of the reference, counted from 0, by rising words of the text.
  std::vector<std::pair<std::size_t, std::size_t>> matches = {};
  std::size_t chunks = 0;  ///< runs of matches that follow one another in both
};

namespace detail {

/// Which words of two texts are one another's.
class WordMatching {
 public:
  std::vector<std::u32string> ours, theirs;  ///< as they are compared now

  WordMatching(std::string_view hypothesis, std::string_view reference)
      : ours(split(lower_case(code_points(hypothesis)), splits_words)),
        theirs(split(lower_case(code_points(reference)), splits_words)),
        taken_(theirs.size()) {}

  /// Matches what is not matched yet: from the last of our words on, each with the last free one of
  /// theirs that is among alternatives(word).
  template <class Alternatives>
  void match(Alternatives&& alternatives) {
    std::map<std::u32string, std::vector<std::size_t>> free;  // places, rising
    for (std::size_t i = 0; i < theirs.size(); ++i)
      if (!taken_[i]) free[theirs[i]].push_back(i);
    for (std::size_t i = ours.size(); i-- > 0;) {
      if (matches_.contains(i)) continue;
      std::vector<std::size_t>* last = nullptr;
      for (const std::u32string& word : alternatives(ours[i])) {
        const auto at = free.find(word);
        if (at != free.end() && !at->second.empty() &&
            (last == nullptr || at->second.back() > last->back()))
          last = &at->second;
      }
      if (last == nullptr) continue;
      matches_[i] = last->back();
      taken_[last->back()] = true;
      last->pop_back();
    }
  }

  std::vector<std::pair<std::size_t, std::size_t>> matches() const {
    return {matches_.begin(), matches_.end()};
  }

 private:
  std::map<std::size_t, std::size_t> matches_;
  std::vector<bool> taken_;
};

}  // namespace detail

/// Computes METEOR of a text, as nltk does: words in lower case, split at white space, are matched
/// where they are the same, then where their stems are, then, with a WordNet, where one's stem is a
/// synonym of the other's. Of precision P and recall R, with m words in c chunks, the score is
/// P R / (alpha P + (1 - alpha) R) (1 - gamma (c / m)^beta); 0 where nothing matches.
/// @throws infty::ValueError as MeteorConfig::validate() does; infty::IoError as WordNet does
inline Meteor meteor(std::string_view hypothesis, std::string_view reference,
                     const MeteorConfig& config = {}, const WordNet* wordnet = nullptr) {
  config.validate();
  using Words = std::vector<std::u32string>;
  const auto itself = [](const std::u32string& word) { return Words{word}; };
  detail::WordMatching matching(hypothesis, reference);
  matching.match(itself);
  for (Words* words : {&matching.ours, &matching.theirs})
    for (std::u32string& word : *words) word = detail::porter_stem(word);
  matching.match(itself);
  if (wordnet != nullptr)
    matching.match([&](const std::u32string& word) {
      Words all{word};
      for (const std::string& synonym : wordnet->synonyms(detail::utf8(word)))
        all.push_back(detail::code_points(synonym));
      return all;
    });
  Meteor out{.matches = matching.matches()};
  const std::size_t count = out.matches.size();
  if (count == 0) return out;
  out.chunks = 1;
  for (std::size_t i = 1; i < count; ++i)
    if (out.matches[i].first != out.matches[i - 1].first + 1 ||
        out.matches[i].second != out.matches[i - 1].second + 1)
      ++out.chunks;
  const Overlap shares = detail::overlap(count, matching.ours.size(), matching.theirs.size());
  const double mean = shares.precision * shares.recall /
                      (config.alpha * shares.precision + (1 - config.alpha) * shares.recall);
  const double parts = static_cast<double>(out.chunks) / static_cast<double>(count);
  out.score = mean * (1 - config.gamma * std::pow(parts, config.beta));
  return out;
}

}  // namespace infty
