// SPDX-License-Identifier: MIT
// What the programs in examples/ share and say, in numbers.

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../examples/memory_study/heat_map.hpp"
#include "../../examples/memory_study/retrieved.hpp"
#include "../../examples/recall/tries.hpp"
#include "../../examples/support/command.hpp"
#include "../../examples/support/comparison.hpp"
#include "../../examples/support/contraction.hpp"
#include "../../examples/support/running_mean.hpp"
#include "support/catch.hpp"

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// How often a text has a part.
int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

}  // namespace

TEST_CASE("fixed_pairs: each memory with none, and all others with xl") {
  CHECK(support::fixed_pairs({"none", "xl", "infty"}) ==
        Pairs{{"xl", "none"}, {"infty", "none"}, {"infty", "xl"}});
  CHECK(support::fixed_pairs({"infty", "lamemo"}) == Pairs{});
  CHECK(support::fixed_pairs({"lamemo", "xl"}) == Pairs{{"lamemo", "xl"}});
  CHECK(support::fixed_pairs({"none", "xl", "compressive", "lamemo", "infty", "infty-sticky"})
            .size() == 9);
}

TEST_CASE("contraction_of: a word says how its memory contracts, or else the option does") {
  using support::contraction_of;
  const support::Contraction fixed, uniform{.name = "uniform"};
  CHECK(support::contracted_names ==
        std::vector<std::string>{"infty-power", "infty-uniform", "infty-mixed", "infty-learned",
                                 "infty-sticky-power", "infty-sticky-uniform", "infty-sticky-mixed",
                                 "infty-sticky-learned"});
  for (const std::string word : {"infty", "infty-sticky", "infty-gibbs"}) {
    CHECK(contraction_of(word, fixed) == "fixed");
    CHECK(contraction_of(word, uniform) == "uniform");
  }
  CHECK(contraction_of("infty-sticky-power", uniform) == "power");
  CHECK(contraction_of("infty-mixed", fixed) == "mixed");
  CHECK(support::is_sticky("infty-sticky-power"));
  CHECK_FALSE(support::is_sticky("infty-power"));
  CHECK(support::waiting_of("infty-power", uniform) == 0);
  CHECK(support::waiting_of("infty", uniform) == 16);
  CHECK(support::waiting_of("xl", uniform) == 0);
  CHECK(support::parts_of("infty-learned", {.powers = {.5, 1, 2}}) == 3);
  CHECK(support::parts_of("infty-uniform", {.powers = {.5, 1, 2}}) == 1);
}

TEST_CASE("tries_of: every tau at every rate, and the plain memory's own tau is the plain memory") {
  recall::Settings s;
  s.rates = {.001, .01};
  s.taus = {.5, .75};
  const auto tries = recall::tries_of(s, "copy 5", "infty-sticky-tau");
  REQUIRE(tries.size() == 4);
  CHECK((tries[1].memory == "infty-sticky-tau 0.5" && tries[1].rate == .01));
  CHECK((tries[2].memory == "infty-sticky" && tries[2].rate == .001));
  CHECK(recall::tau_of(s, tries[0].memory) == .5);
  CHECK(recall::tau_of(s, "infty") == .75);
  CHECK(recall::word_of(tries[0].memory) == "infty-sticky-tau");
  CHECK(recall::memories_of(s, "infty-power") == std::vector<std::string>{"infty-power"});
  // The mixture of multi-query recall may have rates of its own.
  CHECK(recall::rates_of(s, recall::mqar_mix) == s.rates);
  s.mqar_mix_rates = {.1};
  CHECK(recall::rates_of(s, recall::mqar_mix) == s.mqar_mix_rates);
  CHECK(recall::rates_of(s, "mqar 64") == s.rates);
  CHECK(recall::tries_of(s, recall::mqar_mix, "infty").size() == 1);
  // Where the plain memory contracts otherwise, all taus are the swept word's own.
  s.contraction.name = "power";
  CHECK(recall::memories_of(s, "infty-tau") ==
        std::vector<std::string>{"infty-tau 0.5", "infty-tau 0.75"});
}

TEST_CASE("settings_from: what is newer than a file is what it was before it could be set") {
  recall::Settings s;
  s.contraction = {.name = "mixed", .power = 2, .powers = {1}, .block = 3, .waiting = "attended"};
  s.test_lengths = {9};
  s.products = "bfloat16";
  auto json = support::to_json(s);
  CHECK(support::settings_from<recall::Settings>(json, "x").contraction.name == "mixed");
  for (const auto& [name, value] : support::before_they_were().items()) json.erase(name);
  const auto older = support::settings_from<recall::Settings>(json, "x");
  CHECK(older.contraction.name == "fixed");
  CHECK(older.contraction.waiting == "written");
  CHECK(older.products == "float32");
  auto now = recall::Settings{};
  now.parameters = 0;  // as all were then
  now.values_rate = 0;
  now.mqar_heads = now.model.heads;
  CHECK(support::to_json(older) == support::to_json(now));
  json.erase("tau");
  CHECK_THROWS_WITH(support::settings_from<recall::Settings>(json, "x"),
                    Catch::Matchers::Contains("x lacks the setting --tau"));
}

