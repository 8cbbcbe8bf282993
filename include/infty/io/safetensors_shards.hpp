// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>
#include <infty/io/safetensors_file.hpp>
#include <infty/io/safetensors_writer.hpp>

namespace infty {

/// A model's tensors in a folder as Hugging Face's programs write it: all of them in
/// `NAME.safetensors`, or in several files, its shards, that `NAME.safetensors.index.json` names
/// tensor by tensor. Every function throws infty::IoError that names the file.
class SafetensorsShards {
 public:
  /// Opens the file, or where there is none the index and all shards that it names. A tensor that
  /// is in a shard and not in the index is passed over, as by Hugging Face's programs.
  /// @param name  such as "model"
  /// @throws infty::IoError if files are missing, not exactly safetensors, or cut short; if the
  /// index names a file outside of the folder, or a tensor that its file does not hold
  explicit SafetensorsShards(const std::filesystem::path& folder, const std::string& name = "model")
      : path_(folder / (name + ".safetensors")) {
    std::error_code ignored;
    const auto index = folder / (name + ".safetensors.index.json");
    if (std::filesystem::exists(path_, ignored) || !std::filesystem::exists(index, ignored)) {
      files_.emplace_back(path_);
      for (const auto& [tensor, entry] : files_.front().tensors()) file_of_.emplace(tensor, 0);
      return;
    }
    path_ = index;
    read_index(folder);
  }

  /// The file, or the index of all files.
  const std::filesystem::path& path() const { return path_; }

  /// All tensors' names, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    out.reserve(file_of_.size());
    for (const auto& entry : file_of_) out.push_back(entry.first);
    return out;
  }

  /// Returns whether there is a tensor of this name.
  bool has(std::string_view name) const { return file_of_.contains(name); }

  /// Returns the file that holds a tensor. @throws infty::IoError if none does
  const SafetensorsFile& file_of(std::string_view name) const {
    const auto at = file_of_.find(name);
    if (at == file_of_.end())
      raise<IoError>("safetensors", path_.string(), ": no tensor ", detail::printable(name));
    return files_[at->second];
  }

 private:
  void read_index(const std::filesystem::path& folder) {
    const std::string where = path_.string();
    const MappedFile text(path_);
    detail::JsonReader json(text.text(), where);
    std::map<std::string, std::size_t> opened;
    bool mapped = false;
    json.object([&](const std::string& key) {
      if (key != "weight_map") {
        json.raw();  // such as the size in bytes of all, which nobody needs
        return;
      }
      if (std::exchange(mapped, true)) json.fail("weight_map is repeated");
      json.object([&](const std::string& tensor) {
        const std::string shard = json.string();
        // A name alone: an index must not lead out of its folder.
        if (shard.empty() || shard == "." || shard == ".." || shard.find('\0') != shard.npos ||
            shard.find('/') != shard.npos || shard.find('\\') != shard.npos)
          json.fail("tensor ", detail::printable(tensor), " is said to be in ",
                    detail::printable(shard), ", which is no file of the folder");
        const auto [at, is_new] = opened.try_emplace(shard, files_.size());
        if (is_new) files_.emplace_back(folder / shard);
        if (!files_[at->second].has(tensor))
          json.fail("tensor ", detail::printable(tensor), " is not in ",
                    files_[at->second].path().string());
        if (!file_of_.emplace(tensor, at->second).second)
          json.fail("tensor ", detail::printable(tensor), " is repeated");
      });
    });
    json.finish();
    if (!mapped) json.fail("there is no weight_map");
  }

  std::filesystem::path path_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, std::size_t, std::less<>> file_of_;
};

/// Tensors that `save_shards` writes: what it is called and how it is added to its file's writer.
struct ShardedTensor {
  std::string name;                             ///< in the file
  std::uint64_t bytes;                          ///< of its elements
  std::function<void(SafetensorsWriter&)> add;  ///< adds it under its name
};

