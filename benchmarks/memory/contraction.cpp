// SPDX-License-Identifier: MIT
// What a stream costs behind 100,000 vectors, a segment written and queried at a time: by the
// paper's contraction, by a power of 1, and by the uniform memory, which writes a block when there
// is one; and how long the matrices of a million vectors take to be solved for. 4 heads of 16,
// N = 128, M = 256.

#include <benchmark/benchmark.h>

#include <infty/memory/uniform_memory.hpp>

#include "../support/clock.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;

namespace {

constexpr Index dim = 64, heads = 4, basis = 128, before = 100'000;

using Fixed = infty::LongTermMemory<float>;
using Uniform = infty::UniformMemory<float>;

template <class M>
typename M::Config config(double power, Index d = dim) {
  typename M::Config c;
  c.model_dim = d;
  c.heads = d == 1 ? 1 : heads;
  c.basis = basis;
  c.samples = 2 * basis;
  c.power = power;
  return c;
}

template <class M>
void segment(benchmark::State& run, double power) {
  const M memory(config<M>(power), infty::Random(1));
  const Index length = run.range(0);
  const auto x = normal<float>({1, length, dim}), past = normal<float>({1, 512, dim}),
             few = normal<float>({1, 64, dim});
  auto state = memory.make_state(1);
  for (Index seen = 0; seen < before; seen += 512) memory.write(state, past);
  for (Index seen = 0; seen < 2 * before; seen += 64) {  // until all matrices are there
    memory.write(state, few);
    memory.read(state, few);
  }
  memory.write(state, x);
  memory.read(state, x);
  const auto start = Clock::now();
  for (auto _ : run) {
    memory.write(state, x);
    memory.read(state, x);
  }
  run.counters["vectors/s"] = static_cast<double>(length * run.iterations()) / seconds_since(start);
}

/// All that a million vectors by 512 ask for, with a read behind each segment.
template <class M>
void solving(benchmark::State& run) {
  auto c = config<M>(1, 1);
  c.gate = false;
  const auto x = normal<float>({1, 512, 1}), query = normal<float>({1, 1, 1});
  double matrices = 0;
  for (auto _ : run) {
    const M memory(c, infty::Random(1));
    auto state = memory.make_state(1);
    for (Index seen = 0; seen < 1'000'000; seen += 512) {
      memory.write(state, x);
      memory.read(state, query);
    }
    if constexpr (requires { memory.ridge(); })
      matrices = static_cast<double>(memory.ridge().entries());
    else
      matrices = static_cast<double>(memory.signal.ridge().entries());
  }
  run.counters["matrices"] = matrices;
}

void fixed(benchmark::State& run) { segment<Fixed>(run, 0); }
void power(benchmark::State& run) { segment<Fixed>(run, 1); }
void uniform(benchmark::State& run) { segment<Uniform>(run, 1); }

}  // namespace

BENCHMARK(fixed)->Arg(1)->Arg(64)->Arg(512);
BENCHMARK(power)->Arg(1)->Arg(64)->Arg(512);
BENCHMARK(uniform)->Arg(1)->Arg(64)->Arg(512);
BENCHMARK(solving<Fixed>)->Unit(benchmark::kMillisecond)->Iterations(1);
BENCHMARK(solving<Uniform>)->Unit(benchmark::kMillisecond)->Iterations(1);