TEST_CASE("mean_and_spread: the deviation is that of a sample, of two at least") {
  CHECK(support::mean_and_spread({.5}) == "0.500");
  CHECK(support::mean_and_spread({.4, .6}) == "0.500 ± 0.141");
  CHECK(support::mean_and_spread({1e300}) == "1e+300");
  CHECK(support::mean_and_spread({1e7, 3e7}) == "2e+07 ± 1.41421e+07");
  CHECK(support::spread_of({1, 2, 3}).deviation == Approx(1));
  CHECK(support::spread_of({7}).deviation == 0);
}

TEST_CASE("verdicts: below three seeds there are none, and then only beyond the interval") {
  CHECK(support::verdicts({}, true).empty());
  const auto one = support::verdicts({{"test", "xl", "none", {1}, {2}}}, true);
  CHECK(count_of(one, "no verdict: 1 seed |") == 1);
  const auto two = support::verdicts({{"test", "xl", "none", {1, 1.1}, {9, 9}}}, true);
  CHECK(count_of(two, "no verdict: 2 seeds |") == 1);
  CHECK(count_of(two, "better") == 0);

  // The differences -1, -1.1, -.9 have the standard error .1 / sqrt(3), times 4.303 = .2484.
  const support::Comparison less{"test", "xl", "none", {1, .9, 1.1}, {2, 2, 2}};
  const auto three = support::verdicts({less}, true);
  CHECK(count_of(three, "| -1.0000, -1.1000, -0.9000 | -1.0000 | [-1.2484, -0.7516] |") == 1);
  CHECK(count_of(three, "| xl is better |") == 1);
  CHECK(count_of(support::verdicts({less}, false), "| xl is worse |") == 1);
  CHECK(count_of(three, "all 1 hold together with 95 %") == 1);

  // Every seed of the one is better than every seed of the other: that is not enough.
  const support::Comparison overlapping{"test", "infty", "none", {1, 1.8, 1}, {2, 2, 2.4}};
  CHECK(count_of(support::verdicts({overlapping}, true), "| no verdict |") == 1);
  // Of many comparisons, each has to be further from 0.
  const auto many = support::verdicts(std::vector<support::Comparison>(20, less), true);
  CHECK(count_of(many, "| no verdict |") == 20);
}

TEST_CASE("RunningMean: weights by hand, without a bias towards 0 at first") {
  support::RunningMean mean;
  CHECK(mean.add(3) == 3);
  const double kept = 1 - 1. / support::RunningMean::window;
  CHECK(std::fabs(mean.add(5) - (kept * 3 + 5) / (kept + 1)) < 1e-12);
  CHECK(std::fabs(mean.add(4) - (kept * kept * 3 + kept * 5 + 4) / (kept * kept + kept + 1)) <
        1e-12);
  for (int i = 0; i < 1000; ++i) mean.add(7);
  CHECK(std::fabs(mean.add(7) - 7) < 1e-6);
}

TEST_CASE("command_line: words that a shell reads as they were") {
  CHECK(support::command_line({"a/b-c", "--rate=1e-3", "x,y"}) == "a/b-c --rate=1e-3 x,y");
  CHECK(support::command_line({"a b", "", "it's", "$x"}) == R"('a b' '' 'it'\''s' '$x')");
  const char* const words[] = {"p", "train", "--fresh", "--out", "my run"};
  CHECK(support::command_line(5, words, {"--fresh"}) == "p train --out 'my run'");
}

TEST_CASE("Below: a density by its values at even places is one by its mean and width") {
  const std::size_t points = 1000;
  const double mu = .3, sigma = .1;
  std::vector<float> values;
  for (std::size_t i = 0; i < points; ++i) {
    const double z = (static_cast<double>(i) / static_cast<double>(points - 1) - mu) / sigma;
    values.push_back(static_cast<float>(std::exp(-z * z / 2) / (sigma * 2.50662827463)));
  }
  for (std::size_t i = 0; i < points; ++i) values.push_back(1);  // another one, even
  const auto shares = memory_study::shares_before(values, points);
  REQUIRE(shares.size() == 2 * memory_study::kept_places);
  const auto of = std::span(shares);
  const memory_study::Below bell(of.first(memory_study::kept_places)),
      even(of.subspan(memory_study::kept_places)), gaussian(mu, sigma);
  for (const double t : {0., .13, .3, .42, .75, 1.}) {
    CAPTURE(t);
    CHECK(bell(t) == Approx(gaussian(t) - gaussian(0)).margin(1e-3));
    CHECK(even(t) == Approx(t).margin(1e-6));
  }
  memory_study::Cells cells;
  cells.write(4, .5, {});
  CHECK(cells.mass(1, even) == Approx(.25));
}

