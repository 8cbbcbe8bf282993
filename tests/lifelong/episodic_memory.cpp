// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/forgetting_events.hpp>

#include "io/temporary_folder.hpp"
#include "lifelong/episodic_case.hpp"
#include "support/catch.hpp"
#include "support/types.hpp"

using infty::EpisodicConfig;
using infty::EpisodicMemory;
using infty::Example;
using infty::Index;
using infty::Random;
using infty::Replacement;
using infty::Shape;
using infty::Tensor;
using infty::WriteRule;
using infty::tests::TemporaryFolder;

namespace {

/// Learns nothing: it answers example i right, 600 of them, behind those batches that `right` says,
/// and notes the sizes of batches.
struct Forgetful {
  std::vector<Index> batches = {};
  std::vector<Index> looks = {};  ///< behind which batches it was asked
  void train_on(std::span<const Example> batch) { batches.push_back(std::ssize(batch)); }

  struct Model {
    Forgetful* of;
    std::vector<std::vector<Index>> answers(std::span<const Example> examples) const {
      const auto now = static_cast<Index>(of->batches.size());
      if (of->looks.empty() || of->looks.back() != now) of->looks.push_back(now);
      std::vector<std::vector<Index>> out;
      for (const Example& e : examples) out.push_back({right(e.tokens[0], now) ? 0 : 1});
      return out;
    }
  } model{this};

  /// Multiples of 3 are known behind batches 2 and 6 alone, and multiples of 100 always.
  static bool right(Index i, Index batch) {
    return i % 100 == 0 || (i % 3 == 0 && (batch == 2 || batch == 6));
  }
};

}  // namespace

TEST_CASE("count_forgetting: what was known at one look and is not at the next") {
  std::vector<Example> examples;
  for (Index i = 0; i < 600; ++i) examples.push_back({{i}, {0}});
  Forgetful learner;
  const auto counts = infty::count_forgetting(learner, examples, 80, 4).counts();
  CHECK(learner.batches == std::vector<Index>{80, 80, 80, 80, 80, 80, 80, 40});
  CHECK(learner.looks == std::vector<Index>{2, 4, 6, 8});
  REQUIRE(counts.size() == 600);
  for (std::size_t i = 0; i < 600; ++i) CHECK(counts[i] == (i % 100 != 0 && i % 3 == 0 ? 2. : 0.));
  Forgetful often;
  infty::count_forgetting(often, std::span(examples).first(30), 10, 7);
  CHECK(often.looks == std::vector<Index>{1, 2, 3});
  constexpr Index most = std::numeric_limits<Index>::max();
  Forgetful at_once, always;
  infty::count_forgetting(at_once, examples, most, most);
  CHECK(at_once.batches == std::vector<Index>{600});
  CHECK(at_once.looks == std::vector<Index>{1});
  infty::count_forgetting(always, std::span(examples).first(30), 10, most);
  CHECK(always.looks == std::vector<Index>{1, 2, 3});
  CHECK(infty::count_forgetting(often, {}, 3, 2).counts().empty());
  for (const Index n : {Index{-1}, Index{1} << 61, most})
    CHECK_THROWS_AS(infty::ForgettingEvents(n), infty::ValueError);
  CHECK_THROWS_AS(infty::count_forgetting(often, examples, 0, 1), infty::ValueError);
  CHECK_THROWS_AS(infty::count_forgetting(often, examples, 1, 0), infty::ValueError);
}

