// SPDX-License-Identifier: MIT
// What stands around attention in a layer, kernel by kernel: layer norm, the losses of tokens, the
// embedding, linear maps and the feed-forward network. Arguments: vectors, their width; 8,192
// vectors of 300 are a segment of the paper's sorting experiment, 2,048 of 64 the demo's.

#include <infty/autograd/parameters.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::Variable, infty::EigenBackend;

namespace {

/// Elements, and the bytes of so many arrays of them.
template <class T>
double bytes(const benchmark::State& run, int arrays) {
  return static_cast<double>(arrays * run.range(0) * run.range(1)) * sizeof(T);
}

// Reads x, writes y.
template <class T, class B>
void layer_norm(benchmark::State& run) {
  const Index rows = run.range(0), d = run.range(1);
  const auto x = normal<T, B>({rows, d}), gain = normal<T, B>({d});
  Tensor<T, B> y({rows, d}), statistics({rows, 2});
  against_copy(run, bytes<T>(run, 2), [&] {
    infty::detail::chosen_t<infty::ComposedLayerNorm<B>>::forward(
        infty::LayerNormInputs<T>{rows, d, T(1e-5), x.data(), gain.data(), gain.data()}, y.data(),
        statistics.data());
  });
}

template <class T>
void layer_norm_plain_eigen(benchmark::State& run) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  const Index rows = run.range(0), d = run.range(1);
  const auto in = normal<T>({rows, d}), gain = normal<T>({d});
  Tensor<T> out({rows, d});
  const auto x = matrix(in);
  const auto g = matrix(gain).array();
  auto y = matrix(out);
  against_copy(run, bytes<T>(run, 2), [&] {
    const Array mean = x.rowwise().mean();
    y = x.colwise() - mean.matrix();
    const Array inverse = (y.array().square().rowwise().mean() + T(1e-5)).rsqrt();
    y = ((y.array().colwise() * inverse).rowwise() * g.row(0)).rowwise() + g.row(0);
  });
}

// Reads x and dy, adds to dx.
template <class T, class B>
void layer_norm_backward(benchmark::State& run) {
  using Kernel = infty::detail::chosen_t<infty::ComposedLayerNorm<B>>;
  const Index rows = run.range(0), d = run.range(1);
  const auto x = normal<T, B>({rows, d}), gain = normal<T, B>({d});
  Tensor<T, B> y({rows, d}), statistics({rows, 2}), d_gain = gain.clone(), d_bias = gain.clone();
  const infty::LayerNormInputs<T> in{rows, d, T(1e-5), x.data(), gain.data(), gain.data()};
  Kernel::forward(in, y.data(), statistics.data());
  auto dx = Tensor<T, B>::zeros({rows, d});
  against_copy(run, bytes<T>(run, 4), bytes<T>(run, 3), [&] {
    Kernel::backward(in, statistics.data(), y.data(),
                     infty::LayerNormGradients<T>{dx.data(), d_gain.data(), d_bias.data()});
  });
}

template <class T, class B>
struct Losses {
  using Kernel = infty::detail::chosen_t<infty::ComposedTokenLosses<B>>;

  explicit Losses(const benchmark::State& run)
      : rows(run.range(0)),
        classes(run.range(1)),
        logits(normal<T, B>({rows, classes})),
        d_logits(Tensor<T, B>::zeros({rows, classes})),
        losses(Tensor<T, B>::full({rows}, T(1))),
        normaliser({rows}),
        targets(Tensor<Index, B>::full({rows}, classes / 2)) {}

  infty::TokenLossInputs<T> inputs() const {
    return {rows, classes, logits.data(), targets.data(), infty::ignore_index};
  }
  void forward() { Kernel::forward(inputs(), normaliser.data(), losses.data()); }
  void backward() { Kernel::backward(inputs(), normaliser.data(), losses.data(), d_logits.data()); }

  Index rows, classes;
  Tensor<T, B> logits, d_logits, losses, normaliser;
  Tensor<Index, B> targets;
};

// Reads the logits.
template <class T, class B>
void token_losses(benchmark::State& run) {
  Losses<T, B> c(run);
  against_copy(run, bytes<T>(run, 1), [&] { c.forward(); });
}

// Reads the logits and adds to their gradient.
template <class T, class B>
void token_losses_backward(benchmark::State& run) {
  Losses<T, B> c(run);
  c.forward();
  against_copy(run, bytes<T>(run, 3), bytes<T>(run, 2), [&] { c.backward(); });
}

