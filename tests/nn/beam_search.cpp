// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/default.hpp>
#include <infty/nn/beam_search.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace beam_search_test {

using infty::beam_search;
using infty::BeamSearchConfig;
using infty::Hypothesis;
using infty::Index;
using infty::LengthPenalty;
using infty::RowCounts;
using Found = std::vector<std::vector<Hypothesis>>;

/// What a made language remembers: a number that stands for all tokens that were read.
struct Read {
  RowCounts code;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("code", code);
  }
};

constexpr double never = -infty::math::infinity<double>;

/// A made language of a few tokens, whose next one depends on all before it.
struct Language {
  Index tokens = 4;
  bool rounded = false;  ///< to few different scores, so that many are equal
  bool some_never = false;
  mutable Index calls = 0, rows = 0;

  std::vector<double> after(Index code) const {
    infty::Random random(7, static_cast<std::uint64_t>(code));
    std::vector<double> scores;
    double sum = 0;
    for (Index i = 0; i < tokens; ++i) {
      const double x = rounded ? static_cast<double>(random.below(3)) : 3 * random.uniform();
      const bool out = some_never && random.below(3) == 0;
      sum += std::exp(scores.emplace_back(out ? never : x));
    }
    for (double& x : scores) x -= rounded ? 3 : std::log(std::max(sum, 1e-300));
    return scores;
  }
  Index next_code(Index code, Index token) const { return code * (tokens + 1) + token + 1; }

  infty::Tensor<double> operator()(Read& state, const std::vector<Index>& read) const {
    ++calls;
    std::vector<double> all;
    for (std::size_t i = 0; i < read.size(); ++i) {
      state.code[i] = next_code(state.code[i], read[i]);
      const auto scores = after(state.code[i]);
      all.insert(all.end(), scores.begin(), scores.end());
    }
    rows += std::ssize(read);
    return infty::Tensor<double>::from({std::ssize(read), tokens}, all);
  }
};

void add_all(const Language& language, const BeamSearchConfig& c, Index code, const Hypothesis& now,
             std::vector<Hypothesis>& all) {
  const auto scores = language.after(code);
  for (Index token = 0; token < language.tokens; ++token) {
    Hypothesis grown = now;
    grown.log_probability += scores[static_cast<std::size_t>(token)];
    if (grown.log_probability == never) continue;
    grown.ended = token == c.end;
    if (!grown.ended) grown.tokens.push_back(token);
    const auto n = static_cast<double>(grown.tokens.size()) + (grown.ended ? 1 : 0);
    grown.score = grown.log_probability /
                  std::pow(c.penalty == LengthPenalty::gnmt ? (5 + n) / 6 : n, c.alpha);
    if (grown.ended || std::ssize(grown.tokens) == c.longest)
      all.push_back(grown);
    else
      add_all(language, c, language.next_code(code, token), grown, all);
  }
}

/// Every sequence that there is, the best first.
std::vector<Hypothesis> exhaustive(const Language& language, const BeamSearchConfig& c,
                                   Index code) {
  std::vector<Hypothesis> all;
  add_all(language, c, code, {}, all);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  return all;
}

/// The same search of one row, written down without a state: all beginnings, sorted whole.
std::vector<Hypothesis> plain(const Language& language, const BeamSearchConfig& c, Index code) {
  struct Way {
    Hypothesis hypothesis;
    Index code, parent, token;
  };
  const auto beam = static_cast<std::size_t>(c.beam);
  std::vector<Way> alive{{{}, code, 0, 0}};
  std::vector<Hypothesis> ended;
  for (Index length = 1; length <= c.longest && !alive.empty() && ended.size() < beam; ++length) {
    std::vector<Way> ways;
    for (std::size_t parent = 0; parent < alive.size(); ++parent) {
      const auto scores = language.after(alive[parent].code);
      for (Index token = 0; token < language.tokens; ++token) {
        Way way = alive[parent];
        way.parent = static_cast<Index>(parent);
        way.token = token;
        way.hypothesis.log_probability += scores[static_cast<std::size_t>(token)];
        way.hypothesis.score = c.score(way.hypothesis.log_probability, length);
        if (way.hypothesis.log_probability > never) ways.push_back(way);
      }
    }
    std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
      return a.hypothesis.log_probability > b.hypothesis.log_probability;
    });
    alive.clear();
    for (std::size_t i = 0; i < ways.size() && alive.size() < beam; ++i) {
      Way way = ways[i];
      if (way.token == c.end) {
        way.hypothesis.ended = true;
        if (i < beam) ended.push_back(way.hypothesis);
      } else {
        way.hypothesis.tokens.push_back(way.token);
        way.code = language.next_code(way.code, way.token);
        alive.push_back(way);
      }
    }
    if (length == c.longest)
      for (const Way& way : alive) ended.push_back(way.hypothesis);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  ended.resize(std::min(ended.size(), static_cast<std::size_t>(c.best)));
  return ended;
}

}  // namespace beam_search_test

