// SPDX-License-Identifier: MIT
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace infty {

/// Base of everything that infty throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A tensor's shape does not fit.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// A number or a configuration is out of its range.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// A file is missing, truncated, hostile or cannot be written.
class IoError : public Error {
 public:
  using Error::Error;
};

/// NaN or infinity where a finite number was needed.
class NonFiniteError : public Error {
 public:
  using Error::Error;
};

/// Throws `E("[op] parts...")`; every error of the library leaves through here. A build without
/// exceptions defines `INFTY_ERROR_HANDLER(message)`, which must not return.
template <class E, class... Parts>
[[noreturn]] void raise(std::string_view op, const Parts&... parts) {
  std::ostringstream message;
  message << '[' << op << "] ";
  (message << ... << parts);
#if defined(INFTY_ERROR_HANDLER)
  INFTY_ERROR_HANDLER(message.str().c_str());
#else
  throw E(message.str());
#endif
}

/// Throws `E("[op] parts...")` unless `ok`. The message is only put together when it is needed.
template <class E = ValueError, class... Parts>
void require(bool ok, std::string_view op, const Parts&... parts) {
  if (!ok) [[unlikely]]
    raise<E>(op, parts...);
}

/// Throws ValueError "[op] NAME is VALUE: it must be at least LEAST" unless value >= least.
template <class T>
void require_at_least(std::string_view op, std::string_view name, const T& value,
                      const std::type_identity_t<T>& least) {
  require(value >= least, op, name, " is ", value, ": it must be at least ", least);
}

}  // namespace infty
