// SPDX-License-Identifier: MIT
// A segment of 1,024 vectors is written and then queried when so many have gone before it; the time
// is that of the segment. 6 heads of 50, N = 1,024. benchmarks/scaling goes on to a million.

#include <infty/memory/long_term_memory.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;

namespace {

constexpr Index dim = 300, length = 1024, basis = 1024;

void segment_behind(benchmark::State& run) {
  const infty::LongTermMemory<float> memory({.model_dim = dim, .heads = 6, .basis = basis},
                                            infty::Random(1));
  const auto x = normal<float>({1, length, dim});
  auto state = memory.make_state(1);
  for (Index seen = 0; seen < run.range(0); seen += length) memory.write(state, x);
  const LongTermFlops flops{{1, length, basis, dim, dim}};
  against_matrix_product<float>(run, flops.write() + flops.read(), [&] {
    memory.write(state, x);
    memory.read(state, x);
  });
}

}  // namespace

BENCHMARK(segment_behind)->Arg(1 << 10)->Arg(1 << 13)->Arg(1 << 17)->UseManualTime();
