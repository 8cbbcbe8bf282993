// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>

#include "machine.hpp"

// What settings need is estimated before anything of it is allocated, in double, so that no size is
// too large to be told. Estimates count what is large in every model and leave out the rest.

namespace support {

using infty::Index;

/// Bytes of the matrices of a long-term memory's writes of up to `length` vectors, N basis
/// functions and so many samples of the past, and of what they are solved from, in double.
inline double write_bytes(double basis, double samples, double length) {
  const double places = samples + length;
  return sizeof(float) * (places * basis + basis * basis) +
         sizeof(double) * (2 * places * basis + 2 * basis * basis);
}

namespace detail {

/// Makes setting number `at` no larger than by default; its name and value, or nothing where it is
/// no size or not larger.
template <class Settings>
std::string reduce(Settings& settings, std::size_t at) {
  std::optional<std::vector<Index>> usual;
  std::string told;
  std::size_t i = 0;
  const auto keep = [&]<class T>(const char*, const char*, const T& field, const auto&...) {
    if (i++ != at) return;
    if constexpr (std::same_as<T, Index>) usual = std::vector{field};
    if constexpr (std::same_as<T, std::vector<Index>>) usual = field;
  };
  const auto set = [&]<class T>(const char*, const char* name, T& field, const auto&...) {
    if (i++ != at || !usual) return;
    const std::string option = std::string("--") + name;
    if constexpr (std::same_as<T, Index>) {
      if (field > usual->front()) told = option + " is " + std::to_string(field);
      field = std::min(field, usual->front());
    }
    if constexpr (std::same_as<T, std::vector<Index>>) {
      for (const Index element : field)
        if (element == *std::max_element(field.begin(), field.end()))
          told = option + " has " + std::to_string(element);
      field = *usual;
    }
  };
  Settings defaults;
  each_setting(defaults, keep);
  i = 0;
  each_setting(settings, set);
  return told;
}

}  // namespace detail

/// Refuses settings that need more bytes than there are: infty::ValueError that names the option
/// without which the need would be least, were it no larger than by default.
/// @param need   bytes of such settings
/// @param limit  bytes that there are
template <class Settings, class Bytes>
void require_memory(const char* program, const Settings& settings, const Bytes& need,
                    double limit = memory_limit()) {
  const double bytes = need(settings);
  if (bytes <= limit) return;
  std::size_t count = 0;
  each_setting(const_cast<Settings&>(settings), [&](const auto&...) { ++count; });
  std::string option;
  double least = bytes;
  for (std::size_t at = 0; at < count; ++at) {
    Settings changed = settings;
    const std::string told = detail::reduce(changed, at);
    if (told.empty() || need(changed) >= least) continue;
    least = need(changed);
    option = told + ": with it ";
  }
  const auto gibibytes = [](double amount) {
    std::ostringstream out;
    out.precision(3);
    out << amount / gibibyte << " GiB";
    return out.str();
  };
  infty::raise<infty::ValueError>(program, option, "these settings need about ", gibibytes(bytes),
                                  " of memory, and there are ", gibibytes(limit));
}

}  // namespace support
