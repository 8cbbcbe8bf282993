// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/lifelong/episodic_config.hpp>
#include <infty/lifelong/experience_replay.hpp>
#include <infty/lifelong/local_adaptation.hpp>
#include <infty/lifelong/masking.hpp>
#include <infty/lifelong/online_ewc.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/model/family_settings.hpp>
#include <infty/model/settings.hpp>
#include <infty/retrieval/continuous_cache.hpp>
#include <infty/retrieval/index_config.hpp>
#include <infty/retrieval/knn_lm.hpp>
#include <infty/train/trainer_config.hpp>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;

/// Becomes whatever a field is.
struct AnyField {
  std::size_t index;
  template <class Field>
  operator Field() const {
    return Field();
  }
};

template <class C, std::size_t... I>
constexpr bool made_of(std::index_sequence<I...>) {
  return requires { C{AnyField{I}...}; };
}

/// How many fields an aggregate has.
template <class C, std::size_t Count = 40>
constexpr std::size_t fields_of() {
  if constexpr (made_of<C>(std::make_index_sequence<Count>{}))
    return Count;
  else
    return fields_of<C, Count - 1>();
}

/// Fields that no program can be told: a rule of one's own.
template <class C>
constexpr std::size_t unsaid = std::is_same_v<C, infty::LongTermConfig> ? 1 : 0;

template <class C>
std::size_t settings_of() {
  C config;
  std::size_t count = 0;
  describe(config, [&](const char*, const auto&, const char*) { ++count; });
  return count;
}

/// Whether every setting is a field of its own with a name of its own and a word on it.
template <class C>
bool distinct() {
  C config;
  std::map<std::string, const void*> names;
  std::map<const void*, std::string> fields;
  bool good = true;
  describe(config, [&](const char* name, const auto& field, const char* help) {
    good = good && names.emplace(name, &field).second && fields.emplace(&field, name).second;
    good = good && !std::string(help).empty();
  });
  return good;
}

/// Whether the settings are named in the order in which the fields are declared, which designated
/// initialisers have to follow.
template <class C>
bool in_order() {
  C config;
  const void* before = nullptr;
  bool good = true;
  describe(config, [&](const char*, const auto& field, const char*) {
    good = good && std::less<const void*>()(before, &field);
    before = &field;
  });
  return good;
}

const fs::path root_of_tree = fs::path(INFTY_TEST_DATA).parent_path();

