// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include <infty/core/error.hpp>
#include <infty/io/json.hpp>
#include <infty/io/mapped_file.hpp>

// JSON that was read from a file says what it likes: every value is taken through these functions,
// which throw infty::IoError that says where it stands, what is there and what is needed.
// nlohmann's own get<T> makes integers of 1e300, and of true.
//
// A struct with a function beside it, found by its argument, that calls see(name, field) for each
// of its fields
//
//     each_field(Struct&, see)
//
// is an object with just these names.

namespace support {

struct AnyField {
  template <class Field>
  void operator()(const char*, Field&) const {}
};

template <class T>
concept HasFields = requires(T& value) { each_field(value, AnyField{}); };

/// The value as JSON.
template <class T>
nlohmann::json json_of(const T& value) {
  if constexpr (HasFields<T>) {
    auto json = nlohmann::json::object();
    each_field(const_cast<T&>(value),
               [&](const char* name, const auto& field) { json[name] = json_of(field); });
    return json;
  } else if constexpr (requires { typename T::value_type; } && !std::same_as<T, std::string>) {
    auto json = nlohmann::json::array();
    for (const auto& element : value) json.push_back(json_of(element));
    return json;
  } else {
    return value;
  }
}

/// Parses a document. `where` begins every message, such as a file's name.
inline nlohmann::json parse_json(std::string_view text, const std::string& where) {
  try {
    // What compares and prints it goes as deep as it does.
    return nlohmann::json::parse(text, [&](int depth, auto, const nlohmann::json&) {
      infty::require<infty::IoError>(depth <= 32, "json", where, ": it is nested too deeply");
      return true;
    });
  } catch (const nlohmann::json::exception& error) {
    infty::raise<infty::IoError>("json", where, " is damaged: ", error.what());
  }
}

/// Parses a file.
inline nlohmann::json read_json(const std::filesystem::path& path) {
  return parse_json(infty::MappedFile(path).text(), path.string());
}

namespace detail {

[[noreturn]] inline void unfit(const nlohmann::json& json, const std::string& where,
                               const std::string& needed) {
  const std::string there = json.is_structured() ? json.type_name() : json.dump();
  infty::raise<infty::IoError>("json", where, " is ", infty::detail::printable(there), ": ", needed,
                               " is needed");
}

template <std::integral T>
void read_integer(const nlohmann::json& json, T& to, const std::string& where) {
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.template get<std::uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.template get<std::int64_t>())
                                               : false;
  if (!fits)
    unfit(json, where,
          "an integer from " + std::to_string(std::numeric_limits<T>::min()) + " to " +
              std::to_string(std::numeric_limits<T>::max()));
  to = json.template get<T>();
}

}  // namespace detail

/// Takes a value of just this type and range: true is no number, 1.0 no integer.
template <class T>
void read(const nlohmann::json& json, T& to, const std::string& where) {
  if constexpr (std::same_as<T, bool>) {
    if (!json.is_boolean()) detail::unfit(json, where, "true or false");
    to = json.get<bool>();
  } else if constexpr (std::integral<T>) {
    detail::read_integer(json, to, where);
  } else if constexpr (std::floating_point<T>) {
    if (!json.is_number()) detail::unfit(json, where, "a number");
    to = json.get<T>();
  } else if constexpr (std::same_as<T, std::string>) {
    if (!json.is_string()) detail::unfit(json, where, "a string");
    to = json.get<std::string>();
  } else if constexpr (HasFields<T>) {
    if (!json.is_object()) detail::unfit(json, where, "an object");
    std::size_t known = 0;
    each_field(to, [&](const char* name, auto& field) {
      const auto at = json.find(name);
      infty::require<infty::IoError>(at != json.end(), "json", where, " has no ", name);
      read(*at, field, where + ": " + name);
      ++known;
    });
    infty::require<infty::IoError>(json.size() == known, "json", where, " has ", json.size(),
                                   " fields: ", known, " are known");
  } else {
    if (!json.is_array()) detail::unfit(json, where, "an array");
    to.clear();
    for (const auto& element : json) {
      typename T::value_type value{};
      read(element, value, where + '[' + std::to_string(to.size()) + ']');
      to.push_back(std::move(value));
    }
  }
}

/// Parses a text that is a value of this type.
template <class T>
T parse(std::string_view text, const std::string& where) {
  T value{};
  read(parse_json(text, where), value, where);
  return value;
}

}  // namespace support
