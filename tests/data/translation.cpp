// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <infty/data/translation.hpp>

#include "support/catch.hpp"

namespace translation_data {

using infty::Index;
using infty::TranslationConfig;
using infty::TranslationPair;
using infty::TranslationTask;

/// A subject or an object, read from a source.
struct Noun {
  std::vector<Index> adjectives;
  Index noun = 0;
  bool plural = false;
};

/// Reads one from `at` on, which moves behind it.
Noun noun_at(const TranslationConfig& c, const std::vector<Index>& source, std::size_t& at) {
  Noun out;
  while (source.at(at) >= c.nouns && source[at] < c.nouns + c.adjectives)
    out.adjectives.push_back(source[at++]);
  REQUIRE(source.at(at) < c.nouns);
  out.noun = source[at++];
  out.plural = at < source.size() && source[at] == c.nouns + c.adjectives + c.verbs;
  if (out.plural) ++at;
  return out;
}

/// A translator by the rules alone, without the dictionary: what each token of the target is.
std::vector<std::string> meanings(const TranslationConfig& c, const std::vector<Index>& source) {
  std::vector<std::string> sentence;
  for (std::size_t at = 0; at < source.size();) {
    std::vector<std::string> clause;
    const auto say = [&](const Noun& n) {
      clause.push_back(n.plural ? "plural article" : "article");
      clause.push_back("noun " + std::to_string(n.noun));
      if (n.noun % 3 == 0) clause.push_back("ending");
      for (auto a = n.adjectives.rbegin(); a != n.adjectives.rend(); ++a)
        clause.push_back("adjective " + std::to_string(*a) + " of " + std::to_string(n.noun));
    };
    const Noun subject = noun_at(c, source, at);
    const Index verb = source.at(at++);
    REQUIRE(verb >= c.nouns + c.adjectives);
    REQUIRE(verb < c.nouns + c.adjectives + c.verbs);
    say(subject);
    say(noun_at(c, source, at));
    clause.push_back((subject.plural ? "plural verb " : "verb ") + std::to_string(verb));
    const bool more = at < source.size();
    if (more) REQUIRE(source[at++] == c.nouns + c.adjectives + c.verbs + 1);
    if (!sentence.empty()) clause.push_back("and");
    sentence.insert(sentence.end(), clause.rbegin(), clause.rend());
  }
  std::reverse(sentence.begin(), sentence.end());
  return sentence;
}

}  // namespace translation_data

TEST_CASE("TranslationTask: the rules and one dictionary say every target") {
  using namespace translation_data;
  const TranslationConfig config{.nouns = 7, .adjectives = 4, .verbs = 5, .clauses = 3};
  const TranslationTask task(config);
  infty::Random random(1);
  std::map<std::string, Index> dictionary;
  std::size_t longest_source = 0, longest_target = 0;
  for (const TranslationPair& pair : task.sample(4000, random)) {
    const auto words = meanings(config, pair.source);
    REQUIRE(words.size() == pair.target.size());
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto [entry, fresh] = dictionary.try_emplace(words[i], pair.target[i]);
      REQUIRE(entry->second == pair.target[i]);
    }
    for (const Index token : pair.source) REQUIRE((token >= 0 && token < task.source_vocabulary()));
    longest_source = std::max(longest_source, pair.source.size());
    longest_target = std::max(longest_target, pair.target.size());
  }
  CHECK(std::ssize(dictionary) == 4 + 7 + 4 * 7 + 2 * 5);
  CHECK(static_cast<Index>(longest_source) <= task.longest_source());
  CHECK(static_cast<Index>(longest_target) <= task.longest_target());

  // Tokens of different meanings differ, but for the adjectives of nouns of one gender.
  std::set<Index> used;
  std::map<Index, std::set<Index>> forms;  // of nouns: which form adjectives have with them
  for (const auto& [meaning, token] : dictionary) {
    CHECK((token >= 2 && token < task.target_vocabulary()));
    if (meaning.starts_with("adjective")) {
      const Index noun = std::stoll(meaning.substr(meaning.rfind(' ')));
      forms[noun].insert((token - 6 - 7) % 2);
    } else {
      CHECK(used.insert(token).second);
    }
  }
  std::set<Index> genders;
  for (const auto& [noun, form] : forms) {
    CHECK(form.size() == 1);
    genders.insert(form.begin(), form.end());
  }
  CHECK(genders == std::set<Index>{0, 1});
  for (const auto& [meaning, token] : dictionary)
    if (meaning.starts_with("adjective")) used.insert(token);
  CHECK(std::ssize(used) == task.target_vocabulary() - 2);
}

TEST_CASE("TranslationTask: sentences are drawn one by one, and another dictionary says others") {
  using namespace translation_data;
  const TranslationTask task({.clauses = 2});
  infty::Random whole(3), parts(3);
  const auto all = task.sample(9, whole);
  auto some = task.sample(4, parts);
  for (auto& pair : task.sample(5, parts)) some.push_back(pair);
  CHECK(all == some);
  CHECK(whole.counter() == 9);
  const TranslationTask other({.clauses = 2, .dictionary = 2});
  infty::Random again(3);
  const auto told = other.sample(9, again);
  Index differ = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(told[i].source == all[i].source);
    differ += told[i].target != all[i].target ? 1 : 0;
  }
  CHECK(differ >= 8);
  CHECK(task.sample(0, again).empty());
}

TEST_CASE("TranslationTask: a sentence of many clauses costs what its tokens do") {
  using namespace translation_data;
  // In the square of its clauses it would take minutes.
  const TranslationConfig config{.clauses = 300000};
  infty::Random random(2);
  const auto pair = TranslationTask(config).sample(1, random).front();
  CHECK(pair.source.size() > 100000);
  CHECK(meanings(config, pair.source).size() == pair.target.size());
}

TEST_CASE("TranslationTask: what cannot be is refused by its name") {
  using namespace translation_data;
  using Catch::Matchers::Contains;
  const auto made = [](const TranslationConfig& config) { return TranslationTask(config); };
  CHECK_THROWS_WITH(made({.nouns = 0}), Contains("nouns is 0"));
  CHECK_THROWS_WITH(made({.adjectives = 0}), Contains("adjectives is 0"));
  CHECK_THROWS_WITH(made({.verbs = -1}), Contains("verbs is -1"));
  CHECK_THROWS_WITH(made({.clauses = 0}), Contains("clauses is 0"));
  CHECK_THROWS_WITH(made({.modifiers = -1}), Contains("modifiers is -1"));
  CHECK_THROWS_WITH(made({.modifiers = Index{1} << 50}), Contains("modifiers is"));
  CHECK_THROWS_WITH(made({.verbs = Index{1} << 50}), Contains("verbs is"));
  CHECK_THROWS_WITH(made({.nouns = Index{1} << 40}), Contains("it must be at most 16777216"));
  infty::Random random(1);
  CHECK_THROWS_WITH(TranslationTask().sample(-1, random), Contains("batch is -1"));
  CHECK_THROWS_AS(TranslationTask().sample(infty::largest_size, random), infty::ValueError);
}
