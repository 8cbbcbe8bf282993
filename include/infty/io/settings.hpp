// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/visit.hpp>
#include <infty/io/json.hpp>

// A configuration's settings are named once, by a function beside it, found by its argument,
//
//     template <class See>
//     void describe(Config& config, See&& see) {
//       see("tau", config.tau, "share of [0, 1] that the past is contracted to");
//     }
//
// and an enumeration's values, from 0 on, by another:
//
//     constexpr std::array<std::string_view, 2> names_of(Choice) { return {"this", "that"}; }
//
// From these come JSON, tables, and, in programs, the options of the command line.

namespace infty {

/// Whether the values of an enumeration have names.
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E e) { names_of(e)[0]; };

namespace detail {

struct AnySetting {
  template <class Field>
  void operator()(const char*, Field&, const char*) const {}
};

}  // namespace detail

/// A struct whose settings have names.
template <class C>
concept Described = requires(C& config) { describe(config, detail::AnySetting{}); };

/// The name of an enumeration's value. @throws infty::ValueError for a value without one
template <NamedEnum E>
std::string_view name_of(E value) {
  const auto names = names_of(value);
  const auto i = static_cast<std::size_t>(value);
  require(i < names.size(), "name_of", "there is no name for value ", i, ": there are ",
          names.size());
  return names[i];
}

/// The value of this name. @throws infty::ValueError that lists the names if there is none
template <NamedEnum E>
E value_of(std::string_view name) {
  const auto names = names_of(E{});
  std::string all;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<E>(i);
    all += (i == 0 ? "" : ", ") + std::string(names[i]);
  }
  raise<ValueError>("value_of", "there is no ", detail::printable(name), ": there are ", all);
}

/// A setting, or a struct of settings, as JSON: an object, an array, a name, a number as short as
/// it can be read back, "inf", "-inf" or "nan" for what is none, true, false or null.
template <class C>
std::string settings_json(const C& value) {
  if constexpr (detail::is_optional<C>) {
    return value ? settings_json(*value) : "null";
  } else if constexpr (Described<C>) {
    std::string out;
    describe(const_cast<C&>(value), [&](const char* name, const auto& field, const char*) {
      out += (out.empty() ? "" : ",") + detail::to_json(name) + ':' + settings_json(field);
    });
    return '{' + out + '}';
  } else if constexpr (NamedEnum<C>) {
    return detail::to_json(name_of(value));
  } else if constexpr (std::same_as<C, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<C>) {
    if constexpr (std::floating_point<C>)
      if (!math::is_finite(value))  // JSON has no number for it
        return value > C(0) ? "\"inf\"" : value < C(0) ? "\"-inf\"" : "\"nan\"";
    char text[64];
    const auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return {text, end};
  } else if constexpr (std::convertible_to<C, std::string_view>) {
    return detail::to_json(value);
  } else {
    std::string out;
    for (const auto& element : value) out += (out.empty() ? "" : ",") + settings_json(element);
    return '[' + out + ']';
  }
}

/// Calls see(name, field, help) for every setting; a struct within the struct has its name and a
/// dot in front of those of its own, and is left out where it is empty.
template <Described C, class See>
void each_setting_of(C& config, See&& see, const std::string& prefix = "") {
  describe(config, [&](const char* name, auto& field, const char* help) {
    using Field = std::remove_reference_t<decltype(field)>;
    if constexpr (detail::is_optional<Field>) {
      if (field) each_setting_of(*field, see, prefix + name + '.');
    } else if constexpr (Described<Field>) {
      each_setting_of(field, see, prefix + name + '.');
    } else {
      see(prefix + name, field, help);
    }
  });
}

/// A table of the settings in Markdown: name, value, and what it is.
template <Described C>
std::string settings_table(C config) {
  std::string out = "| setting | default | |\n|---|---|---|\n";
  each_setting_of(config, [&]<class Field>(const std::string& name, const Field& field,
                                           const std::string& help) {
    std::string choices;
    if constexpr (NamedEnum<Field>)
      for (const std::string_view choice : names_of(field))
        choices += (choices.empty() ? ": " : ", ") + ('`' + std::string(choice) + '`');
    std::string value = settings_json(field);
    std::erase(value, '"');
    out += "| `" + name + "` | " + value + " | " + help + choices + " |\n";
  });
  return out;
}

namespace detail {

/// The members of a JSON object and their values, as they are written.
inline std::vector<std::pair<std::string, std::string>> json_members(std::string_view text,
                                                                     std::string_view where) {
  std::vector<std::pair<std::string, std::string>> members;
  JsonReader reader(text, where);
  reader.object(
      [&](std::string name) { members.emplace_back(std::move(name), std::string(reader.raw())); });
  reader.finish();
  return members;
}

}  // namespace detail

/// Throws infty::IoError that names the first setting in which two JSON objects of settings differ:
/// those of a file, and those that are asked for.
/// @param where   begins the message, such as the file's name
/// @param before  what settings were that the file may lack, for it is older than they are
inline void require_same_settings(std::string_view of_file, std::string_view asked,
                                  const std::string& where, std::string_view before = "{}") {
  const auto there = detail::json_members(of_file, where + ": settings");
  const auto here = detail::json_members(asked, "the settings that are asked for");
  const auto older = detail::json_members(before, "the settings from before");
  const auto find = [](const auto& members, const std::string& name) {
    for (const auto& [key, value] : members)
      if (key == name) return &value;
    return static_cast<const std::string*>(nullptr);
  };
  for (const auto& [name, value] : here) {
    const std::string* other = find(there, name);
    if (!other) other = find(older, name);
    require<IoError>(other, "settings", where, " lacks the setting ", detail::printable(name));
    require<IoError>(*other == value, "settings", where, " has ", name, ' ',
                     detail::printable(*other), ", and ", value, " is asked for");
  }
  for (const auto& member : there)
    require<IoError>(find(here, member.first), "settings", where, " has the unknown setting ",
                     detail::printable(member.first));
}

}  // namespace infty
