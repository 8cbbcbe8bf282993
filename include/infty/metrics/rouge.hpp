// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/metrics/overlap.hpp>
#include <infty/metrics/porter.hpp>

namespace infty {

/// What ROUGE compares.
struct RougeConfig {
  bool stem = true;  ///< whether words of more than three letters are reduced to their stems
};

/// Returns the words that ROUGE compares: in lower case, of a to z and digits alone, split at all
/// else [rouge-score 0.0.4, tokenize].
inline std::vector<std::string> rouge_words(std::string_view text, const RougeConfig& config = {}) {
  const auto splits = [](char32_t code) {
    return !((code >= U'a' && code <= U'z') || (code >= U'0' && code <= U'9'));
  };
  std::vector<std::string> words;
  for (const std::u32string& word :
       detail::split(detail::lower_case(detail::code_points(text)), splits))
    words.push_back(
        detail::utf8(config.stem && word.size() > 3 ? detail::porter_stem(word) : word));
  return words;
}

/// Computes ROUGE-n of a text: how many runs of n words it shares with a reference, each as often
/// as it stands in both. 0 where one text has none.
/// @throws infty::ValueError unless n is at least 1
inline Overlap rouge_n(std::string_view hypothesis, std::string_view reference, Index n,
                       const RougeConfig& config = {}) {
  require_at_least("rouge_n", "n", n, 1);
  const auto runs_of = [&](std::string_view text) {
    const std::vector<std::string> words = rouge_words(text, config);
    std::vector<std::vector<std::string>> runs;
    for (auto begin = words.begin(); words.end() - begin >= n; ++begin)
      runs.emplace_back(begin, begin + n);
    return runs;
  };
  const auto ours = runs_of(hypothesis), theirs = runs_of(reference);
  return detail::overlap(detail::common_units(ours, theirs), ours.size(), theirs.size());
}

/// Computes ROUGE-L of a text: the longest sequence of words that it has in common with a
/// reference, in order and with gaps. 0 where one text has no words.
inline Overlap rouge_l(std::string_view hypothesis, std::string_view reference,
                       const RougeConfig& config = {}) {
  const std::vector<std::string> ours = rouge_words(hypothesis, config);
  const std::vector<std::string> theirs = rouge_words(reference, config);
  std::map<std::string_view, std::size_t> numbers;  // words are compared by
  const auto number_of = [&](const std::string& word) {
    return numbers.emplace(word, numbers.size()).first->second;
  };
  std::vector<std::size_t> known;
  for (const std::string& word : theirs) known.push_back(number_of(word));
  std::vector<std::size_t> longest(theirs.size());  // with the words of ours until now
  for (const std::string& word : ours) {
    const std::size_t number = number_of(word);
    std::size_t corner = 0;  // without this word, and up to the one before
    std::size_t left = 0;    // with it, and up to the one before
    for (std::size_t i = 0; i < known.size(); ++i) {
      const std::size_t above = longest[i];
      left = number == known[i] ? corner + 1 : (std::max)(above, left);
      longest[i] = left;
      corner = above;
    }
  }
  const std::size_t common = longest.empty() ? 0 : longest.back();
  return detail::overlap(common, ours.size(), theirs.size());
}

}  // namespace infty
