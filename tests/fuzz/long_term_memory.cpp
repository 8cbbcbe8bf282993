// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <infty/memory/long_term_memory.hpp>

#include "fuzz/fuzz.hpp"
#include "support/states.hpp"

// A long-term memory of any valid constants through any sequence of calls: its state stays finite,
// counts what was written, keeps what a copy had, and a call that is refused changes nothing.

namespace infty::fuzz {

namespace {

using Memory = LongTermMemory<float>;
using State = Memory::State;
using tests::numbers_of;

float value(Input& input) {
  constexpr float least = std::numeric_limits<float>::denorm_min(),
                  normal = std::numeric_limits<float>::min();
  static const std::vector<float> edges{0,      -0.F,   1,     -1,     1e30F,
                                        -1e30F, 1e-30F, least, -least, normal};
  const auto byte = input.below(256);
  return byte < 128 ? edges[static_cast<std::size_t>(byte) % edges.size()]
                    : static_cast<float>(byte - 192) / 16;
}

LongTermConfig config(Input& input) {
  LongTermConfig c{.model_dim = 1 + input.below(4), .heads = 1 + input.below(2)};
  c.head_dim = 1 + input.below(3);
  c.widths.resize(1 + input.below(std::size_t{3}));
  for (double& width : c.widths)
    width = input.any_of<double>({.001, .005, .01, .05, .1, .2, 1, 10, 1e6});
  c.basis = std::ssize(c.widths) * (1 + input.below(5));
  c.samples = 1 + input.below(10);
  c.tau = input.any_of<double>({1e-12, .01, .25, .5, .75, .9, .999, 1 - 1e-15});
  c.ridge = input.any_of<double>({1e-300, 1e-9, 1e-3, .1, .5, 1, 10, 1e9});
  c.gate = input.flag();
  c.variance_floor = input.any_of<double>({1e-30, 1e-6, 1e-4, 1, 1e30});
  c.parameters = input.flag() ? DensityParameters::affine : DensityParameters::moments;
  c.resampling = static_cast<Resampling>(input.below(3));
  c.bins = 1 + input.below(8);
  c.skip_tails = input.flag();
  c.threshold = input.any_of<Index>({0, 0, 1, 5});
  c.hold_short_writes = input.flag();
  c.group = 1 + input.below(4) / 2;
  c.power = input.any_of<double>({0, 0, 1e-3, .5, 1, 2, 1e3});
  c.midpoints = input.flag();
  return c;
}

Tensor<float> values(Input& input, Shape shape) {
  Tensor<float> out(shape);
  for (Index i = 0; i < out.size(); ++i) out.data()[i] = value(input);
  return out;
}

/// Holds the signal of every row to what docs/stability.md promises.
void check_signal(const Memory& memory, const State& state, double largest) {
  const auto probes = infty::detail::probe_places(memory.basis().cast<double>());
  const std::vector<float> places(probes.begin(), probes.end());
  const auto X = resample(memory.basis(), state.coefficients.value(),
                          Tensor<float>::from({std::ssize(places)}, places));
  for (const float x : X.to_vector())
    check(std::abs(static_cast<double>(x)) <= most_run * largest + 1e-30, "the signal is bounded");
}

class Session {
 public:
  explicit Session(Input& input)
      : input_(input),
        memory_(config(input), Random(input.raw<std::uint8_t>())),
        state_(memory_.make_state(1 + input.below(3), input.raw<Index>())) {}

  void step() {
    const auto before = numbers_of(state_);
    const bool ok = accepted([&] { call(); });
    check(ok || numbers_of(state_) == before, "a call that is refused changes nothing");
    check(is_finite(state_), "the state is finite");
    check(numbers_of(copy_) == kept_, "a copy keeps what it had");
  }

 private:
  Index batch() const { return batch_of(state_); }
  /// What fits, or now and then one that does not.
  Index about(Index n) { return input_.below(32) == 0 ? Index{input_.below(6)} - 1 : n; }

