// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/gpt2_files.hpp>

#include "io/comma_locale.hpp"
#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace gpt2_files {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using infty::Index;
using infty::IoError;
using infty::SafetensorsFile;
using infty::SafetensorsWriter;
using infty::Shape;
using infty::tests::read_text;
using infty::tests::TemporaryFolder;
using infty::tests::write_text;
using Attention = infty::CachedAttention<float>;

const fs::path models = fs::path(INFTY_TEST_DATA) / "golden/gpt2";

/// Copies the tensors of a file; `change(name, shape, values)` may change or refuse them.
template <class Change>
void copy_weights(const fs::path& from, const fs::path& to, Change change) {
  const SafetensorsFile file(from);
  SafetensorsWriter writer;
  for (std::string name : file.names()) {
    if (!infty::dtype_is_float(file.dtype(name))) continue;  // a causal mask
    Shape shape = file.shape(name);
    auto values = file.read<float>(name);
    if (change(name, shape, values)) writer.add(name, shape, values);
  }
  writer.save(to);
}

/// A folder of a golden model, its config.json with one text replaced.
void copy_config(const std::string& name, const fs::path& to, const std::string& old = "",
                 const std::string& now = "") {
  std::string text = read_text(models / name / "config.json");
  const auto at = text.find(old);
  REQUIRE(at != text.npos);
  text.replace(at, old.size(), now);
  write_text(to / "config.json", text);
}

template <class Mixer>
std::vector<typename Mixer::Scalar> logits(const infty::Gpt2<Mixer>& model) {
  auto state = model.make_state(2);
  const auto ids = infty::Tensor<Index>::from(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  return model.logits(model.forward(state, ids)).value().to_vector();
}

/// Why a folder is refused.
void refused(const fs::path& folder, const std::string& why, const std::string& also = "") {
  CHECK_THROWS_AS(infty::load_gpt2<Attention>(folder), IoError);
  CHECK_THROWS_WITH(infty::load_gpt2<Attention>(folder), Contains(why) && Contains(also));
}

}  // namespace gpt2_files

using namespace gpt2_files;

TEST_CASE(
    "load_gpt2, save_gpt2: what is written has the names, shapes and numbers of the original") {
  const std::string name = GENERATE("gpt2_tied.saved", "gpt2_untied.saved");
  const auto model = infty::load_gpt2<Attention>(models / name);
  const TemporaryFolder folder;
  infty::save_gpt2(folder.path(), model);
  const SafetensorsFile ours(folder / "model.safetensors"),
      theirs(models / name / "model.safetensors");
  REQUIRE(ours.names() == theirs.names());
  for (const auto& tensor : ours.names()) {
    CHECK(ours.shape(tensor) == theirs.shape(tensor));
    CHECK(ours.read_bytes(tensor) == theirs.read_bytes(tensor));
  }
  CHECK(ours.metadata("format") == "pt");
  // What of theirs is about the model is in ours, too.
  std::map<std::string, std::string> written;
  const auto members = [](const fs::path& path) {
    return infty::detail::json_members(read_text(path), path.string());
  };
  for (const auto& [key, value] : members(folder / "config.json")) written[key] = value;
  std::size_t same = 0;
  for (const auto& [key, value] : members(models / name / "config.json"))
    if (written.contains(key)) {
      const auto without_space = [](std::string text) {
        std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
        return text;
      };
      CHECK(without_space(written[key]) == without_space(value));
      ++same;
    }
  CHECK(same == written.size());
  CHECK(logits(infty::load_gpt2<Attention>(folder.path())) == logits(model));
}

TEST_CASE("save_gpt2: shards with an index, and what was saved before is gone") {
  const auto model = infty::load_gpt2<Attention>(models / "gpt2_untied.saved");
  const TemporaryFolder folder;
  infty::save_gpt2(folder.path(), model, {.shard_bytes = 700});
  infty::save_gpt2(folder.path(), model, {.shard_bytes = 5000});
  CHECK_FALSE(fs::exists(folder / "model.safetensors"));
  std::size_t files = 0, tensors = 0;
  Index numbers = 0;
  for (const auto& entry : fs::directory_iterator(folder.path()))
    if (entry.path().extension() == ".safetensors") {
      ++files;
      const SafetensorsFile shard(entry.path());
      for (const auto& tensor : shard.tensors()) {
        ++tensors;
        numbers += tensor.second.shape.size();
      }
      CHECK(fs::file_size(entry.path()) < 8000);
    }
  CHECK(files == 4);
  CHECK(tensors == 41);
  CHECK_THAT(read_text(folder / "model.safetensors.index.json"),
             Contains("\"total_size\": " + std::to_string(4 * numbers) + "\n"));
  CHECK(logits(infty::load_gpt2<Attention>(folder.path())) == logits(model));
  infty::save_gpt2(folder.path(), model);
  CHECK_FALSE(fs::exists(folder / "model.safetensors.index.json"));
  CHECK_FALSE(fs::exists(folder / "model-00001-of-00004.safetensors"));
  CHECK(logits(infty::load_gpt2<Attention>(folder.path())) == logits(model));
}

