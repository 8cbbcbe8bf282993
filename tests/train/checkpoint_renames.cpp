// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "train/saved_run.hpp"

// The files in version1/ were written by the last program of version 1: models that had taken four
// steps, with everything the next step depends on, and what they answered to the next segment.

using Catch::Matchers::Contains;
using infty::CheckpointLoader;
using infty::Index;
using infty::InftyMemory;
using infty::IoError;
using infty::LongTermConfig;
using infty::SafetensorsFile;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::Tensor;
using infty::tests::TemporaryFolder;

namespace {

using Floats = std::vector<float>;
using Names = std::vector<std::pair<std::string, std::string>>;

const std::filesystem::path version1 = std::filesystem::path(INFTY_TEST_DATA) / "train/version1";
const LongTermConfig even{.basis = 4, .widths = {.1, .2}, .samples = 8};
const LongTermConfig sticky{.basis = 4,
                            .widths = {.1, .2},
                            .samples = 8,
                            .resampling = infty::Resampling::sticky,
                            .bins = 8};
const infty::CompressiveConfig compressive{.capacity = 3, .compressed_capacity = 2, .rate = 2};

/// All that a recorded training holds, of other numbers before it is loaded.
template <class Mixer>
struct Restored {
  using Lm = infty::TransformerLM<Mixer>;

  Lm model;
  infty::Adam<float> adam{model};
  infty::Random random{1, 1};
  typename Lm::State state = model.make_state(2);

  Restored(const typename Mixer::Config& memory, infty::TransformerConfig config)
      : model((config.vocabulary = 7, config.model_dim = 4, config.layers = 2, config.heads = 2,
               config.feed_forward = 6, config.pre_norm = true, config),
              memory, infty::Random(2)) {}

  void load(const std::filesystem::path& path) { infty::tests::load_run(path, *this); }

  void save(const std::filesystem::path& path) const {
    SafetensorsWriter writer;
    infty::tests::save_run(writer, *this);
    writer.save(path);
  }
};

/// Every tensor's bytes, sorted, of those whose name does not begin with "expected.".
auto contents_of(const SafetensorsFile& file) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& [name, entry] : file.tensors())
    if (!name.starts_with("expected.")) all.push_back(file.read_bytes(name));
  std::sort(all.begin(), all.end());
  return all;
}

/// Loads a recorded file and saves it again: every tensor is there once more but `dropped` ones,
/// those of `names` as the second under what the first was called, and the model goes on.
template <class Mixer>
void check_recorded(const std::string& name, const typename Mixer::Config& memory,
                    const Names& names, std::size_t dropped = 0,
                    const infty::TransformerConfig& config = {}) {
  INFO(name);
  const TemporaryFolder folder;
  const SafetensorsFile old(version1 / (name + ".safetensors"));
  CHECK(old.metadata("infty.checkpoint") == "1");
  Restored<Mixer> restored(memory, config);
  restored.load(old.path());
  restored.save(folder / "now");
  const SafetensorsFile now(folder / "now");
  CHECK(now.metadata("infty.checkpoint") == "2");
  if (dropped == 0) CHECK(contents_of(now) == contents_of(old));
  CHECK(now.tensors().size() + dropped + 2 == old.tensors().size());  // and two are expected
  for (const auto& [before, after] : names) {
    INFO(before << " -> " << after);
    CHECK(now.shape(after) == old.shape(before));
    CHECK(now.read_bytes(after) == old.read_bytes(before));
  }
  CHECK(restored.adam.steps() == 4);
  const auto answer = restored.model.logits(
      restored.model.forward(restored.state, old.tensor<Index>("expected.tokens")));
  const Floats logits = answer.value().to_vector(), expected = old.read<float>("expected.logits");
  REQUIRE(logits.size() == expected.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    CHECK(logits[i] == Approx(expected[i]).margin(1e-5));
}

/// Adds to `names` what all models have: `mixer` is where the attention is.
Names with_layers(const std::string& mixer, Names names) {
  const auto add = [&](const std::string& before, const std::string& after) {
    for (const std::string part : {"model.", "optimizer.first.", "optimizer.second."})
      names.emplace_back(part + before, part + after);
    names.emplace_back("optimizer.steps." + before, "optimizer.steps." + after);
  };
  for (const std::string bias : {"content_bias", "position_bias"})
    add(bias, "layers.0." + mixer + bias);
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const std::string part : {"query", "key", "value", "position", "out"})
      add(layer + "attention." + part + ".weight", layer + mixer + part + ".weight");
    for (const std::string part : {".weight", ".bias"}) {
      add(layer + "attention_norm" + part, layer + "mixer_norm" + part);
      add(layer + "feed_forward_norm" + part, layer + "feed_norm" + part);
      add(layer + "feed_forward.inner" + part, layer + "feed.inner" + part);
      add(layer + "feed_forward.outer" + part, layer + "feed.outer" + part);
    }
  }
  names.emplace_back("optimizer.steps", "optimizer.steps");
  names.emplace_back("random", "random");
  return names;
}