TEST_CASE("EpisodicMemory: with a probability it writes a share, however the stream is cut") {
  using namespace infty::tests::episodes;
  Memory whole(2, {.rate = .25, .seed = 3}), pieces(2, {.rate = .25, .seed = 3});
  offer(whole, 0, 2000);
  for (Index first = 0, n; first < 2000; first += n)
    offer(pieces, first, n = std::min<Index>(77, 2000 - first));
  CHECK(held(whole) == held(pieces));
  CHECK(whole.offered() == 2000);
  CHECK(whole.chosen() == whole.size());
  CHECK(std::abs(static_cast<double>(whole.size()) - 500) < 60);  // three deviations
  Memory all(2), none(2, {.rate = 0}), other(2, {.rate = .25, .seed = 4});
  offer(all, 0, 50);
  offer(none, 0, 50);
  offer(other, 0, 2000);
  CHECK(all.size() == 50);
  CHECK(none.size() == 0);
  CHECK(held(other) != held(whole));
  CHECK(all.bytes() == 50 * (2 * 4 + 3 * 8));
}

TEST_CASE("EpisodicMemory: by diversity it prefers what is far from what is held") {
  using namespace infty::tests::episodes;
  const auto chosen = [](double beta, Index seed) {
    Memory memory(1, {.rule = WriteRule::diversity, .rate = .5, .beta = beta, .seed = seed});
    // Nothing is held: of the first two each is as good. Behind them one is 0 away, one 4.
    memory.write(Keys::from({2, 1}, {5, 5}), stream(0, 2));
    REQUIRE(memory.size() == 1);
    memory.write(Keys::from({2, 1}, {5, 3}), stream(2, 2));
    REQUIRE(memory.size() == 2);
    return memory.example(1).tokens.front() == 3;
  };
  CHECK(chosen(.01, 1));
  CHECK_FALSE(chosen(-.01, 1));
  // p of the far one is e^(4/β) / (1 + e^(4/β)) = 3/4.
  Index far = 0;
  for (Index seed = 0; seed < 2000; ++seed) far += chosen(4 / std::log(3.), seed);
  CHECK(std::abs(static_cast<double>(far) / 2000 - .75) < .03);  // three deviations
}

TEST_CASE("EpisodicMemory: by scores it writes the highest, so many as the rate says") {
  using namespace infty::tests::episodes;
  infty::ForgettingEvents events(5);
  for (const auto& [i, right] : std::vector<std::pair<Index, bool>>{{0, true},
                                                                    {1, false},
                                                                    {2, true},
                                                                    {2, false},
                                                                    {2, true},
                                                                    {2, false},
                                                                    {4, true},
                                                                    {4, false}})
    events.note(i, right);
  CHECK(events.counts() == std::vector<double>{0, 0, 2, 0, 1});
  CHECK_THROWS_AS(events.note(5, true), infty::ShapeError);
  CHECK_THROWS_AS(infty::ForgettingEvents(-1), infty::ValueError);
  Memory memory(2, {.rule = WriteRule::score, .rate = .4});
  memory.write(keys<float, infty::EigenBackend>(0, 5), stream(0, 5), events.counts());
  CHECK(held(memory) == std::vector<Index>{2, 4});
  CHECK_THROWS_AS(offer(memory, 5, 5), infty::ShapeError);
}

TEST_CASE("EpisodicMemory: a rate that is nearly 1 writes no example twice") {
  using namespace infty::tests::episodes;
  for (const double rate : {1 / (1 + 1e-12), 1 - 1e-12, .999'999'999'999'2}) {
    Memory memory(2, {.rule = WriteRule::score, .rate = rate});
    for (Index i = 0; i < 200; ++i)
      memory.write(keys<float, infty::EigenBackend>(i, 1), stream(i, 1), std::vector<double>{1});
    const auto all = held(memory);
    Index share = 0, jumps = 0;
    for (Index n = 1; n < 100'000; ++n) {
      const Index before = std::exchange(share, infty::detail::share_of(rate, n));
      if (share < before || share > before + 1) ++jumps;
    }
    CHECK(jumps == 0);
    CHECK(memory.chosen() == memory.size());
    CHECK(memory.size() >= 198);
    CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
  }
}