std::vector<std::string> lines_of_header(const fs::path& path) {
  std::ifstream in(path);
  INFO(path);
  REQUIRE(in.good());
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string head_of(const std::string& name, const std::string& header) {
  return "\n## " + name + "\n\n`infty/" + header + "`\n\n";
}

template <class C>
std::string section(const char* name, const char* header) {
  return head_of(name, header) + infty::settings_table(C{});
}

/// The same for a struct that has no list: of its declaration and the words beside its fields.
std::string declared(const std::string& name, const std::string& header) {
  const auto lines = lines_of_header(root_of_tree / "include/infty" / header);
  const std::regex field(
      R"(^  [A-Za-z][A-Za-z_0-9:<>, \(\)&\*]* (\w+)(?: = ([^;]+)|\{\})?;\s*(?:///< (.*))?$)"),
      words(R"(^\s*///<? (.*)$)");
  std::string out = head_of(name, header) + "| setting | default | |\n|---|---|---|\n", help;
  std::smatch match;
  std::size_t i = 0;
  while (i < lines.size() && lines[i] != "struct " + name + " {") ++i;
  INFO(name);
  REQUIRE(++i < lines.size());
  int fields = 0;
  for (; i < lines.size() && lines[i] != "};" && !lines[i].empty(); ++i) {
    if (std::regex_match(lines[i], match, field)) {
      if (match[3].matched) help += match[3].str();
      for (std::smatch more; i + 1 < lines.size() && lines[i + 1].starts_with("      ") &&
                             std::regex_match(lines[i + 1], more, words);
           ++i)
        help += ' ' + more[1].str();
      const std::string value = match[2].matched ? match[2].str() : "{}";
      out += "| `" + match[1].str() + "` | `" + value + "` | " + help + " |\n";
      help.clear();
      ++fields;
    } else {
      INFO(lines[i]);
      REQUIRE(std::regex_match(lines[i], match, words));
      help += (help.empty() ? "" : " ") + match[1].str();
    }
  }
  REQUIRE(fields > 0);
  return out;
}

std::string page() {
  return "# Configurations\n\n"
         "Every setting that can be written as text, of every configuration, its default, and what "
         "it is, in the order in\nwhich they are declared: designated initialisers, `{.heads = 4, "
         ".basis = 128}`, may leave some out and must keep\nto it. "
         "`LongTermConfig::contraction` is a function and has no row: it stands between `power` "
         "and `ridge`. Where a\nsetting is a choice or a list the table shows its JSON; "
         "`validate()`, where there is one, says what a setting may be,\nand names the first that "
         "is out of its range: in a `UniformConfig` `group` must be 1 and `threshold` 0. What the\n"
         "experiments of the papers set is in [settings.md](settings.md).\n\n"
         "This page is made of the lists in `infty/model/settings.hpp` and "
         "`infty/model/family_settings.hpp`, from which come the "
         "programs' options and\nthe settings in checkpoints, too, and of the words in the "
         "headers.\n" +
         section<infty::TransformerConfig>("TransformerConfig", "model/transformer_config.hpp") +
         section<infty::Gpt2Config>("Gpt2Config", "model/gpt2_config.hpp") +
         section<infty::LongTermConfig>("LongTermConfig", "memory/long_term_config.hpp") +
         section<infty::UniformConfig<infty::LongTermConfig>>("UniformConfig",
                                                              "memory/uniform_config.hpp") +
         section<infty::ShortTermConfig>("ShortTermConfig", "memory/short_term_memory.hpp") +
         section<infty::CompressiveConfig>("CompressiveConfig", "memory/compressive_memory.hpp") +
         section<infty::CompressiveCausalConfig>("CompressiveCausalConfig",
                                                 "memory/compressive_causal_attention.hpp") +
         section<infty::LaMemoConfig>("LaMemoConfig", "memory/lamemo_config.hpp") +
         section<infty::MemSizerConfig>("MemSizerConfig", "memory/memsizer.hpp") +
         section<infty::MemSizerLayerConfig>("MemSizerLayerConfig", "memory/memsizer_layer.hpp") +
         section<infty::ProductKeyConfig>("ProductKeyConfig", "memory/product_key_config.hpp") +
         section<infty::MemorizingConfig>("MemorizingConfig", "memory/memorizing_config.hpp") +
         section<infty::TitansConfig>("TitansConfig", "memory/titans_config.hpp") +
         section<infty::EngramConfig>("EngramConfig", "memory/engram_config.hpp") +
         section<infty::LinearAttentionConfig>("LinearAttentionConfig",
                                               "memory/linear_attention.hpp") +
         section<infty::DeltaNetConfig>("DeltaNetConfig", "memory/delta_net.hpp") +
         section<infty::GatedDeltaNetConfig>("GatedDeltaNetConfig", "memory/gated_delta_net.hpp") +
         declared("DeltaRuleOptions", "memory/ops/delta_rule_inputs.hpp") +
         declared("ShortConvolutionConfig", "nn/short_convolution.hpp") +
         section<infty::InfiniConfig>("InfiniConfig", "memory/infini_config.hpp") +
         section<infty::AssociativeConfig>("AssociativeConfig", "memory/associative_memory.hpp") +
         section<infty::SlotConfig>("SlotConfig", "memory/slot_writer.hpp") +
         section<infty::GruSlotConfig>("GruSlotConfig", "memory/gru_slot_writer.hpp") +
         declared("MemformerConfig", "memory/memformer.hpp") +
         section<infty::JointSlotConfig>("JointSlotConfig", "memory/joint_slots.hpp") +
         declared("SlotAttentionOptions", "nn/slot_attention.hpp") +
         declared("ReplayConfig", "train/replay.hpp") +
         section<infty::MemoryTokensConfig>("MemoryTokensConfig", "memory/memory_tokens.hpp") +
         section<infty::RecurrentTokensConfig>("RecurrentTokensConfig",
                                               "memory/recurrent_tokens.hpp") +
         section<infty::SlidingWindowConfig>("SlidingWindowConfig", "memory/sliding_window.hpp") +
         section<infty::IndexConfig>("IndexConfig", "retrieval/index_config.hpp") +
         section<infty::MemoryEncoderConfig>("MemoryEncoderConfig", "model/memory_encoder.hpp") +
         declared("EncoderDecoderConfig", "model/encoder_decoder.hpp") +
         section<infty::MixedConfig<infty::LongTermConfig>>("MixedConfig",
                                                            "memory/mixed_config.hpp") +
         declared("WithMemoryConfig", "memory/with_memory.hpp") +
         "\n`InftyConfig` is one, of a `ShortTermConfig` and a `LongTermConfig`.\n" +
         declared("AttentionSizes", "nn/attention_sizes.hpp") +
         declared("CausalAttentionConfig", "nn/causal_attention.hpp") +
         declared("SelfAttentionConfig", "nn/self_attention.hpp") +
         declared("CachedAttentionConfig", "nn/cached_attention.hpp") +
         declared("CrossAttentionConfig", "nn/cross_attention.hpp") +
         declared("PlainAttentionOptions", "nn/plain_attention.hpp") +
         declared("LocalAttentionOptions", "nn/local_attention.hpp") +
         declared("AdaptiveConfig", "nn/adaptive_config.hpp") +
         section<infty::KnnConfig>("KnnConfig", "retrieval/knn_lm.hpp") +
         section<infty::ContinuousCacheConfig>("ContinuousCacheConfig",
                                               "retrieval/continuous_cache.hpp") +
         section<infty::EpisodicConfig>("EpisodicConfig", "lifelong/episodic_config.hpp") +
         declared("LearnerConfig", "lifelong/learner.hpp") +
         section<infty::SparseReplayConfig>("SparseReplayConfig",
                                            "lifelong/experience_replay.hpp") +
         section<infty::OnlineEwcConfig>("OnlineEwcConfig", "lifelong/online_ewc.hpp") +
         section<infty::LocalAdaptationConfig>("LocalAdaptationConfig",
                                               "lifelong/local_adaptation.hpp") +
         section<infty::MaskingConfig>("MaskingConfig", "lifelong/masking.hpp") +
         section<infty::Sampling>("Sampling", "nn/sampling.hpp") +
         section<infty::BeamSearchConfig>("BeamSearchConfig", "nn/beam_search.hpp") +
         section<infty::AdamConfig>("AdamConfig", "train/adam_config.hpp") +
         declared("TrainStepConfig", "train/train_step.hpp") +
         section<infty::TrainerConfig>("TrainerConfig", "train/trainer_config.hpp") +
         declared("TrainerRun", "train/trainer_run.hpp") +
         declared("CosineSchedule", "train/schedule.hpp") +
         declared("LinearSchedule", "train/schedule.hpp") +
         declared("ConstantSchedule", "train/schedule.hpp") +
         declared("Gpt2SaveOptions", "model/gpt2_files.hpp") +
         declared("LoadOptions", "train/load_report.hpp") +
         declared("BatchConfig", "data/batch_stream.hpp") +
         declared("VocabularyConfig", "data/vocabulary.hpp") +
         declared("BytePairConfig", "data/byte_pair_learning.hpp") +
         declared("RougeConfig", "metrics/rouge.hpp") +
         declared("MeteorConfig", "metrics/meteor.hpp") +
         declared("SortingConfig", "data/sorting.hpp") + declared("CopyConfig", "data/copy.hpp") +
         declared("AssociativeRecallConfig", "data/associative_recall.hpp") +
         declared("MultiQueryRecallConfig", "data/multi_query_recall.hpp") +
         declared("NeedleConfig", "data/needle.hpp") +
         declared("TranslationConfig", "data/translation.hpp") +
         declared("RidgeSettings", "signal/ridge_settings.hpp");
}

}  // namespace

