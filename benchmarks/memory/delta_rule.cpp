// SPDX-License-Identifier: MIT
// The delta rule with a decay: forward, and with the way back to all inputs, by chunks and,
// `_placed`, one place after the other. Arguments: rows of the batch, places of a segment, places
// of a chunk, and the width of each of 4 heads, of keys and of values. FLOPs are those of the
// recurrence, the same whatever the form: three products of a place and head with the memory, and
// twice as many on the way back. Chunks of C and heads of D take (5 C + 3 D) / (3 D) of that
// forward, and both ways (15 C + 9 D) / (9 D): 2.7 times as much where both are 64. `_fading`: a
// fifth stays from place to place, from end to end of a chunk of 64 less than a float can say.

#include <infty/autograd/reduce.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/nn/unit_vectors.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Shape, infty::Tensor, infty::Variable, infty::EigenBackend;

namespace {

constexpr Index heads = 4;

template <class T>
struct Case {
  using V = Variable<T>;
  explicit Case(const benchmark::State& run)
      : batch(run.range(0)), length(run.range(1)), dim(run.range(3)) {
    const Shape vectors{batch, length, heads, dim}, numbers{batch, length, heads};
    in.query = V(infty::unit_vectors(V(normal<T>(vectors))).value(), true);
    in.key = V(infty::unit_vectors(V(normal<T>(vectors))).value(), true);
    in.value = V(normal<T>(vectors), true);
    in.beta = V(infty::sigmoid(V(normal<T>(numbers))).value(), true);
    in.decay = V(scale(infty::softplus(V(normal<T>(numbers))), T(-.1)).value(), true);
    state = V(normal<T>(Shape{batch, heads, dim, dim}), true);
    options.chunk = run.range(2);
  }

  /// Of one of the three products, for all places and heads.
  double product() const { return 2.0 * double(batch * length * heads * dim * dim); }

  Index batch, length, dim;
  infty::DeltaRuleInputs<T> in;
  V state;
  infty::DeltaRuleOptions options;
};

template <class T>
void forward(benchmark::State& run) {
  Case<T> c(run);
  against_matrix_product<T>(run, 3 * c.product(), [&] {
    const auto result = infty::delta_rule(c.in, c.state, c.options);
    benchmark::DoNotOptimize(std::as_const(result.output.value()).data());
  });
}

template <class T>
void both_ways(benchmark::State& run, Case<T> c) {
  const auto seed = normal<T>(c.in.value.shape());
  against_matrix_product<T>(run, 9 * c.product(), [&] {
    for (auto x : {c.in.query, c.in.key, c.in.value, c.in.beta, c.in.decay, c.state}) x.zero_grad();
    infty::Tape tape;
    tape.backward(infty::delta_rule(c.in, c.state, c.options).output, seed);
  });
}

template <class T>
void forward_and_backward(benchmark::State& run) {
  both_ways(run, Case<T>(run));
}

template <class T>
void forward_and_backward_fading(benchmark::State& run) {
  Case<T> c(run);
  c.in.decay.value().fill(T(-1.6));
  both_ways(run, std::move(c));
}

template <class T>
void forward_placed(benchmark::State& run) {
  forward<T>(run);
}

template <class T>
void forward_and_backward_placed(benchmark::State& run) {
  forward_and_backward<T>(run);
}

/// The definition in Eigen: a head at a time, a place at a time.
template <class T>
void forward_plain_eigen(benchmark::State& run) {
  using Matrix = infty::detail::RowMajor<T>;
  using Vectors = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  Case<T> c(run);
  const Index dim = c.dim;
  const auto at = [&](const Variable<T>& x, Index row, Index head) {
    return Vectors(std::as_const(x.value()).data() + (row * c.length * heads + head) * dim,
                   c.length, dim, Eigen::OuterStride<>(heads * dim));
  };
  Matrix out(c.batch * heads * c.length, dim);
  against_matrix_product<T>(run, 3 * c.product(), [&] {
    const T *const beta = std::as_const(c.in.beta.value()).data(),
                   *const decay = std::as_const(c.in.decay.value()).data();
    for (Index row = 0; row < c.batch; ++row)
      for (Index head = 0; head < heads; ++head) {
        const auto q = at(c.in.query, row, head), k = at(c.in.key, row, head),
                   v = at(c.in.value, row, head);
        Matrix S = Eigen::Map<const Matrix>(
            std::as_const(c.state.value()).data() + (row * heads + head) * dim * dim, dim, dim);
        for (Index t = 0; t < c.length; ++t) {
          const Index place = (row * c.length + t) * heads + head;
          S *= std::exp(decay[place]);
          const Matrix wrong = beta[place] * (v.row(t) - k.row(t) * S);
          S.noalias() += k.row(t).transpose() * wrong;
          out.row((row * heads + head) * c.length + t).noalias() = q.row(t) * S / std::sqrt(T(dim));
        }
      }
    benchmark::DoNotOptimize(out.data());
  });
}

void chunks(benchmark::internal::Benchmark* b) {
  for (const Index chunk : {16, 32, 64, 128}) b->Args({4, 1024, chunk, 64});
  for (const Index dim : {128, 256}) b->Args({1, 1024, 64, dim});  // memories leave the inner cache
  b->UseManualTime();
}

void places(benchmark::internal::Benchmark* b) {
  b->Args({4, 1024, 0, 64})->Args({1, 1024, 0, 128})->Args({1, 1024, 0, 256})->UseManualTime();
}

/// A token of generation.
void token(benchmark::internal::Benchmark* b) {
  b->Args({1, 1, 64, 64})->Args({16, 1, 64, 64})->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(forward, float)->Apply(chunks)->Apply(token);
BENCHMARK_TEMPLATE(forward_placed, float)->Apply(places);
BENCHMARK_TEMPLATE(forward_plain_eigen, float)->Args({4, 1024, 0, 64})->UseManualTime();
BENCHMARK_TEMPLATE(forward_placed, double)->Args({4, 1024, 0, 64})->UseManualTime();
BENCHMARK_TEMPLATE(forward, double)->Args({4, 1024, 64, 64})->UseManualTime();
BENCHMARK_TEMPLATE(forward_and_backward, float)->Apply(chunks);
BENCHMARK_TEMPLATE(forward_and_backward_fading, float)->Args({4, 1024, 64, 64})->UseManualTime();
BENCHMARK_TEMPLATE(forward_and_backward_placed, float)->Apply(places);
BENCHMARK_TEMPLATE(forward_and_backward, double)->Args({4, 1024, 64, 64})->UseManualTime();