/// A recorded file with other metadata, and what `change` does with a tensor instead.
template <class Change>
void rewrite_recorded(const std::string& name, const std::filesystem::path& to,
                      const std::string& version, Change&& change) {
  const SafetensorsFile file(version1 / (name + ".safetensors"));
  SafetensorsWriter writer;
  if (!version.empty()) writer.metadata("infty.checkpoint", version);
  for (const auto& [tensor, entry] : file.tensors())
    if (!change(writer, tensor))
      writer.add_bytes(tensor, entry.dtype, entry.shape, file.read_bytes(tensor));
  writer.save(to);
}

const auto as_it_is = [](SafetensorsWriter&, const std::string&) { return false; };

}  // namespace

TEST_CASE("checkpoint of version 1: attention over the segment, and over the last vectors") {
  const Names names = with_layers(
      "mixer.", {{"state.layers.1.recent.vectors", "state.layers.1.mixer.recent.vectors"},
                 {"state.layers.0.recent.length", "state.layers.0.mixer.recent.length"},
                 {"model.embedding.weight", "model.embedding.weight"},
                 {"model.output_bias", "model.output_bias"}});
  check_recorded<infty::NoMemory<float>>("none", {}, names);
  check_recorded<infty::ShortTermMemory<float>>(
      "xl", {.capacity = 5},
      with_layers("mixer.",
                  {{"state.layers.1.recent.vectors", "state.layers.1.mixer.recent.vectors"},
                   {"model.embedding.weights.1", "model.embedding.weights.1"},
                   {"model.softmax.cluster_weight", "model.softmax.cluster_weight"}}),
      0, {.tie_embedding = false, .cutoffs = {3}, .div_value = 2});
}

TEST_CASE("checkpoint of version 1: compressed vectors") {
  const Names names = with_layers(
      "mixer.",
      {{"model.layers.1.memory.compression.0.weight", "model.layers.1.mixer.compression.0.weight"},
       {"state.layers.0.memory.vectors", "state.layers.0.mixer.memory.vectors"},
       {"state.layers.1.memory.length", "state.layers.1.mixer.memory.length"},
       {"state.layers.1.compressed.vectors", "state.layers.1.mixer.compressed.vectors"},
       {"state.layers.0.usage", "state.layers.0.mixer.usage"}});
  using Memory = infty::CompressiveMemory<float>;
  check_recorded<Memory>("compressive", compressive, names);
  infty::CompressiveConfig decoded = compressive;
  decoded.loss = infty::ReconstructionLoss::auto_encoding;
  check_recorded<Memory>(
      "compressive-decoder", decoded,
      {{"model.layers.1.memory.decoder.weight", "model.layers.1.mixer.decoder.weight"}});
}

