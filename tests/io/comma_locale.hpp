// SPDX-License-Identifier: MIT
#pragma once

#include <clocale>
#include <locale>
#include <string>

namespace infty::tests {

/// While it lives, numbers are written with a decimal comma: by streams, which take what is made
/// here, and by the C library if a system has such a locale installed.
class CommaLocale {
 public:
  CommaLocale() {
    for (const char* const name :
         {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE"})
      if (name_ == "none" && std::setlocale(LC_NUMERIC, name)) name_ = name;
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  ~CommaLocale() {
    std::locale::global(before_);
    std::setlocale(LC_NUMERIC, "C");
  }

  /// Of the C library's, or "none".
  const std::string& name() const { return name_; }

 private:
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  // A locale without a name: it leaves the C library's as it is.
  std::locale before_ = std::locale::global(std::locale(std::locale::classic(), new Comma));
  std::string name_ = "none";
};

}  // namespace infty::tests
