// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/memformer.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/model/encoder_decoder.hpp>
#include <infty/model/memory_encoder.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/self_attention.hpp>

#include "../support/interrupt.hpp"
#include "settings.hpp"

// The forms of one model: what stands in the place of the encoder, and of the decoder's layers.

namespace translation {

using Layer = infty::AnyLayer<float>;
using Pair = infty::TranslationPair;
using Task = infty::TranslationTask;

/// The sizes of both sides.
inline infty::EncoderDecoderConfig config_of(const Settings& s, const Task& task) {
  infty::EncoderDecoderConfig config{.encoder = s.model, .decoder = s.model};
  config.encoder.vocabulary = task.source_vocabulary();
  config.decoder.vocabulary = task.target_vocabulary();
  return config;
}

/// The encoder of a form. Memformer's slots are those of a fresh row for every sentence.
inline Layer encoder_of(const Settings& s, const std::string& form,
                        const infty::TransformerConfig& sizes, const infty::Random& random) {
  if (form == "memformer") {
    using Mixer = infty::Memformer<infty::SelfAttention<float>>;
    return infty::RecurrentSlots<infty::Layers<infty::Block<Mixer>>>(
        infty::blocks<Mixer>(sizes, {.slots = {.slots = s.slots}}, random));
  }
  const auto behind_tokens = [&](auto layers) {
    return infty::MemoryTokens(std::move(layers), {.tokens = s.token_count}, sizes.model_dim,
                               random.split(0));
  };
  if (form == "memctrl" || form == "membottleneck") {
    const infty::MemoryEncoderConfig config{.encoding = form == "memctrl"
                                                            ? infty::MemoryEncoding::control
                                                            : infty::MemoryEncoding::bottleneck,
                                            .feed_forward = sizes.feed_forward};
    infty::Layers<infty::MemoryEncoderLayer<float>> layers;
    for (Index i = 0; i < sizes.layers; ++i)
      layers.layers.push_back(
          {config, sizes.attention_sizes(), random.split(static_cast<std::uint64_t>(i) + 1)});
    return behind_tokens(std::move(layers));
  }
  auto plain = infty::blocks<infty::SelfAttention<float>>(sizes, {}, random);
  if (form == "memory-transformer") return behind_tokens(std::move(plain));
  return plain;
}

/// Calls f(model) with the model of a form, with weights by its seed.
template <class F>
auto with_model(const Settings& s, const Task& task, const std::string& form, std::uint64_t seed,
                F&& f) {
  const infty::Random random(seed);
  const auto config = config_of(s, task);
  const Layer encoder = encoder_of(s, form, config.encoder, random.split(1));
  if (form == "memsizer") {
    const infty::MemSizerLayerConfig layer{
        .self = {.slots = s.self_slots, .query_scale = 8, .value_scale = 8},
        .cross = {.slots = s.slots, .query_scale = 8, .value_scale = 8},
        .feed_forward = s.model.feed_forward,
        .norms_in_front = s.model.pre_norm};
    return f(infty::EncoderDecoder(
        config, encoder, infty::memsizer_layers<float>(config.decoder, layer, random.split(2)),
        random.split(3)));
  }
  const infty::CachedAttentionConfig held{.capacity = task.longest_target() + 1};
  return f(infty::EncoderDecoder(
      config, encoder,
      infty::decoder_layers<infty::CachedAttention<float>>(config.decoder, held, random.split(2)),
      random.split(3)));
}

/// The sources of sentences, as an encoder reads them.
inline infty::Sources<> sources_of(const std::vector<Pair>& pairs) {
  std::vector<std::vector<Index>> rows;
  for (const Pair& pair : pairs) rows.push_back(pair.source);
  return infty::Sources<>::of(rows);
}

/// What a decoder reads and what it is to say, (batch, length) each, with nothing asked behind
/// shorter targets.
struct Lesson {
  infty::Tensor<Index> inputs, targets;
};

inline Lesson lesson_of(const std::vector<Pair>& pairs) {
  std::size_t longest = 0;
  for (const Pair& pair : pairs) longest = std::max(longest, pair.target.size() + 1);
  std::vector<Index> inputs, targets;
  for (const Pair& pair : pairs) {
    inputs.push_back(Task::begin);
    inputs.insert(inputs.end(), pair.target.begin(), pair.target.end());
    inputs.insert(inputs.end(), longest - pair.target.size() - 1, Task::end);
    targets.insert(targets.end(), pair.target.begin(), pair.target.end());
    targets.push_back(Task::end);
    targets.insert(targets.end(), longest - pair.target.size() - 1, infty::ignore_index);
  }
  const infty::Shape shape{std::ssize(pairs), static_cast<Index>(longest)};
  return {infty::Tensor<Index>::from(shape, inputs), infty::Tensor<Index>::from(shape, targets)};
}

/// Shares of tokens that stand where they belong, and of sentences without a fault.
struct Score {
  double token = 0, exact = 0;
};

/// The draws of the sentences that a seed trains on.
inline infty::Random sentences_of(std::uint64_t seed) { return infty::Random(seed, 1); }

/// Sentences to be translated, and how many of them the training has not.
struct Questions {
  std::vector<Pair> pairs;
  Index unseen = 0;
};

/// Draws the sentences to be translated: of twice as many those that the training of a seed has
/// not, or others, too, where a language is so small that they are too few.
inline Questions questions_of(const Settings& s, const Task& task, std::uint64_t seed) {
  infty::Random random(0, 2), trained = sentences_of(seed);
  Questions out{.pairs = task.sample(2 * s.evaluation_sequences, random)};
  std::set<std::vector<Index>> unseen;
  for (const Pair& pair : out.pairs) unseen.insert(pair.source);
  for (Index step = 0; step < s.steps; ++step) {
    support::stop_if_interrupted();
    for (const Pair& pair : task.sample(s.batch, trained)) unseen.erase(pair.source);
  }
  const auto end = std::stable_partition(out.pairs.begin(), out.pairs.end(), [&](const Pair& pair) {
    return unseen.contains(pair.source);
  });
  out.unseen = std::min<Index>(end - out.pairs.begin(), s.evaluation_sequences);
  out.pairs.resize(static_cast<std::size_t>(s.evaluation_sequences));
  return out;
}

/// Answers beside the only right ones. Of a token, its place counts; too long an answer has its
/// tokens behind the end wrong.
class Marks {
 public:
  /// @param ended  whether the answer said that it was over
  void add(const std::vector<Index>& wanted, const std::vector<Index>& said, bool ended) {
    for (std::size_t at = 0; at < std::min(wanted.size(), said.size()); ++at)
      right_ += wanted[at] == said[at] ? 1 : 0;
    asked_ += static_cast<Index>(std::max(wanted.size(), said.size()));
    whole_ += ended && wanted == said ? 1 : 0;
    ++sentences_;
  }
  Score score() const {
    return {static_cast<double>(right_) / static_cast<double>(asked_),
            static_cast<double>(whole_) / static_cast<double>(sentences_)};
  }

