// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/lifelong/candidate_predictor.hpp>
#include <infty/lifelong/masked_language_model.hpp>
#include <infty/lifelong/neuromodulator.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/model/blocks.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/nn/self_attention.hpp>
#include <infty/train/trainer.hpp>

#include "../support/behind.hpp"
#include "../support/interrupt.hpp"
#include "streams.hpp"

namespace lifelong {

/// A model that stops where a signal came while it reads or answers: of some methods each question
/// takes a while.
template <class Base>
struct Stoppable : Base {
  using Base::Base;

  auto read(std::span<const infty::Example> examples) const {
    support::stop_if_interrupted();
    return Base::read(examples);
  }
  auto answers(std::span<const infty::Example> examples) const {
    support::stop_if_interrupted();
    return Base::answers(examples);
  }
};

using Embedding = infty::PositionedEmbedding<float>;
using Body = infty::Layers<infty::Block<infty::SelfAttention<float>>>;
using Model = Stoppable<infty::Predictor<Embedding, Body, infty::ClassHead<float>>>;
/// The same behind gates, for anml-er.
using Gate = infty::Neuromodulator<Embedding, Body>;
using GatedModel = Stoppable<infty::Predictor<Embedding, Body, infty::ClassHead<float>, Gate>>;
/// Those that say which candidate fits.
using CandidateModel = Stoppable<infty::CandidatePredictor<Embedding, Body>>;
using GatedCandidateModel = Stoppable<infty::CandidatePredictor<Embedding, Body, Gate>>;
/// Those that say where the answer stands.
using SpanModel = Stoppable<infty::Predictor<Embedding, Body, infty::SpanHead<float>>>;
using GatedSpanModel = Stoppable<infty::Predictor<Embedding, Body, infty::SpanHead<float>, Gate>>;
/// What reads beforehand.
using Reader = infty::MaskedLanguageModel<Embedding, Body>;

/// An encoder with fresh weights, under the head that guesses missing words. The mask is a token
/// behind those of the stream, and is there only where something is read beforehand.
inline Reader reader_of(const Settings& s, const Stream& stream, std::uint64_t seed) {
  const infty::Random random(seed, 20);
  const Index vocabulary = stream.vocabulary + (s.pretrain > 0 ? 1 : 0);
  const infty::TransformerConfig config{.vocabulary = vocabulary,
                                        .model_dim = s.width,
                                        .layers = s.layers,
                                        .heads = s.heads,
                                        .feed_forward = s.feed_forward};
  // Wider than GPT-2's at first: keys are what an encoder makes of words that it has not learned.
  return {Embedding(vocabulary, stream.longest, s.width, random.split(0), 1),
          infty::blocks<infty::SelfAttention<float>>(config, {}, random.split(1)), random.split(3)};
}

/// Where the encoder that has read beforehand is, or what has come of it until now.
inline std::filesystem::path encoder_file(const std::filesystem::path& out) {
  return out / "encoder.safetensors";
}

/// Whether the encoder of a file has read all that it is to read. Throws infty::IoError for a file
/// that is none.
inline bool has_read(const Settings& s, const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return false;
  const infty::SafetensorsFile encoder(file);
  encoder.check_shape("optimizer.steps", infty::Shape{});
  return encoder.read<Index>("optimizer.steps").front() == s.pretrain;
}

/// Has an encoder read: passages that are drawn evenly from the texts in turn, of which it guesses
/// words that are masked. One for all runs, whose weights no seed of theirs decides. Goes on from
/// `file` if it is there, and saves to it. Calls done(steps) where it begins and behind each step,
/// with how many more are done.
/// @throws support::Interrupted where a signal came, when it is saved; infty::IoError for a file
/// that is none of this reading
inline void read_beforehand(const Settings& s, const std::filesystem::path& file,
                            const std::function<void(Index)>& done) {
  const Stream stream = reading_of(s);
  Reader reader = reader_of(s, stream, 0);
  infty::Random draws(0, 22);
  infty::Trainer<float> trainer(reader, {.steps = s.pretrain,
                                         .adam = {.learning_rate = s.pretrain_rate},
                                         .warmup_steps = s.pretrain / 10,
                                         .max_norm = s.clip});
  support::Behind behind;
  trainer.keep("draws", draws)
      .keep_settings(nlohmann::json{{"pretrain", s.pretrain}, {"texts", stream.texts}}.dump());
  support::keep(trainer, behind, file);
  if (std::filesystem::exists(file)) trainer.load(file);
  done(trainer.steps());
  if (trainer.steps() == s.pretrain) return;
  infty::Variable<float> loss;
  double since = support::computed();
  const bool ended = trainer.run(
      [&] {
        std::vector<infty::MaskedText> texts;
        for (Index i = 0; i < s.pretrain_batch; ++i) {
          const auto& all =
              stream.reading[static_cast<std::size_t>(draws.below(std::ssize(stream.reading)))];
          const Index length = std::min(s.length, std::ssize(all));
          const Index at = draws.below(std::ssize(all) - length + 1);
          std::vector<Index> tokens{0};
          tokens.insert(tokens.end(), all.begin() + at, all.begin() + at + length);
          texts.push_back(
              infty::mask_text(tokens, stream.first_word, stream.vocabulary, {}, draws));
        }
        return loss = reader.loss(texts);
      },
      {.save = [&] { trainer.save(file); },
       .stop = [] { return support::InterruptGuard::signal() != 0; },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             behind.add_loss(static_cast<double>(loss.value().item()), progress.done(), s.pretrain);
             const double now = support::computed();
             behind.seconds += now - std::exchange(since, now);
             done(1);
           }});
  if (!ended) throw support::Interrupted(support::InterruptGuard::signal(), "stopped");
  std::fprintf(stderr, "read beforehand: %td steps, %.3f nats a masked word, %.0f s of computing\n",
               s.pretrain, behind.loss, behind.seconds);
}

/// The encoder that a run begins with: the one that has read beforehand, or a fresh one.
inline Reader encoder_of(const Settings& s, const Stream& stream, std::uint64_t seed,
                         const std::filesystem::path& out) {
  Reader reader = reader_of(s, stream, seed);
  if (s.pretrain > 0)
    infty::CheckpointLoader(encoder_file(out)).parameters(reader, "model.").apply();
  return reader;
}

/// The model of a run: with a head for the classes of the stream, for candidates or for spans.
template <class Made>
Made model_of(const Settings& s, const Stream& stream, std::uint64_t seed,
              const std::filesystem::path& out) {
  const Reader encoder = encoder_of(s, stream, seed, out);
  const infty::Random random = infty::Random(seed, 20).split(2);
  const auto made = [&](auto&&... gate) -> Made {
    if constexpr (std::is_same_v<decltype(Made::head), infty::SpanHead<float>>)
      return {encoder.embedding, encoder.body, infty::SpanHead<float>(s.width, random), gate...};
    else if constexpr (requires(Made m) { m.head.first_only; })
      return {encoder.embedding, encoder.body,
              infty::ClassHead<float>(s.width, stream.classes, random), gate...};
    else
      return {encoder.embedding, encoder.body, infty::Linear<float>(s.width, 1, random, false), 1,
              gate...};
  };
  // The gates are made by a frozen copy of the encoder as it is at first.
  if constexpr (requires(Made m) { m.gate.first; })
    return made(Gate(encoder.embedding, encoder.body, s.width, s.width, infty::Random(seed, 21)));
  else
    return made();
}

}  // namespace lifelong