TEST_CASE("save_gpt2: a model that was moved from is refused before anything is written") {
  auto model = infty::load_gpt2<Attention>(models / "gpt2_untied.saved");
  const auto taken = std::move(model);
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(infty::save_gpt2(folder.path(), model),
                    "[save_gpt2] the model's parameters are not there: it was moved from");
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("load_gpt2: half precision of both kinds") {
  const bool brain = GENERATE(true, false);
  const auto whole = infty::load_gpt2<Attention>(models / "gpt2_tied.saved");
  const TemporaryFolder folder;
  copy_config("gpt2_tied.saved", folder.path());
  const SafetensorsFile file(models / "gpt2_tied.saved/model.safetensors");
  SafetensorsWriter writer;
  std::map<std::string, std::vector<float>> rounded;
  for (const std::string& name : file.names()) {
    std::vector<std::uint16_t> halves;
    for (const float x : file.read<float>(name)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &x, sizeof bits);
      // Cut off, which is a number of either type; F16 has five bits of exponent.
      const auto exponent = static_cast<int>(bits >> 23U & 255U) - 127 + 15;
      const std::uint32_t sign = bits >> 16U & 0x8000U;
      const std::uint32_t half =
          exponent <= 0
              ? sign
              : sign | static_cast<std::uint32_t>(exponent) << 10U | (bits >> 13U & 1023U);
      halves.push_back(static_cast<std::uint16_t>(brain ? bits >> 16U : half));
      const std::uint16_t stored = halves.back();
      rounded[name].push_back(brain ? static_cast<float>(infty::BFloat16::from_bits(stored))
                                    : static_cast<float>(infty::detail::Float16{stored}));
    }
    writer.add_bytes(name, brain ? infty::DType::BF16 : infty::DType::F16, file.shape(name),
                     std::as_bytes(std::span<const std::uint16_t>(halves)));
  }
  writer.save(folder / "model.safetensors");
  const auto model = infty::load_gpt2<Attention>(folder.path());
  const TemporaryFolder again;
  infty::save_gpt2(again.path(), model);
  const SafetensorsFile read(again / "model.safetensors");
  for (const auto& [name, values] : rounded) CHECK(read.read<float>(name) == values);
  CHECK(logits(model) != logits(whole));
}

TEST_CASE("load_gpt2: a memory beside the attention comes back with the model") {
  using Mixer = infty::WithMemory<infty::CausalAttention<float>, infty::LongTermMemory<float>>;
  const typename Mixer::Config config{.memory = infty::LongTermConfig{.basis = 8}};
  const auto plain = infty::load_gpt2<infty::CausalAttention<float>>(models / "gpt2_tied.body");
  const auto model = infty::load_gpt2<Mixer>(models / "gpt2_tied.body", config, infty::Random(3));
  CHECK(logits(model) == logits(plain));  // nothing is remembered yet
  const TemporaryFolder folder;
  infty::save_gpt2(folder.path(), model);
  const SafetensorsFile file(folder / "model.safetensors");
  CHECK(file.names().size() == 28);
  const auto read = [&](const auto& from) {
    auto state = from.make_state(1);
    const auto ids = infty::Tensor<Index>::from(Shape{1, 4}, {1, 2, 3, 4});
    from.forward(state, ids);
    return from.logits(from.forward(state, ids)).value().to_vector();
  };
  CHECK(read(infty::load_gpt2<Mixer>(folder.path(), config)) == read(model));
  CHECK(read(infty::load_gpt2<Mixer>(models / "gpt2_tied.body", config)) != read(model));
  copy_weights(folder / "memory.safetensors", folder / "memory.safetensors",
               [](const auto&, Shape&, std::vector<float>& values) {
                 values.back() = std::numeric_limits<float>::infinity();
                 return true;
               });
  CHECK_THROWS_WITH(infty::load_gpt2<Mixer>(folder.path(), config),
                    Contains("memory.safetensors: tensor '") && Contains("holds NaN or infinity"));
  // As Hugging Face's programs do, without the memory.
  CHECK(logits(infty::load_gpt2<Attention>(folder.path())) == logits(plain));
  infty::save_gpt2(folder.path(), plain);
  CHECK_FALSE(fs::exists(folder / "memory.safetensors"));
}

