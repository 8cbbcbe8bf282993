// SPDX-License-Identifier: MIT
// Attention without positions: the fused kernel and the composition that defines it. Arguments:
// rows of the batch, queries, keys, heads, their width, and whether it is causal; a decoder's step,
// the demo's size, a middle one, cross-attention, and a long context. Work counts the pairs that
// are seen; the scores that a backward pass computes again do not count. With factors in bfloat16
// the limit is the same kernel in full.

#include <cmath>

#include <infty/nn/plain_attention.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::AttentionSize, infty::Index, infty::Tensor, infty::EigenBackend;

namespace {

template <class T, class B>
struct Case {
  using Kernel = infty::detail::chosen_t<infty::ComposedPlainAttention<B>>;

  explicit Case(const benchmark::State& run)
      : size{run.range(0), run.range(1), run.range(2), run.range(3), run.range(4)},
        causal(run.range(5) != 0),
        q(normal<T, B>({size.batch, size.queries, size.model()})),
        k(normal<T, B>({size.batch, size.keys, size.model()})),
        v(k.clone()),
        y(q.clone()),
        log_sum({size.batch, size.queries, size.heads}),
        dq(q.clone()),
        dk(k.clone()),
        dv(k.clone()) {}

  infty::PlainAttentionInputs<T> inputs() const {
    return {q.data(), k.data(), v.data(),
            nullptr,  causal,   static_cast<T>(1 / std::sqrt(static_cast<double>(size.head_dim)))};
  }
  void forward() { Kernel::forward(size, inputs(), y.data(), log_sum.data()); }
  void backward() {
    Kernel::backward(size, inputs(), y.data(), log_sum.data(), q.data(),
                     infty::PlainAttentionGradients<T>{dq.data(), dk.data(), dv.data()});
  }
  /// Two products over the pairs of a query and a key that it sees.
  double flops() const {
    const double L = static_cast<double>(size.queries), K = static_cast<double>(size.keys);
    const double pairs = causal ? L * (K - L) + L * (L + 1) / 2 : L * K;
    return 4 * static_cast<double>(size.batch * size.model()) * pairs;
  }

  AttentionSize size;
  bool causal;
  Tensor<T, B> q, k, v, y, log_sum, dq, dk, dv;
};

template <class T, class B>
void forward(benchmark::State& run) {
  Case<T, B> c(run);
  against_matrix_product<T>(run, c.flops(), [&] { c.forward(); });
}

template <class T, class B>
void backward(benchmark::State& run) {
  Case<T, B> c(run);
  c.forward();
  against_matrix_product<T>(run, 2 * c.flops(), [&] { c.backward(); });
}

void forward_rounded(benchmark::State& run) {
  Case<float, EigenBackend> c(run);
  rounded_against_full(run, c.flops(), [&] { c.forward(); });
}

void backward_rounded(benchmark::State& run) {
  Case<float, EigenBackend> c(run);
  const infty::ProductsScope scope(infty::Products::bfloat16);
  c.forward();
  rounded_against_full(run, 2 * c.flops(), [&] { c.backward(); });
}

void steps(benchmark::internal::Benchmark* b) { b->Args({8, 1, 512, 8, 64, 1})->UseManualTime(); }
void sizes(benchmark::internal::Benchmark* b) {
  b->Args({32, 64, 128, 4, 16, 1})
      ->Args({8, 256, 512, 6, 50, 1})
      ->Args({8, 256, 512, 8, 64, 0})
      ->Args({1, 2048, 2048, 8, 64, 1});
  b->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(forward, float, EigenBackend)->Apply(steps)->Apply(sizes);
BENCHMARK_TEMPLATE(forward, float, Composed)->Apply(steps)->Apply(sizes);
BENCHMARK_TEMPLATE(forward, double, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, float, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, double, EigenBackend)->Apply(sizes);
BENCHMARK(forward_rounded)->Apply(sizes);
BENCHMARK(backward_rounded)->Apply(sizes);
