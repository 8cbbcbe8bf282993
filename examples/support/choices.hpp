// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <type_traits>
#include <vector>

namespace support::detail {

/// The words that a setting is chosen from, which a list gives one by one or at once.
template <class... Choices>
std::vector<std::string> choices_of(const Choices&... choices) {
  if constexpr (sizeof...(Choices) == 1 &&
                (std::is_same_v<Choices, std::vector<std::string>> && ...))
    return (choices, ...);
  else
    return {std::string(choices)...};
}

}  // namespace support::detail