TEST_CASE("EpisodicMemory: a full one holds the last, the first, or an even sample") {
  using namespace infty::tests::episodes;
  Memory last(2, {.capacity = 4, .replacement = Replacement::oldest});
  Memory first(2, {.capacity = 4, .replacement = Replacement::nothing});
  for (Index i = 0; i < 30; i += 5) {
    offer(last, i, 5);
    offer(first, i, 5);
  }
  CHECK(held(last) == std::vector<Index>{28, 29, 26, 27});
  CHECK(held(first) == std::vector<Index>{0, 1, 2, 3});
  std::vector<Index> times(20, 0);
  for (Index seed = 0; seed < 2000; ++seed) {
    Memory even(2, {.capacity = 5, .seed = seed});
    offer(even, 0, 13);
    offer(even, 13, 7);
    REQUIRE(even.size() == 5);
    CHECK(even.chosen() == 20);
    for (const Index i : held(even)) ++times[static_cast<std::size_t>(i)];
  }
  for (const Index n : times)
    CHECK(std::abs(static_cast<double>(n) - 500) < 80);  // four deviations
}

TEST_CASE("EpisodicMemory: draws are even, never the same place twice, and the same again") {
  using namespace infty::tests::episodes;
  Memory memory(2);
  offer(memory, 0, 10);
  std::vector<Index> times(10, 0);
  Random random(1), again(1);
  for (int i = 0; i < 1000; ++i) {
    const auto drawn = memory.draw(4, random);
    CHECK(drawn == memory.draw(4, again));
    CHECK(std::set<Index>(drawn.begin(), drawn.end()).size() == 4);
    for (const Index place : drawn) ++times[static_cast<std::size_t>(place)];
  }
  for (const Index n : times) CHECK(std::abs(static_cast<double>(n) - 400) < 62);
  auto all = memory.draw(50, random);
  std::sort(all.begin(), all.end());
  std::vector<Index> each(10);
  std::iota(each.begin(), each.end(), 0);
  CHECK(all == each);
  CHECK(memory.draw(0, random).empty());
  CHECK(Memory(2).draw(3, random).empty());
  CHECK_THROWS_AS(memory.draw(-1, random), infty::ValueError);
}

TEMPLATE_LIST_TEST_CASE(
    "EpisodicMemory: the nearest are those of a search by hand, whatever was replaced", "",
    infty::tests::Types) {
  using namespace infty::tests::episodes;
  using T = typename TestType::T;
  using B = typename TestType::B;
  EpisodicMemory<T, B> memory(2, {.capacity = 60});
  CHECK(memory.nearest(keys<T, B>(0, 1), 3) == std::vector<std::vector<Index>>{{}});
  for (Index i = 0; i < 6000; i += 500) {  // the dead are swept out on the way
    offer(memory, i, 500);
    const auto asked = keys<T, B>(i + 3, 4).to_vector();
    const auto found = memory.nearest(keys<T, B>(i + 3, 4), 7);
    REQUIRE(found.size() == 4);
    for (std::size_t q = 0; q < 4; ++q) {
      const auto distance = [&](Index place) {
        const auto k = key<T>(memory.example(place).tokens.front());
        return (k[0] - asked[2 * q]) * (k[0] - asked[2 * q]) +
               (k[1] - asked[2 * q + 1]) * (k[1] - asked[2 * q + 1]);
      };
      std::vector<T> all, of_found;
      for (Index place = 0; place < memory.size(); ++place) all.push_back(distance(place));
      std::sort(all.begin(), all.end());
      for (const Index place : found[q]) of_found.push_back(distance(place));
      CHECK(of_found == std::vector<T>(all.begin(), all.begin() + 7));
      CHECK(std::set<Index>(found[q].begin(), found[q].end()).size() == 7);
    }
  }
  CHECK(memory.nearest(keys<T, B>(0, 2), 100)[1].size() == 60);
  CHECK(memory.nearest(keys<T, B>(0, 2), Index{1} << 60)[1] ==
        memory.nearest(keys<T, B>(0, 2), 60)[1]);
}

