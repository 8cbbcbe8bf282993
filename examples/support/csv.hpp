// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace support {

/// Fields with commas between them, numbers by the shortest digits that are read as the same.
class Csv {
 public:
  explicit Csv(std::string header) : text_(std::move(header)) {}

  template <class... Fields>
  void row(const Fields&... fields) {
    line();
    (field(fields), ...);
  }

  /// Begins a row, whose fields are added one by one.
  void line() { before_ = "\n"; }

  template <class Field>
  void field(const Field& field) {
    text_ += before_;
    if constexpr (requires { text_ + field; })
      text_ += field;
    else
      text_ += nlohmann::json(field).dump();
    before_ = ",";
  }

  std::string text() const { return text_ + '\n'; }

 private:
  std::string text_;
  const char* before_ = "\n";
};

}  // namespace support
