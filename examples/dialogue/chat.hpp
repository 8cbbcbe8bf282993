// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <infty/io/mapped_file.hpp>

#include "../support/progress_line.hpp"
#include "conversation.hpp"
#include "conversations.hpp"

namespace dialogue {

struct ChatOptions {
  std::filesystem::path model = "dialogue-model", document;
  infty::Sampling sampling{.top_p = .9};
  Index longest = 50, passage = 12;
  std::uint64_t seed = 1;
};

inline constexpr const char* chat_help =
    "/look          where in the document and the conversation the memory looked last\n"
    "/branch NAME   goes on with the branch of that name; a new one begins as a copy of this\n"
    "/branch        the branches\n"
    "/forget        back to the document: forgets the conversation of this branch\n"
    "/save FILE     writes this branch to a file\n"
    "/load FILE     goes on here with what a file has\n"
    "/help          this\n"
    "/quit          ends, as the end of the input does\n";

/// The conversations of a terminal, one of which goes on.
class Chat {
 public:
  Chat(const ChatOptions& options, Conversation begun)
      : options_(options), begun_(std::move(begun)), here_("main") {
    branches_.emplace(here_, begun_);
  }

  /// Does what a line says: a command that begins with a slash, or what the person says. Returns
  /// whether it goes on. What is wrong is said, and changes nothing.
  bool take(const std::string& line) {
    const auto said = trimmed(line);
    if (said.empty()) return true;
    const bool talks = said.front() != '/';
    const std::string command(said.substr(0, said.find(' ')));
    const std::string argument(trimmed(said.substr(command.size())));
    if (command == "/quit") return false;
    try {
      if (talks)
        talk(said);
      else
        run(command, argument);
    } catch (const infty::Error& error) {
      std::printf("%s%s\n", talks ? "\n" : "", error.what());  // behind what was answered so far
    }
    return true;
  }

 private:
  Conversation& conversation() { return branches_.at(here_); }

  void talk(std::string_view said) {
    Conversation next = conversation();
    next.hear(said);
    std::printf("model> ");
    next.answer(options_.sampling, options_.longest, [](const std::string& part) {
      std::fputs(part.c_str(), stdout);
      std::fflush(stdout);
    });
    std::printf("\n");
    conversation() = std::move(next);
  }

  void run(const std::string& command, const std::string& argument) {
    const auto wants_file = [&] {
      infty::require(!argument.empty(), "chat", command, " needs the name of a file");
    };
    if (command == "/look") {
      look();
    } else if (command == "/branch") {
      branch(argument);
    } else if (command == "/forget") {
      conversation() = begun_;
      std::printf("forgotten; the document is remembered\n");
    } else if (command == "/save") {
      wants_file();
      conversation().save(argument);
      std::printf("saved %zu turns in %s\n", conversation().turns().size(), argument.c_str());
    } else if (command == "/load") {
      wants_file();
      conversation().load(argument);
      std::printf("%zu turns of %s\n", conversation().turns().size(), argument.c_str());
    } else {
      if (command != "/help") std::printf("there is no %s\n", command.c_str());
      std::fputs(chat_help, stdout);
    }
  }

  void branch(const std::string& name) {
    if (!name.empty()) {
      const bool is_new = branches_.try_emplace(name, conversation()).second;
      here_ = name;
      std::printf("%s %s, %zu turns\n", is_new ? "new branch" : "branch", name.c_str(),
                  conversation().turns().size());
      return;
    }
    for (const auto& [other, of] : branches_)
      std::printf("%s %s, %zu turns, %lld tokens, %zu bytes\n", other == here_ ? "*" : " ",
                  other.c_str(), of.turns().size(), static_cast<long long>(of.tokens()),
                  of.bytes());
  }

  /// A passage in one line.
  std::string passage(Index begin, Index end) {
    return dialogue::detail::one_line(conversation().text(begin, end));
  }

  void look() {
    const Conversation& c = conversation();
    const auto blocks = c.looked();
    if (std::all_of(blocks.begin(), blocks.end(), [](const Looked& block) {
          return block.of(0, std::ssize(block.shares)) == 0;
        })) {
      std::printf("no answer has looked at a long-term memory%s\n",
                  blocks.empty() ? "" : ": nothing was written to it yet");
      return;
    }
    const Index document = c.document_tokens();
    Looked all;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const Looked& block = blocks[i];
      const auto size = std::ssize(block.shares);
      all.shares.resize(std::max(all.shares.size(), block.shares.size()));
      for (std::size_t j = 0; j < block.shares.size(); ++j) all.shares[j] += block.shares[j];
      all.queries += block.queries;
      const auto most = most_looked_at(block, size, options_.passage, 1);
      std::printf("memory %zu: document %3.0f %%, conversation %3.0f %%", i + 1,
                  100 * block.of(0, document), 100 * block.of(document, size));
      if (!most.empty())
        std::printf(
            "; most at \"%s\"",
            passage(most[0].first, std::min(size, most[0].first + options_.passage)).c_str());
      std::printf("\n");
    }
    std::printf("all together, in the document:\n");
    const Index end = std::min<Index>(document, std::ssize(all.shares));
    for (const auto& [begin, share] : most_looked_at(all, end, options_.passage, 5))
      std::printf("%5.1f %%  tokens %lld to %lld: %s\n", 100 * share, static_cast<long long>(begin),
                  static_cast<long long>(std::min(end, begin + options_.passage)),
                  passage(begin, std::min(end, begin + options_.passage)).c_str());
  }

  ChatOptions options_;
  Conversation begun_;  // that has read the document alone
  std::string here_;
  std::map<std::string, Conversation> branches_;
};

/// Reads the document, then what a person types, line by line, and answers.
inline void chat(const ChatOptions& options) {
  options.sampling.validate();
  const Trained trained = open_trained(options.model);
  support::use_products(trained.settings.products);
  infty::require(options.longest < trained.model->memory().segment, "chat", "--longest is ",
                 options.longest, ": it must be below the segment, ",
                 trained.model->memory().segment);
  std::string document;
  if (!options.document.empty()) document = infty::MappedFile(options.document).text();
  std::optional<support::ProgressLine> line;
  line.emplace("read", std::ssize(trained.tokenizer.encode(trimmed(document))) + 2, 0, "token");
  Index done = 0;
  Chat talk(options, Conversation(trained, document, options.seed,
                                  [&](Index more) { line->update(done += more); }));
  line.reset();
  const bool terminal = ::isatty(STDIN_FILENO) != 0;
  if (terminal) std::printf("Say something; /help has the commands.\n");
  std::string said;
  do {
    if (terminal) std::printf("you> ");
    std::fflush(stdout);
  } while (std::getline(std::cin, said) && talk.take(said));
  if (terminal) std::printf("\n");
}

}  // namespace dialogue
