// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/io/safetensors.hpp>
#include <infty/train/checkpoint_renames.hpp>

#include "model.hpp"
#include "tokenizer.hpp"

namespace language_model {

/// A parameter's name without what stands around attention in some models: a memory beside it, or
/// decorators around the stack.
inline std::string bare_name(std::string name) {
  for (const auto& [around, plain] : {std::pair<std::string_view, std::string_view>{"inner.", ""},
                                      {"mixer.attention.", "mixer."}})
    for (auto at = name.find(around); at != std::string::npos; at = name.find(around, at))
      name.replace(at, around.size(), plain);
  return name;
}

/// What a model has of the one that it begins from.
struct Begun {
  std::size_t taken = 0;           ///< parameters
  std::vector<std::string> fresh;  ///< those that stay as they were drawn
};

/// Gives a model the parameters that the trained one in a folder has, under the same names but for
/// what stands around attention, and of the same shapes: such as a memory's model those of one
/// without. Throws infty::IoError where there is no such file, the vocabulary is another, or
/// nothing fits; then the model is as it was.
inline Begun begin_from(const std::filesystem::path& folder, const Tokenizer& tokenizer,
                        support::Model& model) {
  const infty::SafetensorsFile file(checkpoint_of(folder));
  const std::string path = file.path().string();
  infty::require<infty::IoError>(position_of(file).vocabulary == tokenizer.fingerprint(), "--from",
                                 path, " was trained with another vocabulary");
  const std::string prefix = "model.";
  std::map<std::string, std::string> by_bare_name;
  for (const auto& [name, entry] : file.tensors())
    if (name.starts_with(prefix)) by_bare_name.emplace(bare_name(name), name);
  Begun begun;
  std::vector<std::pair<infty::Variable<float>, infty::Tensor<float>>> read;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const std::string own = infty::stored_name(file, prefix + name);
    const auto found = by_bare_name.find(bare_name(own));
    const std::string there = file.has(own)                 ? own
                              : found == by_bare_name.end() ? ""
                                                            : found->second;
    if (!there.empty() && file.shape(there) == parameter.shape())
      read.emplace_back(parameter, file.tensor<float>(there));
    else
      begun.fresh.push_back(name);
  }
  infty::require<infty::IoError>(!read.empty(), "--from", path,
                                 " has no parameter of this model's names and shapes");
  for (auto& [parameter, value] : read) parameter.value().copy_from(value);
  begun.taken = read.size();
  return begun;
}

/// What is said of that: how much there is, and the beginning of what there is not.
inline std::string text_of(const Begun& begun, const std::string& folder) {
  constexpr std::size_t named = 4;
  std::string text = "begins with " + std::to_string(begun.taken) + " of " +
                     std::to_string(begun.taken + begun.fresh.size()) + " tensors from " + folder;
  for (std::size_t i = 0; i < std::min(named, begun.fresh.size()); ++i)
    text += (i == 0 ? "; new: " : ", ") + begun.fresh[i];
  return begun.fresh.size() > named ? text + ", ..." : text;
}

}  // namespace language_model
