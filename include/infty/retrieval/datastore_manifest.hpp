// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/io/file.hpp>
#include <infty/io/fingerprint.hpp>
#include <infty/io/json.hpp>

namespace infty::detail {

/// What a datastore's folder says of itself, in `manifest.json`. It is written anew, and renamed
/// into place, behind every finished block: whatever it counts has reached the disk before it.
struct DatastoreManifest {
  static constexpr const char* file_name = "manifest.json";
  static constexpr std::string_view format = "infty datastore";
  static constexpr std::uint64_t version = 1;
  static constexpr std::uint64_t most_bytes = 1 << 20;
  static constexpr std::array<std::string_view, 10> names{"format", "version", "type", "dim",
                                                          "block",  "entries", "keys", "tokens",
                                                          "about",  "checksum"};

  std::string type;  ///< of the keys' numbers, as safetensors names it
  Index dim = 1;     ///< D
  Index block = 1;   ///< C, entries
  Index entries = 0;
  std::uint64_t keys = Fingerprint::fresh;    ///< of the bits of all numbers in their order
  std::uint64_t tokens = Fingerprint::fresh;  ///< of all tokens
  std::string about;                          ///< what the program that made it says of it

  friend bool operator==(const DatastoreManifest&, const DatastoreManifest&) = default;

  /// The file's text.
  std::string text() const {
    const std::string said = members();
    return "{\n" + said + "  \"checksum\": \"" + as_hex(checksum(said)) + "\"\n}\n";
  }

  /// Writes the file. @throws infty::IoError; then the old one is still there
  void save(const std::filesystem::path& folder) const {
    const std::string written = text();
    ReplacingFile file(folder / file_name);
    file.write(written.data(), written.size());
    file.commit();
  }

  /// Whether a folder has such a file, or anything by its name.
  static bool is_in(const std::filesystem::path& folder) {
    std::error_code ignored;
    return std::filesystem::exists(folder / file_name, ignored);
  }

  /// Reads the file. @throws infty::IoError where it is missing, foreign or was changed
  static DatastoreManifest load(const std::filesystem::path& folder) {
    const InputFile file(folder / file_name);
    const std::string where = file.path().string();
    require<IoError>(file.size() <= most_bytes, "Datastore", where, " has ", file.size(),
                     " bytes: a manifest has at most ", most_bytes);
    std::string read(static_cast<std::size_t>(file.size()), '\0');
    file.read_at(0, read.data(), read.size());
    return parse(read, where);
  }

  /// Takes a file's text apart. @throws infty::IoError that begins with `where`
  static DatastoreManifest parse(std::string_view text, std::string_view where) {
    DatastoreManifest out;
    std::string its_format, its_checksum, keys, tokens;
    std::uint64_t its_version = 0;
    unsigned seen = 0;
    JsonReader json(text, where);
    const auto size = [&](Index least) {
      const std::uint64_t value = json.integer();
      if (value < static_cast<std::uint64_t>(least) || value > std::uint64_t{largest_size})
        json.fail("a size of ", value, ": it must be ", least, " to ", largest_size);
      return static_cast<Index>(value);
    };
    json.object([&](const std::string& key) {
      const auto which = std::find(names.begin(), names.end(), key) - names.begin();
      if (which == std::ssize(names)) json.fail("no member of a datastore's manifest");
      if (((seen >> which) & 1U) != 0) json.fail("a member that was there before");
      seen |= 1U << which;
      if (which == 0) its_format = json.string();
      if (which == 1) its_version = json.integer();
      if (which == 2) out.type = json.string();
      if (which == 3) out.dim = size(1);
      if (which == 4) out.block = size(1);
      if (which == 5) out.entries = size(0);
      if (which == 6) keys = json.string();
      if (which == 7) tokens = json.string();
      if (which == 8) out.about = json.string();
      if (which == 9) its_checksum = json.string();
    });
    json.finish();
    require<IoError>(its_format == format, "Datastore", where, ": not the manifest of a datastore");
    require<IoError>(its_version == version, "Datastore", where, ": version ", its_version,
                     ", this program reads version ", version);
    require<IoError>(seen == (1U << names.size()) - 1, "Datastore", where, ": a member is missing");
    out.keys = from_hex(keys, where);
    out.tokens = from_hex(tokens, where);
    require<IoError>(from_hex(its_checksum, where) == checksum(out.members()), "Datastore", where,
                     ": the checksum does not fit: it was changed or damaged");
    // So that sizes of files and of blocks can be computed of these, in double too.
    const auto held = [&](Index n) {
      return checked_multiply(n, out.dim).value_or(largest_size + 1) <= largest_size;
    };
    require<IoError>(held(out.block) && held(out.entries), "Datastore", where, ": ", out.entries,
                     " keys of ", out.dim, " numbers in blocks of ", out.block,
                     " are more than any machine holds");
    return out;
  }

 private:
  std::string members() const {
    std::ostringstream out;
    out.imbue(std::locale::classic());  // a program's own may group digits
    out << "  \"format\": " << to_json(format) << ",\n  \"version\": " << version
        << ",\n  \"type\": " << to_json(type) << ",\n  \"dim\": " << dim
        << ",\n  \"block\": " << block << ",\n  \"entries\": " << entries << ",\n  \"keys\": \""
        << as_hex(keys) << "\",\n  \"tokens\": \"" << as_hex(tokens)
        << "\",\n  \"about\": " << to_json(about) << ",\n";
    return out.str();
  }

  static std::uint64_t checksum(std::string_view said) {
    Fingerprint out;
    out.add_text(said);
    return out.bits();
  }

  static std::uint64_t from_hex(std::string_view digits, std::string_view where) {
    std::uint64_t out = 0;
    bool good = digits.size() == 16;
    for (const char c : digits) {
      const auto digit = std::string_view("0123456789abcdef").find(c);
      good = good && digit != std::string_view::npos;
      out = out * 16 + (digit & 15U);
    }
    require<IoError>(good, "Datastore", where, ": a checksum must have 16 hexadecimal digits");
    return out;
  }
};

}  // namespace infty::detail
