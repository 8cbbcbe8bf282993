// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>

namespace support {

/// The right to write into a folder, or to a file, which one process has at a time: a second one is
/// refused. The system takes it back when the process ends, however it ends. It is a lock on a
/// file, `.lock` in the folder or NAME.lock beside the file, which is removed at the end.
class Lock {
 public:
  /// Makes the folder, if need be, and locks it. Throws infty::IoError that names the process that
  /// holds it, or why nothing can be written there; then nothing has changed there.
  static Lock folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    infty::require<infty::IoError>(std::filesystem::is_directory(folder), "out", folder.string(),
                                   " is no folder and cannot be made: ", error.message());
    Lock lock(folder, folder / ".lock", folder);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) infty::detail::raise_errno("out", folder);
    return lock;
  }

  /// Locks a file that is there or is to be made. Throws infty::IoError likewise.
  static Lock file(const std::filesystem::path& file) {
    std::filesystem::path beside = file;
    beside += ".lock";
    return Lock(file, beside, file.parent_path());
  }

  Lock(Lock&& other) noexcept
      : path_(std::move(other.path_)),
        folder_(std::move(other.folder_)),
        held_(std::move(other.held_)) {}
  Lock& operator=(Lock&&) = delete;
  ~Lock() {
    // While it is held: whoever opens the name later makes a file of their own.
    if (held_.number() >= 0) ::unlink(path_.c_str());
  }

  /// Removes what killed processes have left of files of these names in the folder.
  void remove_unfinished(std::initializer_list<std::string> names) const {
    for (const std::string& name : names) infty::detail::remove_unfinished(folder_ / name);
  }

 private:
  Lock(const std::filesystem::path& what, std::filesystem::path path, std::filesystem::path folder)
      : path_(std::move(path)), folder_(std::move(folder)) {
    // A process that was killed a moment ago may not be gone yet.
    constexpr std::chrono::milliseconds patience{1000}, pause{20};
    const auto start = std::chrono::steady_clock::now();
    while (!take()) {
      if (std::chrono::steady_clock::now() - start > patience)
        infty::raise<infty::IoError>("out", what.string(), ": another process", holder(),
                                     " is writing there: wait for it, or give another name");
      std::this_thread::sleep_for(pause);
    }
    const std::string number = std::to_string(::getpid());
    if (::ftruncate(held_.number(), 0) != 0 ||
        ::pwrite(held_.number(), number.data(), number.size(), 0) < 0)
      infty::detail::raise_errno("out", path_);
  }

  /// Whether the file that has the name now is locked by this process.
  bool take() {
    infty::detail::Descriptor opened(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (opened.number() < 0) infty::detail::raise_errno("out", path_);
    if (::flock(opened.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) infty::detail::raise_errno("lock", path_);
      return false;
    }
    struct ::stat mine {
    }, named{};
    if (::fstat(opened.number(), &mine) != 0 || ::stat(path_.c_str(), &named) != 0 ||
        mine.st_ino != named.st_ino || mine.st_dev != named.st_dev)
      return false;  // who held it has removed it meanwhile
    held_ = std::move(opened);
    return true;
  }

  /// " (1234)", if the process that holds the lock has said its number.
  std::string holder() const {
    const infty::detail::Descriptor opened(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    char number[24];
    const ::ssize_t got = ::pread(opened.number(), number, sizeof number, 0);
    const std::string text(number, got > 0 ? static_cast<std::size_t>(got) : 0);
    const bool good = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return good ? " (" + text + ')' : "";
  }

  std::filesystem::path path_, folder_;
  infty::detail::Descriptor held_;
};

}  // namespace support
