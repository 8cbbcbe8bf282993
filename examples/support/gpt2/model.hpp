// SPDX-License-Identifier: MIT
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/data/batch_stream.hpp>
#include <infty/model/gpt2_config.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

#include "../model.hpp"
#include "memory.hpp"

// GPT-2 with any of its memories behind one interface, for programs that choose the memory when
// they run. Each is compiled by itself, in support/gpt2, once for all programs.

namespace support::gpt2 {

/// What a model is trained by beside the losses of its targets.
struct LossWeights {
  double kl = 0;           ///< of the mean over rows, heads and queries, summed over layers
  double compression = 1;  ///< of a compressive memory's own loss
};

/// What training on a segment makes smaller, and what it is made of.
struct LossInParts {
  infty::Variable<float> total;  ///< the scalar to go backward from
  infty::Variable<float> loss;   ///< mean loss of the targets that are not ignored, in nats
  /// Mean over rows, heads and queries, summed over layers, and a compressive memory's own loss,
  /// neither of them weighted; 0 where there is none.
  double divergence = 0, compression = 0;
};

/// A GPT-2 of float on the CPU. What it remembers is a state that the caller owns and can copy; it
/// must come from a model of the same memory.
class Model {
 public:
  using State = std::any;
  using Tokens = std::vector<Index>;

  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual const infty::Gpt2Config& config() const = 0;
  /// What stands beside the attention, as it was asked for.
  virtual const MemorySettings& memory() const = 0;
  /// Whether a segment may be read in pieces, for generation: see `OpenOptions::pieces`.
  virtual bool reads_pieces() const = 0;
  virtual Index parameters() const = 0;
  /// Those of the memory alone.
  virtual Index memory_parameters() const = 0;
  /// The parameters, for a trainer. Those of the memory have ".mixer.memory." in their names.
  virtual std::vector<infty::NamedParameter<float>> named_parameters() = 0;
  /// Has no parameter but the memory's take gradients, to be said before a trainer is made. Throws
  /// infty::ValueError where there is no memory.
  virtual void train_memory_alone() = 0;

  virtual State make_state(Index batch, Index first_row = 0) const = 0;
  virtual void reset_row(State& state, Index row) const = 0;
  virtual std::size_t bytes_of(const State& state) const = 0;

  /// Moves the state on over tokens (batch, length), a segment.
  /// @param types  of the tokens, as many, or none
  virtual void observe(State& state, Index batch, const Tokens& tokens,
                       const Tokens& types = {}) const = 0;
  /// Reads a segment; the loss of every target, (batch, length), 0 where it is ignored.
  virtual std::vector<float> losses(State& state, const infty::TextBatch& batch,
                                    const Tokens& types = {}) const = 0;
  /// Reads tokens (batch, length); the scores of what comes behind the last, (batch, vocabulary).
  virtual std::vector<float> logits(State& state, Index batch, const Tokens& tokens,
                                    const Tokens& types = {}) const = 0;
  /// What training on the targets of a segment makes smaller, behind what the state remembers. Rows
  /// are made fresh where the segment begins them anew.
  /// @param dropout  draws what is dropped, by the shares of config(); null: nothing is
  virtual LossInParts objective(State& state, const infty::TextBatch& batch,
                                const LossWeights& weights, infty::Random* dropout,
                                const Tokens& types = {}) const = 0;

  /// Reads a segment of one row; what the long-term memory of each block that has one shows, from
  /// the lowest on.
  virtual std::vector<LongTermView> look(State& state, const Tokens& tokens,
                                         const Tokens& types = {}) const = 0;
  /// Reads a segment of one row; all that layers show which says what its dimensions are.
  virtual std::vector<Shown> shown(State& state, const Tokens& tokens,
                                   const Tokens& types = {}) const = 0;

  /// Adds a state, as "state.*".
  virtual void save_state(infty::SafetensorsWriter& writer, const State& state) const = 0;
  virtual void load_state(infty::CheckpointLoader& loader, State& state) const = 0;
  /// Writes the folder of a Hugging Face model and beside it the memory's files; vocabularies are
  /// not copied. Throws infty::IoError.
  virtual void save(const std::filesystem::path& folder) const = 0;

  /// Makes the rows fresh that a batch begins anew.
  void reset_rows(State& state, const infty::TextBatch& batch) const {
    if (static_cast<Index>(batch.reset.size()) == batch.batch)
      state = make_state(batch.batch, batch.first_row);
    else
      for (const Index row : batch.reset) reset_row(state, row);
  }

  /// The blocks that have a memory, from the lowest on: of `look`.
  std::vector<Index> memory_blocks() const {
    std::vector<Index> blocks;
    for (Index i = 0; memory().memory != "none" && i < config().layers; ++i)
      if (config().has_memory(i)) blocks.push_back(i);
    return blocks;
  }
};

/// How a folder is opened.
struct OpenOptions {
  std::uint64_t seed = 1;  ///< of the parameters that no file has
  Index new_tokens = 0;    ///< behind those of the folder, drawn as GPT-2's; for `dialogue`
  double dropout = -1;     ///< all three shares; -1: as config.json says
  /// Whether a segment may be read in pieces, token by token, for generation. A compressive memory
  /// has no such form: its segments are read at once, again and again on copies of the state.
  bool pieces = false;
};

/// What a model is made of: a folder, or sizes alone where there is none.
struct Source {
  std::filesystem::path folder;  ///< empty: fresh weights
  infty::Gpt2Config config;      ///< of a model that has no folder
  MemorySettings memory;
  OpenOptions options;
};

using MakeModel = std::unique_ptr<Model>(const Source& source);
MakeModel make_plain_or_long_term, make_compressive, make_cached, make_cached_long_term;

namespace detail {

inline std::unique_ptr<Model> make(const Source& source) {
  const bool pieces = source.options.pieces;
  if (source.memory.memory == "compressive") return make_compressive(source);
  if (!pieces) return make_plain_or_long_term(source);
  return source.memory.memory == "none" ? make_cached(source) : make_cached_long_term(source);
}

}  // namespace detail

/// Opens a folder of Hugging Face's files with a memory: with what it has learned, where the folder
/// has it, else a fresh one. Throws infty::IoError for files that are missing or damaged,
/// infty::ValueError for a memory that cannot be.
inline std::unique_ptr<Model> open_model(const std::filesystem::path& folder,
                                         const MemorySettings& memory,
                                         const OpenOptions& options = {}) {
  validate("gpt2", memory, infty::read_gpt2_config(folder / "config.json"));
  Source source;  // filled here: of one made in place GCC 12 takes the vectors for uninitialized
  source.folder = folder;
  source.memory = memory;
  source.options = options;
  return detail::make(source);
}

/// Opens a folder with the memory that it says it has. Throws likewise.
inline std::unique_ptr<Model> open_model(const std::filesystem::path& folder,
                                         const OpenOptions& options = {}) {
  return open_model(folder, read_memory(folder), options);
}

/// A GPT-2 of these sizes with fresh weights. Throws infty::ValueError for what cannot be.
inline std::unique_ptr<Model> make_model(const infty::Gpt2Config& config,
                                         const MemorySettings& memory,
                                         const OpenOptions& options = {}) {
  config.validate();
  validate("gpt2", memory, config);
  return detail::make({.folder = {}, .config = config, .memory = memory, .options = options});
}

}  // namespace support::gpt2
