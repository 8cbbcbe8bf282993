// SPDX-License-Identifier: MIT
// Write and read of the long-term memory, as FLOP/s beside the machine's matrix product in the same
// run. Arguments: rows of the batch, vectors (and queries) a segment, basis functions N; 6 heads of
// 50, 512 samples. Every call runs on the same data, so that caches are warm.

#include <benchmark/benchmark.h>

#include <infty/memory/long_term_memory.hpp>

using infty::Index, infty::Tensor;

namespace {

constexpr Index heads = 6, head_dim = 50, dim = heads * head_dim;

template <class T>
Tensor<T> normal(infty::Shape shape) {
  Tensor<T> x(shape);
  infty::Random random(1);
  fill_normal(x, 0, 1, random);
  return x;
}

void count_flops(benchmark::State& run, double flops) {
  run.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

template <class T>
infty::LongTermMemory<T> memory_of(Index basis) {
  return infty::LongTermMemory<T>({.model_dim = dim, .heads = heads, .basis = basis},
                                  infty::Random(1));
}

// The limit: one product of two square matrices.
template <class T>
void matrix_product(benchmark::State& run) {
  const Index n = run.range(0);
  const auto a = normal<T>({n, n}), b = normal<T>({n, n});
  Tensor<T> c({n, n});
  for (auto _ : run) {
    infty::detail::product<infty::EigenBackend>(n, n, n, false, false, a.data(), b.data(), T(0),
                                                c.data());
    benchmark::DoNotOptimize(c.data());
  }
  count_flops(run, 2.0 * static_cast<double>(n * n * n));
}

// Gate 3 d², carry N² and fit L N, each times d, of every row.
template <class T>
void write(benchmark::State& run) {
  const Index batch = run.range(0), length = run.range(1), basis = run.range(2);
  const auto memory = memory_of<T>(basis);
  const auto x = normal<T>({batch, length, dim});
  auto state = memory.make_state(batch);
  memory.write(state, x);
  memory.write(state, x);
  for (auto _ : run) memory.write(state, x);
  const double b = double(batch), l = double(length), n = double(basis), d = double(dim);
  count_flops(run, 2 * b * d * (3 * l * d + n * n + n * l));
}

// Values N d², expectation times values L N d, output L d²; the N expectations of each query and
// head are not counted.
template <class T>
void read(benchmark::State& run) {
  const Index batch = run.range(0), length = run.range(1), basis = run.range(2);
  const auto memory = memory_of<T>(basis);
  auto state = memory.make_state(batch);
  memory.write(state, normal<T>({batch, length, dim}));
  const auto queries = normal<T>({batch, length, dim});
  for (auto _ : run) benchmark::DoNotOptimize(memory.read(state, queries).value().data());
  const double b = double(batch), l = double(length), n = double(basis), d = double(dim);
  count_flops(run, 2 * b * d * (n * d + l * n + l * d));
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({1, 256, 128})->Args({8, 256, 256})->Args({8, 1024, 1024});
  b->Unit(benchmark::kMillisecond)->UseRealTime();
}

}  // namespace

BENCHMARK(matrix_product<float>)->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(matrix_product<double>)->Arg(1024)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(write<float>)->Apply(sizes);
BENCHMARK(write<double>)->Apply(sizes);
BENCHMARK(read<float>)->Apply(sizes);
BENCHMARK(read<double>)->Apply(sizes);
