// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/number.hpp>
#include <infty/io/file.hpp>
#include <infty/io/safetensors_shards.hpp>
#include <infty/model/gpt2.hpp>
#include <infty/model/gpt2_config_file.hpp>
#include <infty/train/checkpoint.hpp>

// GPT-2 in Hugging Face's files: config.json, and model.safetensors or its shards. Linear layers
// are stored [in, out] there ("Conv1D"), and queries, keys and values as one.

namespace infty {

/// How `save_gpt2` writes.
struct Gpt2SaveOptions {
  /// Bytes of weights in a file; a model of more is written as shards with an index. 0: one file.
  std::uint64_t shard_bytes = 0;
};

namespace detail {

/// Calls see(name, shape) for all tensors that GPT-2's body has in a file, until it returns false.
template <class See>
void each_gpt2_tensor(const Gpt2Config& config, See&& see) {
  const Index d = config.model_dim, inner = config.resolved_feed_forward();
  if (!see("wte.weight", Shape{config.vocabulary, d}) ||
      !see("wpe.weight", Shape{config.places, d}))
    return;
  for (Index i = 0; i < config.layers; ++i) {
    const std::string block = "h." + std::to_string(i) + '.';
    const auto both = [&](const char* name, const Shape& weight, Index bias) {
      return see(block + name + ".weight", weight) && see(block + name + ".bias", Shape{bias});
    };
    if (!both("ln_1", Shape{d}, d) || !both("attn.c_attn", Shape{d, 3 * d}, 3 * d) ||
        !both("attn.c_proj", Shape{d, d}, d) || !both("ln_2", Shape{d}, d) ||
        !both("mlp.c_fc", Shape{d, inner}, inner) || !both("mlp.c_proj", Shape{inner, d}, d))
      return;
  }
  if (see("ln_f.weight", Shape{d})) see("ln_f.bias", Shape{d});
}

/// The parameters of a model in the order of `each_gpt2_tensor`: one each, or queries, keys and
/// values, whose rows lie one below the other, turned if `turned`.
template <class V>
struct Gpt2Parameters {
  std::vector<V> parts;
  bool turned = false;
};

template <class Mixer>
auto gpt2_parameters(const Gpt2<Mixer>& model) {
  using V = typename Gpt2<Mixer>::V;
  const auto& [places, blocks, norm] = model.stack().layers;
  std::vector<Gpt2Parameters<V>> all{{{model.embedding.weight}}, {{places.places.weight}}};
  const auto add = [&](const std::vector<V>& some) {
    for (const V& x : some) all.push_back({{x}});
  };
  for (const auto& block : blocks.layers) {
    const auto& maps = attention_maps(block.mixer);
    add({block.mixer_norm.weight, block.mixer_norm.bias});
    all.push_back({{maps.query.weight, maps.key.weight, maps.value.weight}, true});
    all.push_back({{maps.query.bias, maps.key.bias, maps.value.bias}});
    all.push_back({{maps.out.weight}, true});
    add({maps.out.bias, block.feed_norm.weight, block.feed_norm.bias});
    all.push_back({{block.feed.inner.weight}, true});
    all.push_back({{block.feed.inner.bias}});
    all.push_back({{block.feed.outer.weight}, true});
    all.push_back({{block.feed.outer.bias}});
  }
  add({norm.weight, norm.bias});
  return all;
}

/// A matrix [rows, columns] turned, in tiles that a cache holds.
template <class T>
std::vector<T> turned(const std::vector<T>& x, std::size_t rows, std::size_t columns) {
  constexpr std::size_t tile = 32;
  std::vector<T> out(x.size());
  for (std::size_t begin = 0; begin < rows; begin += tile)
    for (std::size_t from = 0; from < columns; from += tile)
      for (std::size_t i = begin; i < (std::min)(rows, begin + tile); ++i)
        for (std::size_t j = from; j < (std::min)(columns, from + tile); ++j)
          out[j * rows + i] = x[i * columns + j];
  return out;
}

/// The files of a model, and what they have in front of the names.
class Gpt2Weights {
 public:
  explicit Gpt2Weights(const std::filesystem::path& folder)
      : shards_(folder), prefix_(shards_.has("transformer.wte.weight") ? "transformer." : "") {}