 private:
  Index right_ = 0, asked_ = 0, whole_ = 0, sentences_ = 0;
};

/// What is right without reading: at each place the commonest token there of those sentences that a
/// seed trains on which are as long, until that is the end.
inline Score floor_of(const Settings& s, const Task& task, std::uint64_t seed) {
  std::vector<std::map<Index, Index>> counts(static_cast<std::size_t>(task.longest_target()) + 1);
  infty::Random trained = sentences_of(seed);
  for (Index step = 0; step < s.steps; ++step)
    for (const Pair& pair : task.sample(s.batch, trained)) {
      for (std::size_t at = 0; at < pair.target.size(); ++at) ++counts[at][pair.target[at]];
      ++counts[pair.target.size()][Task::end];
    }
  std::vector<Index> said;
  for (const auto& at : counts) {
    if (at.empty()) break;
    const Index commonest =
        std::max_element(at.begin(), at.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;
        })->first;
    if (commonest == Task::end) break;
    said.push_back(commonest);
  }
  Marks marks;
  for (const Pair& pair : questions_of(s, task, seed).pairs) marks.add(pair.target, said, true);
  return marks.score();
}

/// Batches of sentences that one way to translate takes.
inline Index batches_of(const Settings& s) {
  return (s.evaluation_sequences + s.batch - 1) / s.batch;
}

/// Translates sentences, and compares with the only right answers. `done(1)` is called behind each
/// batch. Throws support::Interrupted where a signal came.
template <class Model, class Done>
Score translate(const Model& model, const Settings& s, const Task& task,
                const std::vector<Pair>& questions, Index beam, Done&& done) {
  infty::BeamSearchConfig search = s.search;
  search.beam = beam;
  search.end = Task::end;
  search.longest = task.longest_target() + 1;
  Marks marks;
  for (Index first = 0; first < std::ssize(questions); first += s.batch) {
    support::stop_if_interrupted();
    const auto begin = questions.begin() + first;
    const std::vector<Pair> pairs(begin, begin + std::min(s.batch, std::ssize(questions) - first));
    auto state = model.make_state(std::ssize(pairs));
    infty::Pass<float> pass;
    const auto guard = infty::no_grad();
    model.read(state, sources_of(pairs), pass);
    const auto found = model.translate(state, Task::begin, search);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const bool any = !found[i].empty();
      marks.add(pairs[i].target, any ? found[i].front().tokens : std::vector<Index>(),
                any && found[i].front().ended);
    }
    done(1);
  }
  return marks.score();
}

}  // namespace translation
