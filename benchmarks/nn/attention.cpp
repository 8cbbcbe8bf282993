// SPDX-License-Identifier: MIT
// Attention over segment and short-term memory: the fused kernel, the composition that defines it,
// and plain Eigen. Arguments: rows of the batch, queries, keys, heads, their width; the demo's
// size, a middle one and the paper's. The scores that a backward pass computes again do not count.
// With factors in bfloat16 the limit is the same kernel in full. `_steep`: scores fall by .2 a
// place, and gradients are as small as in training, so that products of most keys' are below the
// least normal number.

#include <cmath>

#include <infty/nn/attention.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::AttentionSize, infty::Index, infty::Tensor, infty::EigenBackend;

namespace {

template <class T, class B>
struct Case {
  using Kernel = infty::detail::chosen_t<infty::ComposedAttention<B>>;

  explicit Case(const benchmark::State& run)
      : size{run.range(0), run.range(1), run.range(2), run.range(3), run.range(4)},
        flops{size},
        q(normal<T, B>({size.batch, size.queries, size.model()})),
        k(normal<T, B>({size.batch, size.keys, size.model()})),
        v(k.clone()),
        r(normal<T, B>({size.keys, size.model()})),
        u(normal<T, B>({size.heads, size.head_dim})),
        w(u.clone()),
        y(q.clone()),
        dy(q.clone()),
        log_sum({size.batch, size.queries, size.heads}),
        dq(q.clone()),
        dk(k.clone()),
        dv(k.clone()),
        dr(r.clone()),
        du(u.clone()),
        dw(u.clone()) {}

  infty::AttentionInputs<T> inputs() const {
    return {q.data(), k.data(), v.data(), r.data(), u.data(), w.data(), nullptr};
  }
  void forward() { Kernel::forward(size, inputs(), y.data(), log_sum.data()); }
  void backward() {
    Kernel::backward(size, inputs(), y.data(), log_sum.data(), dy.data(),
                     infty::AttentionGradients<T>{dq.data(), dk.data(), dv.data(), dr.data(),
                                                  du.data(), dw.data()});
  }

  /// Has the scores of all queries fall by .2 a place, and gradients be some 1e-5.
  void make_steep() {
    const T step = T(-.2) * std::sqrt(static_cast<T>(size.head_dim));
    for (Index row = 0; row < size.keys; ++row)
      for (Index h = 0; h < size.heads; ++h)
        r.data()[row * size.model() + h * size.head_dim] = step * static_cast<T>(size.keys - row);
    for (Index i = 0; i < q.size(); i += size.head_dim) q.data()[i] = 0;
    for (Index h = 0; h < size.heads; ++h) w.data()[h * size.head_dim] = 1;
    for (Index i = 0; i < dy.size(); ++i) dy.data()[i] *= T(1e-5);
  }

  AttentionSize size;
  AttentionFlops flops;
  Tensor<T, B> q, k, v, r, u, w, y, dy, log_sum, dq, dk, dv, dr, du, dw;
};

template <class T, class B>
void forward(benchmark::State& run) {
  Case<T, B> c(run);
  against_matrix_product<T>(run, c.flops.forward(), [&] { c.forward(); });
}

template <class T, class B>
void backward(benchmark::State& run) {
  Case<T, B> c(run);
  c.forward();
  against_matrix_product<T>(run, c.flops.backward(), [&] { c.backward(); });
}

void backward_steep(benchmark::State& run) {
  Case<float, EigenBackend> c(run);
  c.make_steep();
  c.forward();
  against_matrix_product<float>(run, c.flops.backward(), [&] { c.backward(); });
}

void forward_rounded(benchmark::State& run) {
  Case<float, EigenBackend> c(run);
  rounded_against_full(run, c.flops.forward(), [&] { c.forward(); });
}

void backward_rounded(benchmark::State& run) {
  Case<float, EigenBackend> c(run);
  const infty::ProductsScope scope(infty::Products::bfloat16);
  c.forward();
  rounded_against_full(run, c.flops.backward(), [&] { c.backward(); });
}

/// A head at a time, all scores of it at once.
template <class T>
void forward_plain_eigen(benchmark::State& run) {
  using Matrix = infty::detail::RowMajor<T>;
  Case<T, EigenBackend> c(run);
  const auto& s = c.size;
  const Index memory = s.memory();
  const Matrix R = matrix(c.r), u = matrix(c.u);
  against_matrix_product<T>(run, c.flops.forward(), [&] {
    for (Index row = 0; row < s.batch; ++row) {
      const auto rows = [row](const Tensor<T>& x) { return x.slice(row, row + 1); };
      const auto q_row = rows(c.q), k_row = rows(c.k), v_row = rows(c.v);
      auto y_row = rows(c.y);
      for (Index head = 0; head < s.heads; ++head) {
        const auto of_head = [&](const auto& x) {
          return x.middleCols(head * s.head_dim, s.head_dim);
        };
        const Matrix q = of_head(matrix(q_row));
        Matrix scores = (q.rowwise() + u.row(head)) * of_head(matrix(k_row)).transpose();
        const Matrix by_distance = (q.rowwise() + u.row(head)) * of_head(R).transpose();
        for (Index i = 0; i < s.queries; ++i) {
          const Index count = memory + i + 1;
          auto seen = scores.row(i).head(count).array();
          seen += by_distance.row(i).tail(count).array();
          seen = ((seen - seen.maxCoeff()) / std::sqrt(T(s.head_dim))).exp();
          seen /= seen.sum();
          scores.row(i).tail(s.keys - count).setZero();
        }
        auto y = matrix(y_row);
        y.middleCols(head * s.head_dim, s.head_dim).noalias() = scores * of_head(matrix(v_row));
      }
    }
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({32, 64, 128, 4, 16})->Args({8, 256, 512, 6, 50})->Args({8, 1024, 2048, 6, 50});
  b->UseManualTime();
}
void middle(benchmark::internal::Benchmark* b) { b->Args({8, 256, 512, 6, 50})->UseManualTime(); }

}  // namespace

BENCHMARK_TEMPLATE(forward, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(forward, float, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(forward_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(forward, double, EigenBackend)->Apply(middle);
BENCHMARK_TEMPLATE(backward, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, float, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(backward, double, EigenBackend)->Apply(middle);
BENCHMARK(backward_steep)->Apply(middle);
BENCHMARK(forward_rounded)->Apply(sizes);
BENCHMARK(backward_rounded)->Apply(sizes);
