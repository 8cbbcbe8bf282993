// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/random.hpp>
#include <infty/data/batch_stream.hpp>
#include <infty/memory/long_term_config.hpp>
#include <infty/memory/memorizing_config.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/transformer_config.hpp>
#include <infty/nn/pass.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

#include "contraction.hpp"

// Models of all memories behind one interface, for programs that choose the memory when they run.
// Each memory is compiled by itself, in support/models, once for all programs.

namespace support {

using infty::Index;

/// The memories by their names: those of the line that leads to the ∞-former, which programs
/// compare where nothing else is asked for; those of other papers beside them; and all, with the
/// ∞-former's of other contractions.
inline const std::vector<std::string> memory_names{"none",   "xl",    "compressive",
                                                   "lamemo", "infty", "infty-sticky"};
inline const std::vector<std::string> paper_memory_names{
    "none",        "xl",         "compressive", "lamemo",        "infty",  "infty-sticky",
    "infty-gibbs", "memorizing", "infini",      "infini-linear", "titans", "memformer"};
inline const std::vector<std::string> all_memory_names = [] {
  std::vector<std::string> all = paper_memory_names;
  all.insert(all.end(), contracted_names.begin(), contracted_names.end());
  return all;
}();
/// What may stand in the place of attention, of the feed-forward network, and around the stack.
inline const std::vector<std::string> mixer_names{"attention", "linear",      "rfa",
                                                  "t2r",       "delta-net",   "gated-delta-net",
                                                  "memsizer",  "titans-layer"};
inline const std::vector<std::string> feed_names{"plain", "product-keys", "memory-plus", "engram"};
inline const std::vector<std::string> token_names{"none", "memory", "recurrent", "associative",
                                                  "titans-front"};

/// Whether a feed is a product-key memory, and the names of the parameters that are its values.
inline bool has_product_keys(const std::string& feed) {
  return feed == "product-keys" || feed == "memory-plus";
}
inline constexpr const char* product_key_values = ".feed.values";
inline constexpr const char* values_rate_help =
    "of product keys' values, fixed, their gradients clipped apart; 0: as all others";

/// Whether a memory is Infini-attention's, which writes by the delta rule or adds what comes.
inline bool is_infini(const std::string& memory) {
  return memory == "infini" || memory == "infini-linear";
}

/// The words that stand for a model in a comparison: those of all memories, and of what is no
/// memory beside attention.
inline std::vector<std::string> compared_names() {
  std::vector<std::string> all = all_memory_names;
  for (const auto* const names : {&mixer_names, &feed_names, &token_names})
    all.insert(all.end(), names->begin() + 1, names->end());
  return all;
}

/// Makes settings those of the model that a word stands for. Feeds and memory tokens come with a
/// Transformer-XL, other mixers with no memory beside them.
template <class Settings>
void choose_model(Settings& s, const std::string& word) {
  const auto is_one_of = [&](const std::vector<std::string>& names) {
    return std::find(names.begin() + 1, names.end(), word) != names.end();
  };
  const bool mixer = is_one_of(mixer_names), feed = is_one_of(feed_names),
             tokens = is_one_of(token_names);
  s.mixer = mixer ? word : mixer_names.front();
  s.feed = feed ? word : feed_names.front();
  s.tokens = tokens ? word : token_names.front();
  s.memory = mixer ? "none" : feed || tokens ? "xl" : word;
}

/// What a model is called: its memory, and what else it has.
template <class Settings>
std::string model_name(const Settings& s) {
  std::string name = s.mixer == mixer_names.front() ? s.memory : s.mixer;
  if (s.feed != feed_names.front()) name += ", " + s.feed;
  if (s.tokens != token_names.front()) name += ", " + s.tokens + " tokens";
  return name;
}

/// Where a model looks things up, and how.
struct Lookups {
  /// Blocks with one, from 0; -1: the one above the lower half, where their authors have it.
  std::vector<Index> layers = {-1};
  Index heads = 4;   ///< of product keys
  Index slots = 0;   ///< that each of them reads; 0: 32, or `sub_keys` if that is less
  bool norm = true;  ///< of the queries of product-keys, over a batch

