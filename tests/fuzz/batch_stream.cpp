// SPDX-License-Identifier: MIT
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <infty/data/batch_stream.hpp>

#include "fuzz/fuzz.hpp"

// Streams, batches and positions of any numbers: they are refused, or every token is a target once.

namespace infty::fuzz {

namespace {

/// Small, near an end of the range, or any.
Index number(Input& input) {
  using Limits = std::numeric_limits<Index>;
  switch (input.below(8)) {
    case 0:
      return input.raw<Index>();
    case 1:
      return Limits::max() - input.below(256);
    case 2:
      return Limits::min() + input.below(256);
    default:
      return Index{input.below(12)} - 1;
  }
}

void check_pass(BatchStream batches, Index tokens) {
  std::vector<Index> times(static_cast<std::size_t>(tokens));
  const Index most = batches.batches_per_epoch();
  for (Index i = 1; i <= most; ++i) {
    const TextBatch next = batches.next();
    const auto size = static_cast<std::size_t>(next.batch * next.length);
    check(next.inputs.size() == size && next.targets.size() == size, "a batch is full");
    Index predicted = 0;
    for (const Index target : next.targets)
      if (target != ignore_index) {
        ++times[static_cast<std::size_t>(target)];
        ++predicted;
      }
    check(next.predicted == predicted, "targets are counted");
    check(next.last == (i == most), "the last batch says so");
  }
  for (const Index n : times) check(n == 1, "each token is a target once");
}

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  TokenStream stream;
  stream.tokens.resize(input.below(std::size_t{100}));
  std::iota(stream.tokens.begin(), stream.tokens.end(), 0);
  for (int n = input.below(8); n > 0; --n) stream.documents.push_back(number(input));
  const BatchConfig config{number(input), number(input), input.raw<TokenId>(), input.flag()};
  accepted([&] {
    BatchStream batches(stream, config);
    const auto size = static_cast<Index>(stream.tokens.size());
    check_pass(batches, size);
    while (!input.empty()) {
      const auto before = batches.position();
      BatchPosition position{number(input), before.next};
      for (Index& next : position.next)
        if (!input.empty()) next = number(input);
      if (!accepted([&] { batches.seek(position); }))
        check(batches.position() == before, "a seek that is refused moves nothing");
      batches.next();
    }
  });
}

std::vector<std::string> seeds() {
  const auto byte = [](int n) { return bytes_of(static_cast<std::uint8_t>(n)); };
  const auto small = [&](int n) { return byte(3) + byte(n + 1); };
  const auto large = [&](int below_most) { return byte(1) + byte(below_most); };
  const auto head = [&](int tokens, int documents) { return byte(tokens) + byte(documents); };
  const auto tail = [&](int start, int reset) { return bytes_of(start) + byte(reset); };
  return {
      head(11, 1) + small(0) + small(2) + small(4) + tail(7, 0) + small(0) + small(3) + small(8),
      head(50, 3) + small(0) + small(5) + small(9) + small(3) + small(4) + tail(-1, 1),
      head(9, 2) + small(0) + large(0) + small(1) + small(1) + tail(0, 1),
      head(9, 1) + small(0) + small(2) + large(0) + tail(0, 0),
      head(9, 1) + small(0) + large(0) + large(0) + tail(0, 0)};
}

}  // namespace infty::fuzz
