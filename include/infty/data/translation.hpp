// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/data/draws.hpp>

namespace infty {

/// The sizes of a made language, for `TranslationTask`.
struct TranslationConfig {
  Index nouns = 12;              ///< different nouns
  Index adjectives = 8;          ///< different adjectives
  Index verbs = 8;               ///< different verbs
  Index clauses = 2;             ///< most clauses of a sentence, at least 1
  Index modifiers = 2;           ///< most adjectives in front of a noun, at least 0
  std::uint64_t dictionary = 1;  ///< which words translate each other

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("TranslationConfig", "nouns", nouns, 1);
    require_at_least("TranslationConfig", "adjectives", adjectives, 1);
    require_at_least("TranslationConfig", "verbs", verbs, 1);
    require_at_least("TranslationConfig", "clauses", clauses, 1);
    require_at_least("TranslationConfig", "modifiers", modifiers, 0);
    constexpr Index most = Index{1} << 24;  // a dictionary of them is held
    for (const NamedSize& size : {NamedSize{"nouns", nouns}, NamedSize{"adjectives", adjectives},
                                  NamedSize{"verbs", verbs}})
      require(size.value <= most, "TranslationConfig", size.name, " is ", size.value,
              ": it must be at most ", most);
    require(clauses <= (Index{1} << 20), "TranslationConfig", "clauses is ", clauses,
            ": it must be at most ", Index{1} << 20);
    require(modifiers <= (Index{1} << 20), "TranslationConfig", "modifiers is ", modifiers,
            ": it must be at most ", Index{1} << 20);
  }
};

/// A sentence and its only right translation, neither with a token that begins or ends it.
struct TranslationPair {
  std::vector<Index> source;  ///< tokens in [0, source_vocabulary)
  std::vector<Index> target;  ///< tokens in [2, target_vocabulary)

  /// Whether two are the same.
  bool operator==(const TranslationPair&) const = default;
};

/// Translation between two made languages, whose rules leave one right answer, so that a model's
/// sentences can be told right from wrong.
///
/// A source is one clause or more with an `and` between them. A clause is subject, verb, object; a
/// subject or an object is adjectives and a noun, with the mark of the plural behind it where it is
/// one: "small  old  cat  PLURAL  chases  mouse". By the rules of the target
///
/// 1. each word is another one by the dictionary; a noun whose number divides by three is two
///    tokens, a root and one ending for all of them;
/// 2. adjectives stand behind their noun, in reversed order, and agree with it: a noun is of one of
///    two genders, by the dictionary, and every adjective has a form for each;
/// 3. the plural is no mark behind the noun, but an article in front of it, singular or plural;
/// 4. the verb stands at the end of its clause, and has one form where its subject is singular, and
///    one where it is plural, however far away that is;
/// 5. what is joined by `and` is told in reversed order: the last clause comes first.
///
/// Counts of adjectives and clauses, numbers and words are drawn evenly.
class TranslationTask {
 public:
  static constexpr Index begin = 0;  ///< the token that a target begins with
  static constexpr Index end = 1;    ///< the token that ends it

  /// Makes both languages. @throws infty::ValueError for constants out of their range
  explicit TranslationTask(const TranslationConfig& config = {})
      : config_((config.validate(), config)) {
    Random random(config.dictionary, 0x6d6164652077UL);
    noun_ = detail::choose(config.nouns, config.nouns, random);
    adjective_ = detail::choose(config.adjectives, config.adjectives, random);
    verb_ = detail::choose(config.verbs, config.verbs, random);
    for (Index i = 0; i < config.nouns; ++i) gender_.push_back(random.below(2));
  }

  /// The constants as given.
  const TranslationConfig& config() const { return config_; }

  /// Source tokens: nouns, adjectives, verbs, in this order, then the plural, and `and`.
  Index source_vocabulary() const { return config_.nouns + config_.adjectives + config_.verbs + 2; }
  /// Target tokens: `begin` and `end`, two articles, `and`, the ending of nouns, nouns, two forms
  /// of each adjective, two of each verb.
  Index target_vocabulary() const {
    return 6 + config_.nouns + 2 * config_.adjectives + 2 * config_.verbs;
  }
  /// Most tokens of a source.
  Index longest_source() const { return config_.clauses * (2 * config_.modifiers + 6) - 1; }
  /// Most tokens of a target, without its begin and end.
  Index longest_target() const { return config_.clauses * (2 * config_.modifiers + 8) - 1; }

  /// Draws `batch` sentences and takes `batch` draws from `random`: row b depends on draw b alone.
  /// @throws infty::ValueError if batch < 0
  std::vector<TranslationPair> sample(Index batch, Random& random) const {
    require(!noun_.empty(), "TranslationTask::sample", "it was moved from");
    require_at_least("TranslationTask::sample", "batch", batch, 0);
    require_sizes("TranslationTask::sample", {{"batch", batch}, {"length", longest_target()}});
    std::vector<TranslationPair> pairs;
    for (Index row = 0; row < batch; ++row) {
      Random draws = detail::random_of_row(random);
      pairs.push_back(draw(draws));
    }
    return pairs;
  }

 private:
  using Tokens = std::vector<Index>;

  static constexpr Index article = 2, joined = 4, ending = 5, words = 6;  // of the target

  TranslationPair draw(Random& random) const {
    const Index clauses = 1 + random.below(config_.clauses);
    TranslationPair pair;
    for (Index i = 0; i < clauses; ++i) {
      if (i > 0) pair.source.push_back(source_vocabulary() - 1);
      Tokens clause;
      const bool plural = draw_noun(random, pair.source, clause);
      const Index verb = random.below(config_.verbs);
      pair.source.push_back(config_.nouns + config_.adjectives + verb);
      draw_noun(random, pair.source, clause);
      clause.push_back(words + config_.nouns + 2 * config_.adjectives + 2 * at(verb_, verb) +
                       (plural ? 1 : 0));
      if (i > 0) clause.push_back(joined);
      // The last clause comes first: all is made from behind, and turned round once.
      pair.target.insert(pair.target.end(), clause.rbegin(), clause.rend());
    }
    std::reverse(pair.target.begin(), pair.target.end());
    return pair;
  }

  /// Adds a noun with what belongs to it to both sides, and says whether it is plural.
  bool draw_noun(Random& random, Tokens& source, Tokens& target) const {
    Tokens adjectives;
    for (Index left = random.below(config_.modifiers + 1); left > 0; --left)
      adjectives.push_back(random.below(config_.adjectives));
    const Index noun = random.below(config_.nouns);
    const bool plural = random.below(2) == 1;
    for (const Index adjective : adjectives) source.push_back(config_.nouns + adjective);
    source.push_back(noun);
    if (plural) source.push_back(source_vocabulary() - 2);
    target.push_back(article + (plural ? 1 : 0));
    target.push_back(words + at(noun_, noun));
    if (noun % 3 == 0) target.push_back(ending);
    for (auto a = adjectives.rbegin(); a != adjectives.rend(); ++a)
      target.push_back(words + config_.nouns + 2 * at(adjective_, *a) + at(gender_, noun));
    return plural;
  }

  static Index at(const std::vector<std::int64_t>& list, Index i) {
    return list[static_cast<std::size_t>(i)];
  }

  TranslationConfig config_;
  std::vector<std::int64_t> noun_, adjective_, verb_;  // of the target, by the source's numbers
  std::vector<std::int64_t> gender_;                   // of nouns, by the source's numbers
};

}  // namespace infty