  void call() {
    switch (input_.below(8)) {
      case 0:
      case 1:
        return write();
      case 2:
        return read();
      case 3: {
        const auto next = memory_.next_locations(state_);
        for (const float t : next.to_vector()) check(t >= 0 && t <= 1, "a location lies in [0, 1]");
        return;
      }
      case 4:
        return reset_row(state_, Index{input_.below(5)} - 1);
      case 5: {
        const Index cut = Index{input_.below(5)} - 1;
        const std::vector<State> parts{take_rows(state_, 0, cut), take_rows(state_, cut, batch())};
        const auto before = numbers_of(state_);
        state_ = join_rows(parts);
        return check(numbers_of(state_) == before, "rows that are joined again are all rows");
      }
      case 6:
        return put_rows(state_, Index{input_.below(5)} - 1, copy_);
      default:
        copy_ = state_;
        kept_ = numbers_of(copy_);
    }
  }

  void write() {
    const Index length = input_.below(6);
    auto x = values(input_, Shape{about(batch()), length, about(memory_.config().model_dim)});
    for (const float v : x.to_vector())
      largest_ = std::max(largest_, std::abs(static_cast<double>(v)));
    if (input_.flag()) {
      memory_.write(state_, x);
    } else {
      RowCounts counts(static_cast<std::size_t>(std::max<Index>(0, about(batch()))));
      for (Index& count : counts) count = std::min(about(length), Index{input_.below(6)});
      for (Index row = 0; row < std::min(x.dim(0), std::ssize(counts)); ++row) {
        const Index in_front =
            length - std::clamp<Index>(counts[static_cast<std::size_t>(row)], 0, length);
        std::fill_n(x.data() + row * length * x.dim(2), in_front * x.dim(2), 0.F);
      }
      Tensor<float> locations;
      if (input_.flag()) locations = places(Shape{about(batch()), about(memory_.config().samples)});
      memory_.write_at(state_, x, counts, locations);
    }
    check_signal(memory_, state_, largest_);
  }

  /// In [0, 1], as a write wants them: alike, at the ends, or anywhere.
  Tensor<float> places(Shape shape) {
    Tensor<float> out(shape);
    const float all = static_cast<float>(input_.below(256)) / 255;
    const bool alike = input_.flag();
    for (Index i = 0; i < out.size(); ++i)
      out.data()[i] = alike ? all : static_cast<float>(input_.below(256)) / 255;
    return out;
  }

  void read() {
    const Index width = memory_.config().heads * memory_.config().head_dim;
    const auto queries = values(input_, Shape{about(batch()), input_.below(4), about(width)});
    const auto reading = memory_.attend(state_, queries);
    check(detail::all_finite(reading.context.value()), "what is read is finite");
    check(reading.context.shape() == Shape{batch(), queries.dim(1), memory_.config().model_dim},
          "what is read has the shape that was asked for");
  }

  Input& input_;
  Memory memory_;
  State state_, copy_ = state_;
  std::vector<double> kept_ = numbers_of(copy_);
  double largest_ = 0;
};

}  // namespace

void run(std::string_view bytes) {
  Input input(bytes);
  accepted([&] {
    Session session(input);
    for (int steps = 0; steps < 50 && !input.empty(); ++steps) session.step();
  });
}

std::vector<std::string> seeds() {
  std::vector<std::string> out;
  // Constants, then calls of numbers from a counter: writes, reads and all the rest of each kind.
  for (int kind = 0; kind < 6; ++kind) {
    std::string bytes{1,
                      1,
                      1,
                      1,
                      3,
                      4,
                      2,
                      5,
                      3,
                      4,
                      char(kind % 2),
                      1,
                      char(kind / 2),
                      char(kind % 3),
                      4,
                      1,
                      char(kind == 5 ? 3 : 0),
                      7,
                      1};
    bytes += bytes_of(Index{0});
    for (int i = 0; i < 300; ++i) bytes += static_cast<char>((i * 37 + kind * 11 + i / 19) % 256);
    out.push_back(bytes);
  }
  return out;
}

}  // namespace infty::fuzz
