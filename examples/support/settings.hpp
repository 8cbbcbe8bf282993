// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/core/error.hpp>
#include <infty/io/json.hpp>
#include <infty/model/settings.hpp>

#include "choices.hpp"
#include "json.hpp"

// A program's settings are a struct with a function beside it, found by its argument,
//
//     each_setting(Settings&, see)
//
// that calls see(group, name, field, help, choice...) for every one of them. From this one list
// come the options of the command line (options.hpp) and the JSON in results and checkpoints. Those
// that are the library's are described there: the list only chooses them.

namespace support {

/// A setting of a configuration, and the option that it is in a program.
struct Chosen {
  const char* setting;
  const char* option = setting;
};

/// Calls see(group, option, field, help) for some of a configuration's settings, whose fields and
/// words are the library's (infty/model/settings.hpp). Throws infty::ValueError for a setting that
/// there is not.
template <class Config, class See>
void each_chosen(const char* group, Config& config, std::initializer_list<Chosen> list, See&& see) {
  for (const Chosen& chosen : list) {
    bool found = false;
    describe(config, [&]<class Field>(const char* name, Field& field, const char* help) {
      if constexpr (!std::is_enum_v<Field> && !infty::Described<Field>)
        if (std::string_view(name) == chosen.setting) {
          see(group, chosen.option, field, help);
          found = true;
        }
    });
    infty::require(found, "settings", "there is no setting ", chosen.setting);
  }
}

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

namespace detail {

/// Throws infty::IoError unless the text, or every text of a list, is one of the choices.
template <class T>
void require_choice(const T& value, const std::vector<std::string>& choices,
                    const std::string& where) {
  if constexpr (std::is_same_v<T, std::string>)
    infty::require<infty::IoError>(
        std::find(choices.begin(), choices.end(), value) != choices.end(), "settings", where,
        " is ", infty::detail::printable(value), ", which is none of its choices");
  else
    for (const auto& element : value) require_choice(element, choices, where);
}

}  // namespace detail

/// What settings were before programs had them, by their names: files that are older lack these.
inline const nlohmann::json& before_they_were() {
  static const auto values = nlohmann::json::parse(R"({
    "contraction": "fixed", "shards": 0, "reduce": "tree", "products": "float32", "stored": "float32", "spalm": "", "spalm-neighbours": 4, "spalm-index": "exact", "power": 1.0, "powers": [0.5, 1.0], "block": 16, "waiting": "written",
    "taus": [0.5, 0.75, 0.9, 0.95, 0.98], "test-lengths": [], "test-sequences": 64, "mqar-mix-rates": [], "mqar-heads": 2, "from": "", "positions": "none", "neighbours": 0, "merge": "gate", "key-heads": 0, "local-cache": 0, "local-window": 0, "lookup-layers": [-1], "lookup-heads": 4, "lookup-slots": 0, "lookup-norm": true,
    "values-rate": 0.0,
    "parameters": 0, "threshold": 0, "pretrain": 0, "pretrain-batch": 32, "pretrain-rate": 0.001, "candidates": 0, "relations": "", "relation-names": ""})");
  return values;
}

/// The settings of which `to_json` made this; `where` begins every message, such as a file's name.
/// Throws infty::IoError that names the first setting that is missing, though it is as old as the
/// program, is unknown, or has a value of another type.
template <class Settings>
Settings settings_from(const nlohmann::json& json, const std::string& where) {
  constexpr const char* other = ": it was written by another version of this program";
  infty::require<infty::IoError>(json.is_object(), "settings", where, ": there are no settings");
  Settings settings;
  std::set<std::string> known;
  each_setting(settings, [&](const char*, const char* name, auto& field, const char*,
                             const auto&... choices) {
    const std::string here = where + ": --" + name;
    if (const auto at = json.find(name); at != json.end()) {
      read(*at, field, here);
    } else {
      const auto before = before_they_were().find(name);
      infty::require<infty::IoError>(before != before_they_were().end(), "settings", where,
                                     " lacks the setting --", name, other);
      read(*before, field, here);
    }
    if constexpr (sizeof...(choices) > 0)
      detail::require_choice(field, detail::choices_of(choices...), here);
    known.insert(name);
  });
  for (const auto& item : json.items())
    infty::require<infty::IoError>(known.contains(item.key()), "settings", where,
                                   " has the unknown setting ",
                                   infty::detail::printable(item.key()), other);
  return settings;
}

}  // namespace support