TEST_CASE("checkpoint of version 1: LaMemo's inputs are the model's") {
  const Names names =
      with_layers("mixer.", {{"model.future_bias", "model.layers.0.mixer.future_bias"},
                             {"state.layers.0.input.vectors", "state.input.vectors"},
                             {"state.layers.0.input.length", "state.input.length"},
                             {"state.layers.1.context", "state.layers.1.mixer.context"},
                             {"state.layers.1.log_sum", "state.layers.1.mixer.log_sum"},
                             {"state.layers.0.held", "state.layers.0.mixer.held"},
                             {"state.layers.1.unseen", "state.layers.1.mixer.unseen"}});
  check_recorded<infty::LaMemo<float>>("lamemo", {.capacity = 5}, names, 2);
}

TEST_CASE("checkpoint of version 1: the long-term memory beside attention, and sticky") {
  const Names names = with_layers(
      "mixer.attention.",
      {{"model.layers.1.memory.long_term.gate_weight", "model.layers.1.mixer.memory.gate_weight"},
       {"model.layers.1.memory.long_term.key.weight", "model.layers.1.mixer.memory.key.weight"},
       {"state.layers.1.short_term.recent.vectors",
        "state.layers.1.mixer.attention.recent.vectors"},
       {"state.layers.0.long_term.leaving.vectors", "state.layers.0.mixer.past.leaving.vectors"},
       {"state.layers.1.long_term.memory.coefficients",
        "state.layers.1.mixer.past.memory.coefficients"},
       {"state.layers.1.long_term.memory.waiting.length",
        "state.layers.1.mixer.past.memory.waiting.length"},
       {"state.layers.1.long_term.memory.stream", "state.layers.1.mixer.past.memory.row_id"}});
  check_recorded<InftyMemory<float>>(
      "infty", {.attention = {.capacity = 3, .stride = 2}, .memory = even}, names);
  check_recorded<InftyMemory<float>>(
      "infty-sticky", {.attention = {.capacity = 3, .stride = 1}, .memory = sticky}, names);
}

TEST_CASE("checkpoint of version 1: the long-term memory behind other memories") {
  using LongTerm = infty::LongTermMemory<float>;
  check_recorded<infty::WithMemory<infty::CompressiveMemory<float>, LongTerm>>(
      "compressive-infty", {.attention = compressive, .memory = even},
      with_layers("mixer.attention.", {{"model.layers.1.memory.short_term.compression.0.weight",
                                        "model.layers.1.mixer.attention.compression.0.weight"},
                                       {"model.layers.1.memory.long_term.out.weight",
                                        "model.layers.1.mixer.memory.out.weight"},
                                       {"state.layers.1.short_term.memory.vectors",
                                        "state.layers.1.mixer.attention.memory.vectors"}}));
  check_recorded<infty::WithMemory<infty::LaMemo<float>, LongTerm>>(
      "lamemo-infty", {.attention = {.capacity = 3}, .memory = even},
      with_layers(
          "mixer.attention.",
          {{"model.future_bias", "model.layers.0.mixer.attention.future_bias"},
           {"state.layers.0.short_term.input.vectors", "state.input.vectors"},
           {"state.layers.1.short_term.context", "state.layers.1.mixer.attention.context"}}),
      2);
}

TEST_CASE("checkpoint of version 1: a fresh row of LaMemo has room for its inputs") {
  const TemporaryFolder folder;
  Restored<infty::LaMemo<float>> restored({.capacity = 5}, {});
  const auto fresh = restored.model.make_state(2);
  const auto next = Tensor<Index>::from({2, 3}, std::vector<Index>{0, 1, 2, 3, 4, 5});
  restored.model.forward(restored.state, next);
  infty::load_state(version1 / "lamemo-fresh.safetensors", restored.state, "state.");
  infty::save_state(folder / "loaded", restored.state);
  infty::save_state(folder / "made", fresh);
  CHECK(infty::tests::read_text(folder / "loaded") == infty::tests::read_text(folder / "made"));
  rewrite_recorded("lamemo-fresh", folder / "bad", "1",
                   [](SafetensorsWriter& writer, const std::string& name) {
                     const bool found = name == "state.layers.0.input.length";
                     if (found) writer.add(name, Shape{2}, std::vector<Index>{0, 3});
                     return found;
                   });
  CHECK_THROWS_WITH(infty::load_state(folder / "bad", restored.state, "state."),
                    Contains("'state.layers.0.input.length' holds 3"));
}

