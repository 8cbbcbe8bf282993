// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/error.hpp>
#include <infty/core/float_bits.hpp>
#include <infty/core/utf8.hpp>
#include <infty/io/dtype.hpp>
#include <infty/retrieval/datastore_manifest.hpp>
#include <infty/retrieval/growing_file.hpp>

namespace infty::detail {

/// The bits of a number as they are stored.
template <class T>
auto stored_bits(const T& x) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return x.bits();
  else
    return std::bit_cast<typename math::detail::FloatBits<T>::Unsigned>(x);
}

/// The folder of a datastore: `keys` (numbers one behind the other), `tokens` (32 bits each) and
/// the manifest, which counts the entries that are finished. What stands behind these in the files
/// is not there.
template <class T>
class DatastoreFiles {
 public:
  using Use = GrowingFile::Use;
  static constexpr const char *keys_name = "keys", *tokens_name = "tokens";

  /// Opens a datastore to be read.
  /// @throws infty::IoError for a missing or foreign one, other types, and files that are too short
  static DatastoreFiles open(const std::filesystem::path& folder) {
    require<IoError>(DatastoreManifest::is_in(folder), "Datastore", folder.string(),
                     " holds no datastore: there is no ", DatastoreManifest::file_name);
    auto manifest = DatastoreManifest::load(folder);
    require_type(folder, manifest);
    DatastoreFiles out(folder, std::move(manifest), GrowingFile(folder / keys_name, Use::read),
                       GrowingFile(folder / tokens_name, Use::read));
    out.require_bytes();
    return out;
  }

