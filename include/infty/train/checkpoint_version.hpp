// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <infty/core/error.hpp>
#include <infty/io/json.hpp>
#include <infty/io/safetensors.hpp>

namespace infty {

/// The version of checkpoints that is written. It rises when what states, optimisers or random
/// generators hold, or what it is called, changes.
inline constexpr std::string_view checkpoint_version = "2";

/// The version before, which is read, too: it called things otherwise (checkpoint_renames.hpp).
inline constexpr std::string_view first_checkpoint_version = "1";

/// Says in the file that it is a checkpoint of this version. `save_state`, `save_optimizer` and
/// `save_random` do; whoever saves metadata that is to be understood later calls it, too.
inline void mark_checkpoint(SafetensorsWriter& writer) {
  writer.metadata("infty.checkpoint", std::string(checkpoint_version));
}

/// Returns the version of checkpoints that a file says it is of, empty if it says none.
inline std::string_view version_of(const SafetensorsFile& file) {
  const auto at = file.metadata().find("infty.checkpoint");
  return at == file.metadata().end() ? std::string_view() : at->second;
}

/// Checks that a file is a checkpoint of a version that is read.
/// @param needed  whether it must say so; otherwise it must not say another one
/// @throws infty::IoError that names the versions
inline void require_checkpoint(const SafetensorsFile& file, bool needed = true) {
  const std::string_view said = version_of(file);
  const bool there = file.metadata().contains("infty.checkpoint");
  if (there ? said == checkpoint_version || said == first_checkpoint_version : !needed) return;
  raise<IoError>("load", file.path().string(), " is a checkpoint of ",
                 there ? "version " + detail::printable(said) : "no version", ", version '",
                 first_checkpoint_version, "' or '", checkpoint_version,
                 "' is needed: make it anew, or read it with the infty that wrote it");
}

}  // namespace infty
