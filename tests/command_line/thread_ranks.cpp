// SPDX-License-Identifier: MIT
// A language model of any word, trained on ranks that are threads of this process, is that of one
// rank.

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <infty/io/safetensors_file.hpp>
#include <infty/parallel/thread_communicator.hpp>

#include "../../examples/support/language_model/steps.hpp"
#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/threads.hpp"

namespace thread_rank_tests {

using infty::Index;

constexpr Index steps = 8;

language_model::Settings settings_of(const std::string& word) {
  language_model::Settings s;
  support::choose_model(s, word);
  s.level = "char";
  s.model = {
      .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 12, .pre_norm = true, .dropout = .1};
  s.cutoffs = {};
  s.memory_length = 8;
  s.compressed = 4;
  s.token_count = 2;
  s.sub_keys = 4;
  s.long_term.widths = {.1, .2};
  s.long_term.samples = 8;
  s.contraction.block = 2;
  s.batch = 6;  // shards of one row and of two
  s.segment = 4;
  s.steps = steps;
  s.warmup = 2;
  s.shards = 4;
  return s;
}

language_model::Texts texts() {
  language_model::Texts made;
  std::string& text = made.made.emplace_back();
  for (int i = 0; i < 60; ++i)
    text += "row " + std::to_string(i * i) + ", seq " + std::to_string(i) + "; ";
  made.train = made.valid = made.test = {text};
  return made;
}

/// All that a checkpoint holds behind the steps: parameters, moments, states of all rows and random
/// numbers.
std::map<std::string, std::vector<std::byte>> trained(const language_model::Settings& s, int ranks,
                                                      bool zero) {
  const auto text = texts();
  const infty::tests::TemporaryFolder folder;
  const std::filesystem::path path = folder / "checkpoint";
  infty::on_threads(ranks, [&](infty::ThreadCommunicator& own) {
    const auto corpus = language_model::make_corpus(s, text);
    support::Sharing sharing;
    sharing.zero = zero;
    language_model::Training training(s, corpus, {}, infty::AnyCommunicator(own), sharing);
    const bool done =
        training.run({.stepped = [](const infty::TrainStep&, const infty::Progress&) {}});
    infty::require(done && training.steps() == steps, "trained", "not all steps are done");
    training.save(path, 0);
  });
  std::map<std::string, std::vector<std::byte>> all;
  const infty::SafetensorsFile file(path);
  for (const std::string& name : file.names()) all[name] = file.read_bytes(name);
  return all;
}

}  // namespace thread_rank_tests

TEST_CASE("Training: on threads as ranks, each word's model has the bits of one rank") {
  using namespace thread_rank_tests;
  const std::string word = GENERATE(from_range(support::compared_names()));
  CAPTURE(word);
  const auto s = settings_of(word);
  infty::tests::with_threads(1, [&] {
    const auto alone = trained(s, 1, false);
    CHECK(alone.size() > 10);
    for (const int ranks : {2, 3, 4}) {
      CAPTURE(ranks);
      CHECK(trained(s, ranks, ranks == 3) == alone);
    }
  });
}
