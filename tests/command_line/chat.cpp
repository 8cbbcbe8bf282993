// SPDX-License-Identifier: MIT
// What dialogue's chat does when something goes wrong.

#include "../../examples/dialogue/chat.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include <infty/eigen/default.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

TEST_CASE("chat: what goes wrong while the model answers is said, and the conversation goes on") {
  const infty::tests::TemporaryFolder folder;
  support::write_file(folder / "vocab.json", R"({"a": 0, "b": 1, "Ġ": 2, "ab": 3})");
  support::write_file(folder / "merges.txt", "#version: 0.2\na b\n");
  const auto marks = std::ssize(dialogue::mark_names);
  dialogue::Settings settings;
  settings.form = "gpt2";
  support::gpt2::MemorySettings memory;
  memory.segment = 16;
  const dialogue::Trained trained{
      std::move(settings),
      dialogue::Tokenizer(infty::BytePairEncoding::from_folder(folder.path()), 4),
      support::gpt2::make_model(
          {.vocabulary = 4 + marks, .places = 16, .model_dim = 8, .layers = 1, .heads = 2}, memory,
          {.pieces = true})};
  dialogue::ChatOptions options;
  options.longest = 4;
  dialogue::Chat chat(options,
                      dialogue::Conversation(trained, "a b ab", 1, [](dialogue::Index) {}));
  CHECK(chat.take("ab a"));
  infty::Variable<float> parameter = trained.model->named_parameters().front().variable;
  auto& weight = parameter.value();
  const auto before = weight.to_vector();
  weight.fill(std::numeric_limits<float>::quiet_NaN());
  CHECK(chat.take("b ab"));
  CHECK(chat.take("/branch other"));
  std::copy(before.begin(), before.end(), weight.data());
  CHECK(chat.take("b"));
  CHECK_FALSE(chat.take("/quit"));
}