TEST_CASE("beam_search: as large as all beginnings, it finds what is best of all there is") {
  using namespace beam_search_test;
  const Language language;
  for (const auto penalty : {LengthPenalty::gnmt, LengthPenalty::power})
    for (const double alpha : {0., .6, 1., 3.}) {
      const BeamSearchConfig config{
          .beam = 400, .alpha = alpha, .penalty = penalty, .end = 2, .longest = 4, .best = 400};
      const Read state{{5, 9}};
      const Found found = beam_search(state, {1, 3}, language, config);
      CHECK(found[0] == exhaustive(language, config, language.next_code(5, 1)));
      CHECK(found[1] == exhaustive(language, config, language.next_code(9, 3)));
      CHECK(found[0].size() == 1 + 3 + 9 + 27 + 81);
      CHECK(state.code == RowCounts{5, 9});
    }
}

TEST_CASE("beam_search: is the search that it says it is, also among equals and what is never") {
  using namespace beam_search_test;
  for (const bool rounded : {false, true})
    for (const bool some_never : {false, true}) {
      const Language language{.tokens = 6, .rounded = rounded, .some_never = some_never};
      Index fewer = 0;
      for (const Index beam : {1, 2, 3, 5}) {
        const BeamSearchConfig config{
            .beam = beam, .alpha = 1, .end = 0, .longest = 7, .best = beam};
        const Read state{{1, 2, 3, 4, 5, 6, 7}};
        const std::vector<Index> first(7, 1);
        const Found together = beam_search(state, first, language, config);
        for (std::size_t i = 0; i < first.size(); ++i) {
          CHECK(together[i] == plain(language, config, language.next_code(state.code[i], 1)));
          CHECK(beam_search(Read{{state.code[i]}}, {1}, language, config)[0] == together[i]);
          fewer += std::ssize(together[i]) < beam ? 1 : 0;
        }
        CHECK(beam_search(state, first, language, config) == together);
      }
      if (!some_never) CHECK(fewer == 0);
    }
}

TEST_CASE("beam_search: what is held at the greatest length counts, however many have ended") {
  using namespace beam_search_test;
  const auto next = [](Read&, const std::vector<Index>& read) {
    std::vector<double> all;
    for (std::size_t i = 0; i < read.size(); ++i)
      for (const double p : {.9, .1}) all.push_back(std::log(p));
    return infty::Tensor<double>::from({std::ssize(read), 2}, all);
  };
  const BeamSearchConfig config{.beam = 2, .alpha = 0, .end = 1, .longest = 2};
  const auto found = beam_search(Read{{1}}, {0}, next, config);
  CHECK(found[0][0].tokens == std::vector<Index>{0, 0});
  CHECK_FALSE(found[0][0].ended);
  CHECK(found[0][0].log_probability == Approx(2 * std::log(.9)));
}

TEST_CASE("beam_search: one beam takes the likeliest token, the first of equals") {
  using namespace beam_search_test;
  for (const bool rounded : {false, true}) {
    const Language language{.tokens = 5, .rounded = rounded};
    for (Index code = 1; code < 40; ++code) {
      const auto found =
          beam_search(Read{{code}}, {1}, language, {.beam = 1, .end = 3, .longest = 6});
      Hypothesis greedy;
      Index at = language.next_code(code, 1);
      while (!greedy.ended && greedy.tokens.size() < 6) {
        const auto scores = language.after(at);
        const auto token = std::max_element(scores.begin(), scores.end()) - scores.begin();
        greedy.log_probability += scores[static_cast<std::size_t>(token)];
        greedy.ended = token == 3;
        if (!greedy.ended) greedy.tokens.push_back(token);
        at = language.next_code(at, token);
      }
      CHECK(found[0].size() == 1);
      CHECK(found[0][0].tokens == greedy.tokens);
      CHECK(found[0][0].ended == greedy.ended);
      CHECK(found[0][0].log_probability == greedy.log_probability);
    }
  }
}

