// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/data/byte_pair_encoding.hpp>
#include <infty/io/mapped_file.hpp>

#include "../files.hpp"
#include "../fingerprint.hpp"

// What is in a model's folder beside the model: the encoding, and what tells folders apart.

namespace support::gpt2 {

using infty::TokenId;

/// The files that an encoding may have, in the order in which one is looked for.
inline constexpr std::array<const char*, 5> encoding_files{
    "tokenizer.json", "vocab.json", "merges.txt", "encoder.json", "vocab.bpe"};

/// Copies the files of an encoding from a folder to another one, which may be the same; what is
/// there of another encoding goes. Throws infty::IoError.
inline void copy_encoding(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  if (std::filesystem::equivalent(from, to, error)) return;
  for (const char* const name : encoding_files)
    if (std::filesystem::exists(from / name, error))
      write_file(to / name, infty::MappedFile(from / name).text());
    else
      std::filesystem::remove(to / name, error);
}

/// Another one for other files of an encoding.
inline std::uint64_t encoding_fingerprint(const std::filesystem::path& folder) {
  Fingerprint fingerprint;
  std::error_code error;
  for (const char* const name : encoding_files)
    if (std::filesystem::exists(folder / name, error))
      fingerprint.add_text(infty::MappedFile(folder / name).text());
  return fingerprint.bits();
}

/// Whether a file of this name is a part of a model: its sizes, its weights or those of a memory.
inline bool is_of_model(const std::string& name) {
  return name == "config.json" || name == "memory.safetensors" ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

/// Throws infty::ValueError where a folder holds a model and no file of a run: a run that began
/// there would take its place.
inline void require_no_model(const char* program, const std::filesystem::path& out) {
  std::error_code error;
  for (const char* const of_run : {"log.csv", "checkpoint.safetensors", "results.json"})
    if (std::filesystem::exists(out / of_run, error)) return;
  for (const auto& entry : std::filesystem::directory_iterator(out, error)) {
    const std::string name = entry.path().filename().string();
    infty::require(!is_of_model(name), program, "--out is ", out.string(), ", which holds ", name,
                   " and no run of this program: give another --out, or --fresh to overwrite it");
  }
}

/// Another one for another model: of config.json and of all weights, those of a memory, too.
inline std::uint64_t model_fingerprint(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (is_of_model(entry.path().filename().string())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Fingerprint fingerprint;
  for (const auto& file : files) {
    const infty::MappedFile mapped(file);
    std::string_view text = mapped.text();
    for (std::uint64_t word = 0; text.size() >= sizeof word; text.remove_prefix(sizeof word)) {
      std::memcpy(&word, text.data(), sizeof word);
      fingerprint.add(word);
    }
    fingerprint.add_text(text);
  }
  return fingerprint.bits();
}

/// The name of GPT-2's token between texts, which ends one and begins another.
inline constexpr const char* end_of_text = "<|endoftext|>";

/// What begins a text: the encoding's `<|endoftext|>`, or its first token.
inline TokenId start_of(const infty::BytePairEncoding& encoding) {
  return encoding.find(end_of_text).value_or(0);
}

/// Throws infty::IoError unless a model has a token for each of the encoding's.
inline void require_tokens(const infty::BytePairEncoding& encoding, infty::Index vocabulary,
                           const std::filesystem::path& folder) {
  infty::require<infty::IoError>(encoding.size() <= vocabulary, "gpt2", folder.string(),
                                 ": its encoding has ", encoding.size(),
                                 " tokens, config.json's vocab_size is ", vocabulary);
}

}  // namespace support::gpt2
