// SPDX-License-Identifier: MIT
// What memory_study reads of GPT-2s and counts of dialogues, in numbers.

#include <any>
#include <cstddef>
#include <string>
#include <vector>

#include "../../examples/memory_study/answers_page.hpp"
#include "support/catch.hpp"

namespace dialogue_study {

using memory_study::DialoguePassage;
using memory_study::Index;
using memory_study::Passage;
using memory_study::Piece;
using memory_study::Reading;
using support::LongTermView;

constexpr infty::DialogueMarks marks{.document = 100, .end = 101, .first = 102, .second = 103};

/// A document of three tokens, and two turns.
DialoguePassage small_dialogue(Index chunk) {
  return memory_study::dialogue_passage(
      {.document = {1, 2, 3}, .turns = {{4, 5}, {6}}, .texts = {}}, chunk, marks);
}

/// A model of one block with a memory that is cleared at six vectors, and is written with each
/// segment what waits since the last one: it shows queries that look at .25.
struct FakeModel {
  struct Memory {
    Index written = 0, writes = 0, waiting = 0;
  };
  using State = std::any;
  mutable std::vector<std::vector<Index>> types;  ///< that came with each segment

  static State make_state(Index) { return Memory(); }
  static std::vector<float> losses(State&, const infty::TextBatch& batch,
                                   const std::vector<Index>&) {
    return std::vector<float>(static_cast<std::size_t>(batch.length), 1);
  }
  std::vector<LongTermView> look(State& state, const std::vector<Index>& tokens,
                                 const std::vector<Index>& of) const {
    auto& memory = std::any_cast<Memory&>(state);
    types.push_back(of);
    LongTermView view;
    if (memory.waiting > 0) {
      if (memory.written >= 6) memory = {.written = 0, .writes = 0, .waiting = memory.waiting};
      view.taken.resize(static_cast<std::size_t>(memory.waiting));
      memory.written += memory.waiting;
      ++memory.writes;
    }
    memory.waiting = std::ssize(tokens);
    view.written = memory.written;
    view.writes = memory.writes;
    view.mu.assign(tokens.size(), .25F);
    view.sigma.assign(tokens.size(), .01F);
    return {view};
  }
};

TEST_CASE("dialogue_passage: whose each input is, in chunks from the end") {
  const auto found = small_dialogue(4);
  CHECK(found.passage.inputs == std::vector<Index>{100, 1, 2, 3, 101, 102, 4, 5, 103});
  CHECK(found.passage.targets == std::vector<Index>{1, 2, 3, 101, 102, 4, 5, 103, 6});
  CHECK(found.passage.types == std::vector<Index>{100, 100, 100, 100, 100, 102, 102, 102, 103});
  CHECK(found.turn == std::vector<Index>{-1, -1, -1, -1, -1, 0, 0, 0, 1});
  CHECK(found.said ==
        std::vector<bool>{false, false, false, false, false, true, true, false, true});
  CHECK(found.turns == 2);
  CHECK(found.passage.segments == std::vector<Piece>{{0, 2}, {2, 4}, {6, 3}});
  // A first chunk of one token is passed over.
  CHECK(small_dialogue(3).passage.segments == std::vector<Piece>{{1, 3}, {4, 3}, {7, 2}});
}

TEST_CASE("read_passage: token types go along, and a threshold clears cells") {
  const FakeModel model;
  const Passage passage{.inputs = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                        .targets = {2, 3, 4, 5, 6, 7, 8, 9, 10},
                        .types = {0, 0, 0, 0, 1, 1, 1, 1, 1},
                        .segments = {{0, 3}, {3, 3}, {6, 2}, {8, 1}}};
  Index read = 0;
  const auto found = memory_study::read_passage(model, {4}, {.tau = .5, .threshold = 6}, passage,
                                                [&](Index more) { read += more; });
  CHECK(read == 9);
  CHECK(model.types == std::vector<std::vector<Index>>{{0, 0, 0}, {0, 1, 1}, {1, 1}, {1}});
  REQUIRE(found.segments.size() == 4);
  std::vector<Index> sizes, held;
  for (const auto& segment : found.segments) {
    sizes.push_back(segment.cells.front().size());
    held.push_back(segment.held());
  }
  CHECK(sizes == std::vector<Index>{0, 3, 6, 2});
  CHECK(held == std::vector<Index>{0, 0, 0, 6});  // 3 and 3 are six: the next write clears them
  CHECK(found.segments[2].cells[0].end(2) == Approx(.5));
  CHECK(found.segments[3].cells[0].end(1) == 1);
  CHECK(found.segment_of(7).first == 6);
  CHECK(memory_study::first_remembered(found) == 3);
}

TEST_CASE("as_utf8: bytes of no character are shown as such") {
  CHECK(memory_study::as_utf8("a\xC3\xA9") == "a\xC3\xA9");
  CHECK(memory_study::as_utf8("\xC3") == "\xEF\xBF\xBD");
  CHECK(memory_study::as_utf8("\xA9\xE2\x82z") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz");
  CHECK(memory_study::as_utf8("").empty());
}

TEST_CASE("looked_at and answers_of: what turns attend to, by hand") {
  const auto of = small_dialogue(4);
  const FakeModel model;
  auto reading = memory_study::read_passage(model, {0}, {.tau = .5}, of.passage, [](Index) {});
  // Said are the targets of 5, in the second chunk, and of 6 and 8, in the third. At 5 two inputs
  // have been written, a half each; at 6 and 8 six, the first two of which share [0, .5].
  const auto looked = memory_study::looked_at({reading}, {of});
  REQUIRE(looked.size() == 1);
  CHECK(looked[0].queries == 3);
  CHECK(looked[0].document == Approx(3));
  CHECK(looked[0].turns == Approx(0).margin(1e-9));
  CHECK(looked[0].outside == Approx(0).margin(1e-9));
  CHECK(looked[0].document_space == Approx(1 + 2 * (.5 + .5 * 3 / 4)));
  CHECK(looked[0].turns_space == Approx(2 * .5 / 4));
  CHECK(memory_study::looked_csv(looked, {0})
            .starts_with("layer,document,document_space,turns,turns_space,outside\n1,1.0,"));

  // Queries that look at .9 look at the last of six.
  for (auto& mu : reading.segments[2].layers[0].mu) mu = .9375F;
  const auto later = memory_study::looked_at({reading}, {of});
  CHECK(later[0].turns == Approx(2));
  const auto answers = memory_study::answers_of(reading, of, 2, 1);
  REQUIRE(answers.size() == 2);
  CHECK(answers[0].attention[0] == Approx(.5));  // a cell of [0, .5], at whose middle it looks
  CHECK(answers[0].attention[5] == Approx(.5));
  CHECK(answers[1].attention[5] == Approx(1));
  CHECK(answers[1].attention[0] == Approx(0).margin(1e-9));
  CHECK(answers[1].excerpts == std::vector<Index>{4});
  const memory_study::TokenTexts texts{
      .decode = [](auto ids) { return '[' + std::to_string(ids.front()) + ']'; }};
  const auto page = memory_study::answers_page(of, answers, texts, 2);
  CHECK(page.find("title=\"100.000 %\">[102]</span>") != page.npos);
  CHECK(page.find("turn 2</label>") != page.npos);
}

}  // namespace dialogue_study
