// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/moved.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/core/utf8.hpp>
#include <infty/io/fingerprint.hpp>
#include <infty/retrieval/datastore_files.hpp>
#include <infty/retrieval/fwd.hpp>

namespace infty {

/// What the keys of a folder's datastore are stored as, such as `DType::F32`.
/// @throws infty::IoError where there is none, or a damaged one
inline DType datastore_type(const std::filesystem::path& folder) {
  require<IoError>(detail::DatastoreManifest::is_in(folder), "datastore_type", folder.string(),
                   " holds no datastore: there is no ", detail::DatastoreManifest::file_name);
  const auto manifest = detail::DatastoreManifest::load(folder);
  const std::optional<DType> type = dtype_from_name(manifest.type);
  require<IoError>(type.has_value(), "datastore_type", folder.string(), ": keys are ",
                   detail::printable(manifest.type), ", which is no type");
  return *type;
}

/// Keys, vectors of D numbers, and beside each the token that came next: what kNN-LM, SPALM and the
/// continuous cache look up (Khandelwal et al. 2020, section 2). It is appended to in a stream, in
/// memory or in the files of a folder.
///
/// Keys stand in blocks of C entries, which stay where they are however many come, so that an index
/// may point to them. A folder is safe from crashes: whenever the process or the machine stops, it
/// opens again with all entries up to the last finished block, and an interrupted build that goes
/// on makes the same bytes as one that was not. One process writes to it at a time; any number may
/// read it, also meanwhile, and see what was finished when they opened it.
///
/// Keys are stored as T: float, double, or `BFloat16`, which takes half of a float's bytes and to
/// which they are rounded when they come.
template <class T>
class Datastore {
 public:
  static constexpr Index default_block = 16384;     ///< C
  static constexpr std::size_t most_about = 65536;  ///< bytes of what is said of a datastore

  /// Makes an empty datastore in memory.
  /// @throws infty::ValueError unless both are at least 1, and for sizes above `largest_size`
  explicit Datastore(Index dim, Index block = default_block) : dim_(dim), block_(block) {
    require_at_least("Datastore", "dim", dim, 1);
    require_at_least("Datastore", "block", block, 1);
    require_sizes("Datastore", {{"dim", dim}, {"block", block}});
  }

  /// Makes a datastore in a folder, or goes on behind the last finished block of the one that is
  /// there: `size()` says from which entry on.
  /// @param about  what it is made of, such as the model and the text; UTF-8. One that goes on must
  ///               say the same
  /// @throws infty::IoError for a foreign, damaged or shortened one, and where another process is
  ///         writing; infty::ValueError for one of other sizes or words; then nothing has changed
  static Datastore build(const std::filesystem::path& folder, Index dim, std::string about = {},
                         Index block = default_block) {
    Datastore out(dim, block);
    require(about.size() <= most_about && detail::utf8_prefix(about) == about.size(), "Datastore",
            "what is said about it must be UTF-8 of at most ", most_about, " bytes");
    detail::DatastoreManifest fresh;
    fresh.type = dtype_name(dtype_of<T>());
    fresh.dim = dim;
    fresh.block = block;
    fresh.about = std::move(about);
    out.files_ = std::make_unique<Files>(Files::extend(folder, std::move(fresh)));
    for (const Index end = out.files_->manifest().entries; out.size_ < end;) {
      out.add_block();
      out.size_ = (std::min)(out.size_ + block, end);
    }
    return out;
  }

  /// Opens a folder's datastore to be read, which costs no more than its manifest: keys are read
  /// from the disk where they are looked at.
  /// @throws infty::IoError where there is none, or one that is foreign, damaged, shortened, or of
  ///         another type of numbers
  static Datastore open(const std::filesystem::path& folder) {
    auto files = std::make_unique<Files>(Files::open(folder));
    const detail::DatastoreManifest& manifest = files->manifest();
    Datastore out(manifest.dim, manifest.block);
    out.size_ = manifest.entries;
    out.writable_ = false;
    // In one piece: nothing that the manifest merely claims is allocated.
    out.in_one_piece_ = out.size_;
    out.keys_.push_back(files->map_keys(0, out.size_));
    out.tokens_.push_back(files->map_tokens(0, out.size_));
    out.files_ = std::move(files);
    return out;
  }

