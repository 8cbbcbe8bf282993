// SPDX-License-Identifier: MIT
// GPT-2 with its memories as the programs open, read and cut texts for it.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <infty/eigen/default.hpp>

#include "../../examples/gpt2/perplexity.hpp"
#include "../../examples/support/dialogue/sequences.hpp"
#include "../../examples/support/gpt2/reader.hpp"
#include "../../examples/support/known_tokens.hpp"
#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace gpt2_tests {

using infty::Index;
using support::gpt2::MemorySettings;
using support::gpt2::Model;

const infty::Gpt2Config config{
    .vocabulary = 11, .places = 8, .model_dim = 8, .layers = 2, .heads = 2, .dropout = .1};

MemorySettings settings(const std::string& memory) {
  MemorySettings s{.memory = memory, .segment = 6, .compressed = 4, .rate = 2};
  s.long_term.basis = 8;
  s.long_term.widths = {.1, .3};
  s.long_term.samples = 8;
  s.long_term.bins = 8;
  s.long_term.threshold = 0;
  if (memory == "infty") s.blocks = {1};
  return s;
}

/// With weights so large that all that is read is seen in the scores.
std::unique_ptr<Model> loud(const std::string& memory, const infty::Gpt2Config& of = config,
                            bool pieces = false) {
  auto model = support::gpt2::make_model(of, settings(memory), {.seed = 3, .pieces = pieces});
  infty::Random random(4);
  for (auto& parameter : model->named_parameters())
    fill_normal(parameter.variable.value(), 0, .4, random);
  return model;
}

Model::Tokens tokens(Index begin, Index end) {
  Model::Tokens out;
  for (Index i = begin; i < end; ++i) out.push_back((3 * i + i * i) % 11);
  return out;
}

}  // namespace gpt2_tests

TEST_CASE("gpt2: what is read in pieces from a folder is what whole segments are") {
  using namespace gpt2_tests;
  for (const std::string memory : {"infty", "sticky", "compressive"}) {
    CAPTURE(memory);
    const auto model = loud(memory);
    const infty::tests::TemporaryFolder folder;
    model->save(folder.path());
    const auto pieces = support::gpt2::open_model(folder.path(), {.pieces = true});
    CHECK(pieces->reads_pieces() == (memory != "compressive"));
    CHECK(support::to_json(pieces->memory()) == support::to_json(model->memory()));
    CHECK(pieces->parameters() == model->parameters());
    CHECK(pieces->memory_parameters() > 0);
    support::gpt2::Reader reader(*pieces), at_once(*pieces);
    auto state = model->make_state(1);
    std::vector<float> last;
    for (Index begin = 0; begin < 24; begin += 6) {
      for (Index end = begin + 1; end <= begin + 6; ++end) {
        auto copy = state;
        const auto whole = model->logits(copy, 1, tokens(begin, end));
        last = reader.read(tokens(end - 1, end));
        CHECK(infty::tests::error(last, whole) < 1e-5);
      }
      model->observe(state, 1, tokens(begin, begin + 6));
    }
    CHECK(infty::tests::error(at_once.read(tokens(0, 24)), last) < 1e-5);
    CHECK(model->look(state, tokens(0, 6)).size() ==
          (memory == "compressive" ? 0 : model->memory_blocks().size()));
  }
}

TEST_CASE("gpt2: a window slides at the same token however a text is cut, of any length") {
  using namespace gpt2_tests;
  for (const Index places : {6, 7, 9}) {
    auto sized = config;
    sized.places = places;
    const auto model = loud("none", sized, true);
    for (Index n = 1; n < 4 * places; ++n) {
      CAPTURE(places, n);
      support::gpt2::Reader at_once(*model), one_by_one(*model), in_threes(*model);
      const auto whole = at_once.read(tokens(0, n));
      std::vector<float> ones, threes;
      for (Index i = 0; i < n; ++i) ones = one_by_one.read(tokens(i, i + 1));
      for (Index i = 0; i < n; i += 3) threes = in_threes.read(tokens(i, std::min(n, i + 3)));
      CHECK(infty::tests::error(ones, whole) < 1e-4);
      CHECK(infty::tests::error(threes, whole) < 1e-4);
      CHECK(one_by_one.room() == in_threes.room());
    }
  }
}