TEMPLATE_TEST_CASE("settings: every field of a configuration is described, once", "",
                   infty::TransformerConfig, infty::LongTermConfig, infty::ShortTermConfig,
                   infty::InftyConfig, infty::CompressiveConfig, infty::CompressiveCausalConfig,
                   infty::LaMemoConfig, infty::AdamConfig, infty::TrainerConfig, infty::Sampling,
                   infty::BeamSearchConfig, infty::MemSizerConfig, infty::MemSizerLayerConfig,
                   infty::ProductKeyConfig, infty::MemorizingConfig, infty::TitansConfig,
                   infty::EngramConfig, infty::LinearAttentionConfig, infty::DeltaNetConfig,
                   infty::GatedDeltaNetConfig, infty::InfiniConfig, infty::AssociativeConfig,
                   infty::SlotMaps, infty::SlotConfig, infty::GruSlotConfig, infty::JointSlotConfig,
                   infty::MemoryTokensConfig, infty::RecurrentTokensConfig,
                   infty::MemoryEncoderConfig, infty::Gpt2Config, infty::SlidingWindowConfig,
                   infty::KnnConfig, infty::ContinuousCacheConfig, infty::IndexConfig,
                   infty::EpisodicConfig, infty::SparseReplayConfig, infty::OnlineEwcConfig,
                   infty::LocalAdaptationConfig, infty::MaskingConfig,
                   infty::MixedConfig<infty::LongTermConfig>) {
  CHECK(settings_of<TestType>() + unsaid<TestType> == fields_of<TestType>());
  CHECK(distinct<TestType>());
  CHECK(in_order<TestType>());
}

TEST_CASE("settings: what is there of a memory and a long-term memory") {
  infty::InftyConfig config;
  config.memory->tau = .25;
  CHECK(infty::settings_json(config).find("\"tau\":0.25") != std::string::npos);
  config.memory.reset();
  CHECK(infty::settings_json(config) ==
        R"({"attention":{"capacity":1024,"stride":0},"memory":null,"normed":true})");
}

