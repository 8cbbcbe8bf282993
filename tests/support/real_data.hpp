// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "support/catch.hpp"

namespace infty::tests {

/// A file of the folder that the environment names by INFTY_DATA, which has `wikitext-2` and
/// `gpt2-bpe` in it; nothing, and a line that says so, where it is not there.
inline std::optional<std::filesystem::path> real_data(const std::string& name) {
  const char* const folder = std::getenv("INFTY_DATA");
  if (folder == nullptr) {
    WARN("skipped: INFTY_DATA does not name a folder with " << name);
    return std::nullopt;
  }
  const auto path = std::filesystem::path(folder) / name;
  REQUIRE(std::filesystem::exists(path));
  return path;
}

}  // namespace infty::tests