  /// D, numbers of a key.
  Index dim() const { return dim_; }
  /// Entries.
  Index size() const { return size_; }
  /// C, entries of a block.
  Index block() const { return block_; }
  /// The entries that are safe from now on: all of them in memory, those of finished blocks, and of
  /// `flush`, in a folder.
  Index finished() const { return files_ ? files_->manifest().entries : size(); }
  /// What the folder's datastore is made of, as it was said to `build`.
  std::string_view about() const {
    return files_ ? std::string_view(files_->manifest().about) : std::string_view();
  }

  /// A fingerprint of all keys that are finished in a folder, by which an index knows its own; 0 in
  /// memory.
  std::uint64_t keys_checksum() const { return files_ ? files_->manifest().keys : 0; }
  /// The fingerprint that a folder had when its first n keys were all that it had; they are read
  /// for it, unless they still are all.
  /// @throws infty::ValueError unless 0 <= n <= size()
  std::uint64_t keys_checksum(Index n) const;

  /// Takes n entries in, keys [n, D], rounded to T, and the tokens behind them. No other thread may
  /// read or search meanwhile.
  /// @throws infty::ValueError for a token that is not 0 to 2^31 - 1, and for a datastore that was
  ///         opened to be read, or moved from; infty::NonFiniteError for a key with NaN or
  ///         infinity, or with a number that T cannot hold; then nothing has changed.
  ///         infty::IoError such as for a full disk; then `size()` says what is in
  template <class From>
  void append(const From* keys, const Index* tokens, Index n);

  /// Takes entries in, keys [n, D], in any backend's memory, and n tokens.
  /// @throws infty::ShapeError if the shapes do not fit; then nothing has changed
  template <class From, class B>
  void append(const Tensor<From, B>& keys, const std::vector<Index>& tokens) {
    const Index n = keys.rank() == 2 ? keys.dim(0) : 0;
    require<ShapeError>(keys.shape() == Shape{n, dim_} && std::ssize(tokens) == n,
                        "Datastore::append", "keys are ", keys.shape(), " and tokens ",
                        tokens.size(), ": they must be [n, ", dim_, "] and n");
    const std::vector<From> numbers = keys.to_vector();
    append(numbers.data(), tokens.data(), n);
  }

  /// Makes the entries of a block that is not finished safe as well; without it they are lost at
  /// the end. @throws infty::IoError
  void flush() {
    if (files_ && writable_) files_->finish(size_);
  }

  /// Reads all of a folder's entries and compares them with the manifest's checksums.
  /// @throws infty::IoError for damage; infty::ValueError while there are entries to be flushed
  void verify() const;

  /// The key of entry i, D numbers; those behind it in its block follow. @pre 0 <= i < size()
  const T* key(Index i) const {
    return keys_[static_cast<std::size_t>(i / segment())] + i % segment() * dim_;
  }
  /// The token of entry i. @pre 0 <= i < size()
  Index token(Index i) const {
    return tokens_[static_cast<std::size_t>(i / segment())][i % segment()];
  }

  /// The tokens of entries, of any shape; those of an index below 0, which a search gives where
  /// there is none, are `none`. @throws infty::ShapeError for an entry that is not there
  template <class B>
  Tensor<Index, B> tokens(const Tensor<Index, B>& indices, Index none = -1) const {
    std::vector<Index> out = indices.to_vector();
    for (Index& i : out) {
      require<ShapeError>(i < size_, "Datastore::tokens", "entry is ", i, ": there are ", size_);
      i = i < 0 ? none : token(i);
    }
    return Tensor<Index, B>::from(indices.shape(), out);
  }

 private:
  using Files = detail::DatastoreFiles<T>;

  /// Entries that stand one behind the other.
  Index segment() const { return in_one_piece_ > 0 ? Index{in_one_piece_} : block_; }

  /// Room for the entries of another block. @throws infty::IoError, std::bad_alloc; then all is as
  /// it was
  void add_block() {
    const Index begin = std::ssize(keys_) * block_;
    more_room(keys_);
    more_room(tokens_);
    if (files_) {
      const T* const keys = files_->map_keys(begin, begin + block_);
      tokens_.push_back(files_->map_tokens(begin, begin + block_));
      keys_.push_back(keys);
      return;
    }
    more_room(own_);
    Own own{std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(block_ * dim_)),
            std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(block_))};
    keys_.push_back(own.keys.get());
    tokens_.push_back(own.tokens.get());
    own_.push_back(std::move(own));
  }

  /// Room for one more, twice as much where there is none.
  template <class V>
  static void more_room(V& v) {
    if (v.size() == v.capacity()) v.reserve(2 * v.size() + 1);
  }

  struct Own {
    std::unique_ptr<T[]> keys;
    std::unique_ptr<std::int32_t[]> tokens;
  };

  Index dim_, block_;
  detail::ZeroWhenMoved<Index> size_;
  detail::ZeroWhenMoved<Index> in_one_piece_;    ///< entries of one that was opened to be read
  detail::ZeroWhenMoved<bool> writable_ = true;  ///< neither opened to be read nor moved from
  std::unique_ptr<Files> files_;
  std::vector<Own> own_;
  std::vector<const T*> keys_;               ///< of each segment
  std::vector<const std::int32_t*> tokens_;  ///< likewise
};