template <class T>
void token_losses_plain_eigen(benchmark::State& run) {
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  Losses<T, EigenBackend> c(run);
  const auto x = matrix(c.logits);
  const Index target = c.classes / 2;
  against_copy(run, bytes<T>(run, 1), [&] {
    const Array top = x.rowwise().maxCoeff();
    const Array normaliser = (x.array().colwise() - top).exp().rowwise().sum().log() + top;
    const Array losses = normaliser - x.col(target).array();
    benchmark::DoNotOptimize(losses.data());
  });
}

Tensor<Index> tokens(Index rows, Index vocabulary) {
  Tensor<Index> out({rows});
  for (Index i = 0; i < rows; ++i) out.data()[i] = i * 7919 % vocabulary;
  return out;
}

/// Bytes that gathering rows from a table, or adding them to it, goes over.
template <class T>
double with_table(const benchmark::State& run, Index vocabulary) {
  return static_cast<double>((run.range(0) + vocabulary) * run.range(1)) * sizeof(T);
}

// Reads a row of the table and writes it.
template <class T>
void embedding(benchmark::State& run) {
  const Index rows = run.range(0), d = run.range(1), vocabulary = 1000;
  const auto table = normal<T>({vocabulary, d});
  const auto ids = tokens(rows, vocabulary);
  Tensor<T> y({rows, d});
  against_copy(run, bytes<T>(run, 2), with_table<T>(run, vocabulary), [&] {
    EigenBackend::gather_rows(rows, d, table.data(), ids.data(), vocabulary, y.data());
  });
}

// Reads dy and adds it to a row of the table's gradient.
template <class T>
void embedding_backward(benchmark::State& run) {
  const Index rows = run.range(0), d = run.range(1), vocabulary = 1000;
  auto gradient = normal<T>({vocabulary, d});
  const auto dy = normal<T>({rows, d});
  const auto ids = tokens(rows, vocabulary);
  against_copy(run, bytes<T>(run, 3), with_table<T>(run, vocabulary), [&] {
    EigenBackend::scatter_add_rows(rows, d, dy.data(), ids.data(), vocabulary, gradient.data());
  });
}

// With a bias; d -> d.
template <class T>
void linear(benchmark::State& run) {
  const Index rows = run.range(0), d = run.range(1);
  const infty::Linear<T, EigenBackend> map(d, d, infty::Random(1));
  const Variable<T> x(normal<T>({rows, d}));
  against_matrix_product<T>(run, product_flops(rows, d, d), [&] { map.forward(x); });
}

template <class T>
void linear_plain_eigen(benchmark::State& run) {
  using Matrix = infty::detail::RowMajor<T>;
  const Index rows = run.range(0), d = run.range(1);
  const auto in = normal<T>({rows, d}), weight = normal<T>({d, d}), bias = normal<T>({d});
  against_matrix_product<T>(run, product_flops(rows, d, d), [&] {
    const Matrix y = (matrix(in) * matrix(weight).transpose()).rowwise() + matrix(bias).row(0);
    benchmark::DoNotOptimize(y.data());
  });
}

// Both maps, forward and backward: three products each.
template <class T>
void feed_forward_and_backward(benchmark::State& run) {
  const Index rows = run.range(0), d = run.range(1);
  infty::FeedForward<T, EigenBackend> layer(d, d, infty::Random(1));
  Variable<T> x(normal<T>({rows, d}), true);
  const auto seed = normal<T>({rows, d});
  infty::Pass<T> pass;
  against_matrix_product<T>(run, 6 * product_flops(rows, d, d), [&] {
    infty::zero_grad(layer);
    x.zero_grad();
    infty::Tape tape;
    tape.backward(layer.forward(x, pass), seed);
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({2048, 64})->Args({8192, 300})->UseManualTime();
}
void vocabularies(benchmark::internal::Benchmark* b) {
  b->Args({8192, 21})->Args({1024, 32768})->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(layer_norm, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(layer_norm, float, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(layer_norm_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(layer_norm, double, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(layer_norm_backward, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(layer_norm_backward, float, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(token_losses, float, EigenBackend)->Apply(vocabularies);
BENCHMARK_TEMPLATE(token_losses, float, Composed)->Apply(vocabularies);
BENCHMARK_TEMPLATE(token_losses_plain_eigen, float)->Apply(vocabularies);
BENCHMARK_TEMPLATE(token_losses_backward, float, EigenBackend)->Apply(vocabularies);
BENCHMARK_TEMPLATE(token_losses_backward, float, Composed)->Apply(vocabularies);
BENCHMARK_TEMPLATE(embedding, float)->Apply(sizes);
BENCHMARK_TEMPLATE(embedding_backward, float)->Apply(sizes);
BENCHMARK_TEMPLATE(linear, float)->Apply(sizes);
BENCHMARK_TEMPLATE(linear_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(linear, double)->Apply(sizes);
BENCHMARK_TEMPLATE(feed_forward_and_backward, float)->Apply(sizes);