TEST_CASE("checkpoint of version 1: a memory's state alone, without a model's") {
  const SafetensorsFile old(version1 / "infty-sticky.safetensors");
  Restored<InftyMemory<float>> restored(
      {.attention = {.capacity = 3, .stride = 1}, .memory = sticky}, {});
  const auto& mixer = restored.model.body.layers[1].mixer;
  auto both = mixer.make_state(2);
  infty::load_state(old.path(), both, "state.layers.1.");
  CHECK(both.attention.recent.vectors.to_vector() ==
        old.read<float>("state.layers.1.short_term.recent.vectors"));
  CHECK(both.past->leaving.vectors.to_vector() ==
        old.read<float>("state.layers.1.long_term.leaving.vectors"));
  auto alone = mixer.memory->make_state(2, 7);
  infty::load_state(old.path(), alone, "state.layers.1.long_term.memory.");
  const auto rows = old.read<Index>("state.layers.1.long_term.memory.stream");
  CHECK(std::equal(rows.begin(), rows.end(), alone.row_id.id.begin(), alone.row_id.id.end()));
  CHECK(both.past->memory.row_id.id == alone.row_id.id);
  CHECK(both.past->memory.coefficients.value().to_vector() ==
        alone.coefficients.value().to_vector());
}

TEST_CASE("checkpoint of version 1: parameters alone need no version") {
  const TemporaryFolder folder;
  const SafetensorsFile old(version1 / "infty.safetensors");
  rewrite_recorded("infty", folder / "plain", "", as_it_is);
  Restored<InftyMemory<float>> restored({.attention = {.capacity = 3, .stride = 2}, .memory = even},
                                        {});
  infty::load_parameters(folder / "plain", restored.model, "model.");
  CHECK(restored.model.body.layers[1].mixer.memory->key.weight.value().to_vector() ==
        old.read<float>("model.layers.1.memory.long_term.key.weight"));
  CHECK(restored.model.body.layers[1].mixer.attention.attention.content_bias.value().to_vector() ==
        old.read<float>("model.content_bias"));
  CHECK_THROWS_WITH(restored.load(folder / "plain"), Contains("is a checkpoint of no version"));
}

TEST_CASE("checkpoint of version 1: what is missing or too much is named, and the version") {
  const TemporaryFolder folder;
  Restored<infty::LaMemo<float>> restored({.capacity = 5}, {});
  restored.save(folder / "before");
  const auto refused = [&](const std::string& version, const std::string& text, auto&& change) {
    rewrite_recorded("lamemo", folder / "bad", version, change);
    CHECK_THROWS_WITH(restored.load(folder / "bad"), Contains(text));
    CHECK_THROWS_AS(restored.load(folder / "bad"), IoError);
    restored.save(folder / "after");
    CHECK(infty::tests::read_text(folder / "after") == infty::tests::read_text(folder / "before"));
  };
  refused(
      "1",
      "bad: no tensor 'state.layers.1.mixer.held', nor what version '1', which wrote the file, "
      "may have called so: make it anew, or read it with the infty that wrote it",
      [](SafetensorsWriter&, const std::string& name) { return name == "state.layers.1.held"; });
  refused("1", "tensor 'state.layers.1.input.length' is in the file and belongs to nothing",
          [](SafetensorsWriter& writer, const std::string& name) {
            const bool found = name == "state.layers.1.input.vectors";
            if (found) writer.add(name, Shape{2, 1, 4}, Floats(8));
            return found;
          });
  refused("2", "no tensor 'model.layers.0.mixer.query.weight'", as_it_is);
  refused("3", "is a checkpoint of version '3', version '1' or '2' is needed: make it anew",
          as_it_is);
}

