// SPDX-License-Identifier: MIT
#include <type_traits>
#include <vector>

#include <infty/model/presets.hpp>
#include <infty/model/presets/memformer.hpp>
#include <infty/model/presets/memorizing.hpp>
#include <infty/model/presets/memory_tokens.hpp>

#include "support/catch.hpp"

using namespace infty;

namespace {

std::vector<presets::Experiment> all_presets() {
  std::vector<presets::Experiment> all;
  for (const Index length : {4000, 8000, 16000}) all.push_back(presets::sorting(length));
  for (const bool sticky : {false, true}) {
    all.push_back(presets::wikitext103(sticky));
    all.push_back(presets::gpt2_wikitext103(sticky));
    all.push_back(presets::gpt2_pg19(sticky));
    all.push_back(presets::cmu_dog(sticky));
  }
  return all;
}

const LongTermConfig& memory_of(const presets::Experiment& e) { return *e.memory.memory; }

}  // namespace

TEST_CASE("presets: every one is a valid, complete configuration") {
  for (const auto& e : all_presets()) {
    CHECK_NOTHROW(e.model.validate());
    REQUIRE(e.memory.memory.has_value());
    CHECK_NOTHROW(e.memory.attention.validate());
    const LongTermConfig memory = e.memory.resolved_memory(e.model.attention_sizes());
    CHECK_NOTHROW(memory.validate());
    CHECK(memory.basis % static_cast<Index>(memory.widths.size()) == 0);
    CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
    CHECK(e.segment > 0);
    CHECK(e.batch > 0);
    CHECK((e.steps > 0) != (e.epochs > 0));
    CHECK(e.learning_rate > 0);
    CHECK(e.memory_learning_rate >= e.learning_rate);
    CHECK(e.max_norm > 0);
    CHECK(e.kl_weight > 0);
    CHECK(memory.gate);
  }
}

TEMPLATE_TEST_CASE("presets: those of the peers are valid, complete configurations", "",
                   ShortTermConfig, LaMemoConfig, CompressiveConfig) {
  std::vector<presets::ExperimentWith<TestType>> all;
  if constexpr (std::is_same_v<TestType, ShortTermConfig>)
    all = {presets::transformer_xl_wikitext103(), presets::transformer_xl_enwik8()};
  else if constexpr (std::is_same_v<TestType, LaMemoConfig>)
    all = {presets::lamemo_wikitext103(), presets::lamemo_enwik8(), presets::lamemo_text8()};
  else
    all = {presets::compressive_wikitext103(), presets::compressive_enwik8()};
  for (const auto& e : all) {
    CHECK_NOTHROW(e.model.validate());
    CHECK_NOTHROW(e.memory.validate());
    CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
    CHECK(e.model.cutoffs.empty() == (e.model.vocabulary < 20000));
    CHECK(e.memory.capacity >= e.segment);
    CHECK(e.batch > 0);
    CHECK(e.steps > e.warmup_steps);
    CHECK(e.learning_rate > 0);
    CHECK(e.max_norm > 0);
    CHECK(e.memory_learning_rate == 0);
    CHECK(e.kl_weight == 0);
  }
}

TEST_CASE(
    "presets: LaMemo's and the ∞-former's experiments are Transformer-XL's but for the memory") {
  const auto xl = presets::transformer_xl_wikitext103();
  const auto lamemo = presets::lamemo_wikitext103();
  const auto infty = presets::wikitext103();
  for (const auto& model : {lamemo.model, infty.model}) {
    CHECK(model.vocabulary == xl.model.vocabulary);
    CHECK(model.layers == xl.model.layers);
    CHECK(model.model_dim == xl.model.model_dim);
    CHECK(model.cutoffs == xl.model.cutoffs);
  }
  CHECK(lamemo.memory.capacity == xl.memory.capacity);
  CHECK(infty.memory.attention.capacity == xl.memory.capacity);
  CHECK(presets::lamemo_enwik8().model.layers == presets::transformer_xl_enwik8().model.layers);
  CHECK(presets::lamemo_text8().model.vocabulary == 27);
}