TEST_CASE("gpt2: a folder is opened with more tokens, another dropout, and what is trained alone") {
  using namespace gpt2_tests;
  const auto model = loud("none");
  const infty::tests::TemporaryFolder folder;
  model->save(folder.path());
  const auto opened = support::gpt2::open_model(folder.path(), settings("sticky"),
                                                {.new_tokens = 2, .dropout = .3});
  CHECK(opened->config().vocabulary == 13);
  for (const double share : {opened->config().dropout, opened->config().attention_dropout,
                             opened->config().resolved_embedding_dropout()})
    CHECK(share == .3);
  auto state = model->make_state(1), there = opened->make_state(1);
  const auto before = model->logits(state, 1, tokens(0, 6));
  auto with_more = opened->logits(there, 1, tokens(0, 6));
  with_more.resize(before.size());
  CHECK(infty::tests::error(with_more, before) < 1e-6);  // a fresh memory has nothing to say

  opened->train_memory_alone();
  for (const auto& parameter : opened->named_parameters())
    CHECK(parameter.variable.requires_grad() ==
          (parameter.name.find(".mixer.memory.") != std::string::npos));
  CHECK_THROWS_AS(model->train_memory_alone(), infty::ValueError);
  CHECK_THROWS_AS(support::gpt2::open_model(folder.path(),
                                            [] {
                                              auto s = gpt2_tests::settings("compressive");
                                              s.blocks = {0};
                                              return s;
                                            }()),
                  infty::ValueError);
}

TEST_CASE("gpt2: windows predict every token but the first of a document once") {
  infty::TokenStream stream;
  stream.append(std::vector<infty::TokenId>(23));
  stream.append(std::vector<infty::TokenId>(1));
  stream.append(std::vector<infty::TokenId>(9));
  for (const infty::Index length : {2, 5, 30})
    for (infty::Index stride = 1; stride <= length; ++stride) {
      CAPTURE(length, stride);
      std::vector<infty::Index> scored(33);
      for (const auto& window : gpt2::windows_of(stream, length, stride)) {
        REQUIRE(window.end - window.begin <= length);
        REQUIRE(window.scored > window.begin);
        for (infty::Index i = window.scored; i < window.end; ++i) {
          ++scored[static_cast<std::size_t>(i)];
          // Behind the first window of a document a token has seen what the stride leaves of it.
          const infty::Index first = i < 23 ? 0 : 24;
          if (window.begin > first)
            REQUIRE(i - window.begin >= std::max<infty::Index>(1, length - stride));
        }
      }
      for (infty::Index i = 0; i < 33; ++i) {
        const bool begins = i == 0 || i == 23 || i == 24;
        // Windows that do not overlap have nothing in front of their first tokens.
        const bool first = stride == length && (i < 23 ? i : i - 24) % length == 0;
        REQUIRE(scored[static_cast<std::size_t>(i)] == (begins || first ? 0 : 1));
      }
    }
}

TEST_CASE("gpt2: the score by windows does not depend on how many are read at once") {
  using namespace gpt2_tests;
  infty::TokenStream stream;
  std::vector<infty::TokenId> text;
  for (const Index token : tokens(0, 120)) text.push_back(static_cast<infty::TokenId>(token));
  stream.append(text);
  for (const std::string memory : {"none", "infty", "sticky", "compressive"}) {
    CAPTURE(memory);
    const auto model = loud(memory);
    const auto of_batch = [&](Index batch) {
      gpt2::PerplexityOptions options;
      options.batch = batch;
      return gpt2::windowed_score(*model, stream, memory == "none" ? 8 : 24, 5, options).nats;
    };
    const double one = of_batch(1);
    CHECK(of_batch(2) == Approx(one).epsilon(1e-5));
    CHECK(of_batch(8) == Approx(one).epsilon(1e-5));
  }
}