TEST_CASE("load_gpt2, save_gpt2: each of the three dropouts by its own name") {
  const TemporaryFolder from, to;
  std::string text = read_text(models / "gpt2_tied.saved/config.json");
  const auto put = [&](const std::string& name, const std::string& value) {
    const auto at = text.find(name + "\": ");
    REQUIRE(at != text.npos);
    const auto begin = at + name.size() + 3;
    text.replace(begin, text.find_first_of(",\n", begin) - begin, value);
  };
  put("attn_pdrop", "0.3");
  put("embd_pdrop", "0.2");
  put("resid_pdrop", "0.15");
  write_text(from / "config.json", text);
  fs::copy(models / "gpt2_tied.saved/model.safetensors", from.path());
  const auto model = infty::load_gpt2<Attention>(from.path());
  CHECK(model.config().attention_dropout == .3);
  CHECK(model.config().embedding_dropout == .2);
  CHECK(model.config().dropout == .15);
  infty::save_gpt2(to.path(), model);
  const auto again = infty::read_gpt2_config(to / "config.json");
  CHECK(again.attention_dropout == .3);
  CHECK(again.embedding_dropout == .2);
  CHECK(again.dropout == .15);
  CHECK_THROWS_WITH((put("attn_pdrop", "1.0"), write_text(from / "config.json", text),
                     infty::load_gpt2<Attention>(from.path())),
                    Contains("attention_dropout is 1"));
}

TEST_CASE("read_gpt2_config: the same where numbers have a decimal comma") {
  const auto path = models / "gpt2_tied.saved/config.json";
  const auto before = infty::read_gpt2_config(path);
  CHECK(before.dropout > 0);
  CHECK(before.norm_epsilon > 0);
  const infty::tests::CommaLocale comma;
  INFO("the C library's: " << comma.name());
  const auto config = infty::read_gpt2_config(path);
  CHECK(config.dropout == before.dropout);
  CHECK(config.embedding_dropout == before.embedding_dropout);
  CHECK(config.attention_dropout == before.attention_dropout);
  CHECK(config.norm_epsilon == before.norm_epsilon);
  CHECK(infty::gpt2_config_json<float>(config) == infty::gpt2_config_json<float>(before));
}

TEST_CASE("load_gpt2: what is not implemented is refused by name") {
  const std::string name = "gpt2_tied.saved";
  const TemporaryFolder folder;
  fs::copy(models / name / "model.safetensors", folder.path());
  const auto with = [&](const char* old, const char* now, const char* why) {
    copy_config(name, folder.path(), old, now);
    refused(folder.path(), why, "config.json: '");
  };
  with("\"gelu_new\"", "\"relu\"", "'activation_function' is '\"relu\"'");
  with("\"scale_attn_weights\": true", "\"scale_attn_weights\": false",
       "'scale_attn_weights' is false");
  with("inverse_layer_idx\": false", "inverse_layer_idx\": true",
       "'scale_attn_by_inverse_layer_idx' is true");
  with("upcast_attn\": false", "upcast_attn\": true", "'reorder_and_upcast_attn' is true");
  with("cross_attention\": false", "cross_attention\": true", "'add_cross_attention' is true");
  with("\"gpt2\"", "\"gptj\"", "'model_type' is '\"gptj\"'");
  with("\"use_cache\"", "\"quantization_config\"", "'quantization_config' is there");
  with("\"n_embd\": 8,", "", "'n_embd' is missing");
  with("\"n_embd\": 8", "\"n_embd\": 8.5", "'n_embd' is '8.5', not an integer");
  with("\"n_embd\": 8", "\"n_embd\": 99999999999999999999", "not an integer");
  with("\"n_embd\"", "\"n_head\"", "'n_head' is there twice");
  with("1e-05", "\"small\"", "'layer_norm_epsilon' is");
  with("\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", "not a flag");
  with("\"n_inner\": null", "\"n_inner\": 0", "'n_inner' is 0");
  copy_config(name, folder.path(), "\"n_head\": 2", "\"n_head\": 3");
  refused(folder.path(), "heads must divide model_dim", "config.json");
  copy_config(name, folder.path(), "\"resid_pdrop\": 0.1", "\"resid_pdrop\": 1.5");
  refused(folder.path(), "dropout is 1.5", "config.json");
  copy_config(name, folder.path(), "\"embd_pdrop\": 0.1", "\"embd_pdrop\": -1");
  refused(folder.path(), "'embd_pdrop' is -1", "config.json");
  write_text(folder / "config.json", "{\"n_embd\": ");
  refused(folder.path(), "expected a value", "config.json");
  fs::remove(folder / "config.json");
  refused(folder.path(), "No such file", "config.json");
}

