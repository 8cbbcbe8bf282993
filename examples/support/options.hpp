// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

namespace support {

/// One option of the command line for every setting, in its group; returns them.
template <class Settings>
std::vector<CLI::Option*> add_options(CLI::App& app, Settings& settings) {
  std::vector<CLI::Option*> options;
  each_setting(settings, [&]<class T>(const char* group, const char* name, T& field,
                                      const char* help, const auto&... choices) {
    CLI::Option* const option = app.add_option(std::string("--") + name, field, help);
    option->capture_default_str()->group(group);
    if constexpr (!std::is_same_v<T, std::string> && requires { field.front(); })
      option->delimiter(',')->expected(1, 64);
    if constexpr (sizeof...(choices) > 0)
      option->check(CLI::IsMember(std::vector<std::string>{choices...}));
    options.push_back(option);
  });
  return options;
}

}  // namespace support