  /// Opens a datastore to be written to, behind its last finished block, or makes a new one.
  /// @param fresh  the manifest of a new one; that of an old one must have the same type, sizes and
  ///               words
  /// @throws infty::IoError as `open`, and where another process is writing there;
  ///         infty::ValueError where there is another datastore
  static DatastoreFiles extend(const std::filesystem::path& folder, DatastoreManifest fresh) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    std::error_code none;
    require<IoError>(std::filesystem::is_directory(folder, none), "Datastore", folder.string(),
                     " is no folder and cannot be made: ", error.message());
    require_own(folder, fresh);
    GrowingFile keys(folder / keys_name, Use::write);
    require<IoError>(keys.lock(), "Datastore", folder.string(),
                     ": another process is writing there");
    GrowingFile tokens(folder / tokens_name, Use::write);
    // Once more: another process may have been there before the lock.
    require_own(folder, fresh);
    if (DatastoreManifest::is_in(folder))
      fresh = DatastoreManifest::load(folder);
    else
      fresh.save(folder);
    DatastoreFiles out(folder, std::move(fresh), std::move(keys), std::move(tokens));
    out.require_bytes();
    remove_unfinished(folder / DatastoreManifest::file_name);
    out.keys_.truncate(out.key_bytes(out.manifest_.entries));
    out.tokens_.truncate(token_bytes(out.manifest_.entries));
    out.seen_ = {out.manifest_.keys, out.manifest_.tokens};
    return out;
  }

  /// What the folder says of itself as it stands on the disk.
  const DatastoreManifest& manifest() const { return manifest_; }
  const std::filesystem::path& folder() const { return folder_; }

  /// Where keys, and tokens, of the entries [begin, end) are to be read.
  const T* map_keys(Index begin, Index end) {
    return reinterpret_cast<const T*>(keys_.map(key_bytes(begin), key_bytes(end - begin)));
  }
  const std::int32_t* map_tokens(Index begin, Index end) {
    return reinterpret_cast<const std::int32_t*>(
        tokens_.map(token_bytes(begin), token_bytes(end - begin)));
  }

  /// Writes n entries from entry `at` on, which `finish` makes valid.
  /// @throws infty::IoError such as for a full disk
  void write(Index at, const T* keys, const std::int32_t* tokens, Index n) {
    require_sound();
    keys_.write_at(key_bytes(at), keys, key_bytes(n));
    tokens_.write_at(token_bytes(at), tokens, token_bytes(n));
    seen_ = seen_after(seen_, keys, tokens, n);
  }

  /// Makes all of the first `entries` entries valid: they reach the disk, and then the manifest
  /// that counts them. @throws infty::IoError
  void finish(Index entries) {
    if (entries == manifest_.entries) return;
    require_sound();
    sound_ = false;
    keys_.sync();
    tokens_.sync();
    sound_ = true;
    DatastoreManifest next = manifest_;
    next.entries = entries;
    std::tie(next.keys, next.tokens) = seen_;
    next.save(folder_);
    manifest_ = std::move(next);
  }

  /// The fingerprints of keys and tokens behind n more entries.
  using Seen = std::pair<std::uint64_t, std::uint64_t>;
  Seen seen_after(Seen seen, const T* keys, const std::int32_t* tokens, Index n) const {
    Fingerprint of_keys(seen.first), of_tokens(seen.second);
    for (Index i = 0; i < n * manifest_.dim; ++i) of_keys.add(stored_bits(keys[i]));
    for (Index i = 0; i < n; ++i) of_tokens.add(static_cast<std::uint32_t>(tokens[i]));
    return {of_keys.bits(), of_tokens.bits()};
  }

 private:
  DatastoreFiles(std::filesystem::path folder, DatastoreManifest manifest, GrowingFile keys,
                 GrowingFile tokens)
      : folder_(std::move(folder)),
        manifest_(std::move(manifest)),
        keys_(std::move(keys)),
        tokens_(std::move(tokens)) {}

  std::uint64_t key_bytes(Index n) const {
    return static_cast<std::uint64_t>(n) * static_cast<std::uint64_t>(manifest_.dim) * sizeof(T);
  }
  static std::uint64_t token_bytes(Index n) { return static_cast<std::uint64_t>(n) * 4; }

  static void require_type(const std::filesystem::path& folder, const DatastoreManifest& manifest) {
    const auto type = dtype_name(dtype_of<T>());
    require<IoError>(manifest.type == type, "Datastore", folder.string(), ": keys are ",
                     printable(manifest.type), ": they must be ", type);
  }
  static void require_same(const std::filesystem::path& folder, const DatastoreManifest& there,
                           const DatastoreManifest& wanted) {
    require(there.dim == wanted.dim, "Datastore", folder.string(), ": keys have ", there.dim,
            " numbers: these have ", wanted.dim);
    require(there.block == wanted.block, "Datastore", folder.string(), ": a block is ", there.block,
            " entries: it is ", wanted.block, " here");
    require(there.about == wanted.about, "Datastore", folder.string(), " was made of ",
            printable(there.about), ": this is ", printable(wanted.about));
  }

  /// @throws infty::IoError, infty::ValueError unless a datastore like this may be written there
  static void require_own(const std::filesystem::path& folder, const DatastoreManifest& wanted) {
    const auto bytes = [&](const char* name) {
      std::error_code error;  // of a file that is not there
      const auto size = std::filesystem::file_size(folder / name, error);
      return error ? 0 : size;
    };
    if (DatastoreManifest::is_in(folder)) {
      const auto manifest = DatastoreManifest::load(folder);
      require_type(folder, manifest);
      require_same(folder, manifest, wanted);
      std::error_code error;
      for (const char* const name : {keys_name, tokens_name})
        require<IoError>(std::filesystem::exists(folder / name, error), "Datastore",
                         folder.string(), " has no ", name, ": it is damaged");
      return;
    }
    require<IoError>(bytes(keys_name) == 0 && bytes(tokens_name) == 0, "Datastore", folder.string(),
                     " has files called ", keys_name, " or ", tokens_name, ", but no ",
                     DatastoreManifest::file_name, ": they are left alone; give another folder");
  }

  /// Whatever the manifest counts must be there before any of it is looked at.
  void require_bytes() const {
    for (const auto& [file, bytes] : {std::pair{&keys_, key_bytes(manifest_.entries)},
                                      std::pair{&tokens_, token_bytes(manifest_.entries)}})
      require<IoError>(file->size() >= bytes, "Datastore", file->path().string(), " has ",
                       file->size(), " bytes: ", manifest_.entries, " entries have ", bytes,
                       ": it was cut short");
  }

  // The system says once that a page could not be written, and forgets it.
  void require_sound() const {
    require<IoError>(sound_, "Datastore", folder_.string(),
                     " could not be written to the disk: open it again");
  }

  std::filesystem::path folder_;
  DatastoreManifest manifest_;
  bool sound_ = true;
  GrowingFile keys_, tokens_;
  Seen seen_{Fingerprint::fresh, Fingerprint::fresh};
};

}  // namespace infty::detail