TEST_CASE("load_gpt2: sizes that the weights do not bear out are not allocated") {
  const TemporaryFolder folder;
  fs::copy(models / "gpt2_tied.saved/model.safetensors", folder.path());
  const auto with = [&](const char* old, const char* now, const char* why) {
    copy_config("gpt2_tied.saved", folder.path(), old, now);
    refused(folder.path(), why, "model.safetensors: tensor 'transformer.");
  };
  with("\"vocab_size\": 23", "\"vocab_size\": 1000000000000",
       "wte.weight' is [23, 8]: by config.json it must be [1000000000000, 8]");
  with("\"n_positions\": 16", "\"n_positions\": 4000000000000", "wpe.weight' is [16, 8]");
  with("\"n_layer\": 2", "\"n_layer\": 1000000000000", "h.2.ln_1.weight' is missing");
  with("\"n_layer\": 2", "\"n_layer\": 1", "h.1.attn.c_attn.bias' is none of a GPT-2");
  with("\"n_inner\": null", "\"n_inner\": 1000000000", "h.0.mlp.c_fc.weight' is [8, 32]");
}

TEST_CASE("load_gpt2: hostile weights are refused with the file and the tensor") {
  const TemporaryFolder folder;
  copy_config("gpt2_tied.saved", folder.path());
  const fs::path weights = folder / "model.safetensors",
                 original = models / "gpt2_tied.saved/model.safetensors";
  using Values = std::vector<float>;
  const auto with = [&](auto change, const char* why) {
    copy_weights(original, weights, change);
    refused(folder.path(), why, "model.safetensors: tensor '");
  };
  with([](const auto& name, Shape&, Values&) { return !name.ends_with("h.1.ln_2.bias"); },
       "'transformer.h.1.ln_2.bias' is missing");
  with(
      [](const auto& name, Shape& shape, Values&) {
        if (name.ends_with("h.0.attn.c_attn.weight")) shape = Shape{24, 8};
        return true;
      },
      "'transformer.h.0.attn.c_attn.weight' is [24, 8]: by config.json it must be [8, 24]");
  with(
      [](const auto& name, Shape&, Values& values) {
        if (name.ends_with("h.1.mlp.c_fc.weight"))
          values[17] = std::numeric_limits<float>::quiet_NaN();
        return true;
      },
      "'transformer.h.1.mlp.c_fc.weight' holds NaN or infinity, at element 17");
  with(
      [](const auto& name, Shape&, Values& values) {
        if (name.ends_with("wpe.weight")) values[3] = std::numeric_limits<float>::infinity();
        return true;
      },
      "'transformer.wpe.weight' holds NaN or infinity, at element 3");
  with(
      [](auto& name, Shape&, Values&) {
        if (name.ends_with("h.1.ln_2.bias")) name = "h.1.ln_2.bias";
        return true;
      },
      "'transformer.h.1.ln_2.bias' is missing");
  copy_weights(models / "gpt2_tied.v4/model.safetensors", weights,
               [](const auto& name, Shape&, Values& values) {
                 if (name == "lm_head.weight") values[0] += 1;
                 return true;
               });
  refused(folder.path(), "'lm_head.weight' is not the embedding", "model.safetensors");
  // Integers, and a model of another kind of head.
  {
    const SafetensorsFile file(original);
    SafetensorsWriter writer;
    for (const auto& name : file.names())
      if (name.ends_with("ln_f.bias"))
        writer.add(name, Shape{8}, std::vector<std::int32_t>(8));
      else
        writer.add_bytes(name, file.dtype(name), file.shape(name), file.read_bytes(name));
    writer.save(weights);
    refused(folder.path(), "'transformer.ln_f.bias' is I32");
    SafetensorsWriter other;
    for (const auto& name : file.names())
      other.add_bytes(name, file.dtype(name), file.shape(name), file.read_bytes(name));
    other.add("score.weight", Shape{2, 8}, std::vector<float>(16));
    other.save(weights);
    refused(folder.path(), "'score.weight' is none of a GPT-2 of these sizes");
  }
  const std::string bytes = read_text(original);
  write_text(weights, bytes.substr(0, bytes.size() - 1));
  refused(folder.path(), "runs past the end of the data", "model.safetensors");
  write_text(weights, bytes.substr(0, 100));
  refused(folder.path(), "model.safetensors: a header of");
  fs::remove(weights);
  refused(folder.path(), "No such file", "model.safetensors");
  // Untied, a head must be there.
  copy_config("gpt2_untied.saved", folder.path());
  copy_weights(models / "gpt2_untied.saved/model.safetensors", weights,
               [](const auto& name, Shape&, Values&) { return name != "lm_head.weight"; });
  refused(folder.path(), "tensor 'lm_head.weight' is missing", "model.safetensors");
}
