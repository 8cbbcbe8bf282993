// SPDX-License-Identifier: MIT
#pragma once

#include <any>
#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/data/text_tensors.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/model/gpt2_files.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/with_more_tokens.hpp>

#include "../looking.hpp"
#include "model.hpp"

namespace support::gpt2 {

/// The `Model` of GPT-2 with one mixer.
template <class Mixer>
class ModelOf final : public Model {
  using Lm = infty::Gpt2<Mixer>;
  using LmState = typename Lm::State;
  using V = infty::Variable<float>;
  using Pass = infty::Pass<float>;
  static constexpr const char* memory_part = ".mixer.memory.";
  static constexpr bool has_long_term = requires(Mixer mixer) { mixer.memory->density_weight; };

 public:
  /// Throws as `open_model` and `make_model`.
  ModelOf(const Source& source, const typename Mixer::Config& config)
      : model_(made(source, config)), memory_(source.memory) {
    infty::for_each_parameter(model_, [&](const std::string& name, const V& parameter) {
      parameters_ += parameter.size();
      if (name.find(memory_part) != name.npos) memory_parameters_ += parameter.size();
    });
  }

  const infty::Gpt2Config& config() const override { return model_.config(); }
  const MemorySettings& memory() const override { return memory_; }
  bool reads_pieces() const override {
    return infty::detail::reads_chunks<Mixer> ||
           std::is_same_v<Mixer, infty::CachedAttention<float>>;
  }
  Index parameters() const override { return parameters_; }
  Index memory_parameters() const override { return memory_parameters_; }
  std::vector<infty::NamedParameter<float>> named_parameters() override {
    return infty::named_parameters<float>(model_);
  }
  void train_memory_alone() override {
    infty::require(memory_parameters_ > 0, "gpt2", "--freeze needs a --memory to train");
    infty::set_requires_grad(model_, false);
    infty::set_requires_grad(model_, true, memory_part);
  }

  State make_state(Index batch, Index first_row) const override {
    return model_.make_state(batch, first_row);
  }
  void reset_row(State& state, Index row) const override {
    if (infty::batch_of(of(state)) > 0) infty::reset_row(of(state), row);  // else it knows nothing
  }
  std::size_t bytes_of(const State& state) const override {
    return infty::bytes_of(std::any_cast<const LmState&>(state));
  }

  void observe(State& state, Index batch, const Tokens& tokens,
               const Tokens& types) const override {
    const auto guard = infty::no_grad();
    Pass pass{.answer = false, .types = shaped(batch, types)};
    model_.forward(of(state), shaped(batch, tokens), pass);
  }
  std::vector<float> losses(State& state, const infty::TextBatch& batch,
                            const Tokens& types) const override {
    const auto guard = infty::no_grad();
    Pass pass{.types = shaped(batch.batch, types)};
    const V hidden = model_.forward(of(state), infty::input_tokens(batch), pass);
    return finite("a loss", model_.losses(hidden, infty::target_tokens(batch)));
  }
  std::vector<float> logits(State& state, Index batch, const Tokens& tokens,
                            const Tokens& types) const override {
    const auto guard = infty::no_grad();
    Pass pass{.types = shaped(batch, types)};
    const V hidden = model_.forward(of(state), shaped(batch, tokens), pass);
    const Index length = hidden.dim(1);
    return finite("a score", model_.logits(narrow(hidden, length - 1, length)));
  }
  LossInParts objective(State& state, const infty::TextBatch& batch, const LossWeights& weights,
                        infty::Random* dropout, const Tokens& types) const override {
    reset_rows(state, batch);
    Pass pass{.random = dropout, .types = shaped(batch.batch, types)};
    const V hidden = model_.forward(of(state), infty::input_tokens(batch), pass);
    const double one = infty::weight_of_sum(1, batch.batch, config().heads, batch.length);
    const auto made =
        infty::objective(model_, hidden, infty::target_tokens(batch), pass,
                         {{"divergence", one * weights.kl}, {"compression", weights.compression}});
    const auto sum_of = [&](std::string_view name) {
      double sum = 0;
      for (const auto& own : pass.losses)
        if (own.name == name) sum += static_cast<double>(own.value.value().item());
      return sum;
    };
    return {.total = made.total,
            .loss = made.loss,
            .divergence = one * sum_of("divergence"),
            .compression = sum_of("compression")};
  }

