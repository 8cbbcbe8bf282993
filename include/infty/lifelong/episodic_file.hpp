// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <infty/core/float_bits.hpp>
#include <infty/core/number.hpp>
#include <infty/io/fingerprint.hpp>
#include <infty/io/safetensors.hpp>
#include <infty/lifelong/episodic_config.hpp>
#include <infty/lifelong/example.hpp>

namespace infty::detail {

inline constexpr const char* no_length =
    " has a length of which twice the square is no number here";

/// The first of n keys (n, D) of which twice the square of the length is no number in T, so that a
/// search could not say how far it is; n if there is none.
template <class T>
Index first_too_long(const T* keys, Index n, Index D) {
  for (Index i = 0; i < n; ++i) {
    T square = 0;
    for (Index j = i * D; j < (i + 1) * D; ++j) square += 2 * keys[j] * keys[j];
    if (!math::is_finite(square)) return i;
  }
  return n;
}

/// @throws infty::NonFiniteError that names `op` for one of rows (n, D) that is too long
template <class T>
void require_lengths(const char* op, const char* what, const std::vector<T>& rows, Index D) {
  const Index n = D > 0 ? std::ssize(rows) / D : 0;  // 0: of a memory that was moved from
  const Index too_long = first_too_long(rows.data(), n, D);
  require<NonFiniteError>(too_long == n, op, what, ' ', too_long, no_length);
}

/// What an `EpisodicMemory` saves: a safetensors file that says what it is and carries a checksum.
template <class T>
struct EpisodicFile {
  static constexpr const char* format = "infty episodic memory 1";

  Index dim = 1;                   ///< D
  Index offered = 0, chosen = 0;   ///< as the memory counts them
  std::vector<Index> places = {};  ///< of examples, in the order of writing
  std::vector<T> keys = {};        ///< [n, D], likewise
  std::vector<Example> examples = {};

  /// Adds the example of a place.
  void add(Index place, const T* key, const Example& example) {
    places.push_back(place);
    keys.insert(keys.end(), key, key + dim);
    examples.push_back(example);
  }

  /// @param config  the memory's settings, as JSON   @throws infty::IoError
  void save(const std::filesystem::path& path, const std::string& config) const {
    SafetensorsWriter file;
    const auto numbers = [&](const char* name, const std::vector<Index>& values) {
      file.add(name, Shape{std::ssize(values)}, values);
    };
    std::vector<Index> tokens, labels, token_counts, label_counts;
    for (const Example& e : examples) {
      tokens.insert(tokens.end(), e.tokens.begin(), e.tokens.end());
      labels.insert(labels.end(), e.labels.begin(), e.labels.end());
      token_counts.push_back(std::ssize(e.tokens));
      label_counts.push_back(std::ssize(e.labels));
    }
    file.add("keys", Shape{std::ssize(places), dim}, keys);
    numbers("places", places);
    numbers("tokens", tokens);
    numbers("labels", labels);
    numbers("token_counts", token_counts);
    numbers("label_counts", label_counts);
    numbers("counts", {offered, chosen});
    file.metadata("format", format);
    file.metadata("config", config);
    file.metadata("checksum", as_hex(checksum()));
    file.save(path);
  }

  /// Reads a file of a memory with these settings.
  /// @throws infty::IoError, infty::ValueError: see `EpisodicMemory::load`
  static EpisodicFile load(const std::filesystem::path& path, const std::string& config, Index dim,
                           Index capacity) {
    const char* const op = "EpisodicMemory::load";
    const SafetensorsFile file(path);
    const std::string where = path.string();
    require<IoError>(file.metadata("format") == format, op, where, ": not an episodic memory");
    require(file.metadata("config") == config, op, where, " was saved by a memory with ",
            printable(file.metadata("config")), ": this one has ", config);
    EpisodicFile out{.dim = dim};
    out.places = file.template read<Index>("places");
    const Index n = std::ssize(out.places);
    file.check_shape("keys", Shape{n, dim});
    require<IoError>(file.dtype("keys") == dtype_of<T>(), op, where, ": keys are ",
                     dtype_name(file.dtype("keys")), ": they must be ", dtype_name(dtype_of<T>()));
    out.keys = file.template read<T>("keys");
    file.check_shape("counts", Shape{2});
    const auto counts = file.template read<Index>("counts");
    out.offered = counts[0];
    out.chosen = counts[1];
    out.examples.resize(out.places.size());
    for (const auto& [values, sizes, member] :
         {std::tuple{"tokens", "token_counts", &Example::tokens},
          std::tuple{"labels", "label_counts", &Example::labels}}) {
      const auto all = file.template read<Index>(values);
      const auto each = file.template read<Index>(sizes);
      bool fits = std::ssize(each) == n;
      std::size_t at = 0;
      for (std::size_t i = 0; fits && i < each.size(); ++i) {
        const auto count = static_cast<std::size_t>(each[i]);
        fits = each[i] >= 0 && count <= all.size() - at;
        if (fits)
          (out.examples[i].*member)
              .assign(all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(at + count));
        at += fits ? count : 0;
      }
      require<IoError>(fits && at == all.size(), op, where, ": ", sizes, " do not fit ", values);
    }
    std::vector<bool> taken(out.places.size(), false);
    for (const Index place : out.places) {
      require<IoError>(place >= 0 && place < n && !taken[static_cast<std::size_t>(place)], op,
                       where, ": place ", place, " of ", n, " is there twice or is none");
      taken[static_cast<std::size_t>(place)] = true;
    }
    require<IoError>(n == (std::min)(capacity, out.chosen) && out.chosen <= out.offered &&
                         out.offered <= most_counted,
                     op, where, " counts ", out.offered, " offered, ", out.chosen, " chosen and ",
                     n, " held of at most ", capacity);
    for (const Example& e : out.examples)
      require<IoError>(!e.tokens.empty(), op, where, ": an example has no tokens");
    const Index too_long = first_too_long(out.keys.data(), n, dim);
    require<IoError>(too_long == n, op, where, ": key ", too_long, no_length);
    require<IoError>(file.metadata("checksum") == as_hex(out.checksum()), op, where,
                     ": the checksum does not fit: it was changed or damaged");
    return out;
  }

 private:
  std::uint64_t checksum() const {
    Fingerprint out;
    const auto add = [&](Index value) { out.add(static_cast<std::uint64_t>(value)); };
    for (const Index value : {dim, offered, chosen, std::ssize(places)}) add(value);
    for (const T key : keys)
      out.add(std::bit_cast<typename math::detail::FloatBits<T>::Unsigned>(key));
    for (std::size_t i = 0; i < places.size(); ++i) {
      add(places[i]);
      for (const auto* values : {&examples[i].tokens, &examples[i].labels}) {
        add(std::ssize(*values));
        for (const Index value : *values) add(value);
      }
    }
    return out.bits();
  }
};

}  // namespace infty::detail