namespace {

/// A layer and one inside of it, whose names are those of version 1 and of today.
struct Outer {
  struct Inner {
    infty::Variable<float> weight{Tensor<float>::full({2}, 2), true};
    bool has = true;

    template <class Visitor>
    void visit(Visitor&& see) {
      if (has) see("weight", weight);
    }
  };
  infty::Variable<float> weight{Tensor<float>::full({2}, 1), true};
  Inner mixer;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    see("mixer", mixer);
  }
};

}  // namespace

TEST_CASE("checkpoint: a parameter that is missing is not another one under an older name") {
  const TemporaryFolder folder;
  Outer old;
  old.mixer.has = false;
  old.weight.value().fill(7);
  const bool marked = GENERATE(false, true);  // as today's checkpoints are, or weights alone
  SafetensorsWriter writer;
  if (marked) infty::mark_checkpoint(writer);
  infty::save_parameters(writer, old);
  writer.save(folder / "file");
  Outer now;
  CHECK_THROWS_WITH(infty::load_parameters(folder / "file", now), Contains("'mixer.weight'"));
  CHECK(now.weight.value().to_vector() == Floats(2, 1));
  const auto report = infty::load_parameters(folder / "file", now, "", {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"mixer.weight"});
  CHECK(now.weight.value().to_vector() == Floats(2, 7));
  CHECK(now.mixer.weight.value().to_vector() == Floats(2, 2));
}

namespace {

/// A layer whose first part may have been called as its second is, if its file is of version 1.
struct MixerAndAttention {
  Outer::Inner mixer, attention;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mixer", mixer);
    see("attention", attention);
  }
};

}  // namespace

TEST_CASE("checkpoint: an older name is not taken where it is another parameter's own") {
  const TemporaryFolder folder;
  MixerAndAttention old;
  old.mixer.has = false;
  old.attention.weight.value().fill(7);
  infty::save_parameters(folder / "file", old, "model.");
  MixerAndAttention now;
  CHECK_THROWS_WITH(infty::load_parameters(folder / "file", now, "model."),
                    Contains("no tensor 'model.mixer.weight', for 'model.attention.weight' is "
                             "'model.attention.weight''s"));
  CHECK(now.mixer.weight.value().to_vector() == Floats(2, 2));
  const auto report = infty::load_parameters(folder / "file", now, "model.", {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"model.mixer.weight"});
  CHECK(report.unexpected.empty());
  CHECK(now.mixer.weight.value().to_vector() == Floats(2, 2));
  CHECK(now.attention.weight.value().to_vector() == Floats(2, 7));
}

TEST_CASE("stored_name: today's name, else an older one that is there, else today's") {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  for (const std::string name :
       {"a.feed_forward.inner", "feed_forward.outer", "b.feed.inner", "b.feed_forward.inner",
        "c.offeed_forward.x", "NAME.model.content_bias"})
    writer.add(name, Shape{1}, Floats(1));
  writer.save(folder / "file");
  const SafetensorsFile file(folder / "file");
  const auto stored = [&](const std::string& name) { return infty::stored_name(file, name); };
  CHECK(stored("a.feed.inner") == "a.feed_forward.inner");
  CHECK(stored("feed.outer") == "feed_forward.outer");
  CHECK(stored("b.feed.inner") == "b.feed.inner");
  CHECK(stored("c.offeed.x") == "c.offeed.x");  // a part of a name is not a part of a word
  CHECK(stored("NAME.model.layers.0.mixer.content_bias") == "NAME.model.content_bias");
  CHECK(stored("NAME.model.layers.0.mixer.attention.content_bias") == "NAME.model.content_bias");
  CHECK(stored("NAME.model.layers.1.mixer.content_bias") ==
        "NAME.model.layers.1.mixer.content_bias");
}
