// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <infty/data/lower_case.hpp>

namespace infty {

namespace detail {

/// A word on its way to its stem. A character is a code point; all that are no vowels are
/// consonants.
class Porter {
 public:
  explicit Porter(std::u32string word) : word_(std::move(word)) {}

  /// All steps.
  std::u32string stem() {
    plurals();
    participles();
    final_y();
    double_suffixes();
    suffixes();
    long_suffixes();
    final_e();
    if (ends(U"ll") && measure(size() - 1) > 1) word_.pop_back();
    return std::move(word_);
  }

 private:
  struct Rule {
    std::u32string_view suffix, replacement;
  };

  std::size_t size() const { return word_.size(); }
  bool ends(std::u32string_view suffix) const {
    return std::u32string_view(word_).ends_with(suffix);
  }
  void replace(std::u32string_view suffix, std::u32string_view replacement) {
    word_.replace(size() - suffix.size(), suffix.size(), replacement);
  }

  // Whether character i is a vowel, by whether the one in front of it is: y is one behind a
  // consonant.
  bool is_vowel(std::size_t i, bool before) const {
    if (word_[i] == U'y') return i > 0 && !before;
    return std::u32string_view(U"aeiou").find(word_[i]) != word_.npos;
  }
  bool is_vowel(std::size_t i) const {
    std::size_t first = i;
    while (first > 0 && word_[first] == U'y') --first;
    bool vowel = is_vowel(first, false);
    while (first < i) vowel = is_vowel(++first, vowel);
    return vowel;
  }

  // m: how often a consonant follows a vowel in the first `length` characters.
  std::size_t measure(std::size_t length) const {
    std::size_t times = 0;
    bool before = false;
    for (std::size_t i = 0; i < length; ++i) {
      const bool vowel = is_vowel(i, before);
      times += before && !vowel ? 1 : 0;
      before = vowel;
    }
    return times;
  }

  bool has_vowel(std::size_t length) const {
    bool vowel = false;
    for (std::size_t i = 0; i < length && !vowel; ++i) vowel = is_vowel(i, vowel);
    return vowel;
  }

  // *o: consonant, vowel, consonant that is no w, x or y; or a vowel and a consonant alone.
  bool ends_short(std::size_t length) const {
    if (length == 2) return is_vowel(0) && !is_vowel(1);
    if (length < 3) return false;
    return !is_vowel(length - 3) && is_vowel(length - 2) && !is_vowel(length - 1) &&
           std::u32string_view(U"wxy").find(word_[length - 1]) == word_.npos;
  }

  // The first rule whose suffix the word has is the only one that may act.
  void apply(std::initializer_list<Rule> rules, std::size_t least_measure) {
    for (const Rule& rule : rules) {
      if (!ends(rule.suffix)) continue;
      if (measure(size() - rule.suffix.size()) >= least_measure)
        replace(rule.suffix, rule.replacement);
      return;
    }
  }

  void plurals() {  // step 1a
    if (ends(U"ies") && size() == 4)
      replace(U"ies", U"ie");
    else
      apply({{U"sses", U"ss"}, {U"ies", U"i"}, {U"ss", U"ss"}, {U"s", U""}}, 0);
  }

  void participles() {  // step 1b
    if (ends(U"ied")) return replace(U"ied", size() == 4 ? U"ie" : U"i");
    if (ends(U"eed")) {
      if (measure(size() - 3) > 0) replace(U"eed", U"ee");
      return;
    }
    const std::size_t cut = ends(U"ed") && has_vowel(size() - 2)    ? 2
                            : ends(U"ing") && has_vowel(size() - 3) ? 3
                                                                    : 0;
    if (cut == 0) return;
    word_.resize(size() - cut);
    const char32_t last = word_.back();
    if (ends(U"at") || ends(U"bl") || ends(U"iz"))
      word_ += U'e';
    else if (size() > 1 && word_[size() - 2] == last && !is_vowel(size() - 1)) {
      if (last != U'l' && last != U's' && last != U'z') word_.pop_back();
    } else if (measure(size()) == 1 && ends_short(size()))
      word_ += U'e';
  }

