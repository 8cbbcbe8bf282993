// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <infty/io/mapped_file.hpp>
#include <infty/nn/sampling.hpp>

#include "../support/gpt2/reader.hpp"
#include "../support/interrupt.hpp"
#include "../support/kept_weights.hpp"
#include "../support/known_tokens.hpp"
#include "../support/progress_line.hpp"
#include "../support/writing.hpp"
#include "results.hpp"

namespace gpt2 {

/// What is to be generated.
struct GenerateOptions {
  std::filesystem::path model, prompt_file;
  std::string memory, prompt;  ///< of the memory, empty: as the folder says
  std::string weights = "float32";
  support::Writing writing;
  bool ignore_eos = false;  ///< whether it writes on behind `<|endoftext|>`
  infty::Sampling sampling;
  std::uint64_t seed = 1;
};

/// Lets a model write behind a prompt, or behind a file of any length, which it reads first. With a
/// memory a token costs the same however many there were.
inline void generate(const GenerateOptions& options) {
  MemorySettings memory = support::gpt2::read_memory(options.model);
  if (!options.memory.empty()) memory.memory = options.memory;
  if (!support::gpt2::is_long_term(memory)) memory.blocks.clear();
  require_weights_fit(options.model, memory.memory);
  memory.segment =
      std::min(memory.segment, infty::read_gpt2_config(options.model / "config.json").places);
  const auto encoding = infty::BytePairEncoding::from_folder(options.model);
  const auto model =
      support::gpt2::open_model(options.model, memory, {.seed = options.seed, .pieces = true});
  support::keep_weights(model->named_parameters(), options.weights);
  support::gpt2::require_tokens(encoding, model->config().vocabulary, options.model);
  std::string prompt = options.prompt;
  if (!options.prompt_file.empty())
    prompt = std::string(infty::MappedFile(options.prompt_file).text()) + prompt;
  Model::Tokens read;
  for (const TokenId id : encoding.encode(prompt)) read.push_back(id);
  if (read.empty()) read = {support::gpt2::start_of(encoding)};
  const support::InterruptGuard interrupt;
  support::gpt2::Reader reader(*model);
  std::vector<float> scores;
  {
    support::ProgressLine line("prompt", std::ssize(read), 0, "token");
    scores = reader.read(read, {}, [&](Index done) {
      line.update(done);
      support::stop_if_interrupted([] { return std::string("stopped reading the prompt"); });
    });
  }
  infty::Random random(options.seed);
  const auto end = options.ignore_eos ? std::nullopt : encoding.find(support::gpt2::end_of_text);
  support::write_tokens(
      options.writing, options.prompt,
      [&](Index number) -> std::optional<std::string> {
        if (number > 1) scores = reader.read(read);
        support::keep_known(encoding, scores);
        read = {infty::sample(std::span<const float>(scores), options.sampling, random)};
        const auto id = static_cast<TokenId>(read.front());
        if (id == end) return std::nullopt;
        return encoding.decode(std::span(&id, 1));
      },
      [&] { return reader.bytes(); });
}

}  // namespace gpt2
