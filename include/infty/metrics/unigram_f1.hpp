// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <infty/data/lower_case.hpp>
#include <infty/metrics/overlap.hpp>

namespace infty {

namespace detail {

/// The words that answers are compared by: in lower case, without ASCII's punctuation, without `a`,
/// `an` and `the`.
inline std::vector<std::u32string> answer_words(std::string_view text) {
  const auto in_word = [](char32_t code) {
    const CharacterClass kind = character_class(static_cast<std::uint32_t>(code));
    return kind == CharacterClass::letter || kind == CharacterClass::number;
  };
  std::u32string kept, run;
  const auto end_run = [&] {
    if (run == U"a" || run == U"an" || run == U"the")
      kept += U' ';
    else
      kept += run;
    run.clear();
  };
  for (const char32_t code : lower_case(code_points(text))) {
    if (code > U' ' && code < 0x7F && !in_word(code)) continue;  // punctuation joins what it parted
    if (in_word(code)) {
      run += code;
      continue;
    }
    end_run();
    kept += code;
  }
  end_run();
  return split(kept, splits_words);
}

}  // namespace detail

/// Computes the F1 of two answers' words, as SQuAD's and the ∞-former's dialogue programs do: both
/// in lower case, without ASCII's punctuation and the articles, split at white space, each word
/// counted as often as it stands in both. 0 where nothing is shared, or both are empty.
inline double unigram_f1(std::string_view hypothesis, std::string_view reference) {
  const auto ours = detail::answer_words(hypothesis), theirs = detail::answer_words(reference);
  return detail::overlap(detail::common_units(ours, theirs), ours.size(), theirs.size()).f();
}

}  // namespace infty
