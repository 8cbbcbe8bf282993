// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include <infty/version.hpp>  // says that C++20 is needed

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

namespace detail {

/// Where an error leaves that does not as an exception: through `INFTY_ERROR_HANDLER(message)`,
/// where the program defines one, which must not return; else the message is printed and the
/// program aborts.
[[noreturn]] inline void stop(const char* message) {
#if defined(INFTY_ERROR_HANDLER)
  INFTY_ERROR_HANDLER(message);
#else
  std::fprintf(stderr, "infty: %s\n", message);
#endif
  std::abort();
}

/// Throws std::bad_alloc: more is asked for than any machine has.
[[noreturn]] inline void raise_bad_alloc() {
#if defined(__cpp_exceptions)
  throw std::bad_alloc();
#else
  stop("out of memory");
#endif
}

/// What a message is put together of, while the call lasts that it is in: where it is, and what
/// prints it. So what puts a message together is compiled once, and not for all types at a call.
class MessagePart {
 public:
  template <class Part>
  MessagePart(const Part& part) : at_(std::addressof(part)), print_(print<Part>) {}
  MessagePart(const char* text) : at_(text), print_(print_text) {}

  friend std::ostream& operator<<(std::ostream& out, const MessagePart& part) {
    part.print_(out, part.at_);
    return out;
  }

 private:
  template <class Part>
  static void print(std::ostream& out, const void* part) {
    out << *static_cast<const Part*>(part);
  }
  static void print_text(std::ostream& out, const void* text) {
    out << static_cast<const char*>(text);
  }

  const void* at_;
  void (*print_)(std::ostream&, const void*);
};

/// Throws `E("[op] parts...")`, or stops.
template <class E>
[[noreturn]] void raise_message(std::string_view op, std::initializer_list<MessagePart> parts) {
  std::ostringstream message;
  message << '[' << op << "] ";
  for (const MessagePart& part : parts) message << part;
#if defined(__cpp_exceptions) && !defined(INFTY_ERROR_HANDLER)
  throw E(message.str());
#else
  stop(message.str().c_str());
#endif
}

/// f(); what it throws of type E comes to `explain(what)` first, which may throw more words in its
/// place. Without exceptions what was raised in f has ended the program in its own words.
template <class E, class F, class Explain>
decltype(auto) explained(F&& f, [[maybe_unused]] Explain&& explain) {
#if defined(__cpp_exceptions)
  try {
    return f();
  } catch (const E& error) {
    explain(error.what());
    throw;
  }
#else
  return f();
#endif
}

}  // namespace detail

/// Throws `E("[op] parts...")`; every error of the library leaves through here. Parts are values
/// and text, no functions such as std::hex. A build without exceptions (-fno-exceptions) prints the
/// message and aborts; one that defines `INFTY_ERROR_HANDLER(message)`, with exceptions or without,
/// ends as that says.
template <class E, class... Parts>
[[noreturn, gnu::noinline]] void raise(std::string_view op, const Parts&... parts) {
  detail::raise_message<E>(op, {detail::MessagePart(parts)...});
}

/// Throws `E("[op] parts...")` unless `ok`. The message is only put together when it is needed.
template <class E = ValueError, class... Parts>
void require(bool ok, std::string_view op, const Parts&... parts) {
  if (!ok) [[unlikely]]
    raise<E>(op, parts...);  // not inlined: the parts' list would be in the caller's frame
}

/// Throws ValueError "[op] NAME is VALUE: it must be at least LEAST" unless value >= least.
template <class T>
void require_at_least(std::string_view op, std::string_view name, const T& value,
                      const std::type_identity_t<T>& least) {
  require(value >= least, op, name, " is ", value, ": it must be at least ", least);
}

}  // namespace infty
