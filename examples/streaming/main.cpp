// SPDX-License-Identifier: MIT
// A million vectors go through one long-term memory, a segment at a time, each segment written and
// then queried. Time a vector and memory stay what they were after the first thousand, and so does
// the signal: every hundredth write, sup |X(t)| is held against the largest |x| that was written,
// at many places; how often is told. Random vectors: this shows cost and bounds, not what is
// remembered.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/stability.hpp>

#include "../support/interrupt.hpp"
#include "../support/need.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"

using infty::Index, infty::Tensor;

struct Settings {
  Index vectors = 1'000'000, segment = 250, dim = 64, heads = 4, basis = 128, samples = 128;
};

/// Calls see(group, name, field) for what may need memory.
template <class See>
void each_setting(Settings& s, See&& see) {
  see("", "segment", s.segment);
  see("", "dim", s.dim);
  see("", "basis", s.basis);
}

/// Bytes of the memory's parameters and state, of two segments and of what they are worked on.
double bytes_of(const Settings& s) {
  const auto L = static_cast<double>(s.segment), d = static_cast<double>(s.dim),
             N = static_cast<double>(s.basis);
  return sizeof(float) * (6 * d * d + 2 * N * d + 4 * L * d) +
         support::write_bytes(N, static_cast<double>(s.samples), L);
}

/// sup |X(t)| over the largest |x| ever written, at so many places.
constexpr Index places_of_a_look = 512;
double overshoot(const infty::LongTermMemory<float>& memory,
                 const infty::LongTermMemory<float>::State& state) {
  const auto places = infty::even_locations<float, infty::EigenBackend>(places_of_a_look);
  const auto largest = [](const Tensor<float>& x) {
    double most = 0;
    for (const float v : x.to_vector()) {
      const double size = std::fabs(static_cast<double>(v));
      most = size <= most ? most : size;  // keeps NaN
    }
    return most;
  };
  return largest(resample(memory.basis(), state.coefficients.value(), places)) /
         largest(state.largest);
}

int main(int argc, char** argv) {
  Settings s;
  int threads = infty::num_threads();
  CLI::App app{"Writes and reads a long stream through a long-term memory of constant size.",
               "streaming"};
  const auto add = [&](const char* name, Index& field, const char* help) {
    support::add_option(app, name, field, help, support::from(1));
  };
  add("--vectors", s.vectors, "length of the stream");
  add("--segment", s.segment, "vectors a write, and queries a read");
  add("--dim", s.dim, "numbers a vector, a multiple of --heads");
  add("--heads", s.heads, "attention heads");
  add("--basis", s.basis, "basis functions N, even");
  support::add_option(app, "--threads", threads, "threads", {1, support::most_at_once});
  if (const auto code = support::parse(app, argc, argv)) return *code;

  return support::run_program("streaming", [&] {
    const auto [vectors, segment, dim, heads, basis, samples] = s;
    infty::require(dim % heads == 0, "streaming", "--dim is ", dim,
                   ": it must be a multiple of --heads = ", heads);
    infty::require(basis % 2 == 0, "streaming", "--basis is ", basis, ": it must be even");
    support::require_memory("streaming", s, bytes_of);
    infty::set_num_threads(threads);
    infty::LongTermMemory<float> memory({.model_dim = dim,
                                         .heads = heads,
                                         .basis = basis,
                                         .widths = {.01, .05},
                                         .samples = samples},
                                        infty::Random(1));
    auto state = memory.make_state(1);
    infty::Random random(2);
    Tensor<float> x({1, segment, dim}), queries({1, segment, dim});
    fill_normal(queries, 0, 1, random);

    std::cout << "   vectors   vectors/s   bytes of state   bytes in use\n";
    auto since = std::chrono::steady_clock::now();
    Index read = 0, before = 0, next = 1000, writes = 0, looks = 0;
    double most = 0;
    std::optional<support::InterruptGuard> interrupt(std::in_place);
    support::ProgressLine line("stream", vectors, 0, "vector");
    const auto stop_if_asked = [&] {
      support::stop_if_interrupted([&] {
        return "stopped behind " + std::to_string(read) + " of " + std::to_string(s.vectors) +
               " vectors; nothing is kept of them";
      });
    };
    while (read < vectors) {
      stop_if_asked();
      const Index length = std::min(segment, std::min(next, vectors) - read);
      fill_normal(x, 0, 1, random);
      const auto piece = x.reshape({segment, dim}).slice(0, length).reshape({1, length, dim});
      memory.write(state, piece);
      memory.read(state,
                  queries.reshape({segment, dim}).slice(0, length).reshape({1, length, dim}));
      read += length;
      if (writes++ % 100 == 0 || read == vectors) {
        most = std::max(most, overshoot(memory, state));
        ++looks;
      }
      line.update(read);
      if (read < next && read < vectors) continue;
      line.clear();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
      std::cout << std::setw(10) << read << std::setw(12) << std::fixed << std::setprecision(0)
                << static_cast<double>(read - before) / time.count() << std::setw(17)
                << bytes_of(state) << std::setw(15)
                << infty::HostPool::instance().statistics().bytes_in_use << std::endl;
      before = read;
      next *= 10;
      since = std::chrono::steady_clock::now();
    }
    // What is left takes many seconds of many functions, and cannot stop in between: Ctrl-C ends
    // it.
    interrupt.reset();
    if (basis > 512) std::cerr << "finding the bound of |X(t)|\n";
    const double bound = infty::stability(memory.config(), std::min(segment, vectors)).bound;
    std::cout << "finite: " << (is_finite(state) ? "yes" : "no") << std::setprecision(2)
              << ", |X(t)| at most " << most << " times the largest |x| in " << looks
              << " looks at " << places_of_a_look << " places, of " << bound
              << " that there can be\n";
    return is_finite(state) && most <= bound ? 0 : 1;
  });
}
