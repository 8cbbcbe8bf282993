// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include <infty/data/byte_pair_encoding.hpp>

#include "../support/files.hpp"
#include "../support/fingerprint.hpp"
#include "../support/gpt2/folder.hpp"
#include "../support/gpt2/model.hpp"
#include "../support/json.hpp"
#include "../support/settings.hpp"
#include "corpus.hpp"

namespace dialogue {

/// A trained model's folder: one of Hugging Face's, with `memory_config.json` and
/// `memory.safetensors` of its memory, `added_tokens.json`, the marks and their numbers, and
/// `dialogue.json`, the settings that it was trained by.
struct Trained {
  Settings settings;
  Tokenizer tokenizer;
  std::unique_ptr<Model> model;  ///< that reads in pieces, where there is such a form
  std::string print = "";        ///< of all files, which tells it from other models
};

/// Writes a model's folder, which is there. Throws infty::IoError.
/// @param base  where the encoding is
inline void save_trained(const std::filesystem::path& folder, const Model& model, const Settings& s,
                         const Tokenizer& tokenizer, const std::filesystem::path& base) {
  support::gpt2::copy_encoding(base, folder);
  auto added = nlohmann::json::object();
  for (std::size_t i = 0; i < mark_names.size(); ++i)
    added[mark_names[i]] = tokenizer.size() - std::ssize(mark_names) + static_cast<Index>(i);
  support::write_file(folder / "added_tokens.json", added.dump(2) + '\n');
  support::write_file(folder / "dialogue.json", support::to_json(s).dump(2) + '\n');
  model.save(folder);
}

/// Opens such a folder. Throws infty::IoError for one that this program has not written, or is
/// damaged.
inline Trained open_trained(const std::filesystem::path& folder) {
  const auto path = folder / "dialogue.json";
  infty::require<infty::IoError>(std::filesystem::exists(path), "dialogue", folder.string(),
                                 " has no dialogue.json: `dialogue train` writes such folders");
  auto settings = support::settings_from<Settings>(support::read_json(path), path.string());
  const auto config = infty::read_gpt2_config(folder / "config.json");
  const auto marks = std::ssize(mark_names);
  infty::require<infty::IoError>(config.vocabulary > marks, "dialogue", folder.string(),
                                 ": config.json's vocab_size is ", config.vocabulary,
                                 ": it must be above the ", marks, " marks");
  Tokenizer tokenizer(infty::BytePairEncoding::from_folder(folder), config.vocabulary - marks);
  infty::detail::explained<infty::ValueError>([&] { validate(settings, config.places); },
                                              [&](const char* what) {
                                                infty::raise<infty::IoError>(
                                                    "dialogue", path.string(), ": ", what);
                                              });
  auto memory = support::gpt2::read_memory(folder);
  infty::require<infty::IoError>(memory.memory == memory_of(settings, config.places).memory,
                                 "dialogue", folder.string(), " has the memory ", memory.memory,
                                 ", and dialogue.json the form ", settings.form);
  if (is_plain(settings.form)) memory = memory_of(settings, config.places);
  infty::require<infty::IoError>(memory.segment == memory_of(settings, config.places).segment,
                                 "dialogue", support::gpt2::memory_config_of(folder).string(),
                                 " has segments of ", memory.segment, ", and ", path.string(),
                                 " of ", settings.memory.segment);
  auto model = support::gpt2::open_model(folder, memory, {.pieces = true});
  support::Fingerprint print;
  print.add_text(support::to_json(settings).dump());
  print.add(support::gpt2::model_fingerprint(folder));
  print.add(support::gpt2::encoding_fingerprint(folder));
  return {std::move(settings), std::move(tokenizer), std::move(model),
          support::as_hex(print.bits())};
}

}  // namespace dialogue
