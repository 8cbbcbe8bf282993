// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/nn/sampling.hpp>

#include "choices.hpp"
#include "ranges.hpp"
#include "version.hpp"

// The command lines of all programs. A number is the whole text of its option or nothing, and lies
// in the option's range; a list is read element by element.

namespace support {

namespace detail {

/// A text as a message shows it.
inline std::string shown(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(" \t\r\n\v\f") == std::string::npos;
  return plain ? text : '"' + text + '"';
}

/// Reads a value from the whole of a text; false if it is none, or out of range.
template <class T>
bool read(const std::string& text, const Range<T>& range, T& value) {
  if constexpr (std::same_as<T, std::string>) {
    value = text;
    return true;
  } else if constexpr (std::same_as<T, bool>) {
    value = text == "true" || text == "1";
    return value || text == "false" || text == "0";
  } else {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && at == end && range.holds(value);
  }
}

/// The elements of a list whose parts came one by one or with commas between them.
inline std::vector<std::string> elements(const std::vector<std::string>& parts) {
  std::vector<std::string> all;
  for (const std::string& part : parts)
    for (std::size_t begin = 0; begin <= part.size();) {
      const std::size_t end = std::min(part.find(',', begin), part.size());
      all.push_back(part.substr(begin, end - begin));
      begin = end + 1;
    }
  return all;
}

/// The option of the program or of one of its subcommands, null if there is none.
inline const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  if (const CLI::Option* const option = app.get_option_no_throw(name)) return option;
  for (const CLI::App* const command : app.get_subcommands({}))
    if (const CLI::Option* const option = find_option(*command, name)) return option;
  return nullptr;
}

}  // namespace detail

/// An option whose value is read as described above. A list takes up to 64 elements, of `choices`
/// if there are any. What is wrong is a CLI::ValidationError that says what it had to be.
template <class T>
CLI::Option* add_option(CLI::App& app, const std::string& name, T& field, const std::string& help,
                        const Range<ElementOf<T>>& range = {},
                        const std::vector<std::string>& choices = {}) {
  using Element = ElementOf<T>;
  constexpr bool list = !std::same_as<T, Element>;
  const auto read = [&field, name, range, choices](const std::vector<std::string>& parts) {
    if constexpr (list) field.clear();
    for (const std::string& text : list ? detail::elements(parts) : parts) {
      if (!choices.empty())
        if (const std::string wrong = CLI::IsMember(choices)(text); !wrong.empty())
          throw CLI::ValidationError(name, wrong);
      Element value{};
      if (!detail::read(text, range, value))
        throw CLI::ValidationError(name + (list ? " has " : " is ") + detail::shown(text) +
                                   (list ? ": each" : ": it") + " must be " + wanted(range));
      if constexpr (list)
        field.push_back(std::move(value));
      else
        field = std::move(value);
    }
    return true;
  };
  CLI::Option* const option = app.add_option(
      name, read, help, false, [&field] { return CLI::detail::checked_to_string<T, T>(field); });
  option->type_name(CLI::detail::type_name<T>());
  if constexpr (list) option->expected(1, 64);
  return option;
}

/// One option of the command line for every setting, in its group; returns them.
template <class Settings>
std::vector<CLI::Option*> add_options(CLI::App& app, Settings& settings) {
  std::vector<CLI::Option*> options;
  each_setting(settings, [&]<class T>(const char* group, const char* name, T& field,
                                      const char* help, const auto&... choices) {
    CLI::Option* const option =
        add_option(app, std::string("--") + name, field, help, range_of<ElementOf<T>>(name),
                   detail::choices_of(choices...));
    option->capture_default_str()->group(group);
    options.push_back(option);
  });
  return options;
}

/// The options that say how a class, such as the next token, is drawn.
inline void add_sampling(CLI::App& app, infty::Sampling& sampling) {
  add_option(app, "--temperature", sampling.temperature, "0: always the likeliest", {.least = 0})
      ->capture_default_str();
  add_option(app, "--top-k", sampling.top_k,
             "of the likeliest tokens only, and of equals of the last; 0: all", from(0))
      ->capture_default_str();
  add_option(app, "--top-p", sampling.top_p, "of the likeliest with this share only", {1e-9, 1})
      ->capture_default_str();
}

/// How what runs a trained model multiplies; see products.hpp.
/// @param otherwise  how it does without the option, in words
inline void add_products(CLI::App& app, std::string& products, const std::string& otherwise) {
  add_option(app, "--products", products,
             "factors of the model's matrix products, as in training; without: " + otherwise, {},
             {"float32", "bfloat16"});
}

/// What a model that is not trained keeps its matrices as.
inline void add_weights(CLI::App& app, std::string& weights) {
  add_option(
      app, "--weights", weights,
      "as what the model's matrices are kept: bfloat16 is half of the bytes, and up to twice "
      "as fast a token",
      {}, {"float32", "bfloat16"})
      ->capture_default_str();
}

/// Reads the command line and calls `check`, which may throw CLI::ParseError. The status to end
/// with, if the program is to end: 0 behind --help and --version, 1 behind a message on standard
/// error.
template <class Check>
std::optional<int> parse(CLI::App& app, int argc, char** argv, Check&& check) {
  if (app.get_name().empty()) app.name(argv[0]);
  app.set_version_flag("--version", [&app] { return version_text(app.get_name()); });
  try {
    std::vector<std::string> words;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
      const std::string name = word.substr(0, equals);
      const CLI::Option* const option =
          equals == std::string::npos ? nullptr : detail::find_option(app, name);
      const bool flag = option && option->get_items_expected_max() == 0;
      if (flag) throw CLI::ValidationError(name + " takes no value: it got " + word.substr(equals));
      // CLI11 would take the next word for the value.
      const bool empty = option && equals + 1 == word.size();
      words.push_back(empty ? name : word);
      if (empty) words.emplace_back();
    }
    std::reverse(words.begin(), words.end());
    app.parse(std::move(words));
    check();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return std::nullopt;
}

/// The same without a check.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  return parse(app, argc, argv, [] {});
}

}  // namespace support
