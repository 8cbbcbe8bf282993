// SPDX-License-Identifier: MIT
// What a stream costs behind 100,000 vectors, a segment written and queried at a time: by a power
// of 1, by the uniform memory, which writes a block when there is one, and by mixtures of two
// uniform ones, whose parts share out the heads or are mixed by a gate. The limit beside each is
// the paper's contraction of the same stream in the same run; none is to be slower. Then, how long
// the matrices of a million vectors take to be solved for, once for all layers. 4 heads of 16,
// N = 128 in all, M = 256.

#include <algorithm>

#include <benchmark/benchmark.h>

#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/uniform_memory.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;

namespace {

constexpr Index dim = 64, heads = 4, basis = 128, before = 100'000;

using Fixed = infty::LongTermMemory<float>;
using Uniform = infty::UniformMemory<float>;
using Mixed = infty::MixedMemory<Uniform>;

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

/// Two parts, one of which keeps the older better and one all of the past alike.
Mixed::Config mixture(infty::MixedReading reading) {
  return infty::mixed_config(config<Uniform>(1),
                             {infty::PowerContraction{.5}, infty::PowerContraction{1}}, reading);
}

/// A memory far behind the beginning of its stream, and a segment that goes on with it.
template <class M>
class Stream {
 public:
  static constexpr const char* unit = "vector/s";

  Stream(const typename M::Config& c, Index length)
      : memory_(c, infty::Random(1)),
        state_(memory_.make_state(1)),
        x_(normal<float>({1, length, dim})) {
    const auto past = normal<float>({1, 512, dim}), few = normal<float>({1, 64, dim});
    for (Index seen = 0; seen < before; seen += 512) memory_.write(state_, past);
    for (Index seen = 0; seen < 2 * before; seen += 64) {  // until all matrices are there
      memory_.write(state_, few);
      memory_.read(state_, few);
    }
    (*this)();
  }

  /// What a segment is, in the billionths that `against` reports.
  double work() const { return 1e9 * static_cast<double>(x_.dim(1)); }
  void operator()() {
    memory_.write(state_, x_);
    memory_.read(state_, x_);
  }

 private:
  M memory_;
  typename M::State state_;
  infty::Tensor<float> x_;
};

template <class M>
void segment(benchmark::State& run, const typename M::Config& c) {
  Stream<M> ours(c, run.range(0));
  Stream<Fixed> fixed(config<Fixed>(0), run.range(0));
  against(run, ours.work(), fixed, [&] { ours(); });
}

/// The matrices that a memory keeps.
template <class M>
double matrices_of(const M& memory) {
  return static_cast<double>(infty::detail::signal_of(memory).ridge().entries());
}

/// All that a million vectors by 512 ask for, with a read behind each segment: of a layer, and then
/// of another one, which has them. The time is what the first takes longer.
template <class M>
void solving(benchmark::State& run) {
  auto c = config<M>(1, 1);
  c.gate = false;
  const auto x = normal<float>({1, 512, 1}), query = normal<float>({1, 1, 1});
  const auto stream = [&](const M& memory) {
    const auto start = Clock::now();
    auto state = memory.make_state(1);
    for (Index seen = 0; seen < 1'000'000; seen += 512) {
      memory.write(state, x);
      memory.read(state, query);
    }
    return seconds_since(start);
  };
  for (auto _ : run) {
    const M memory(c, infty::Random(1)), other = memory.sibling(infty::Random(2));
    const double first = stream(memory), matrices = matrices_of(memory), second = stream(other);
    if (matrices_of(other) != matrices) run.SkipWithError("another layer solves for its own");
    run.counters["time"] = std::max(0., first - second);
    run.counters["matrices"] = matrices;
  }
}

void power(benchmark::State& run) { segment<Fixed>(run, config<Fixed>(1)); }
void uniform(benchmark::State& run) { segment<Uniform>(run, config<Uniform>(1)); }
void mixed(benchmark::State& run) { segment<Mixed>(run, mixture(infty::MixedReading::heads)); }
void learned(benchmark::State& run) { segment<Mixed>(run, mixture(infty::MixedReading::gate)); }

}  // namespace

BENCHMARK(power)->Arg(1)->Arg(64)->Arg(512)->UseManualTime();
BENCHMARK(uniform)->Arg(1)->Arg(64)->Arg(512)->UseManualTime();
BENCHMARK(mixed)->Arg(1)->Arg(64)->Arg(512)->UseManualTime();
BENCHMARK(learned)->Arg(1)->Arg(64)->Arg(512)->UseManualTime();
BENCHMARK(solving<Fixed>)->Iterations(1);
BENCHMARK(solving<Uniform>)->Iterations(1);
