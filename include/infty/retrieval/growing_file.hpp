// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>

namespace infty::detail {

/// A file that is read through memory, in parts that are mapped one by one and stay where they are,
/// and that may be written to at its end.
class GrowingFile {
 public:
  enum class Use { read, write };

  /// Opens a file; for writing it is made where it is missing.
  /// @throws infty::IoError if it cannot be opened or is no regular file
  GrowingFile(const std::filesystem::path& path, Use use) : path_(path) {
    // O_NONBLOCK: opening a named pipe would otherwise wait for a writer, perhaps for ever.
    const int flags = use == Use::write ? O_RDWR | O_CREAT : O_RDONLY;
    file_ = Descriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK, 0666));
    if (file_.number() < 0) raise_errno("Datastore", path);
    struct ::stat status {};
    if (::fstat(file_.number(), &status) != 0) raise_errno("Datastore", path);
    require<IoError>(S_ISREG(status.st_mode), "Datastore", path.string(), ": not a regular file");
  }
  GrowingFile(GrowingFile&& other) noexcept
      : path_(std::move(other.path_)),
        file_(std::move(other.file_)),
        parts_(std::exchange(other.parts_, {})) {}
  GrowingFile& operator=(GrowingFile&&) = delete;
  ~GrowingFile() {
    for (const Part& part : parts_) ::munmap(part.at, part.bytes);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Bytes in the file now.
  std::uint64_t size() const {
    struct ::stat status {};
    if (::fstat(file_.number(), &status) != 0) raise_errno("Datastore", path_);
    return static_cast<std::uint64_t>(status.st_size);
  }

  /// Whether this process alone has the file now; the system takes that back when it ends.
  /// @throws infty::IoError where the file system has no locks
  bool lock() const {
    const bool alone = ::flock(file_.number(), LOCK_EX | LOCK_NB) == 0;
    if (!alone && errno != EWOULDBLOCK) raise_errno("Datastore", path_);
    return alone;
  }

  /// Maps `bytes` bytes from `offset` on, which may be behind the end as yet: they must not be
  /// looked at before they are written. They stay mapped for as long as this object lives.
  const std::byte* map(std::uint64_t offset, std::uint64_t bytes) {
    if (bytes == 0) return nullptr;
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::uint64_t before = offset % page;
    const auto length = static_cast<std::size_t>(bytes + before);
    parts_.push_back({nullptr, 0});  // room first: a mapping must not be lost
    void* const at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file_.number(),
                            static_cast<::off_t>(offset - before));
    if (at == MAP_FAILED) {
      parts_.pop_back();
      raise_errno("Datastore", path_);
    }
    parts_.back() = {at, length};
    return static_cast<const std::byte*>(at) + before;
  }

  /// Writes at `offset`. @throws infty::IoError such as for a full disk
  void write_at(std::uint64_t offset, const void* from, std::uint64_t bytes) const {
    const auto* in = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      const ::ssize_t put = ::pwrite(file_.number(), in, bytes, static_cast<::off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) raise_errno("Datastore", path_);
      in += put;
      offset += static_cast<std::uint64_t>(put);
      bytes -= static_cast<std::uint64_t>(put);
    }
  }

  /// Cuts what is behind `bytes` off. @throws infty::IoError
  void truncate(std::uint64_t bytes) const {
    if (::ftruncate(file_.number(), static_cast<::off_t>(bytes)) != 0)
      raise_errno("Datastore", path_);
  }

  /// Waits until what was written is on the disk. @throws infty::IoError
  void sync() const {
    if (::fdatasync(file_.number()) != 0) raise_errno("Datastore", path_);
  }

 private:
  struct Part {
    void* at;
    std::size_t bytes;
  };
  std::filesystem::path path_;
  Descriptor file_;
  std::vector<Part> parts_;
};

}  // namespace infty::detail
