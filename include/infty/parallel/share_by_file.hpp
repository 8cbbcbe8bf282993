// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <thread>

#include <infty/core/error.hpp>
#include <infty/io/file.hpp>
#include <infty/io/mapped_file.hpp>
#include <infty/parallel/communicator.hpp>

namespace infty {

/// Gives all ranks the bytes of the first by a file that all of them see, before they can talk: it
/// writes them, the others wait until they are there. Nobody removes the file; each start needs a
/// path of its own, that of a job's number, say, for what is there already is taken to be the
/// first rank's.
/// @param seconds  > 0, that the others wait
/// @throws infty::ValueError unless rank >= 0 and seconds > 0, or where the first rank finds the
/// file there; infty::IoError, and infty::CommunicationError on a rank that has waited in vain, or
/// finds another number of bytes
inline void share_by_file(const std::filesystem::path& path, int rank, std::span<std::byte> bytes,
                          double seconds) {
  require_at_least("share_by_file", "rank", rank, 0);
  require(seconds > 0, "share_by_file", "seconds is ", seconds, ": it must be above 0");
  if (rank == 0) {
    std::error_code error;
    const bool there = std::filesystem::exists(path, error);
    require<IoError>(!error, "share_by_file", path.string(), ": ", error.message());
    require(!there, "share_by_file", path.string(),
            " is there already: each start needs a path of its own");
    detail::ReplacingFile file(path);
    file.write(bytes.data(), bytes.size());
    file.commit();
    return;
  }
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  auto pause = std::chrono::milliseconds(1);
  std::error_code none;
  while (!std::filesystem::exists(path, none)) {
    require<CommunicationError>(Clock::now() < end, "share_by_file", "rank ", rank, " has waited ",
                                seconds, " s for ", path.string(), ", which the first rank writes");
    std::this_thread::sleep_for(pause);
    pause = (std::min)(pause * 2, std::chrono::milliseconds(200));
  }
  const MappedFile file(path);
  require<CommunicationError>(file.text().size() == bytes.size(), "share_by_file", path.string(),
                              " has ", file.text().size(), " bytes, not ", bytes.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), file.text().data(), bytes.size());
}

}  // namespace infty