TEST_CASE("presets: sorting has the paper's lengths and no other") {
  for (const Index length : {4000, 8000, 16000}) {
    const auto e = presets::sorting(length);
    CHECK(e.length == length);
    CHECK(e.model.layers == 3);
    CHECK(e.model.heads == 6);
    CHECK(e.model.model_dim == 300);
    CHECK(e.model.feed_forward == 300);
    CHECK(e.memory.attention.capacity == 1024);
    CHECK_FALSE(e.model.tie_embedding);
    CHECK(memory_of(e).basis == 1024);
    CHECK(memory_of(e).widths == std::vector<double>{.01, .05});
    CHECK(memory_of(e).tau == 0.75);
    CHECK(memory_of(e).ridge == 1);
    CHECK(memory_of(e).variance_floor == 1e-6);
    CHECK(memory_of(e).resampling == Resampling::even);
    CHECK(memory_of(e).sigma0 == 0.05);
    CHECK(e.steps == 20000);
    CHECK(e.kl_weight == 1e-5);
  }
  CHECK(presets::sorting(8000).learning_rate == 2.5e-4);
  CHECK(presets::sorting(16000).learning_rate == 2e-4);
  CHECK_THROWS_AS(presets::sorting(512), ValueError);
}

TEST_CASE("presets: the GPT-2 programs differ from the sorting program where they say") {
  for (const auto& e : {presets::gpt2_wikitext103(), presets::gpt2_pg19(), presets::cmu_dog()}) {
    CHECK(e.model.layers == 12);
    CHECK(e.model.model_dim == 768);
    CHECK(e.memory.attention.capacity == 0);
    CHECK(e.model.pre_norm);
    CHECK(memory_of(e).basis == 512);
    CHECK(memory_of(e).widths == std::vector<double>{.005, .01});
    CHECK(memory_of(e).tau == 0.5);
    CHECK(memory_of(e).ridge == 0.5);
    CHECK(memory_of(e).variance_floor == 1e-4);
    CHECK(memory_of(e).sigma0 == 0.05);
    CHECK(memory_of(e).bins == 128);
    CHECK(e.decay == presets::Decay::linear);
  }
  CHECK(presets::gpt2_wikitext103().kl_weight == 1e-6);
  CHECK(memory_of(presets::gpt2_wikitext103()).threshold == 2048);
  CHECK(presets::cmu_dog().kl_weight == 1e-5);
  CHECK(memory_of(presets::cmu_dog()).threshold == 0);
  CHECK(presets::gpt2_wikitext103().epochs == 1);
  CHECK(presets::cmu_dog().epochs == 5);
}

TEST_CASE("presets: the model of WikiText-103 from nothing has the paper's constants") {
  const auto e = presets::wikitext103();  // [Martins et al. 2022, App. D]
  CHECK(e.model.layers == 16);
  CHECK(e.model.heads == 10);
  CHECK(e.model.model_dim == 410);
  CHECK(e.model.feed_forward == 2100);
  CHECK(e.memory.attention.capacity == 150);
  CHECK(memory_of(e).basis == 150);
  CHECK(memory_of(e).widths == std::vector<double>{.01, .05});
  CHECK(memory_of(e).tau == 0.5);
  CHECK(memory_of(e).sigma0 == 0.1);
  CHECK(memory_of(e).threshold == 900);
  CHECK(e.batch == 40);
  CHECK(e.steps == 250000);
  CHECK(e.learning_rate == 2.5e-4);
  CHECK(e.decay == presets::Decay::cosine);
  CHECK(e.kl_weight == 1e-5);
}

TEST_CASE("presets: LaMemo's trainings are as long as the paper says") {
  const auto words = presets::lamemo_wikitext103();  // [Ji et al. 2022, App. C.3]
  CHECK(words.batch == 64);
  CHECK(words.steps == 250000);
  for (const auto& e : {presets::lamemo_enwik8(), presets::lamemo_text8()}) {
    CHECK(e.batch == 40);
    CHECK(e.steps == 100000);
  }
}

