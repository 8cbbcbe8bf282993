// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infty/core/error.hpp>

namespace infty::detail {

/// Throws infty::IoError with the path and the text of `errno`.
[[noreturn]] inline void raise_errno(std::string_view op, const std::filesystem::path& path) {
  const int error = errno;
  raise<IoError>(op, path.string(), ": ", std::generic_category().message(error));
}

/// An open file descriptor, closed at the end.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int number() const { return number_; }

  /// Closes now; false if the system reports an error.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

/// A regular file open for reading at any position, from any number of threads. It stays the file
/// that was opened even when another one is renamed into its place.
class InputFile {
 public:
  /// @throws infty::IoError if `path` cannot be opened or is no regular file
  explicit InputFile(const std::filesystem::path& path) : path_(path) {
    // O_NONBLOCK: opening a named pipe would otherwise wait for a writer, perhaps for ever.
    descriptor_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (descriptor_.number() < 0) raise_errno("open", path);
    struct ::stat status {};
    if (::fstat(descriptor_.number(), &status) != 0) raise_errno("open", path);
    require<IoError>(S_ISREG(status.st_mode), "open", path.string(), ": not a regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  const std::filesystem::path& path() const { return path_; }

  /// Bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }

  /// The number that the system knows the open file by.
  int descriptor() const { return descriptor_.number(); }

  /// Reads exactly `bytes` bytes from `offset`. @throws infty::IoError if they are not there
  void read_at(std::uint64_t offset, void* to, std::uint64_t bytes) const {
    auto* out = static_cast<std::byte*>(to);
    while (bytes > 0) {
      const ::ssize_t got = ::pread(descriptor_.number(), out, bytes, static_cast<::off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) raise_errno("read", path_);
      if (got == 0)
        raise<IoError>("read", path_.string(), ": the file ends at byte ", offset, ", ", bytes,
                       " bytes early");
      out += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::uint64_t>(got);
    }
  }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

/// A file that takes its place only when it is complete: it is written beside `path`, flushed to
/// the disk and renamed by commit(). Whatever happens before that, the old file stays as it was.
class ReplacingFile {
 public:
  /// What is written beside NAME is called NAME.tmp<process>-<number>.
  static constexpr const char* infix = ".tmp";

  /// @throws infty::IoError if no file can be made in the folder of `path`, or what is there is no
  /// file but a device, say
  explicit ReplacingFile(const std::filesystem::path& path) : path_(path) {
    std::error_code none_there;
    if (std::filesystem::is_other(path, none_there))
      raise<IoError>("save", path.string(), ": what is there is no file to replace");
    // Several programs or threads may save to one name; O_EXCL finds each a file of its own.
    for (int attempt = 0; attempt < 1000; ++attempt) {
      beside_ = path;
      beside_ += infix + std::to_string(::getpid()) + "-" + std::to_string(attempt);
      descriptor_ =
          Descriptor(::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (descriptor_.number() >= 0 || errno != EEXIST) break;
    }
    if (descriptor_.number() < 0) raise_errno("save", beside_);
  }

  ReplacingFile(const ReplacingFile&) = delete;
  ReplacingFile& operator=(const ReplacingFile&) = delete;

  ~ReplacingFile() {
    if (!committed_) ::unlink(beside_.c_str());
  }

  /// The file whose place it takes.
  const std::filesystem::path& path() const { return path_; }

  /// Appends. @throws infty::IoError such as for a full disk
  void write(const void* from, std::uint64_t bytes) {
    const auto* in = static_cast<const std::byte*>(from);
    while (bytes > 0) {
      const ::ssize_t put = ::write(descriptor_.number(), in, bytes);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) raise_errno("save", path_);
      in += put;
      bytes -= static_cast<std::uint64_t>(put);
    }
  }

  /// Puts the file in its place. @throws infty::IoError; then the old file is still there
  void commit() {
    if (::fsync(descriptor_.number()) != 0 || !descriptor_.close() ||
        ::rename(beside_.c_str(), path_.c_str()) != 0)
      raise_errno("save", path_);
    committed_ = true;
    // The new name reaches the disk with its folder; where a file system cannot flush a folder the
    // file is nevertheless complete, hence no error.
    const auto folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
    const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened.number() >= 0) ::fsync(opened.number());
  }

 private:
  std::filesystem::path path_;
  std::filesystem::path beside_;
  Descriptor descriptor_;
  bool committed_ = false;
};

/// Whether `name` is what a `ReplacingFile` of the file called `of` writes beside it.
inline bool is_unfinished(std::string_view name, std::string_view of) {
  constexpr std::string_view infix = ReplacingFile::infix;
  if (!name.starts_with(of) || !name.substr(of.size()).starts_with(infix)) return false;
  name.remove_prefix(of.size() + infix.size());
  const auto digits = [&name] {
    const std::size_t count = (std::min)(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(count);
    return count > 0;
  };
  if (!digits() || !name.starts_with('-')) return false;
  name.remove_prefix(1);
  return digits() && name.empty();
}

/// Removes what processes that were killed while they replaced `path` have left beside it. No
/// living one may be replacing it. @throws infty::IoError if the folder cannot be read
inline void remove_unfinished(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::error_code error;
  std::vector<std::filesystem::path> unfinished;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    if (at->symlink_status(error).type() == std::filesystem::file_type::regular &&
        is_unfinished(at->path().filename().string(), path.filename().string()))
      unfinished.push_back(at->path());
  require<IoError>(!error, "remove", folder.string(), ": ", error.message());
  for (const auto& file : unfinished) std::filesystem::remove(file, error);
}

}  // namespace infty::detail