  /// The blocks, of so many.
  std::vector<Index> blocks(Index of) const {
    std::vector<Index> all;
    for (const Index layer : layers) all.push_back(layer < 0 ? of / 2 : layer);
    return all;
  }
};

/// What a model is made of.
struct ModelConfig {
  std::string memory = "infty";
  /// The feed may be "none", too: blocks that only mix.
  std::string mixer = "attention", feed = "plain", tokens = "none";
  std::string positions = "none";  ///< that are added to embeddings, or "sinusoidal"
  std::uint64_t seed = 1;
  infty::TransformerConfig transformer;
  Index memory_length = 64;  ///< vectors a layer, of all kinds
  /// How many of them are compressed ones, or basis functions of the LTM, where there are such.
  Index compressed = 32;
  std::string stored = "float32";  ///< as what memorizing keeps its keys and values; bfloat16
  /// Other constants of memorizing; `capacity` is the memory's length, and a `k` of 0 is 32, or all
  /// that it remembers if that is less.
  infty::MemorizingConfig memorizing{.k = 0};
  Index compression_rate = 4;  ///< vectors that become a compressed one
  /// Vectors leave for the LTM in groups of so many, also where they come one by one.
  Index segment = 64;
  Index token_count = 8;  ///< memory tokens, where there are any
  /// Width of what remembers in other forms, between the layers of Titans' networks or of
  /// associative keys; 0: as the library has it.
  Index memory_width = 0;
  /// Whether it attends to tokens that are looked up, which come with every batch (`infty::Spalm`).
  bool spalm = false;
  Index sub_keys = 32;  ///< n: lookups have n² slots
  Lookups lookups = {};
  /// But for the sizes, `basis`, `resampling` and `power`.
  infty::LongTermConfig long_term;
  Contraction contraction;  ///< of an LTM whose word names none
};

/// The constants of the long-term memory of one that contracts by tau or by one power.
inline infty::LongTermConfig long_term_of(const ModelConfig& config) {
  infty::LongTermConfig c = config.long_term;
  c.basis = config.compressed;
  c.sampling_seed = config.seed;
  c.resampling = is_sticky(config.memory) ? infty::Resampling::sticky : infty::Resampling::even;
  if (contraction_of(config.memory, config.contraction) != "fixed")
    c.power = config.contraction.power;
  return c;
}

/// The constants of a memory of single keys.
inline infty::MemorizingConfig memorizing_of(const ModelConfig& config) {
  infty::MemorizingConfig c = config.memorizing;
  c.capacity = config.memory_length;
  if (c.k == 0) c.k = std::min<Index>(32, c.capacity);
  return c;
}

/// What a model is trained by beside the losses of its targets.
struct ObjectiveConfig {
  double kl_weight = 0;         ///< of the mean over rows, heads and queries, summed over layers
  double auxiliary_weight = 1;  ///< of a memory's own loss
  infty::Random* dropout = nullptr;
  /// Whether segments are computed again in the backward pass, by `infty::replayed_loss`, and not
  /// kept: the same gradient in the memory of one of them.
  bool replay = false;
};

/// What the long-term memory of one layer shows while one row reads a segment.
struct LongTermView {
  std::vector<float> locations;  ///< where the write before this segment sampled the old signal
  std::vector<float> taken;      ///< (vectors, width), what this write took in, behind the gate
  infty::Index written = 0, writes = 0;  ///< vectors and writes until now
  std::vector<float> coefficients;       ///< (basis, width) of the signal that the segment read
  /// (heads, length), of the segment's queries.
  std::vector<float> mu, sigma;
  /// (heads, length, points) at even places of [0, 1], both ends included, of a density of scores.
  std::vector<float> density;
  /// (length, heads, k), how many places back each query found what it retrieves; 0 for nothing.
  std::vector<Index> distances;
};

/// What a layer shows of one row, for pictures: `infty::Pass::Entry`, by value and without the row.
struct Shown {
  std::string name;
  infty::Index layer = -1;  ///< -1: none of the stack
  std::vector<std::string> axes;
  std::vector<infty::Index> shape;
  std::vector<float> values;
};

/// What is wanted of a segment beside the losses of its targets.
struct Wanted {
  infty::FeedInput keys = infty::FeedInput::none;  ///< of each place, and which
  bool hidden = false;                             ///< vectors behind the body
  bool scores = false;                             ///< of all tokens at each place
};

struct Reading;  // model_reading.hpp, which CUDA's compiler need not read

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
  /// Reads a segment; its losses and what else is wanted.
  virtual Reading read(State& state, const infty::TextBatch& batch, const Wanted& wanted) const = 0;
  /// Reads a segment; the likeliest token at every place, (batch, length).
  virtual std::vector<Index> likeliest(State& state, const infty::TextBatch& batch) const = 0;
  /// Reads tokens (batch, length); the scores of what comes behind the last, (batch, vocabulary).
  virtual std::vector<float> logits(State& state, Index batch,
                                    const std::vector<Index>& tokens) const = 0;
  /// Reads a segment of one row; what the long-term memory of each layer shows, if there is any.
  virtual std::vector<LongTermView> look(State& state, const std::vector<Index>& tokens) const = 0;
  /// Reads a segment of one row; all that layers show which says what its dimensions are. Of the
  /// batch the tokens count, and what was looked up for them.
  virtual std::vector<Shown> shown(State& state, const infty::TextBatch& batch) const = 0;
  /// What training on the targets of consecutive segments makes smaller, behind what the state
  /// remembers: the mean over all targets, with a gradient through all of these segments. Rows are
  /// made fresh where a segment begins them anew. Segments, the model and what `config` points to
  /// must live until the backward pass.
  virtual infty::Objective<float> objective(State& state,
                                            std::span<const infty::TextBatch> segments,
                                            const ObjectiveConfig& config) const = 0;
  /// The same of one segment.
  infty::Objective<float> objective(State& state, const infty::TextBatch& batch,
                                    const ObjectiveConfig& config) const {
    return objective(state, std::span(&batch, 1), config);
  }

