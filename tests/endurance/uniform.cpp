// SPDX-License-Identifier: MIT

// Lets one stream after the other through a uniform memory, by single vectors and by 512: what it
// remembers stays finite, as large as it was and within its bound, the work for a vector does not
// grow, and refits come with the logarithm of the stream.
//
//     endurance_uniform [--vectors N] [--segment L] [--defaults] [--scale S]
//
// The memory is a small one with narrow functions, which is written often; with `--defaults` it is
// that of `UniformConfig` as it stands, but for the vectors' width.
//
// Rows are streams of their own, of elements that are 1 or -1, so that the bound is 8: drawn at
// random, all 1, in turn vector by vector, in turn by stretches that grow, and 1 but once in a
// thousand; all of it times S, as large or as small as `float` has numbers. Prints a line for each
// power of ten; ends with 1 where something does not hold.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/finite.hpp>
#include <infty/core/pool.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/signal/overshoot.hpp>

namespace endurance {

using infty::Index;
using infty::Tensor;
using Memory = infty::UniformMemory<float>;

constexpr Index rows = 5, dim = 8;
constexpr double narrowest = .02;  // of the functions, and of what a block takes: many refits

/// A memory's constants: the library's, or those of a small one that is written often.
Memory::Config config(bool defaults) {
  Memory::Config c;
  c.model_dim = dim;
  c.heads = 2;
  if (defaults) return c;
  c.basis = 32;
  c.widths = {narrowest, .1};
  c.samples = 64;
  c.ridge = .5;
  c.gate = false;
  c.least_share = narrowest;
  return c;
}

/// Each element of vector `i` of row `row`, behind the first row, whose elements are drawn.
float element(Index row, Index i) {
  switch (row) {
    case 1:
      return 1;
    case 2:
      return i % 2 == 0 ? 1.F : -1.F;
    case 3:
      return static_cast<Index>(std::log2(static_cast<double>(i + 1)) * 4) % 2 == 0 ? 1.F : -1.F;
    default:
      return i % 1000 == 0 ? -1.F : 1.F;
  }
}

/// The largest |X(t)| of a signal, of vectors of size `scale`; NaN if there is one.
double largest(const Memory& memory, const Tensor<float>& coefficients, float scale) {
  const auto& basis = memory.signal.basis();
  const auto probes = infty::detail::probe_places(basis.cast<double>());
  const std::vector<float> places(probes.begin(), probes.end());
  const auto n = static_cast<Index>(places.size());
  double most = 0;
  for (const float v :
       resample(basis, coefficients, Tensor<float>::from({n}, places)).to_vector()) {
    const double size = std::fabs(static_cast<double>(v)) / static_cast<double>(scale);
    most = size <= most ? most : size;  // keeps NaN
  }
  return most;
}

/// Returns how many promises were broken.
int run(const Memory::Config& config, Index vectors, Index segment, float scale) {
  const Memory memory(config, infty::Random(1));
  auto state = memory.make_state(rows);
  infty::Random random(2);
  std::vector<float> signs(4093 * static_cast<std::size_t>(dim));  // a prime: no mean is of all
  for (float& v : signs) v = random.uniform() < .5 ? -scale : scale;
  Tensor<float> queries({rows, 1, dim});
  infty::fill_normal(queries, 0, 1, random);
  const auto& pool = infty::HostPool::instance();
  const std::size_t bytes = bytes_of(state);
  int failures = 0;
  const auto hold = [&](bool good, const char* what, Index taken) {
    if (good) return;
    ++failures;
    std::printf("FAILED: %s behind %td vectors\n", what, taken);
  };
  std::printf("segments of %td\n%12s %12s %8s %10s %8s %22s %8s\n", segment, "vectors",
              "us a vector", "refits", "rate", "bytes", "blocks a 1000 vectors", "|X(t)|");
  double blocks_before = 0, most = 0;
  Index taken = 0, decade = 1000, shown = 0, look = 0;
  std::size_t blocks = pool.statistics().blocks;
  auto since = std::chrono::steady_clock::now();
  while (taken < vectors) {
    const Index length = (std::min)(segment, (std::min)(decade, vectors) - taken);
    Tensor<float> x({rows, length, dim});
    float* to = x.data();
    for (Index row = 0; row < rows; ++row)
      for (Index i = taken; i < taken + length; ++i) {
        const float* const drawn = signs.data() + i % 4093 * dim;
        const float same = row == 0 ? 0 : scale * element(row, i);
        for (Index j = 0; j < dim; ++j) *to++ = row == 0 ? drawn[j] : same;
      }
    memory.write(state, x);
    taken += length;
    if (taken >= look) {  // two hundred looks at each power of ten
      look = taken + decade / 200;
      hold(infty::detail::all_finite(memory.read(state, queries).value()),
           "what is read is not finite", taken);
      most =
          std::fmax(most, largest(memory, std::as_const(state.signal.coefficients).value(), scale));
      hold(largest(memory, memory.seen(state).coefficients.value(), scale) <= infty::most_run,
           "what is read is beyond its bound", taken);
    }
    if (taken < decade && taken < vectors) continue;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
    const auto count = static_cast<double>(taken - shown);
    const double took = 1000 * static_cast<double>(pool.statistics().blocks - blocks) / count;
    std::printf("%12td %12.3f %8td %10td %8zu %22.1f %8.3f\n", taken,
                1e6 * seconds / (count * static_cast<double>(rows)), state.refits.front(),
                state.rate.front(), bytes_of(state), took, most);
    hold(is_finite(state), "the state is not finite", taken);
    hold(bytes_of(state) == bytes, "the state has grown", taken);
    hold(most <= infty::most_lebesgue, "the signal is beyond its bound", taken);
    hold(static_cast<double>(state.refits.front()) <=
             (1.05 / config.resolved_least_share() + 2) *
                 (1 + .5 * std::log2(1 + static_cast<double>(taken) /
                                             static_cast<double>(config.block))),
         "there were too many refits", taken);
    hold(shown < 10'000 || took <= blocks_before, "a vector takes more work", taken);
    blocks_before = took;
    shown = taken;
    decade *= 10;
    blocks = pool.statistics().blocks;
    since = std::chrono::steady_clock::now();
  }
  std::printf("%td matrices were solved for, %zu bytes\n",
              static_cast<Index>(memory.signal.ridge().entries()), memory.signal.ridge().bytes());
  return failures;
}

}  // namespace endurance

int main(int argc, char** argv) {
  using infty::Index;
  Index vectors = 100'000, segment = 0;
  bool defaults = false;
  float scale = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--vectors" && i + 1 < argc) {
      vectors = std::atol(argv[++i]);
    } else if (option == "--segment" && i + 1 < argc) {
      segment = std::atol(argv[++i]);
    } else if (option == "--scale" && i + 1 < argc) {
      scale = std::strtof(argv[++i], nullptr);
    } else if (option == "--defaults") {
      defaults = true;
    } else {
      std::fprintf(stderr, "endurance_uniform: no such option: %s\n", option.c_str());
      return 2;
    }
  }
  if (vectors < 1 || segment < 0 || !std::isfinite(scale) || scale <= 0) {
    std::fprintf(stderr, "endurance_uniform: --vectors, --segment or --scale is out of range\n");
    return 2;
  }
  infty::set_num_threads(1);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a failure is seen when it happens
  int failures = 0;
  for (const Index length : segment > 0 ? std::vector{segment} : std::vector<Index>{1, 512})
    failures += endurance::run(endurance::config(defaults), vectors, length, scale);
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