  void final_y() {  // step 1c
    if (ends(U"y") && size() > 2 && !is_vowel(size() - 2)) word_.back() = U'i';
  }

  void double_suffixes() {  // step 2
    if (ends(U"alli") && measure(size() - 4) > 0) {
      replace(U"alli", U"al");
      return double_suffixes();
    }
    if (ends(U"logi")) {
      if (measure(size() - 3) > 0) replace(U"logi", U"log");
      return;
    }
    apply({{U"ational", U"ate"}, {U"tional", U"tion"}, {U"enci", U"ence"},   {U"anci", U"ance"},
           {U"izer", U"ize"},    {U"bli", U"ble"},     {U"alli", U"al"},     {U"entli", U"ent"},
           {U"eli", U"e"},       {U"ousli", U"ous"},   {U"ization", U"ize"}, {U"ation", U"ate"},
           {U"ator", U"ate"},    {U"alism", U"al"},    {U"iveness", U"ive"}, {U"fulness", U"ful"},
           {U"ousness", U"ous"}, {U"aliti", U"al"},    {U"iviti", U"ive"},   {U"biliti", U"ble"},
           {U"fulli", U"ful"}},
          1);
  }

  void suffixes() {  // step 3
    apply({{U"icate", U"ic"},
           {U"ative", U""},
           {U"alize", U"al"},
           {U"iciti", U"ic"},
           {U"ical", U"ic"},
           {U"ful", U""},
           {U"ness", U""}},
          1);
  }

  void long_suffixes() {  // step 4
    if (ends(U"ion")) {
      if (measure(size() - 3) > 1 && (word_[size() - 4] == U's' || word_[size() - 4] == U't'))
        replace(U"ion", U"");
      return;
    }
    apply({{U"al", U""},
           {U"ance", U""},
           {U"ence", U""},
           {U"er", U""},
           {U"ic", U""},
           {U"able", U""},
           {U"ible", U""},
           {U"ant", U""},
           {U"ement", U""},
           {U"ment", U""},
           {U"ent", U""},
           {U"ou", U""},
           {U"ism", U""},
           {U"ate", U""},
           {U"iti", U""},
           {U"ous", U""},
           {U"ive", U""},
           {U"ize", U""}},
          2);
  }

  void final_e() {  // step 5a
    if (!ends(U"e")) return;
    const std::size_t m = measure(size() - 1);
    if (m > 1 || (m == 1 && !ends_short(size() - 1))) word_.pop_back();
  }

  std::u32string word_;
};

/// The stem of a word in lower case.
inline std::u32string porter_stem(std::u32string_view word) {
  static constexpr std::pair<std::u32string_view, std::u32string_view> irregular[] = {
      {U"sky", U"sky"},         {U"skies", U"sky"},       {U"dying", U"die"},
      {U"lying", U"lie"},       {U"tying", U"tie"},       {U"news", U"news"},
      {U"inning", U"inning"},   {U"innings", U"inning"},  {U"outing", U"outing"},
      {U"outings", U"outing"},  {U"canning", U"canning"}, {U"cannings", U"canning"},
      {U"howe", U"howe"},       {U"proceed", U"proceed"}, {U"exceed", U"exceed"},
      {U"succeed", U"succeed"},
  };
  for (const auto& [from, to] : irregular)
    if (word == from) return std::u32string(to);
  if (word.size() <= 2) return std::u32string(word);
  return Porter(std::u32string(word)).stem();
}

}  // namespace detail

/// Returns the stem of a word, in lower case: M. F. Porter's algorithm [1980] with its author's
/// later changes and the irregular forms of NLTK's `PorterStemmer`, which ROUGE and METEOR are
/// computed with. Words of one or two characters are their own stems.
inline std::string porter_stem(std::string_view word) {
  return detail::utf8(detail::porter_stem(detail::lower_case(detail::code_points(word))));
}

}  // namespace infty