TEST_CASE("settings: what is no number in JSON is a text there") {
  for (const auto& [value, said] : {std::pair{infty::math::infinity<double>, "\"inf\""},
                                    {-infty::math::infinity<double>, "\"-inf\""},
                                    {std::nan(""), "\"nan\""},
                                    {.5, "0.5"}}) {
    infty::TrainerConfig config;
    config.max_norm = value;
    const std::string json = infty::settings_json(config);
    CAPTURE(json);
    CHECK(json.find(std::string("\"max_norm\":") + said) != std::string::npos);
    infty::require_same_settings(json, json, "here");  // which reads it
  }
}

TEST_CASE("settings: of each part of a mixture") {
  const auto mixed = infty::mixed_config(infty::LongTermConfig{},
                                         {infty::FixedContraction{.6}, infty::FixedContraction{.9}},
                                         infty::MixedReading::gate);
  const std::string json = infty::settings_json(mixed);
  CHECK(json.find(R"("reading":"gate","parts":[{)") != std::string::npos);
  CHECK(json.find("\"tau\":0.6") < json.find("\"tau\":0.9"));
  CHECK(json.find("\"tau\":0.9") != std::string::npos);
}

TEST_CASE("settings: a uniform memory's are its signal's and its own") {
  using Uniform = infty::UniformConfig<infty::LongTermConfig>;
  CHECK(settings_of<Uniform>() == settings_of<infty::LongTermConfig>() + 3);
  CHECK(distinct<Uniform>());
  CHECK(in_order<Uniform>());
  Uniform config;
  config.power = 2;
  config.block = 8;
  const std::string said = infty::settings_json(config);
  CHECK(said.find("\"power\":2") != std::string::npos);
  CHECK(said.find("\"block\":8") != std::string::npos);
}

TEST_CASE("settings: a Memformer's, with an attention that has settings and one that has none") {
  const infty::SlotConfig slots{.slots = 7};
  const std::string of_slots = infty::settings_json(slots);
  infty::MemformerConfig<infty::NoMemoryConfig, infty::SlotConfig> plain{.slots = slots};
  CHECK(infty::settings_json(plain) == R"({"slots":)" + of_slots + "}");
  infty::MemformerConfig<infty::ShortTermConfig, infty::SlotConfig> xl{{.capacity = 3}, slots};
  CHECK(infty::settings_json(xl) ==
        R"({"attention":{"capacity":3,"stride":0},"slots":)" + of_slots + "}");
}

TEST_CASE("settings: the names of values are theirs") {
  CHECK(infty::name_of(infty::DensityParameters::moments) == "moments");
  CHECK(infty::name_of(infty::Resampling::sticky_quantiles) == "sticky_quantiles");
  CHECK(infty::name_of(infty::LastCell::open) == "open");
  CHECK(infty::name_of(infty::MixedReading::gate) == "gate");
  CHECK(infty::name_of(infty::Waiting::left_out) == "left_out");
  CHECK(infty::name_of(infty::Compression::most_used) == "most_used");
  CHECK(infty::name_of(infty::ReconstructionLoss::auto_encoding) == "auto_encoding");
  CHECK(infty::name_of(infty::LaMemoPositions::transformer_xl) == "transformer_xl");
  CHECK(infty::name_of(infty::ProductKeyOutput::silu_gated) == "silu_gated");
  CHECK(infty::name_of(infty::FeatureMap::elu_plus_one) == "elu_plus_one");
  CHECK(infty::name_of(infty::WriteRule::score) == "score");
  CHECK(infty::name_of(infty::Replacement::oldest) == "oldest");
  CHECK(infty::name_of(infty::RateSchedule::constant) == "constant");
  CHECK(infty::name_of(infty::RateSchedule::linear) == "linear");
}

// INFTY_WRITE_DOCS=1 writes the page instead.
TEST_CASE("settings: docs/configuration.md is made of these lists") {
  const fs::path path = root_of_tree / "docs/configuration.md";
  if (std::getenv("INFTY_WRITE_DOCS")) std::ofstream(path) << page();
  std::ostringstream there;
  there << std::ifstream(path).rdbuf();
  CHECK(there.str() == page());
}

TEST_CASE("settings: docs/configuration.md has every configuration of the library") {
  const std::regex config(R"(^struct (\w+(?:Config|Settings|Options|Schedule|Sizes)) \{$)");
  const std::string there = page();
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_of_tree / "include/infty")) {
    if (entry.path().extension() != ".hpp") continue;
    for (const auto& line : lines_of_header(entry.path()))
      if (std::smatch match; std::regex_match(line, match, config)) {
        INFO(entry.path() << ": " << match[1]);
        CHECK(there.find("\n## " + match[1].str() + "\n") != std::string::npos);
        ++found;
      }
  }
  CHECK(found >= 20);
}