TEST_CASE("presets: sticky memories are a choice") {
  CHECK(presets::wikitext103().model.cutoffs == std::vector<Index>{20000, 40000, 200000});
  CHECK(memory_of(presets::wikitext103(true)).resampling == Resampling::sticky);
  CHECK(memory_of(presets::wikitext103(false)).resampling == Resampling::even);
  CHECK(memory_of(presets::cmu_dog(false)).resampling == Resampling::even);
}

TEST_CASE("presets: the weight of the mean becomes the weight of the sum") {
  const auto e = presets::sorting(4000);  // batch 8, 6 heads
  CHECK(e.kl_weight_of_sum(100) == Approx(1e-5 / 4800).epsilon(1e-12));
  CHECK_THROWS_AS(e.kl_weight_of_sum(0), ValueError);
}

TEST_CASE("presets: the Memorizing Transformer's is a valid configuration at every size") {
  for (const Index capacity : {1536, 8192, 65536, 262144})
    for (const Index cache : {0, 512}) {
      const auto e = presets::memorizing_transformer(capacity, cache);
      CHECK_NOTHROW(e.model.validate());
      CHECK_NOTHROW(e.memory.validate());
      CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
      CHECK(e.memory.capacity == capacity);
      CHECK(e.memory.cache == cache);
      CHECK((presets::memorizing_layer >= 1 && presets::memorizing_layer <= e.model.layers));
    }
  CHECK_THROWS_AS(presets::memorizing_transformer(31), infty::ValueError);
}

TEST_CASE("presets: the Memformer's are valid configurations") {
  const auto e = presets::memformer_wikitext103();
  CHECK_NOTHROW(e.model.validate());
  CHECK_NOTHROW(e.memory.slots.validate());
  CHECK(e.model.heads * e.model.resolved_head_dim() == e.model.model_dim);
  CHECK_NOTHROW(presets::membart_base().validate());
}

TEST_CASE("presets: models with memory tokens are valid, and Transformer-XL's otherwise") {
  const auto check = [](const auto& e) {
    CHECK_NOTHROW(e.model.validate());
    CHECK_NOTHROW(e.memory.tokens.validate());
    CHECK_NOTHROW(e.memory.attention.validate());
    CHECK(e.memory.attention.capacity == 0);
    CHECK(e.model.layers == 16);
    CHECK(e.segment == 150);
  };
  check(presets::memory_transformer_wikitext103());
  check(presets::recurrent_memory_wikitext103());
}

TEST_CASE("presets: the Memory Transformer's translation is a MemCtrl or a MemBottleneck") {
  for (const auto encoding : {MemoryEncoding::control, MemoryEncoding::bottleneck}) {
    auto e = presets::memory_transformer_translation(encoding);
    CHECK_NOTHROW(e.model.validate());
    CHECK(e.model.encoder.layers == 6);
    CHECK(e.encoder.encoding == encoding);
    for (TransformerConfig* const side : {&e.model.encoder, &e.model.decoder}) {
      side->vocabulary = 9;  // quicker
      side->model_dim = 16;
      side->heads = 2;
      side->layers = 2;
      side->feed_forward = 8;
    }
    e.encoder.feed_forward = 8;
    Layers<MemoryEncoderLayer<float>> layers;
    for (std::uint64_t i = 0; i < 2; ++i)
      layers.layers.push_back({e.encoder, e.model.encoder.attention_sizes(), Random(i)});
    const EncoderDecoder model(
        e.model, MemoryTokens(std::move(layers), e.tokens, 16, Random(3)),
        decoder_layers<CachedAttention<float>>(e.model.decoder, {}, Random(4)), Random(5));
    auto state = model.make_state(1);
    Pass<float> pass;
    model.read(state, Sources<>::of({{1, 2, 3}}), pass);
    CHECK(model.decode(state, Tensor<Index>::zeros({1, 2}), pass).shape() == Shape{1, 2, 16});
  }
}
