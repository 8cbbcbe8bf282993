// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/data/lower_case.hpp>
#include <infty/data/text.hpp>

namespace infty {

/// A vector a text, by which texts that share words that others lack are near each other, without
/// anything learned elsewhere: for each word how often the text has it, times ln((1 + n) / (1 + m))
/// + 1, where m of the n texts have it, and the whole of length 1 [Salton and Buckley 1988]. Words
/// are those between spaces, in lower case, without ASCII punctuation at their ends. A text without
/// words has zeros.
inline std::vector<std::vector<double>> text_vectors(const std::vector<std::string>& texts) {
  constexpr std::string_view punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  std::map<std::string, std::size_t> numbers;
  std::vector<std::map<std::size_t, double>> counts;
  std::vector<double> having;
  for (const std::string& text : texts) {
    auto& own = counts.emplace_back();
    for_each_token(text, TextUnit::word, [&](std::string_view word) {
      if (word == end_of_line) return;
      const auto begin = word.find_first_not_of(punctuation);
      if (begin == word.npos) return;
      word = word.substr(begin, word.find_last_not_of(punctuation) - begin + 1);
      const auto at = numbers.emplace(lower_case(word), numbers.size()).first;
      if (at->second == having.size()) having.push_back(0);
      double& times = own[at->second];
      if (times == 0) ++having[at->second];
      ++times;
    });
  }
  std::vector<std::vector<double>> out;
  for (const auto& own : counts) {
    auto& vector = out.emplace_back(having.size(), 0);
    double squares = 0;
    for (const auto& [word, times] : own) {
      const auto n = static_cast<double>(texts.size());
      vector[word] = times * (std::log((1 + n) / (1 + having[word])) + 1);
      squares += vector[word] * vector[word];
    }
    for (double& x : vector) x = squares > 0 ? x / std::sqrt(squares) : 0;
  }
  return out;
}

}  // namespace infty
