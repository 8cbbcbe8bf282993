// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include <infty/core/error.hpp>

#include "io/temporary_folder.hpp"

namespace infty::tests {

/// What read(path) makes of a file of this name with these bytes.
template <class Read>
auto read_bytes(std::string_view name, std::string_view bytes, const Read& read) {
  const TemporaryFolder folder;
  write_text(folder / name, bytes);
  return read(folder / name);
}

/// What is said of such a file where it is refused, and nothing where it is not.
template <class Read>
std::string refusal(std::string_view name, std::string_view bytes, const Read& read) {
  try {
    read_bytes(name, bytes, read);
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

}  // namespace infty::tests
