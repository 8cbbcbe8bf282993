// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include <unistd.h>

#include <infty/core/error.hpp>

#include "interrupt.hpp"
#include "progress_line.hpp"

namespace support {

/// How long a text is to be, and how often its speed is said.
struct Writing {
  infty::Index tokens = 200;
  infty::Index interval = 0;  ///< tokens between lines on the speed; 0: at the end
};

/// Writes a prompt and behind it text to standard output as it comes, and on standard error how
/// fast. Throws Interrupted where a signal comes.
/// @param next   next(number) reads what was written last; the bytes of the token behind it, or
///               nothing where the text ends
/// @param bytes  bytes() of what is remembered
template <class Next, class Bytes>
void write_tokens(const Writing& writing, const std::string& prompt, Next&& next, Bytes&& bytes) {
  const infty::Index interval = writing.interval > 0 ? writing.interval : writing.tokens;
  std::fputs(prompt.c_str(), stdout);
  // Where the text itself is seen, it is its own progress.
  std::optional<ProgressLine> line;
  if (::isatty(STDOUT_FILENO) == 0) line.emplace("write", writing.tokens, 0, "token");
  auto since = std::chrono::steady_clock::now();
  bool ended = false;
  for (infty::Index done = 1; done <= writing.tokens && !ended; ++done) {
    const std::optional<std::string> text = next(done);
    ended = !text;
    if (text) std::fwrite(text->data(), 1, text->size(), stdout);
    std::fflush(stdout);
    infty::require<infty::IoError>(std::ferror(stdout) == 0, "generate",
                                   "standard output cannot be written");
    if (ended || done % interval == 0 || done == writing.tokens) {
      if (line) line->clear();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
      const infty::Index behind = done % interval == 0 ? interval : done % interval;
      const std::size_t held = bytes();
      std::fprintf(stderr, "\n%lld tokens%s: %.0f tokens/s, %zu bytes of memory\n",
                   static_cast<long long>(done), ended ? ", the last of them the text's end" : "",
                   static_cast<double>(behind) / time.count(), held);
      since = std::chrono::steady_clock::now();
    }
    if (line && !ended) line->update(done);
    if (InterruptGuard::signal() != 0) std::fputc('\n', stdout);
    stop_if_interrupted([&] {
      return "stopped behind " + std::to_string(done) + " of " + std::to_string(writing.tokens) +
             " tokens";
    });
  }
  std::fputc('\n', stdout);
}

}  // namespace support
