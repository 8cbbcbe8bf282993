// SPDX-License-Identifier: MIT
// Attention over segment and short-term memory, as FLOP/s beside the machine's matrix product in
// the same run: the fused kernel and the composition that defines it. Arguments: rows of the batch,
// queries, keys; 6 heads of 50 and, for the demo's size, 4 of 16. FLOPs are counted over the keys
// that queries may see. Every call runs on the same data, so that caches are warm.

#include <benchmark/benchmark.h>

#include <infty/autograd/linear.hpp>
#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/nn/attention.hpp>

using infty::AttentionSize, infty::Index, infty::Shape, infty::Tensor;

namespace {

using Composed = infty::ComposedAttention<infty::EigenBackend>;
using Fused = infty::EigenBackend::FusedAttention;

Tensor<float> normal(Shape shape) {
  Tensor<float> x(shape);
  infty::Random random(1);
  fill_normal(x, 0, 1, random);
  return x;
}

struct Inputs {
  explicit Inputs(const benchmark::State& run)
      : size{run.range(0), run.range(1), run.range(2), run.range(3), run.range(4)},
        q(normal({size.batch, size.queries, size.model()})),
        k(normal({size.batch, size.keys, size.model()})),
        v(k.clone()),
        r(normal({size.keys, size.model()})),
        u(normal({size.heads, size.head_dim})),
        w(u.clone()),
        y(q.shape()),
        log_sum({size.batch, size.queries, size.heads}),
        dq(Tensor<float>::zeros(q.shape())),
        dk(Tensor<float>::zeros(k.shape())),
        dv(dk.clone()),
        dr(Tensor<float>::zeros(r.shape())),
        du(Tensor<float>::zeros(u.shape())),
        dw(du.clone()) {}

  infty::AttentionInputs<float> inputs() const {
    return {q.data(), k.data(), v.data(), r.data(), u.data(), w.data(), nullptr};
  }
  /// Pairs of query and key that are seen, times the FLOPs of one product of a head.
  double product() const {
    const double l = double(size.queries), m = double(size.memory());
    return 2.0 * double(size.batch * size.model()) * (l * m + l * (l + 1) / 2);
  }

  AttentionSize size;
  Tensor<float> q, k, v, r, u, w, y, log_sum, dq, dk, dv, dr, du, dw;
};

void count_flops(benchmark::State& run, double flops) {
  run.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

// The limit: one product of two square matrices.
void matrix_product(benchmark::State& run) {
  const Index n = run.range(0);
  const auto a = normal({n, n}), b = normal({n, n});
  Tensor<float> c({n, n});
  for (auto _ : run) {
    infty::detail::product<infty::EigenBackend>(n, n, n, false, false, a.data(), b.data(), 0.0f,
                                                c.data());
    benchmark::DoNotOptimize(c.data());
  }
  count_flops(run, 2.0 * static_cast<double>(n * n * n));
}

// Scores by content and by position, and the values.
template <class Kernel>
void forward(benchmark::State& run) {
  Inputs x(run);
  for (auto _ : run) Kernel::forward(x.size, x.inputs(), x.y.data(), x.log_sum.data());
  count_flops(run, 3 * x.product());
}

// The two scores once more, d weights, and the gradients of q (twice), k, v and r.
template <class Kernel>
void backward(benchmark::State& run) {
  Inputs x(run);
  Kernel::forward(x.size, x.inputs(), x.y.data(), x.log_sum.data());
  for (auto _ : run)
    Kernel::backward(x.size, x.inputs(), x.y.data(), x.log_sum.data(), x.q.data(),
                     infty::AttentionGradients<float>{x.dq.data(), x.dk.data(), x.dv.data(),
                                                      x.dr.data(), x.du.data(), x.dw.data()});
  count_flops(run, 8 * x.product());
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "queries", "keys", "heads", "width"})
      ->Args({32, 64, 128, 4, 16})
      ->Args({8, 256, 512, 6, 50})
      ->Args({8, 1024, 2048, 6, 50})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
}

}  // namespace

BENCHMARK(matrix_product)->Arg(1024)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_TEMPLATE(forward, Fused)->Apply(sizes);
BENCHMARK_TEMPLATE(forward, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, Fused)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, Composed)->Apply(sizes);