TEST_CASE("gpt2: words and bytes count by the share of the text's tokens that is predicted") {
  const infty::tests::TemporaryFolder folder;
  support::write_file(folder / "vocab.json", R"({"a": 0, "Ġ": 1})");
  support::write_file(folder / "merges.txt", "#version: 0.2\n");
  const auto encoding = infty::BytePairEncoding::from_folder(folder.path());
  std::string text;
  for (int i = 0; i < 500; ++i) text += "a ";  // a token a byte
  const auto score_at = [&](bool exact, infty::Index block) {
    gpt2::TextSettings s;
    s.exact = exact;
    const gpt2::Part part = gpt2::make_part(encoding, s, block, {text});
    gpt2::Batches batches(part, s, 1, block, 0);
    infty::TextScore score;
    for (bool last = false; !last;) {
      const auto batch = batches.next();
      last = batch.last;
      score.nats += static_cast<double>(batch.predicted);  // 1 a token
      score.tokens += batch.predicted;
    }
    return gpt2::score_of(score, part);
  };
  const double bits = 1 / std::log(2.);
  // Of blocks of 512 and 600 there is one, and what is behind it is lost.
  for (const infty::Index block : {100, 500, 512, 600, 1000}) {
    CAPTURE(block);
    const auto score = score_at(true, block);
    CHECK(score.tokens == 1000 / block * (block - 1));
    CHECK(score.bytes == score.tokens);
    CHECK(score.characters == score.tokens);
    CHECK(std::abs(score.words - score.tokens / 2) <= 1);
    CHECK(score.bits_per_byte == Approx(bits));
  }
  const auto whole = score_at(false, 100);
  CHECK(whole.bytes == 1000);
  CHECK(whole.words == 501);  // with the end of the line
}

TEST_CASE("gpt2: what is no token is not drawn, in a hole and behind the last one") {
  const infty::tests::TemporaryFolder folder;
  support::write_file(folder / "vocab.json", R"({"a": 0, "b": 3})");
  support::write_file(folder / "merges.txt", "");
  const auto encoding = infty::BytePairEncoding::from_folder(folder.path());
  std::vector<float> scores{1, 9, 9, 2, 9};
  support::keep_known(encoding, scores);
  const auto may = infty::weighed_classes(std::span<const float>(scores), {});
  CHECK(may.classes == std::vector<infty::Index>{0, 3});
  const dialogue::Tokenizer tokenizer(encoding, 5);
  CHECK(tokenizer.decode({0, 1, 3, 4, 5, -1}) == "ab");
}

TEST_CASE("gpt2: the text of the paper's program, and WikiText's articles") {
  const infty::tests::TemporaryFolder folder;
  support::write_file(folder / "vocab.json", R"({"a": 0, "b": 1, "Ġ": 2, "ab": 3})");
  support::write_file(folder / "merges.txt", "#version: 0.2\na b\n");
  const auto encoding = infty::BytePairEncoding::from_folder(folder.path());
  // 1,000 lines of 3 tokens are 250 blocks of 12; of those behind, 7 tokens, none is whole.
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "abba\n";
  infty::TokenStream stream;
  CHECK(gpt2::add_blocks(encoding, text + "a b\n\nabba\nb", 12, stream, [](infty::Index) {}) ==
        3007);
  REQUIRE(stream.tokens.size() == 3000);
  CHECK(std::vector(stream.tokens.begin(), stream.tokens.begin() + 4) ==
        std::vector<infty::TokenId>{3, 1, 0, 3});
  gpt2::Blocks blocks(stream, 12);
  CHECK(blocks.batches_per_epoch() == 250);
  auto batch = blocks.next();
  CHECK(batch.reset == std::vector<infty::Index>{0});
  CHECK(batch.predicted == 11);
  CHECK(batch.targets[0] == batch.inputs[1]);
  CHECK(batch.targets[11] == infty::ignore_index);
  for (int i = 1; i < 250; ++i) {
    REQUIRE(!batch.last);
    batch = blocks.next();
    REQUIRE(batch.reset.empty());
  }
  CHECK(batch.last);
  CHECK(blocks.next().reset.empty());  // the memory goes on into the next epoch
  gpt2::Blocks other(stream, 12);
  other.seek(blocks.position());
  CHECK(other.position() == blocks.position());
  CHECK_THROWS_AS(other.seek({.epoch = 0, .next = {5}}), infty::ValueError);

  const std::string_view wiki = " \n = One = \n a\n = = Part = = \n b\n = Two = \n c\n";
  CHECK(gpt2::articles_of(wiki) ==
        std::vector<std::string_view>{" \n", wiki.substr(2, wiki.find(" = Two") - 2),
                                      wiki.substr(wiki.find(" = Two"))});
}
