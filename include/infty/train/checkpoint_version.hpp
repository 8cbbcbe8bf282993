// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <infty/core/error.hpp>
#include <infty/io/json.hpp>
#include <infty/io/safetensors.hpp>

namespace infty {

/// The version of checkpoints that is written and read. It rises when what states, optimisers or
/// random generators hold, or what it is called, changes.
inline constexpr std::string_view checkpoint_version = "1";

/// Says in the file that it is a checkpoint of this version. `save_state`, `save_optimizer` and
/// `save_random` do; whoever saves metadata that is to be understood later calls it, too.
inline void mark_checkpoint(SafetensorsWriter& writer) {
  writer.metadata("infty.checkpoint", std::string(checkpoint_version));
}

/// Checks that a file is a checkpoint of this version.
/// @param needed  whether it must say so; otherwise it must not say another one
/// @throws infty::IoError that names both versions
inline void require_checkpoint(const SafetensorsFile& file, bool needed = true) {
  const auto at = file.metadata().find("infty.checkpoint");
  const bool there = at != file.metadata().end();
  if (there ? at->second == checkpoint_version : !needed) return;
  raise<IoError>("load", file.path().string(), " is a checkpoint of ",
                 there ? "version " + detail::printable(at->second) : "no version", ", version '",
                 checkpoint_version,
                 "' is needed: make it anew, or read it with the infty that wrote it");
}

}  // namespace infty
