// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/io/file.hpp>
#include <infty/io/mapped_file.hpp>

namespace language_model {

/// The file that a line is added to behind every step. What has been added is there when the
/// program is killed; a checkpoint says how long it was, and who goes on from there cuts it to
/// that. Whoever opens it holds the folder's lock.
class Log {
 public:
  explicit Log(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_APPEND, 0666)) {
    if (file_.number() < 0) infty::detail::raise_errno("log", path);
  }

  /// Begins it anew by a line.
  void begin(std::string_view header) {
    cut(0);
    append(header);
  }

  /// Cuts it to its first `bytes` bytes, a header and `steps` lines. Throws infty::IoError if that
  /// is not what they are; then it stays as it is.
  void go_on(std::string_view header, std::uint64_t bytes, infty::Index steps) {
    const infty::MappedFile file(path_);
    infty::require<infty::IoError>(file.text().size() >= bytes, "log", path_.string(), " has ",
                                   file.text().size(), " bytes, the checkpoint says ", bytes,
                                   damaged);
    const std::string_view kept = file.text().substr(0, static_cast<std::size_t>(bytes));
    infty::require<infty::IoError>(kept.starts_with(header) && kept.ends_with('\n') &&
                                       std::count(kept.begin(), kept.end(), '\n') == steps + 1,
                                   "log", path_.string(), " does not have the ", steps,
                                   " steps of the checkpoint", damaged);
    cut(bytes);
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
  static constexpr const char* damaged =
      ": it is damaged; put the right file back, or begin anew by --fresh";

  void cut(std::uint64_t bytes) {
    if (::ftruncate(file_.number(), static_cast<::off_t>(bytes)) != 0)
      infty::detail::raise_errno("log", path_);
    bytes_ = bytes;
  }

  std::filesystem::path path_;
  infty::detail::Descriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace language_model