  /// Adds a state, as PREFIX*.
  virtual void save_state(infty::SafetensorsWriter& writer, const State& state,
                          const std::string& prefix = "state.") const = 0;
  virtual void load_state(infty::CheckpointLoader& loader, State& state,
                          const std::string& prefix = "state.") const = 0;
  /// Takes the parameters, "model.*", that a trainer has saved.
  virtual void load_parameters(infty::CheckpointLoader& loader) = 0;

  /// Makes the rows fresh that a batch begins anew.
  void reset_rows(State& state, const infty::TextBatch& batch) const {
    if (static_cast<Index>(batch.reset.size()) == batch.batch)
      state = make_state(batch.batch, batch.first_row);
    else
      for (const Index row : batch.reset) reset_row(state, row);
  }
};

using MakeModel = std::unique_ptr<Model>(const ModelConfig& config);
MakeModel make_none, make_xl, make_compressive, make_lamemo, make_infty, make_composed;

/// Throws infty::ValueError for a configuration that cannot be.
inline std::unique_ptr<Model> make_model(const ModelConfig& config) {
  const std::string& memory = config.memory;
  const bool alone = config.mixer == "attention" && config.feed == "plain" &&
                     config.tokens == "none" && config.positions == "none" && !config.spalm;
  if (!alone) return make_composed(config);
  if (memory == "none") return make_none(config);
  if (memory == "xl") return make_xl(config);
  if (memory == "compressive") return make_compressive(config);
  if (memory == "lamemo") return make_lamemo(config);
  const std::string contraction = contraction_of(memory, config.contraction);
  if (is_infty(memory) && memory != "infty-gibbs" &&
      (contraction == "fixed" || contraction == "power"))
    return make_infty(config);
  return make_composed(config);
}

}  // namespace support
