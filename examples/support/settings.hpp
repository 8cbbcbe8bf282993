// SPDX-License-Identifier: MIT
#pragma once

#include <nlohmann/json.hpp>

// A program's settings are a struct with a function beside it, found by its argument,
//
//     each_setting(Settings&, see)
//
// that calls see(group, name, field, help, choice...) for every one of them. From this one list
// come the options of the command line (options.hpp) and the JSON in results and checkpoints.

namespace support {

/// The settings by their names.
template <class Settings>
nlohmann::json to_json(const Settings& settings) {
  auto json = nlohmann::json::object();
  each_setting(const_cast<Settings&>(settings),
               [&](const char*, const char* name, const auto& field, const auto&...) {
                 json[name] = field;
               });
  return json;
}

/// The settings of which `to_json` made this. Throws nlohmann::json::exception for one that is
/// missing.
template <class Settings>
Settings settings_from(const nlohmann::json& json) {
  Settings settings;
  each_setting(settings, [&](const char*, const char* name, auto& field, const auto&...) {
    json.at(name).get_to(field);
  });
  return settings;
}

}  // namespace support