  /// Checks names and shapes against the sizes, before anything is allocated for these.
  /// @throws infty::IoError that names the first tensor that is missing, of another shape, not of
  /// floating-point numbers, or none of a GPT-2's
  void check(const Gpt2Config& config) const {
    std::set<std::string, std::less<>> known;
    each_gpt2_tensor(config, [&](const std::string& name, const Shape& shape) {
      require_tensor(prefix_ + name, shape);
      known.insert(prefix_ + name);
      return true;
    });
    if (!config.tie_embedding || shards_.has(head)) {
      require_tensor(head, Shape{config.vocabulary, config.model_dim});
      known.insert(head);
    }
    for (const std::string& name : shards_.names())
      if (!known.contains(name) && !is_mask(name, config.layers))
        fail(name, "is none of a GPT-2 of these sizes (config.json)");
    // A copy of the embedding, which some versions wrote.
    if (config.tie_embedding && shards_.has(head) && !same(head, prefix_ + "wte.weight"))
      fail(head, "is not the embedding, and config.json says that they are tied");
  }

  /// Reads a tensor. @throws infty::IoError, for NaN and infinity, too
  template <class T>
  std::vector<T> read(const std::string& name) const {
    auto values = shards_.file_of(name).read<T>(name);
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!math::is_finite(values[i])) fail(name, "holds NaN or infinity, at element ", i);
    return values;
  }

  /// Reads into the parameters of a model of sizes that were checked.
  template <class Mixer>
  void read_into(Gpt2<Mixer>& model) const {
    const auto all = gpt2_parameters(model);
    auto at = all.begin();
    each_gpt2_tensor(model.config(), [&](const std::string& name, const Shape& shape) {
      put(prefix_ + name, shape, *at++);
      return true;
    });
    if (!model.config().tie_embedding)
      put(head, model.head.weight.shape(),
          Gpt2Parameters<typename Gpt2<Mixer>::V>{{model.head.weight}});
  }

  static constexpr const char* head = "lm_head.weight";

 private:
  template <class... Parts>
  [[noreturn]] void fail(std::string_view name, const Parts&... parts) const {
    const auto& path = shards_.has(name) ? shards_.file_of(name).path() : shards_.path();
    raise<IoError>("gpt2", path.string(), ": tensor ", printable(name), ' ', parts...);
  }

  void require_tensor(const std::string& name, const Shape& shape) const {
    if (!shards_.has(name)) fail(name, "is missing");
    const SafetensorsFile& file = shards_.file_of(name);
    if (!(file.shape(name) == shape))
      fail(name, "is ", file.shape(name), ": by config.json it must be ", shape);
    if (!dtype_is_float(file.dtype(name)))
      fail(name, "is ", dtype_name(file.dtype(name)), ": it must be of floating-point numbers");
  }

  /// Whether two tensors are equal.
  bool same(const std::string& a, const std::string& b) const {
    const SafetensorsFile &of_a = shards_.file_of(a), &of_b = shards_.file_of(b);
    if (of_a.dtype(a) == of_b.dtype(b)) return of_a.read_bytes(a) == of_b.read_bytes(b);
    return read<double>(a) == read<double>(b);
  }

  /// Whether this is the causal mask of a layer, or the other constant that older versions wrote.
  bool is_mask(std::string_view name, Index layers) const {
    const std::string block = prefix_ + "h.";
    if (!name.starts_with(block)) return false;
    name.remove_prefix(block.size());
    const std::size_t dot = name.find('.');
    const std::string_view number = name.substr(0, dot);
    if (dot == name.npos || number.empty() || number.size() > 9 ||
        number.find_first_not_of("0123456789") != number.npos)
      return false;
    name.remove_prefix(dot);
    return std::stoll(std::string(number)) < layers &&
           (name == ".attn.bias" || name == ".attn.masked_bias");
  }

  template <class V>
  void put(const std::string& name, const Shape& shape, const Gpt2Parameters<V>& to) const {
    auto values = read<typename V::Scalar>(name);
    if (to.turned)
      values =
          turned(values, static_cast<std::size_t>(shape[0]), static_cast<std::size_t>(shape[1]));
    const auto* from = values.data();
    for (V part : to.parts) {
      V::BackendType::from_host(part.value().data(), from, part.size());
      from += part.size();
    }
  }

  SafetensorsShards shards_;
  std::string prefix_;
};

/// Those parameters of a model that are not GPT-2's own, but those of what stands beside: a layer.
template <class Mixer>
struct BesideGpt2 {
  using V = typename Gpt2<Mixer>::V;
  std::vector<std::pair<std::string, V>> all;

  explicit BesideGpt2(const Gpt2<Mixer>& model) {
    std::set<const void*> own{model.head.weight.identity()};
    for (const auto& tensor : gpt2_parameters(model))
      for (const V& part : tensor.parts) own.insert(part.identity());
    for_each_parameter(model, [&](const std::string& name, const V& parameter) {
      if (!own.contains(parameter.identity())) all.emplace_back(name, parameter);
    });
  }
  template <class Visitor>
  void visit(Visitor&& see) {
    for (auto& [name, parameter] : all) see(name, parameter);
  }
};

}  // namespace detail

