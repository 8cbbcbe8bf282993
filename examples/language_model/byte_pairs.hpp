// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include <infty/data/byte_pair_learning.hpp>

#include "../support/interrupt.hpp"
#include "../support/language_model/corpus.hpp"
#include "../support/lock.hpp"
#include "../support/progress_line.hpp"
#include "../support/text_parts.hpp"

namespace language_model {

/// What an encoding is learned from.
struct BytePairOptions {
  std::filesystem::path out = "byte-pairs";
  std::string data;
  infty::BytePairConfig config = {};
};

/// Learns a byte pair encoding and writes it into a folder, for `--bpe`.
inline void learn_byte_pairs(const BytePairOptions& options) {
  infty::require(!options.data.empty(), "language_model", "bpe needs --data, a file or a folder");
  options.config.validate();
  std::error_code ignored;
  for (const char* const run : {"checkpoint.safetensors", "manifest.json"})
    infty::require(!std::filesystem::exists(options.out / run, ignored), "language_model",
                   "--out holds ", run, ", whose encoding would be another: choose another folder");
  const auto lock = support::Lock::folder(options.out);
  lock.remove_unfinished({"vocab.json", "merges.txt"});
  Texts texts;
  infty::BytePairLearner learner;
  const support::InterruptGuard interrupt;
  const auto stop = [] {
    support::stop_if_interrupted([] { return "stopped learning; nothing is kept of it"; });
  };
  const auto documents = detail::open_documents(options.data, texts);
  Index bytes = 0, done = 0;
  for (const std::string_view text : documents) bytes += std::ssize(text);
  support::ProgressLine read("read", bytes, 0, "byte");
  for (const std::string_view text : documents)
    support::for_each_part(text, [&](std::string_view part) {
      learner.add(part);
      read.update(done += std::ssize(part));
      stop();
    });
  read.clear();
  support::ProgressLine line("bpe", options.config.tokens, 0, "token");
  const infty::BytePairs learned = learner.learn(options.config, [&](Index tokens) {
    line.update(tokens);
    stop();
  });
  line.clear();
  learned.save(options.out);
  std::printf("%td tokens and %td names of %td bytes, in %s: train --level bpe --bpe %s\n",
              std::ssize(learned.tokens), std::ssize(learned.names), bytes, options.out.c_str(),
              options.out.c_str());
}

}  // namespace language_model