  std::vector<LongTermView> look(State& state, const Tokens& tokens,
                                 const Tokens& types) const override {
    const auto guard = infty::no_grad();
    std::vector<LongTermView> views;
    each_memory(state, [&](const auto& block, const auto& past) {
      views.push_back(view_of_write(*block.mixer.memory, past, [&](const V& x) {
        return memory_.normed && x.size() > 0 ? block.mixer_norm.forward(x) : x;
      }));
    });
    Pass pass{.traced = true, .types = shaped(1, types)};
    model_.forward(of(state), shaped(1, tokens), pass);
    add_trace(views, pass);
    std::size_t i = 0;
    each_memory(state, [&](const auto&, const auto& past) {
      views[i++].coefficients = past.memory.coefficients.value().to_vector();
    });
    add_counts(views, of(state));
    return views;
  }
  std::vector<Shown> shown(State& state, const Tokens& tokens, const Tokens& types) const override {
    const auto guard = infty::no_grad();
    Pass pass{.traced = true, .types = shaped(1, types)};
    model_.forward(of(state), shaped(1, tokens), pass);
    return shown_to(pass);
  }

  void save_state(infty::SafetensorsWriter& writer, const State& state) const override {
    infty::save_state(writer, std::any_cast<const LmState&>(state), "state.");
  }
  void load_state(infty::CheckpointLoader& loader, State& state) const override {
    loader.state(of(state), "state.");
  }
  void save(const std::filesystem::path& folder) const override {
    write_memory(folder, memory_);
    infty::save_gpt2(folder, model_);
  }

 private:
  /// The model of a folder or a fresh one, with more tokens where they are asked for.
  static Lm made(const Source& source, const typename Mixer::Config& memory) {
    const infty::Random random(source.options.seed);
    const auto change = [&](infty::Gpt2Config& config) {
      config.memory_blocks = source.memory.blocks;
      if (source.options.dropout < 0) return;
      config.dropout = config.embedding_dropout = config.attention_dropout = source.options.dropout;
    };
    infty::Gpt2Config config = source.config;
    if (source.folder.empty()) change(config);
    Lm model = source.folder.empty()
                   ? Lm(config, memory, random)
                   : infty::load_gpt2<Mixer>(source.folder, memory, random, change);
    if (source.options.new_tokens == 0) return model;
    return infty::with_more_tokens(model, source.options.new_tokens, random.split(99));
  }

  /// Calls see(block, what its memory adds to the state) for all blocks that have one.
  template <class See>
  void each_memory(State& state, See&& see) const {
    if constexpr (has_long_term) {
      const auto& blocks = std::get<1>(model_.stack().layers).layers;
      const auto& states = std::get<1>(of(state).body.layers).layers;
      for (std::size_t i = 0; i < blocks.size(); ++i)
        if (blocks[i].mixer.memory) see(blocks[i], *states[i].mixer.past);
    }
  }

  static LmState& of(State& state) { return std::any_cast<LmState&>(state); }

  /// Tokens, or types, (batch, length); what is empty is nothing.
  static infty::Tensor<Index> shaped(Index batch, const Tokens& tokens) {
    if (tokens.empty()) return {};
    return infty::Tensor<Index>::from({batch, std::ssize(tokens) / batch}, tokens);
  }

  /// The values, none of them NaN or infinity: throws infty::NonFiniteError.
  static std::vector<float> finite(const char* what, const V& values) {
    infty::require<infty::NonFiniteError>(infty::detail::all_finite(values.value()), "gpt2", what,
                                          " is not finite, though what the layers make is");
    return values.value().to_vector();
  }

  Lm model_;
  MemorySettings memory_;
  Index parameters_ = 0, memory_parameters_ = 0;
};

/// The constants of a long-term memory beside attention, or of none.
template <class Attention>
auto beside(const Source& source, Attention attention) {
  infty::WithMemoryConfig<Attention, infty::LongTermConfig> config{
      .attention = attention,
      .memory = long_term_of(source.memory),
      .normed = source.memory.normed};
  if (source.memory.memory == "none") config.memory.reset();
  return config;
}

}  // namespace support::gpt2
