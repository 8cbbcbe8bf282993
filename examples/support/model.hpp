// SPDX-License-Identifier: MIT
#pragma once

#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/data/batch_stream.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

// Models of all memories behind one interface, for programs that choose the memory when they run.
// Each memory is compiled by itself, in support/models, once for all programs.

namespace support {

using infty::Index;

/// The memories by their names.
inline const std::vector<std::string> memory_names{"none",   "xl",    "compressive",
                                                   "lamemo", "infty", "infty-sticky"};

/// What a model is made of.
struct ModelConfig {
  std::string memory = "infty";
  std::uint64_t seed = 1;
  infty::TransformerConfig transformer;
  Index memory_length = 64;  ///< vectors a layer, of all kinds
  /// How many of them are compressed ones, or basis functions of the LTM, where there are such.
  Index compressed = 32;
  Index compression_rate = 4;  ///< vectors that become a compressed one
  /// Vectors leave for the LTM or to be compressed in groups of so many, also where they come one
  /// by one.
  Index segment = 64;
  infty::LongTermConfig long_term;  ///< but for the sizes, `basis` and `resampling`
};

/// What a model is trained by beside the losses of its targets.
struct ObjectiveConfig {
  double kl_weight = 0;         ///< of the mean over rows, heads and queries, summed over layers
  double auxiliary_weight = 1;  ///< of a memory's own loss
  infty::Random* dropout = nullptr;
};

/// What the long-term memory of one layer shows while one row reads a segment.
struct LongTermView {
  std::vector<float> locations;  ///< where the write before this segment sampled the old signal
  std::vector<float> taken;      ///< (vectors, width), what this write took in, behind the gate
  infty::Index written = 0, writes = 0;  ///< vectors and writes until now
  std::vector<float> coefficients;       ///< (basis, width) of the signal that the segment read
  /// (heads, length), of the segment's queries.
  std::vector<float> mu, sigma;
};

/// A float model on the CPU. What it remembers is a state that the caller owns
/// and can copy; it must come from a model of the same memory.
class Model {
 public:
  using State = std::any;

  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  virtual Index parameters() const = 0;
  /// The parameters, for a trainer.
  virtual std::vector<infty::NamedParameter<float>> named_parameters() = 0;

  virtual State make_state(Index batch, Index first_row = 0) const = 0;
  virtual void reset_row(State& state, Index row) const = 0;
  virtual std::size_t bytes_of(const State& state) const = 0;

  /// Moves the state on over tokens (batch, length), in segments of so many.
  virtual void observe(State& state, Index batch, const std::vector<Index>& tokens,
                       Index segment) const = 0;
  /// Reads a segment; the loss of every target, (batch, length), 0 where it is ignored.
  virtual std::vector<float> losses(State& state, const infty::TextBatch& batch) const = 0;
  /// Reads a segment; the likeliest token at every place, (batch, length).
  virtual std::vector<Index> likeliest(State& state, const infty::TextBatch& batch) const = 0;
  /// Reads tokens (batch, length); the scores of what comes behind the last, (batch, vocabulary).
  virtual std::vector<float> logits(State& state, Index batch,
                                    const std::vector<Index>& tokens) const = 0;
  /// Reads a segment of one row; what the long-term memory of each layer shows, if there is any.
  virtual std::vector<LongTermView> look(State& state, const std::vector<Index>& tokens) const = 0;
  /// What training on the targets of a segment makes smaller, behind what the state remembers.
  virtual infty::Objective<float> objective(State& state, const infty::TextBatch& batch,
                                            const ObjectiveConfig& config) const = 0;

  /// Adds a state, as "state.*".
  virtual void save_state(infty::SafetensorsWriter& writer, const State& state) const = 0;
  virtual void load_state(infty::CheckpointLoader& loader, State& state) const = 0;
  /// Takes the parameters, "model.*", that a trainer has saved.
  virtual void load_parameters(infty::CheckpointLoader& loader) = 0;

  /// Makes the rows fresh that a batch begins anew.
  void reset_rows(State& state, const infty::TextBatch& batch) const {
    if (static_cast<Index>(batch.reset.size()) == batch.batch)
      state = make_state(batch.batch);
    else
      for (const Index row : batch.reset) reset_row(state, row);
  }
};

using MakeModel = std::unique_ptr<Model>(const ModelConfig& config);
MakeModel make_none, make_xl, make_compressive, make_lamemo, make_infty;

/// Throws infty::ValueError for a configuration that cannot be.
inline std::unique_ptr<Model> make_model(const ModelConfig& config) {
  const std::string& memory = config.memory;
  if (memory == "none") return make_none(config);
  if (memory == "xl") return make_xl(config);
  if (memory == "compressive") return make_compressive(config);
  if (memory == "lamemo") return make_lamemo(config);
  infty::require(memory == "infty" || memory == "infty-sticky", "make_model", "there is no memory ",
                 memory);
  return make_infty(config);
}

}  // namespace support