/// Makes a GPT-2 of a folder with `config.json` and `model.safetensors`, or shards with their
/// index, as Hugging Face's programs write and read them: with "transformer." in front of the names
/// or without, with causal masks or without, tied or not, in F64, F32, F16 or BF16. Parameters of a
/// memory beside the attention are those of `memory.safetensors`, where `save_gpt2` has written
/// that, else fresh.
///
///     auto model = load_gpt2<CachedAttention<float>>("gpt2");
///
/// @param memory  of the mixer  @param random  draws the parameters that no file has
/// @param change  called as change(Gpt2Config&): sets what config.json does not say, or another
///                dropout than it does; the sizes must stay those of the files
/// @throws infty::IoError that names the file and the tensor or member: for what is missing, cut
/// short, of other shapes than `config.json` says, NaN or infinite, or not implemented. What a file
/// merely claims is not allocated.
template <class Mixer>
Gpt2<Mixer> load_gpt2(const std::filesystem::path& folder, typename Mixer::Config memory = {},
                      Random random = Random(0),
                      const std::function<void(Gpt2Config&)>& change = {}) {
  Gpt2Config config = read_gpt2_config(folder / "config.json");
  if (change) change(config);
  const detail::Gpt2Weights weights(folder);
  weights.check(config);
  // Where the files give all parameters, drawing them first would take longer than reading.
  std::optional<detail::WithoutDraws> guard;
  if constexpr (detail::is_gpt2_attention<Mixer>) guard.emplace();
  Gpt2<Mixer> model(config, memory, random);
  guard.reset();
  weights.read_into(model);
  detail::BesideGpt2<Mixer> beside(model);
  std::error_code ignored;
  const auto file = folder / detail::gpt2_memory_file;
  if (beside.all.empty() || !std::filesystem::exists(file, ignored)) return model;
  load_parameters(file, beside);
  for (const auto& [name, parameter] : beside.all)
    require<IoError>(detail::all_finite(parameter.value()), "gpt2", file.string(), ": tensor ",
                     detail::printable(name), " holds NaN or infinity");
  return model;
}

/// Writes a GPT-2 into a folder that is there: `config.json`, `model.safetensors` or shards with an
/// index, as Hugging Face's `save_pretrained`, and what a memory beside the attention has learned
/// to `memory.safetensors`. Each file is replaced when its new one is complete, `config.json` last.
/// @throws infty::ValueError for a model that was moved from; infty::IoError for a full disk, say
template <class Mixer>
void save_gpt2(const std::filesystem::path& folder, const Gpt2<Mixer>& model,
               Gpt2SaveOptions options = {}) {
  using V = typename Gpt2<Mixer>::V;
  using T = typename V::Scalar;
  std::vector<ShardedTensor> tensors;
  using From = detail::Gpt2Parameters<V>;
  const auto add = [&](const std::string& name, const Shape& shape, const From& from) {
    tensors.push_back({name, static_cast<std::uint64_t>(shape.size()) * sizeof(T),
                       [name, shape, from](SafetensorsWriter& writer) {
                         std::vector<T> all;
                         for (const V& part : from.parts) {
                           const auto values = part.value().to_vector();
                           all.insert(all.end(), values.begin(), values.end());
                         }
                         if (from.turned)
                           all = detail::turned(all, static_cast<std::size_t>(shape[1]),
                                                static_cast<std::size_t>(shape[0]));
                         writer.add(name, shape, all);
                       }});
  };
  detail::require_parameters("save_gpt2", model);
  const auto all = detail::gpt2_parameters(model);
  auto at = all.begin();
  detail::each_gpt2_tensor(model.config(), [&](const std::string& name, const Shape& shape) {
    add("transformer." + name, shape, *at++);
    return true;
  });
  if (!model.config().tie_embedding)
    add(detail::Gpt2Weights::head, model.head.weight.shape(), {{model.head.weight}});
  save_shards(folder, "model", tensors, options.shard_bytes);
  const detail::BesideGpt2<Mixer> beside(model);
  std::error_code ignored;
  if (beside.all.empty())
    std::filesystem::remove(folder / detail::gpt2_memory_file, ignored);
  else
    save_parameters(folder / detail::gpt2_memory_file, beside);
  infty::detail::ReplacingFile file(folder / "config.json");
  const std::string text = gpt2_config_json<T>(model.config());
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace infty
