// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <infty/io/file.hpp>
#include <infty/model/gpt2_config_file.hpp>
#include <infty/model/presets/gpt2.hpp>

#include "../files.hpp"
#include "../ranges.hpp"
#include "../settings.hpp"

// Which memory stands beside GPT-2's attention, in a program and in a folder. A folder of these
// programs is one of Hugging Face's, and beside what that has there are `memory_config.json`, these
// settings, and `memory.safetensors`, what the memory has learned; Hugging Face's library looks at
// neither.

namespace support::gpt2 {

using infty::Index;

/// The memories by their names.
inline const std::vector<std::string> memory_names{"none", "infty", "sticky", "compressive"};

/// Everything that a memory beside GPT-2's attention is made of. Defaults are those of
/// `presets::gpt2_wikitext` [Martins et al. 2022, §4.2, App. C.2].
struct MemorySettings {
  std::string memory = "none";
  std::vector<Index> blocks = {};  ///< beside whose attention it stands; empty: all
  Index segment = 512;             ///< tokens that are read at once, and written together
  infty::LongTermConfig long_term = *infty::presets::gpt2_wikitext(false).memory.memory;
  bool normed = false;  ///< whether the norm in front of the attention comes before the memory
  Index compressed = 512, rate = 4;  ///< of the compressive one
};

/// Those of dialogue, `presets::gpt2_cmu_dog` [Martins et al. 2022, §4.3, App. C.3].
inline MemorySettings dialogue_memory() {
  return {.long_term = *infty::presets::gpt2_cmu_dog(false).memory.memory,
          .normed = true,
          .rate = infty::presets::gpt2_cmu_dog_compressive().memory.rate};
}

/// Calls see(group, name, field, help, choice...) for every setting, for a program's own list.
template <class See>
void each_memory_setting(const char* group, MemorySettings& s, See&& see) {
  see(group, "memory", s.memory, "beside GPT-2's attention", memory_names);
  see(group, "memory-blocks", s.blocks, "beside whose attention it stands, from 0; none: all");
  see(group, "segment", s.segment, "tokens that are read at once, and that a memory takes in");
  each_chosen(group, s.long_term,
              {{"basis"},
               {"widths"},
               {"samples"},
               {"tau"},
               {"ridge"},
               {"gate"},
               {"bounded"},
               {"hold_short_writes", "hold"},
               {"midpoints"},
               {"threshold"},
               {"sigma0"},
               {"variance_floor", "variance-floor"},
               {"mean_term", "mean-term"},
               {"bins", "sticky-bins"},
               {"sampling_seed", "sampling-seed"}},
              see);
  see(group, "normed", s.normed, "the memory takes in what the norm in front makes of vectors");
  see(group, "compressed-length", s.compressed, "compressed vectors of the compressive memory");
  see(group, "compression-rate", s.rate, "vectors that become one of them");
}

/// The same for settings alone, as `to_json` and `settings_from` need it.
template <class See>
void each_setting(MemorySettings& s, See&& see) {
  each_memory_setting("The memory", s, see);
}

/// Whether the memory is an ∞-former's.
inline bool is_long_term(const MemorySettings& s) {
  return s.memory == "infty" || s.memory == "sticky";
}

/// Throws infty::ValueError that names the first setting that is out of its range, does not fit the
/// others, or does not fit a GPT-2 of these sizes.
inline void validate(const char* program, const MemorySettings& s, const infty::Gpt2Config& model) {
  validate_ranges(program, s);
  infty::require(
      std::find(memory_names.begin(), memory_names.end(), s.memory) != memory_names.end(), program,
      "--memory is ", infty::detail::printable(s.memory),
      ": it must be none, infty, sticky or compressive");
  infty::require(s.segment <= model.places, program, "--segment is ", s.segment,
                 ": the model has places for ", model.places, " tokens");
  infty::require(s.blocks.empty() || is_long_term(s), program,
                 "--memory-blocks goes with --memory infty or sticky: ", s.memory,
                 " stands beside all or none");
  for (std::size_t i = 0; i < s.blocks.size(); ++i)
    infty::require(s.blocks[i] < model.layers && (i == 0 || s.blocks[i - 1] < s.blocks[i]), program,
                   "--memory-blocks has ", s.blocks[i], ": blocks rise, and lie in [0, ",
                   model.layers, ')');
  infty::require(s.memory != "compressive" || s.segment >= s.rate, program, "--segment is ",
                 s.segment, ": it must be at least the --compression-rate, ", s.rate);
  const auto functions = static_cast<Index>(s.long_term.widths.size());
  infty::require(!is_long_term(s) || (functions > 0 && s.long_term.basis % functions == 0), program,
                 "--basis is ", s.long_term.basis, ": it must be a multiple of the ", functions,
                 " --widths");
}

/// The long-term memory's constants, as the name of the memory has them.
inline infty::LongTermConfig long_term_of(const MemorySettings& s) {
  infty::LongTermConfig c = s.long_term;
  c.resampling = s.memory == "sticky" ? infty::Resampling::sticky : infty::Resampling::even;
  return c;
}

inline std::filesystem::path memory_config_of(const std::filesystem::path& folder) {
  return folder / "memory_config.json";
}

/// The memory that a folder says it has, none where it is one of Hugging Face's alone; `segment` is
/// then as many tokens as there are places. Throws infty::IoError for a damaged file, and where
/// there are a memory's weights and nobody knows of which, or a memory without its weights.
inline MemorySettings read_memory(const std::filesystem::path& folder) {
  const auto path = memory_config_of(folder);
  std::error_code ignored;
  const bool weights = std::filesystem::exists(folder / infty::detail::gpt2_memory_file, ignored);
  if (std::filesystem::exists(path, ignored)) {
    auto settings = settings_from<MemorySettings>(read_json(path), path.string());
    infty::require<infty::IoError>(weights || settings.memory == "none", "gpt2", path.string(),
                                   " says --memory ", settings.memory, ", and there is no ",
                                   infty::detail::gpt2_memory_file, " beside it");
    return settings;
  }
  infty::require<infty::IoError>(!weights, "gpt2", folder.string(), " has ",
                                 infty::detail::gpt2_memory_file, ", but no ",
                                 path.filename().string(), ", which says what memory that is of");
  MemorySettings none;
  none.segment = infty::read_gpt2_config(folder / "config.json").places;
  return none;
}

/// Writes `memory_config.json`, also where there is no memory, for the length of segments. Throws
/// infty::IoError.
inline void write_memory(const std::filesystem::path& folder, const MemorySettings& s) {
  write_file(memory_config_of(folder), to_json(s).dump(2) + '\n');
}

}  // namespace support::gpt2