TEMPLATE_LIST_TEST_CASE("EpisodicMemory: restored it goes on as if it had never stopped", "",
                        infty::tests::Types) {
  using namespace infty::tests::episodes;
  using T = typename TestType::T;
  using B = typename TestType::B;
  const TemporaryFolder folder;
  const auto path = folder / "memory.safetensors";
  for (const WriteRule rule : {WriteRule::probability, WriteRule::diversity}) {
    const EpisodicConfig config{.capacity = 20, .rule = rule, .rate = .5, .seed = 7};
    EpisodicMemory<T, B> memory(2, config), restored(2, config);
    memory.save(path);  // an empty one, too
    restored.load(path);
    CHECK(restored.size() == 0);
    offer(memory, 0, 100);
    memory.save(path);
    offer(restored, 300, 9);
    restored.load(path);
    for (Index i = 100; i < 400; i += 60) {
      CHECK(held(restored) == held(memory));
      CHECK(restored.nearest(keys<T, B>(i, 5), 6) == memory.nearest(keys<T, B>(i, 5), 6));
      CHECK(restored.offered() == memory.offered());
      offer(memory, i, 60);
      offer(restored, i, 60);
    }
    memory.save(path);
    const std::string bytes = infty::tests::read_text(path);
    restored.save(path);
    CHECK(infty::tests::read_text(path) == bytes);
  }
}

TEST_CASE("EpisodicMemory: what it is given wrong is refused, and nothing changes") {
  using namespace infty::tests::episodes;
  Memory memory(2);
  offer(memory, 0, 5);
  CHECK_THROWS_AS(memory.write(keys<float, infty::EigenBackend>(5, 2), stream(5, 3)),
                  infty::ShapeError);
  CHECK_THROWS_AS(memory.write(Keys::from({1, 3}, {1, 2, 3}), stream(5, 1)), infty::ShapeError);
  CHECK_THROWS_AS(
      memory.write(Keys::from({1, 2}, {1, infty::math::not_a_number<float>}), stream(5, 1)),
      infty::NonFiniteError);
  // A finite key that no search could tell the distance of, and queries likewise.
  const auto far = Keys::from({1, 2}, {1, 1e20F});
  CHECK_THROWS_AS(memory.write(far, stream(5, 1)), infty::NonFiniteError);
  CHECK_THROWS_AS(memory.nearest(far, 1), infty::NonFiniteError);
  CHECK_NOTHROW(memory.nearest(Keys::from({1, 2}, {1, 1e18F}), 1));
  const std::vector<Example> empty(1);
  CHECK_THROWS_AS(memory.write(Keys::from({1, 2}, {1, 2}), empty), infty::ValueError);
  const std::vector<double> scores{1};
  CHECK_THROWS_AS(memory.write(Keys::from({1, 2}, {1, 2}), stream(5, 1), scores),
                  infty::ShapeError);
  CHECK_THROWS_AS(memory.nearest(Keys::from({1, 3}, {1, 2, 3}), 1), infty::ShapeError);
  CHECK_THROWS_AS(memory.nearest(Keys::from({1, 2}, {1, 2}), 0), infty::ValueError);
  CHECK_THROWS_AS(memory.example(5), infty::ShapeError);
  CHECK_THROWS_AS(memory.examples({0, -1}), infty::ShapeError);
  CHECK(held(memory) == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(memory.offered() == 5);
  offer(memory, 5, 1);  // nor is what comes next refused
  CHECK(held(memory) == std::vector<Index>{0, 1, 2, 3, 4, 5});
  CHECK_THROWS_AS(Memory(0), infty::ValueError);
  for (const EpisodicConfig& wrong : {EpisodicConfig{.capacity = 0},
                                      {.capacity = Index{1} << 31},
                                      {.rate = -.1},
                                      {.rate = 1.1},
                                      {.beta = 0},
                                      {.beta = infty::math::infinity<double>},
                                      {.seed = -1}})
    CHECK_THROWS_AS(Memory(2, wrong), infty::ValueError);
}
