// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>
#include <infty/io/settings.hpp>
#include <infty/model/gpt2_config.hpp>

namespace infty {

namespace detail {

/// The file in which a memory beside the attention is kept.
inline constexpr const char* gpt2_memory_file = "memory.safetensors";

/// The members of a `config.json`, asked for by name. What is wrong throws infty::IoError that
/// names the file and the member.
class Gpt2ConfigReader {
 public:
  explicit Gpt2ConfigReader(const std::filesystem::path& path) : where_(path.string()) {
    const MappedFile file(path);
    for (auto& [name, text] : json_members(file.text(), where_)) {
      const auto [at, is_new] = members_.try_emplace(std::move(name), std::move(text));
      if (!is_new) fail(at->first, "is there twice");
    }
  }

  /// The text of a member, nothing if it is not there or null.
  const std::string* find(const std::string& name) const {
    const auto at = members_.find(name);
    return at == members_.end() || at->second == "null" ? nullptr : &at->second;
  }

  template <class... Parts>
  [[noreturn]] void fail(const std::string& name, const Parts&... parts) const {
    raise<IoError>("gpt2", where_, ": ", printable(name), ' ', parts...);
  }

  /// A number that must be there, or may be missing if there is another to take.
  Index integer(const std::string& name, std::optional<Index> otherwise = {}) const {
    const std::string* const text = find(name);
    if (!text && otherwise) return *otherwise;
    if (!text) fail(name, "is missing");
    Index value = 0;
    const char* const end = text->data() + text->size();
    const auto [at, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc{} || at != end) fail(name, "is ", printable(*text), ", not an integer");
    return value;
  }

  double number(const std::string& name, double otherwise) const {
    const std::string* const text = find(name);
    if (!text) return otherwise;
    if (!is_number(*text)) fail(name, "is ", printable(*text), ", not a number");
    return number_of(*text);
  }

  bool flag(const std::string& name, bool otherwise) const {
    const std::string* const text = find(name);
    if (!text) return otherwise;
    if (*text != "true" && *text != "false") fail(name, "is ", printable(*text), ", not a flag");
    return *text == "true";
  }

  /// Refuses what the model would compute otherwise.
  void require_text(const std::string& name, std::string_view implemented) const {
    const std::string* const text = find(name);
    if (text && *text != to_json(implemented))
      fail(name, "is ", printable(*text), ": only ", printable(implemented), " is implemented");
  }
  void require_flag(const std::string& name, bool implemented) const {
    if (flag(name, implemented) != implemented)
      fail(name, "is ", implemented ? "false" : "true", ", which is not implemented");
  }
  void require_absent(const std::string& name) const {
    if (find(name)) fail(name, "is there, which is not implemented");
  }

 private:
  std::string where_;
  std::map<std::string, std::string> members_;
};

}  // namespace detail

/// Reads the sizes of a GPT-2 from a `config.json`, old or new. What says nothing of the model,
/// such as `n_ctx` and `summary_type`, is passed over.
/// @throws infty::IoError that names the file and the first member that is missing, makes no model,
/// or asks for what is not implemented
inline Gpt2Config read_gpt2_config(const std::filesystem::path& path) {
  const detail::Gpt2ConfigReader json(path);
  json.require_text("model_type", "gpt2");
  json.require_text("activation_function", "gelu_new");
  json.require_flag("scale_attn_weights", true);
  json.require_flag("scale_attn_by_inverse_layer_idx", false);
  json.require_flag("reorder_and_upcast_attn", false);
  json.require_flag("add_cross_attention", false);
  json.require_absent("quantization_config");
  Gpt2Config config;
  config.vocabulary = json.integer("vocab_size");
  config.places = json.integer("n_positions");
  config.model_dim = json.integer("n_embd");
  config.layers = json.integer("n_layer");
  config.heads = json.integer("n_head");
  config.feed_forward = json.integer("n_inner", 0);
  if (json.find("n_inner") && config.feed_forward < 1)
    json.fail("n_inner", "is ", config.feed_forward, ": it must be at least 1, or null");
  config.norm_epsilon = json.number("layer_norm_epsilon", 1e-5);
  config.tie_embedding = json.flag("tie_word_embeddings", true);
  config.dropout = json.number("resid_pdrop", .1);
  config.embedding_dropout = json.number("embd_pdrop", .1);
  if (config.embedding_dropout < 0)
    json.fail("embd_pdrop", "is ", config.embedding_dropout, ": it must lie in [0, 1)");
  config.attention_dropout = json.number("attn_pdrop", .1);
  // What some configurations copy from a larger vocabulary is none of this one.
  const auto token = [&](const std::string& name) {
    const std::string* const text = json.find(name);
    const Index id = text && text->front() != '[' ? json.integer(name) : -1;
    return id >= 0 && id < config.vocabulary ? id : -1;
  };
  config.begin_token = token("bos_token_id");
  config.end_token = token("eos_token_id");
  detail::explained<Error>(
      [&] { config.validate(); },
      [&](const char* what) { raise<IoError>("gpt2", path.string(), ": ", what); });
  return config;
}

/// Writes the `config.json` of a GPT-2 as Hugging Face's programs do. @tparam T  the weights'
/// scalar
template <class T>
std::string gpt2_config_json(const Gpt2Config& config) {
  std::string out = "{\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    out += (out.size() > 2 ? ",\n  " : "  ") + detail::to_json(name) + ": " + value;
  };
  const auto token = [](Index id) { return id < 0 ? std::string("null") : settings_json(id); };
  line("activation_function", "\"gelu_new\"");
  line("add_cross_attention", "false");
  line("architectures", "[\n    \"GPT2LMHeadModel\"\n  ]");
  line("attn_pdrop", settings_json(config.attention_dropout));
  line("bos_token_id", token(config.begin_token));
  line("dtype", std::is_same_v<T, float> ? "\"float32\"" : "\"float64\"");
  line("embd_pdrop", settings_json(config.resolved_embedding_dropout()));
  line("eos_token_id", token(config.end_token));
  line("initializer_range", "0.02");
  line("layer_norm_epsilon", settings_json(config.norm_epsilon));
  line("model_type", "\"gpt2\"");
  line("n_embd", settings_json(config.model_dim));
  line("n_head", settings_json(config.heads));
  line("n_inner", config.feed_forward > 0 ? settings_json(config.feed_forward) : "null");
  line("n_layer", settings_json(config.layers));
  line("n_positions", settings_json(config.places));
  line("reorder_and_upcast_attn", "false");
  line("resid_pdrop", settings_json(config.dropout));
  line("scale_attn_by_inverse_layer_idx", "false");
  line("scale_attn_weights", "true");
  line("tie_word_embeddings", config.tie_embedding ? "true" : "false");
  line("use_cache", "true");
  line("vocab_size", settings_json(config.vocabulary));
  return out + "\n}\n";
}

}  // namespace infty
