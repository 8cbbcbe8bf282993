// SPDX-License-Identifier: MIT
#include <string>
#include <vector>

#include <infty/data/dialogue.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::cut_from_end;
using infty::Index;
using infty::Piece;
using infty::TokenId;

TEST_CASE("dialogues: documents, turns, and what no empty line ends", "[data]") {
  const std::string text =
      "Document:a film\n\nDialog:hello\nhi\n\nDialog:again\nyes\n\nDocument:b\n\nDialog:late";
  const auto all = infty::read_dialogues(text);
  REQUIRE(all.size() == 2);
  CHECK(all[0].document == "a film");
  CHECK(all[0].turns == std::vector<std::string>{"hello", "hi", "again", "yes"});
  CHECK(all[1].turns == std::vector<std::string>{"late"});
  CHECK(infty::read_dialogues(text, false)[1].turns.empty());
  CHECK(infty::read_dialogues("").empty());
  CHECK_THROWS_WITH(infty::read_dialogues("Dialog:hello\nhi\n\n"),
                    Contains("line 3: turns without a `Document:`"));
}

TEST_CASE("dialogues: lines of either ending are the same", "[data]") {
  const auto all = infty::read_dialogues("Document:a\r\nDialog:hello\r\nhi\r\n\r\nDialog:x\ry\r\n");
  REQUIRE(all.size() == 1);
  CHECK(all[0].document == "a");
  CHECK(all[0].turns == std::vector<std::string>{"hello", "hi", "x\ry"});
}

TEST_CASE("dialogues: turns that another document or dialogue follows at once", "[data]") {
  const std::string text =
      "Document:A\nDialog:one\ntwo\nDocument:B\nthree\nDialog:four\nfive\nDialog:six\n\n"
      "Dialog:seven\nDocument:C\neight\n\n";
  using Turns = std::vector<std::string>;
  const auto kept = infty::read_dialogues(text);
  REQUIRE(kept.size() == 3);
  CHECK(kept[0].turns == Turns{"one", "two"});
  CHECK(kept[1].turns == Turns{"three", "four", "five", "six", "seven"});
  CHECK(kept[2].turns == Turns{"eight"});
  const auto dropped = infty::read_dialogues(text, false);
  REQUIRE(dropped.size() == 3);
  CHECK(dropped[0].turns == Turns{});
  CHECK(dropped[1].turns == Turns{"six"});
  CHECK(dropped[2].turns == Turns{"eight"});
  CHECK_THROWS_WITH(infty::read_dialogues("Dialog:hello\nDocument:A\n"),
                    Contains("line 2: turns without a `Document:`"));
}

TEST_CASE("dialogues: tokens, types and what was said", "[data]") {
  const infty::DialogueMarks marks{.document = 90, .end = 91, .first = 92, .second = 93};
  auto made = infty::document_tokens({1, 2}, marks);
  made.add({3}, 0, marks);
  made.add({}, 1, marks);
  made.add({4, 5}, 2, marks);
  CHECK(made.tokens == std::vector<TokenId>{90, 1, 2, 91, 92, 3, 93, 92, 4, 5});
  CHECK(made.types == std::vector<TokenId>{90, 90, 90, 90, 92, 92, 93, 92, 92, 92});
  CHECK(made.said ==
        std::vector<bool>{false, false, false, false, false, true, false, false, true, true});
}

TEST_CASE("dialogues: pieces from the end meet, and are full but for the first", "[data]") {
  CHECK(cut_from_end(0, 4).empty());
  CHECK(cut_from_end(9, 4) == std::vector<Piece>{{0, 1}, {1, 4}, {5, 4}});
  CHECK(cut_from_end(9, 4, 3) == std::vector<Piece>{{0, 2}, {2, 4}, {6, 3}});
  CHECK(cut_from_end(2, 4, 3) == std::vector<Piece>{{0, 2}});
  for (Index length = 1; length < 40; ++length)
    for (Index piece = 1; piece < 9; ++piece)
      for (Index last = 0; last < 9; ++last) {
        const auto pieces = cut_from_end(length, piece, last);
        Index at = 0;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
          REQUIRE(pieces[i].begin == at);
          const Index full = i + 1 == pieces.size() && last > 0 ? last : piece;
          REQUIRE((i == 0 ? pieces[i].length <= full : pieces[i].length == full));
          at += pieces[i].length;
        }
        REQUIRE(at == length);
      }
  CHECK_THROWS_WITH(cut_from_end(3, 0), Contains("piece is 0"));
  CHECK_THROWS_WITH(cut_from_end(-1, 2), Contains("length is -1"));
  CHECK_THROWS_WITH(cut_from_end(1, 2, -2), Contains("last is -2"));
}
