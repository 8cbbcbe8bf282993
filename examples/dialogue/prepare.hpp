// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>

#include "../support/files.hpp"
#include "../support/lock.hpp"
#include "conversations.hpp"

namespace dialogue {

struct PrepareOptions {
  std::filesystem::path data, out = "dialogues";
};

/// The parts that the conversations are published in.
inline const std::vector<std::string> split_names{"train", "valid", "test"};

/// Writes the published conversations as train.txt, valid.txt and test.txt. All is read before
/// anything is written. Conversations without a turn are left out, and counted. Throws
/// infty::IoError where a part has no others.
inline void prepare(const PrepareOptions& options) {
  const auto documents = read_documents(options.data / "WikiData");
  struct Part {
    std::string name;
    std::vector<Dialogue> all;
    std::size_t silent = 0;
  };
  std::vector<Part> parts;
  for (const std::string& name : split_names) {
    const auto folder = options.data / "Conversations" / name;
    Part part{.name = name, .all = read_conversations(folder, documents)};
    part.silent = std::erase_if(part.all, [](const Dialogue& d) { return d.turns.empty(); });
    infty::require<infty::IoError>(!part.all.empty(), "prepare", folder.string(), ": in its ",
                                   part.silent, " conversations nobody says anything");
    parts.push_back(std::move(part));
  }
  const auto lock = support::Lock::folder(options.out);
  double turns = 0, dialogues = 0;
  for (const auto& [name, all, silent] : parts) {
    std::size_t own = 0;
    for (const Dialogue& dialogue : all) own += dialogue.turns.size();
    lock.remove_unfinished({name + ".txt"});
    support::write_file(options.out / (name + ".txt"), dialogues_text(all));
    std::printf("%-5s  %5zu dialogues  %6zu turns", name.c_str(), all.size(), own);
    if (silent > 0) std::printf("  (%zu without a turn are left out)", silent);
    std::printf("\n");
    turns += static_cast<double>(own);
    dialogues += static_cast<double>(all.size());
  }
  std::printf("%.2f turns a dialogue, %zu documents; wrote %s\n", turns / dialogues,
              documents.size(), options.out.c_str());
}

}  // namespace dialogue