TEST_CASE("beam_search: rows that are done are read no more, and nothing is where nothing can be") {
  using namespace beam_search_test;
  // Token 0 ends; behind an even code it is certain, behind an odd one it never comes.
  Index calls = 0, rows = 0;
  const auto next = [&](Read& state, const std::vector<Index>& tokens) {
    ++calls;
    rows += std::ssize(tokens);
    std::vector<double> all;
    for (const Index code : state.code)
      for (const double x : {code % 2 == 0 ? 0. : never, code % 2 == 0 ? never : 0.})
        all.push_back(x);
    return infty::Tensor<double>::from({std::ssize(tokens), 2}, all);
  };
  const auto found = beam_search(Read{{0, 1, 2}}, {1, 1, 1}, next, {.beam = 2, .longest = 5});
  CHECK(calls == 5);
  CHECK(rows == 3 + 4);
  CHECK(found[0][0] == Hypothesis{.tokens = {}, .ended = true});
  CHECK(found[1][0].tokens == std::vector<Index>(5, 1));
  CHECK_FALSE(found[1][0].ended);
  CHECK(found[2] == found[0]);
  const auto nothing = [&](Read&, const std::vector<Index>& tokens) {
    return infty::Tensor<float>::full({std::ssize(tokens), 3}, -infty::math::infinity<float>);
  };
  CHECK(beam_search(Read{{0}}, {1}, nothing, {})[0].empty());
  CHECK(beam_search(Read{}, {}, nothing, {}).empty());
}

TEST_CASE("beam_search: what cannot be is refused by its name") {
  using namespace beam_search_test;
  using Catch::Matchers::Contains;
  const Language language;
  const Read state{{1, 2}};
  const auto with = [&](const BeamSearchConfig& config) {
    return beam_search(state, {1, 1}, language, config);
  };
  CHECK_THROWS_WITH(with({.beam = 0}), Contains("beam is 0"));
  CHECK_THROWS_WITH(with({.alpha = -1}), Contains("alpha is -1"));
  CHECK_THROWS_WITH(with({.alpha = infty::math::not_a_number<double>}), Contains("alpha is"));
  CHECK_THROWS_WITH(with({.end = -1}), Contains("end is -1"));
  CHECK_THROWS_WITH(with({.end = 4}), Contains("end is 4: it must be one of 4 tokens"));
  CHECK_THROWS_WITH(with({.longest = 0}), Contains("longest is 0"));
  CHECK_THROWS_WITH(with({.beam = 2, .best = 3}), Contains("best is 3"));
  CHECK_THROWS_WITH(beam_search(state, {1}, language, {}),
                    Contains("there are 1 first tokens, the state has 2 rows"));
  const auto bad = [](double score) {
    return [score](Read&, const std::vector<Index>&) {
      return infty::Tensor<double>::from({2, 2}, {0, 0, 0, score});
    };
  };
  CHECK_THROWS_WITH(beam_search(state, {1, 1}, bad(infty::math::not_a_number<double>), {}),
                    Contains("row 1, token 1"));
  CHECK_THROWS_AS(beam_search(state, {1, 1}, bad(infty::math::infinity<double>), {}),
                  infty::NonFiniteError);
  const auto short_of = [](Read&, const std::vector<Index>&) {
    return infty::Tensor<double>::zeros({1, 2});
  };
  CHECK_THROWS_AS(beam_search(state, {1, 1}, short_of, {}), infty::ShapeError);
}

TEMPLATE_LIST_TEST_CASE("log_probabilities: sum to one, and leave never as it is", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const T out = -infty::math::infinity<T>;
  const auto scores = infty::Tensor<T, B>::from({2, 1, 3}, {T(1), T(2), out, T(800), T(799), T(0)});
  const auto logs = infty::log_probabilities(scores);
  CHECK(logs.shape() == scores.shape());
  const auto x = logs.to_vector();
  const double e = std::exp(1.);
  CHECK(infty::tests::error(std::vector<T>{x[0], x[1], x[3], x[4]},
                            std::vector<double>{-std::log(1 + e), -std::log(1 + 1 / e),
                                                -std::log(1 + 1 / e), -std::log(1 + e)}) <
        infty::tests::tolerance<T>);
  CHECK(x[2] == out);
  const auto never = infty::Tensor<T, B>::from({1, 3}, {out, out, out});
  CHECK(infty::log_probabilities(never).to_vector() == std::vector<T>{out, out, out});
}
