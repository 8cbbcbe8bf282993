// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

#include <sys/mman.h>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>

namespace infty {

/// A regular file's bytes in memory, read from the disk where they are looked at and not before: a
/// text of any size costs no copy. The bytes are those of the file that was opened, even when
/// another one is renamed into its place; a file that is shortened meanwhile ends the program at
/// the first look behind its new end.
class MappedFile {
 public:
  /// Maps the file.
  /// @throws infty::IoError if `path` is missing, is no regular file or cannot be mapped
  explicit MappedFile(const std::filesystem::path& path) {
    const detail::InputFile file(path);
    const auto size = static_cast<std::size_t>(file.size());
    if (size == 0) return;  // which the system does not map
    void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (at == MAP_FAILED) detail::raise_errno("map", path);
    text_ = {static_cast<const char*>(at), size};
  }
  /// Takes the mapping over; the other one has no bytes then.
  MappedFile(MappedFile&& other) noexcept : text_(std::exchange(other.text_, {})) {}
  /// Takes the mapping over; the other one has this one's until it ends.
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(text_, other.text_);
    return *this;
  }
  ~MappedFile() {
    if (!text_.empty()) ::munmap(const_cast<char*>(text_.data()), text_.size());
  }

  /// Returns all bytes, which are there for as long as this object lives.
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

}  // namespace infty
