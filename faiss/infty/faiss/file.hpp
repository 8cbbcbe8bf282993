// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include <faiss/impl/io.h>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>
#include <infty/io/fingerprint.hpp>

namespace infty::detail {

/// What stands in front of FAISS's own bytes in an index's file. A fingerprint of all of it is the
/// last word of the file: FAISS believes what a file says of sizes.
struct FaissFileHeader {
  static constexpr std::uint64_t magic = 0x3153534941466E69U;  // "inFAISS1"

  std::uint64_t begins = magic;
  std::uint64_t kind = 0, metric = 0, dim = 0;
  std::uint64_t size = 0;                   ///< keys of the index
  std::uint64_t keys = 0;                   ///< their fingerprint, if the datastore knew it
  std::uint64_t probes = 0, recompute = 0;  ///< how it is searched
};

/// Writes what FAISS writes, and keeps a fingerprint of it.
class FaissWriter : public ::faiss::IOWriter {
 public:
  explicit FaissWriter(ReplacingFile& file) : file_(file) {}

  std::size_t operator()(const void* from, std::size_t size, std::size_t count) override {
    if (size * count == 0) return count;
    file_.write(from, size * count);
    add(static_cast<const char*>(from), size * count);
    return count;
  }

  std::uint64_t fingerprint() const { return seen_.bits(); }

 private:
  void add(const char* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) seen_.add(static_cast<unsigned char>(from[i]));
  }

  ReplacingFile& file_;
  Fingerprint seen_;
};

/// Counts what FAISS would write.
class FaissCounter : public ::faiss::IOWriter {
 public:
  std::size_t operator()(const void*, std::size_t size, std::size_t count) override {
    bytes_ += size * count;
    return count;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_ = 0;
};

/// Reads a part of a file for FAISS.
class FaissReader : public ::faiss::IOReader {
 public:
  FaissReader(const InputFile& file, std::uint64_t begin, std::uint64_t end)
      : file_(file), at_(begin), end_(end) {}

  std::size_t operator()(void* to, std::size_t size, std::size_t count) override {
    if (size == 0) return count;
    const std::size_t whole = std::min<std::uint64_t>(count, (end_ - at_) / size);
    file_.read_at(at_, to, whole * size);
    at_ += whole * size;
    return whole;
  }

 private:
  const InputFile& file_;
  std::uint64_t at_, end_;
};

/// The fingerprint of a file's bytes [begin, end).
inline std::uint64_t fingerprint_of(const InputFile& file, std::uint64_t begin, std::uint64_t end) {
  Fingerprint seen;
  std::array<char, 1 << 16> part;
  while (begin < end) {
    const std::uint64_t n = std::min<std::uint64_t>(part.size(), end - begin);
    file.read_at(begin, part.data(), n);
    for (std::uint64_t i = 0; i < n; ++i) seen.add(static_cast<unsigned char>(part[i]));
    begin += n;
  }
  return seen.bits();
}

}  // namespace infty::detail