namespace detail {

/// Whether a file is called as a shard, `NAME-00001-of-00002.safetensors`.
inline bool is_shard(std::string_view file, std::string_view name) {
  constexpr std::string_view pattern = "-00000-of-00000.safetensors";
  if (!file.starts_with(name) || file.size() != name.size() + pattern.size()) return false;
  file.remove_prefix(name.size());
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == '0' ? file[i] < '0' || file[i] > '9' : file[i] != pattern[i]) return false;
  return true;
}

/// Removes the shards of a name that are not among `kept`.
inline void remove_shards(const std::filesystem::path& folder, std::string_view name,
                          const std::set<std::string>& kept) {
  std::error_code error;
  std::vector<std::filesystem::path> old;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    const std::string file = at->path().filename().string();
    if (is_shard(file, name) && !kept.contains(file)) old.push_back(at->path());
  }
  for (const auto& path : old) std::filesystem::remove(path, error);
}

}  // namespace detail

/// Writes tensors to `NAME.safetensors` in a folder, or, where `most` bytes of elements are given
/// and they are more, in their order to shards of at most so many (of one tensor at least), with
/// their index. What an earlier save of this name has left is removed when the new one is complete.
/// A shard is in memory while it is written. All are written before the first takes an old one's
/// place; what ends the program while they do leaves no index, and never parts of two models.
/// @param most  bytes of a file; 0 for one file of any size
/// @throws infty::IoError such as for a missing folder or a full disk, for two tensors of one name,
/// and where what is read in the place of the shards cannot be removed
inline void save_shards(const std::filesystem::path& folder, const std::string& name,
                        const std::vector<ShardedTensor>& tensors, std::uint64_t most = 0) {
  std::vector<std::vector<const ShardedTensor*>> shards(1);
  std::uint64_t bytes = 0, total = 0;
  for (const ShardedTensor& tensor : tensors) {
    if (most > 0 && !shards.back().empty() && tensor.bytes > most - (std::min)(bytes, most)) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(&tensor);
    bytes += tensor.bytes;
    total += tensor.bytes;
  }
  std::list<detail::ReplacingFile> written;
  const auto write = [&](const std::vector<const ShardedTensor*>& shard, const std::string& file) {
    SafetensorsWriter writer;
    writer.metadata("format", "pt");
    for (const ShardedTensor* const tensor : shard) tensor->add(writer);
    writer.write(written.emplace_back(folder / file));
  };
  const std::string whole = name + ".safetensors", index = whole + ".index.json";
  if (shards.size() == 1) {
    write(shards.front(), whole);
    written.front().commit();
    std::error_code ignored;
    std::filesystem::remove(folder / index, ignored);
    detail::remove_shards(folder, name, {});
    return;
  }
  const auto number = [](std::size_t n) {
    const std::string digits = std::to_string(n);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  std::map<std::string, std::string> file_of;
  std::set<std::string> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string file =
        name + '-' + number(i + 1) + "-of-" + number(shards.size()) + ".safetensors";
    write(shards[i], file);
    files.insert(file);
    for (const ShardedTensor* const tensor : shards[i])
      require<IoError>(file_of.emplace(tensor->name, file).second, "safetensors", "tensor ",
                       detail::printable(tensor->name), " is taken");
  }
  std::string text =
      "{\n  \"metadata\": {\n    \"total_size\": " + std::to_string(total) + "\n  },\n";
  text += "  \"weight_map\": {";
  for (const auto& [tensor, file] : file_of) {
    text += text.back() == '{' ? "\n" : ",\n";
    text += "    " + detail::to_json(tensor) + ": " + detail::to_json(file);
  }
  text += "\n  }\n}\n";
  detail::ReplacingFile& out = written.emplace_back(folder / index);
  out.write(text.data(), text.size());
  const auto remove = [&](const std::string& file) {
    std::error_code error;
    std::filesystem::remove(folder / file, error);
    require<IoError>(!error, "save", (folder / file).string(), ": ", error.message());
  };
  remove(index);
  for (detail::ReplacingFile& file : written) file.commit();
  remove(whole);  // which would be read instead
  detail::remove_shards(folder, name, files);
}

}  // namespace infty
