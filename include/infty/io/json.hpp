// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/utf8.hpp>

namespace infty::detail {

/// Writes `text` as a JSON string with its quotation marks. @pre `text` is UTF-8
inline std::string to_json(std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += hex[byte >> 4U];
      out += hex[byte & 15U];
    } else {
      out += c;
    }
  }
  return out += '"';
}

/// The value of a number as JSON writes it, whatever the program's locale; infinite beyond what a
/// double holds, 0 or nearly so below. By a stream, for libc++ 16 lacks std::from_chars of a
/// double.
inline double number_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  double value = 0;
  in >> value;
  // A failure is the largest double in one library, infinity or what is nearly 0 in another.
  return in.fail() && std::fabs(value) >= 1 ? std::copysign(math::infinity<double>, value) : value;
}

/// Whether this is a number as JSON writes it, and one that a double holds.
inline bool is_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto take = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != any.npos && ++at > 0;
  };
  const auto digits = [&] {
    const std::size_t begin = at;
    while (take("0123456789")) continue;
    return at > begin;
  };
  if (!take("0") && !digits()) return false;
  if (take(".") && !digits()) return false;
  constexpr std::size_t few = 300;  // what has no more digits and no exponent is finite
  const bool exponent = take("eE");
  if (exponent) {
    take("+-");
    if (!digits()) return false;
  }
  if (at != text.size()) return false;
  return (!exponent && text.size() <= few) || math::is_finite(number_of(text));
}

/// A strict JSON reader (RFC 8259) for objects, arrays, strings and unsigned integers, all that a
/// safetensors header may hold. The caller pulls the values it expects, so nothing is built and
/// nothing recurses on what the text says; the text is not copied.
/// Every function throws infty::IoError, naming `where` and the byte, on anything else.
class JsonReader {
 public:
  enum class Kind { object, array, string, integer };

  /// Stands in front of a document, which is checked as it is read.
  /// @param text   the document, which must outlive the reader
  /// @param where  begins every message, such as the file's name
  JsonReader(std::string_view text, std::string_view where) : text_(text), where_(where) {
    at_ = utf8_prefix(text_);
    if (at_ != text_.size()) fail("invalid UTF-8");
    at_ = 0;
  }

  /// Looks at what the next value is, without taking it.
  Kind peek() {
    skip_space();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '{') return Kind::object;
    if (c == '[') return Kind::array;
    if (c == '"') return Kind::string;
    if (c >= '0' && c <= '9') return Kind::integer;
    fail("expected an object, an array, a string or an unsigned integer");
  }

  /// Takes an object; `member(std::string key)` must take each value. Repeated keys are passed on.
  template <class Member>
  void object(Member&& member) {
    expect('{', "an object");
    if (take('}')) return;
    do {
      std::string key = string();
      expect(':', "':'");
      member(std::move(key));
    } while (take(','));
    expect('}', "',' or '}'");
  }

  /// Takes an array; `element()` must take each value.
  template <class Element>
  void array(Element&& element) {
    expect('[', "an array");
    if (take(']')) return;
    do {
      element();
    } while (take(','));
    expect(']', "',' or ']'");
  }

  /// Takes a string, as UTF-8; escaped surrogates must come in pairs.
  std::string string() {
    expect('"', "a string");
    std::string out;
    for (;;) {
      std::size_t end = at_;
      while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' &&
             static_cast<unsigned char>(text_[end]) >= 0x20)
        ++end;
      out.append(text_.substr(at_, end - at_));
      at_ = end;
      if (at_ == text_.size()) fail("a string that does not end");
      if (text_[at_] == '"') {
        ++at_;
        return out;
      }
      if (text_[at_] != '\\') fail("a control character in a string");
      ++at_;
      escape(out);
    }
  }

  /// Takes an integer of 0 to 2^64 - 1, written without fraction and exponent.
  std::uint64_t integer() {
    skip_space();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
      if (value > ((std::numeric_limits<std::uint64_t>::max)() - digit) / 10)
        fail("an integer above 2^64 - 1");
      value = value * 10 + digit;
    }
    if (at_ == begin) fail("expected an unsigned integer");
    if (text_[begin] == '0' && at_ > begin + 1) fail("an integer with a leading zero");
    if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E'))
      fail("a number that is not written as an integer");
    return value;
  }

  /// Takes any value, numbers with signs, fractions and exponents, true, false and null too, and
  /// returns it as it is written. Values lie in each other 32 deep at most.
  std::string_view raw(int depth = 0) {
    skip_space();
    if (depth > 32) fail("it is nested too deeply");
    const std::size_t begin = at_;
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '{')
      object([&](const std::string&) { raw(depth + 1); });
    else if (c == '[')
      array([&] { raw(depth + 1); });
    else if (c == '"')
      string();
    else
      word();
    return text_.substr(begin, at_ - begin);
  }

  /// Nothing but space may follow.
  void finish() {
    skip_space();
    if (at_ != text_.size()) fail("something follows the end of the document");
  }

  /// Throws infty::IoError with where, the current byte and the parts.
  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    raise<IoError>("json", where_, ": byte ", at_, ": ", parts...);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!take(c)) fail("expected ", what);
  }

  /// Takes true, false, null or a number.
  void word() {
    const std::size_t begin = at_;
    at_ = (std::min)(text_.find_first_of(" \t\r\n,:[]{}\"", at_), text_.size());
    const std::string_view taken = text_.substr(begin, at_ - begin);
    if (taken == "true" || taken == "false" || taken == "null") return;
    if (!is_number(taken)) {
      at_ = begin;
      fail("expected a value");
    }
  }

  std::uint32_t hex4() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      std::uint32_t digit = 0;
      if (c >= '0' && c <= '9') {
        digit = static_cast<std::uint32_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<std::uint32_t>(c - 'a' + 10);
      } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<std::uint32_t>(c - 'A' + 10);
      } else {
        fail("\\u needs four hexadecimal digits");
      }
      value = value * 16 + digit;
    }
    return value;
  }

  void escape(std::string& out) {
    constexpr std::string_view names = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (const auto i = names.find(c); i != std::string_view::npos)
      out += meant[i];
    else if (c == 'u')
      append_utf8(out, escaped_code_point());
    else
      fail("an unknown escape in a string");
  }

  std::uint32_t escaped_code_point() {
    const std::uint32_t high = hex4();
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || text_.substr(at_, 2) != "\\u") fail("an unpaired surrogate");
    at_ += 2;
    const std::uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail("an unpaired surrogate");
    return 0x10000 + ((high - 0xD800) << 10U) + (low - 0xDC00);
  }

  std::string_view text_;
  std::string_view where_;
  std::size_t at_ = 0;
};

}  // namespace infty::detail