template <class T>
template <class From>
void Datastore<T>::append(const From* keys, const Index* tokens, Index n) {
  constexpr Index most = (Index{1} << 31) - 1;
  constexpr bool same = std::is_same_v<T, From>;
  using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;
  require_at_least("Datastore::append", "n", n, 0);
  require(writable_, "Datastore::append", files_ ? files_->folder().string() : "it",
          files_ ? " was opened to be read" : " was moved from");
  for (Index i = 0; i < n; ++i)
    require(tokens[i] >= 0 && tokens[i] <= most, "Datastore::append", "token ", i, " is ",
            tokens[i], ": it must be 0 to ", most);
  for (Index i = 0; i < n * dim_; ++i)
    if (!math::is_finite(static_cast<Number>(static_cast<T>(keys[i]))))
      raise<NonFiniteError>("Datastore::append", "key ", i / dim_, " has a number that is ",
                            static_cast<double>(keys[i]));
  std::vector<std::int32_t> narrow(static_cast<std::size_t>((std::min)(n, block_)));
  std::vector<T> rounded(same ? 0 : narrow.size() * static_cast<std::size_t>(dim_));
  // Room first: where there is none, nothing has changed.
  while (std::ssize(keys_) < (size_ + n + block_ - 1) / block_) add_block();
  for (Index part; n > 0; n -= part, keys += part * dim_, tokens += part) {
    const Index block = size_ / block_, place = size_ % block_;
    part = (std::min)(n, block_ - place);
    std::transform(tokens, tokens + part, narrow.begin(),
                   [](Index token) { return static_cast<std::int32_t>(token); });
    const T* as_stored = rounded.data();
    if constexpr (same)
      as_stored = keys;
    else
      std::transform(keys, keys + part * dim_, rounded.begin(),
                     [](const From& x) { return static_cast<T>(x); });
    if (files_) {
      files_->write(size_, as_stored, narrow.data(), part);
    } else {
      const Own& own = own_[static_cast<std::size_t>(block)];
      std::copy_n(as_stored, part * dim_, own.keys.get() + place * dim_);
      std::copy_n(narrow.data(), part, own.tokens.get() + place);
    }
    size_ += part;
    if (files_ && size_ % block_ == 0) files_->finish(size_);
  }
}

template <class T>
std::uint64_t Datastore<T>::keys_checksum(Index n) const {
  require(n >= 0 && n <= size_, "Datastore::keys_checksum", "n is ", n, ": it must be 0 to ", size_,
          ", the datastore's keys");
  if (files_ && n == finished()) return keys_checksum();
  detail::Fingerprint seen(detail::Fingerprint::fresh);
  for (Index i = 0; i < n; ++i)
    for (Index d = 0; d < dim_; ++d) seen.add(detail::stored_bits(key(i)[d]));
  return seen.bits();
}

template <class T>
void Datastore<T>::verify() const {
  if (!files_) return;
  const detail::DatastoreManifest& manifest = files_->manifest();
  require(manifest.entries == size_, "Datastore::verify", files_->folder().string(), " has ",
          size_ - manifest.entries, " entries that were not flushed");
  typename Files::Seen seen{detail::Fingerprint::fresh, detail::Fingerprint::fresh};
  for (Index at = 0, n; at < size_; at += n) {
    n = (std::min)(block_ - at % block_, size_ - at);
    seen = files_->seen_after(
        seen, key(at), tokens_[static_cast<std::size_t>(at / segment())] + at % segment(), n);
  }
  require<IoError>(seen.first == manifest.keys && seen.second == manifest.tokens,
                   "Datastore::verify", files_->folder().string(), ": the ",
                   seen.first != manifest.keys ? "keys" : "tokens",
                   " are not those that were written: the file is damaged");
}

}  // namespace infty
