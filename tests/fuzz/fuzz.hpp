// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <infty/core/error.hpp>

// A fuzz target is a source file that defines these two functions; runner.cpp makes a program of
// it.

namespace infty::fuzz {

/// Tries the library with any bytes. It must return: an exception, a sanitizer's finding or a
/// `check` that fails is a finding.
void run(std::string_view bytes);

/// Inputs to start from: small ones that get far.
std::vector<std::string> seeds();

/// Ends the program with a message unless `ok`.
inline void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "fuzz: this does not hold: %s\n", what);
  std::abort();
}

/// Whether f() was not refused by an infty::Error; anything else that it throws passes.
template <class F>
bool accepted(F&& f) {
  try {
    f();
  } catch (const Error&) {
    return false;
  }
  return true;
}

/// Takes bytes apart from the front; behind their end come zeros.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }

  /// The next bytes as they would lie in memory.
  template <class T>
  T raw() {
    T value{};
    const std::size_t size = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), size);
    rest_.remove_prefix(size);
    return value;
  }

  /// A number of [0, n), n <= 256, of one byte.
  template <std::integral T>
  T below(T n) {
    return static_cast<T>(raw<std::uint8_t>() % static_cast<std::uint64_t>(n));
  }

  bool flag() { return below(2) == 1; }

  /// One of these.
  template <class T>
  const T& any_of(const std::vector<T>& values) {
    return values[below(values.size())];
  }

  /// The bytes up to the next zero byte, which is left out, or to the end.
  std::string_view part() {
    const std::size_t end = std::min(rest_.find('\0'), rest_.size());
    const auto out = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return out;
  }

  /// All that is left.
  std::string_view rest() { return std::exchange(rest_, {}); }

 private:
  std::string_view rest_;
};

/// Numbers as the bytes that `Input::raw` takes them from.
template <class... T>
std::string bytes_of(const T&... values) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return out;
}

/// A regular file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : number_(::memfd_create("infty-fuzz", 0)) {
    if (number_ < 0 ||
        ::write(number_, bytes.data(), bytes.size()) != static_cast<::ssize_t>(bytes.size()))
      throw std::runtime_error("no file in memory");
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(number_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

}  // namespace infty::fuzz
