// SPDX-License-Identifier: MIT
// The long-term memory: a later write, a read, and both with a way back from what was read and from
// the divergence of the densities from the prior. Arguments: rows of the batch, vectors (and
// queries) of a segment, basis functions N; 6 heads of 50, 512 samples, with the gate.

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/long_term_memory.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Shape, infty::Tensor, infty::Variable, infty::EigenBackend;

namespace {

constexpr Index heads = 6, head_dim = 50, dim = heads * head_dim;

template <class T, class B>
struct Case {
  using Memory = infty::LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>;

  explicit Case(const benchmark::State& run, bool exact = false)
      : size{{run.range(0), run.range(1), run.range(2), dim, dim}},
        memory({.model_dim = dim, .heads = heads, .basis = size.basis, .skip_tails = !exact},
               infty::Random(1)),
        x(normal<T, B>({size.batch, size.length, dim}), true),
        queries(normal<T, B>({size.batch, size.length, dim}), true),
        state(memory.make_state(size.batch)) {
    memory.write(state, x.value());  // what follows is a later write
  }

  LongTermFlops size;
  Memory memory;
  Variable<T, B> x, queries;
  typename Memory::State state;
};

template <class T, class B>
void write(benchmark::State& run) {
  Case<T, B> c(run);
  against_matrix_product<T>(run, c.size.write(), [&] {
    auto state = c.state;
    c.memory.write(state, c.x.value());
  });
}

template <class T, class B>
void read(benchmark::State& run) {
  Case<T, B> c(run);
  against_matrix_product<T>(run, c.size.read(), [&] { c.memory.read(c.state, c.queries.value()); });
}

/// Calls measure(run, flops, body) for a write, a read and the way back.
template <class T, class B, class Measure>
void forward_and_backward(benchmark::State& run, bool exact, const Measure& measure) {
  Case<T, B> c(run, exact);
  const double flops =
      c.size.write() + c.size.read() + c.size.write_backward() + c.size.read_backward();
  const auto seed = normal<T, B>({c.size.batch, c.size.length, dim});
  const auto sigma0 = static_cast<T>(c.memory.config().sigma0);
  measure(run, flops, [&] {
    infty::zero_grad(c.memory);
    c.x.zero_grad();
    c.queries.zero_grad();
    infty::Tape tape;
    auto state = c.state;
    c.memory.write(state, c.x);
    const auto reading = c.memory.attend(state, c.queries);
    tape.backward(sum(multiply(reading.context, Variable<T, B>(seed))) +
                  sum(kl(reading.density, sigma0), T(1e-6)));
  });
}

template <class T, class B>
void both_and_backward(benchmark::State& run) {
  forward_and_backward<T, B>(run, false, [](auto&&... of) { against_matrix_product<T>(of...); });
}

/// Without leaving out what is lost in rounding.
template <class T, class B>
void both_and_backward_exact(benchmark::State& run) {
  forward_and_backward<T, B>(run, true, [](auto&&... of) { against_matrix_product<T>(of...); });
}

/// With factors in bfloat16, against the same in full.
void both_and_backward_rounded(benchmark::State& run) {
  forward_and_backward<float, EigenBackend>(run, false,
                                            [](auto&&... of) { rounded_against_full(of...); });
}

/// Likewise.
void read_rounded(benchmark::State& run) {
  Case<float, EigenBackend> c(run);
  rounded_against_full(run, c.size.read(), [&] { c.memory.read(c.state, c.queries.value()); });
}

/// The write as the paper has it: the old signal sampled and fitted again beside the new vectors.
template <class T>
void write_plain_eigen(benchmark::State& run) {
  using Matrix = infty::detail::RowMajor<T>;
  Case<T, EigenBackend> c(run);
  const Index n = c.size.basis, length = c.size.length, samples = c.memory.config().samples;
  const auto next = c.memory.ridge().next(length);
  Matrix G(samples + length, n);
  G << matrix(next.next_old), matrix(next.next_new);
  const auto sampled = evaluate(c.memory.basis(), infty::even_locations<T, EigenBackend>(samples));
  const Matrix F = matrix(sampled);
  const auto& gate = c.memory.gate_weight.value();
  std::vector<Matrix> weight;
  for (Index k = 0; k < 3; ++k)
    weight.push_back(matrix(gate.slice(k, k + 1).reshape(Shape{dim, dim})));
  against_matrix_product<T>(run, c.size.write(), [&] {
    for (Index row = 0; row < c.size.batch; ++row) {
      const auto vectors = c.x.value().slice(row, row + 1),
                 old = c.state.coefficients.value().slice(row, row + 1);
      const auto X = matrix(vectors);
      Matrix conv = X * weight[1].transpose();
      conv.bottomRows(length - 1) += X.topRows(length - 1) * weight[0].transpose();
      conv.topRows(length - 1) += X.bottomRows(length - 1) * weight[2].transpose();
      const Matrix gated = X.array() / (T(1) + (-conv.array()).exp());
      Matrix both(samples + length, dim);
      both << F * matrix(old), gated;
      const Matrix B = G.transpose() * both;
      benchmark::DoNotOptimize(B.data());
    }
  });
}

/// The read as the paper has it: keys, scores of all basis functions, densities, expectations.
template <class T>
void read_plain_eigen(benchmark::State& run) {
  using Matrix = infty::detail::RowMajor<T>;
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  Case<T, EigenBackend> c(run);
  const Index n = c.size.basis, length = c.size.length;
  const auto& psi = c.memory.basis();
  const auto weights = [&](const auto& linear) -> Matrix { return matrix(linear.weight.value()); };
  const Matrix key = weights(c.memory.key), value = weights(c.memory.value),
               out = weights(c.memory.out);
  const Matrix maps = matrix(c.memory.density_weight.value()).transpose();  // [N, 2]
  Array centre(n), width2(n);
  for (Index j = 0; j < n; ++j) {
    centre[j] = psi.centre(j);
    width2[j] = psi.width(j) * psi.width(j);
  }
  against_matrix_product<T>(run, c.size.read(), [&] {
    for (Index row = 0; row < c.size.batch; ++row) {
      const auto asked = c.queries.value().slice(row, row + 1),
                 held = c.state.coefficients.value().slice(row, row + 1);
      const Matrix K = matrix(held) * key.transpose(), V = matrix(held) * value.transpose();
      Matrix context(length, dim);
      for (Index head = 0; head < heads; ++head) {
        const auto q = matrix(asked).middleCols(head * head_dim, head_dim);
        const Matrix scores =
            q * K.middleCols(head * head_dim, head_dim).transpose() / std::sqrt(T(head_dim));
        const Matrix s = scores * maps;
        const Array mu = 1 / (1 + (-s.col(0).array()).exp());
        const Array var = (1 + s.col(1).array().exp()).log().max(T(1e-6));
        Matrix r(length, n);
        for (Index i = 0; i < length; ++i) {
          const Array total = width2 + var[i];
          r.row(i) =
              ((centre - mu[i]).square() / (-2 * total)).exp() / (total * T(2 * EIGEN_PI)).sqrt();
        }
        context.middleCols(head * head_dim, head_dim) = r * V.middleCols(head * head_dim, head_dim);
      }
      const Matrix y = context * out.transpose();
      benchmark::DoNotOptimize(y.data());
    }
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({1, 256, 128})->Args({8, 256, 256})->Args({8, 1024, 1024})->UseManualTime();
}
void largest(benchmark::internal::Benchmark* b) { b->Args({8, 1024, 1024})->UseManualTime(); }

}  // namespace

BENCHMARK_TEMPLATE(write, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(write_plain_eigen, float)->Apply(largest);
BENCHMARK_TEMPLATE(write, double, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(read, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(read, float, Composed)->Apply(largest);
BENCHMARK_TEMPLATE(read_plain_eigen, float)->Apply(largest);
BENCHMARK_TEMPLATE(read, double, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(both_and_backward, float, EigenBackend)->Apply(sizes)->MinTime(2);
BENCHMARK_TEMPLATE(both_and_backward_exact, float, EigenBackend)->Apply(largest);
BENCHMARK_TEMPLATE(both_and_backward, float, Composed)->Apply(largest);
BENCHMARK_TEMPLATE(both_and_backward, double, EigenBackend)->Apply(sizes);
BENCHMARK(read_rounded)->Apply(sizes);
BENCHMARK(both_and_backward_rounded)->Apply(sizes)->MinTime(2);
#if defined(INFTY_WITH_THRUST)
using ThrustOmp = infty::ThrustBackend<infty::Omp>;
BENCHMARK_TEMPLATE(both_and_backward, float, ThrustOmp)->Args({8, 256, 256})->UseManualTime();
#endif