TEST_CASE("Warp: samples of nowhere leave what is written where it is") {
  support::Cells cells, other;
  for (int write = 0; write < 2; ++write) {
    cells.write(4, .75, support::Warp({}, 32));
    other.write(4, .75, {});
  }
  for (support::Index word = 0; word < 8; ++word) {
    CHECK(cells.place(word) == other.place(word));
    CHECK(cells.space(word) == other.space(word));
  }
  CHECK(cells.space(0) == Approx(.75 / 4));
  const support::Warp late(std::vector<float>(4, .5F), 2);  // all samples in the second half
  CHECK(late(.5) == 0);
  CHECK(late(.75) == Approx(.5));
}

TEST_CASE("Retrieved: distances are counted beside those of chance") {
  memory_study::Retrieved found;
  // A segment of two behind three, a head of two entries: the second finds one only.
  const std::vector<support::Index> inputs{7, 8, 7, 7, 9};
  support::LongTermView view;
  view.distances = {1, 3, 4, 0};
  found.add(view, inputs, {3, 2}, 16);
  CHECK(found.count == std::vector<double>{0, 1, 0, 1, 1});
  CHECK(found.all == 3);
  CHECK(found.same == 2);
  REQUIRE(found.by_chance.size() == 5);
  CHECK(found.by_chance[1] == Approx(2. / 3));           // of the first query alone
  CHECK(found.by_chance[2] == Approx(2. / 3 + 1. / 3));  // of both
  CHECK(found.by_chance[4] == Approx(1. / 3));
  CHECK(found.same_by_chance == Approx(2. / 3 * 2));
  CHECK(memory_study::Retrieved::median(found.count) == 3);
  const auto csv = memory_study::retrieved_csv({found}, {0});
  CHECK(csv.starts_with("layer,from,to,share,by_chance\n1,1,2,0.3333333333333333,"));
}

TEST_CASE("ShownByLayer: means over words, a passage by what is looked at, how even shares are") {
  memory_study::ShownByLayer all;
  // Two heads, three slots: a segment of two words and one of one word, which is the passage.
  all.add({"weights",
           0,
           {"head", "word", "slot"},
           {2, 2, 3},
           {.5, .5, 0, 1, 0, 0, .25, .25, .5, 0, 0, 1}},
          false);
  all.add({"weights", 0, {"head", "word", "slot"}, {2, 1, 3}, {0, 1, 0, 0, .5, .5}}, true);
  REQUIRE(all.mean.axes == std::vector<std::string>{"head", "slot"});
  CHECK(all.mean[0] == Approx(1.5 / 3));
  CHECK(all.mean[4] == Approx(.75 / 3));
  REQUIRE(all.passage.axes == std::vector<std::string>{"word", "slot"});
  CHECK(all.passage[1] == Approx(.75));
  CHECK(all.are_shares());
  // Each of six queries, e to its entropy: 2, 1, 2 sqrt 2, 1, 1, 2.
  CHECK(all.spreads == Approx(7 + 2 * std::sqrt(2.)));
  CHECK(all.told().starts_with("each looks at 1.6 of 3, all together at "));
  const auto panel = memory_study::panel_of_words(0, all.passage, 64);
  CHECK(panel.axes == std::vector<std::string>{"slot"});  // there is one word
  CHECK(panel.values == std::vector<double>{0, .75, .25});
  CHECK(memory_study::panels_csv({panel}) == "layer,slot,value\n1,0,0.0\n1,1,0.75\n1,2,0.25\n");

  // What does not sum to one, and gates.
  memory_study::ShownByLayer part, gate;
  part.add({"part", 1, {"word", "token"}, {2, 2}, {.1F, .1F, .2F, .4F}}, true);
  CHECK(part.told() == "0.4000 in sum over 2, from 0.2000 to 0.6000");
  const auto last = memory_study::panel_of_words(1, part.passage, 1);
  CHECK(last.shape == std::vector<support::Index>{2});
  CHECK(last.values[1] == Approx(.4));
  gate.add({"gate", -1, {"word", "head"}, {1, 2}, {.5F, 1.5F}}, true);
  CHECK(gate.told() == "1.0000 in the mean, from 0.5000 to 1.5000");
  CHECK(gate.mean.axes == std::vector<std::string>{"head"});
  CHECK_THROWS_WITH(gate.add({"gate", -1, {"word", "head"}, {1, 3}, {1, 1, 1}}, false),
                    Catch::Matchers::Contains("gate has other sizes"));
}
