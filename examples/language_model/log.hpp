// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>

namespace language_model {

/// The file that a line is added to behind every step. What has been added is there when the
/// program is killed; a checkpoint says how long it was, and who goes on from there cuts it to
/// that. While it is open no other program can open it so.
class Log {
 public:
  explicit Log(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666)) {
    if (file_.number() < 0) infty::detail::raise_errno("log", path);
    infty::require<infty::IoError>(::flock(file_.number(), LOCK_EX | LOCK_NB) == 0, "log",
                                   path.string(), ": another program is training here");
  }

  /// Cuts it to its first `bytes` bytes. Throws infty::IoError if there are fewer.
  void cut(std::uint64_t bytes) {
    const ::off_t end = ::lseek(file_.number(), 0, SEEK_END);
    infty::require<infty::IoError>(end >= 0 && static_cast<std::uint64_t>(end) >= bytes, "log",
                                   path_.string(), " has ", end, " bytes, the checkpoint says ",
                                   bytes);
    if (::ftruncate(file_.number(), static_cast<::off_t>(bytes)) != 0)
      infty::detail::raise_errno("log", path_);
    bytes_ = bytes;
  }

  void append(std::string_view line) {
    bytes_ += line.size();
    while (!line.empty()) {
      const ::ssize_t put = ::write(file_.number(), line.data(), line.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) infty::detail::raise_errno("log", path_);
      line.remove_prefix(static_cast<std::size_t>(put));
    }
  }

  /// Bytes on the disk, for certain.
  std::uint64_t sync() {
    if (::fsync(file_.number()) != 0) infty::detail::raise_errno("log", path_);
    return bytes_;
  }

 private:
  std::filesystem::path path_;
  infty::detail::Descriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace language_model
