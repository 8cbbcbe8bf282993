// SPDX-License-Identifier: MIT
// A step of Adam, which reads the gradient, and reads and writes the parameter and two moments.
// Arguments: parameters, elements of each; many small ones, the paper's sorting model, a large one.

#include <infty/train/adam.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::EigenBackend;

namespace {

template <class T>
struct Case {
  explicit Case(const benchmark::State& run) {
    for (Index i = 0; i < run.range(0); ++i) {
      for (Tensor<T>* x : {&p, &g, &m, &v}) *x = Tensor<T>::full({run.range(1)}, T(.5));
      kept.insert(kept.end(), {p, g, m, v});
      items.push_back({p.data(), g.data(), m.data(), v.data(), p.size(), T(1e-3), T(1)});
    }
  }
  double bytes(int arrays) const {
    return arrays * static_cast<double>(items.size()) * static_cast<double>(p.bytes());
  }

  Tensor<T> p, g, m, v;  // of the last parameter
  std::vector<Tensor<T>> kept;
  std::vector<infty::AdamItem<T>> items;
};

template <class T, class B>
void step(benchmark::State& run) {
  Case<T> c(run);
  const infty::AdamFactors<T> factors{T(.9), T(.1), T(.999), T(.001), T(1), T(1e-8)};
  against_copy(run, c.bytes(7), c.bytes(4), [&] {
    infty::detail::chosen_t<infty::ComposedAdam<B>>::step(factors, c.items.data(),
                                                          std::ssize(c.items));
  });
}

template <class T>
void step_plain_eigen(benchmark::State& run) {
  Case<T> c(run);
  against_copy(run, c.bytes(7), c.bytes(4), [&] {
    for (const auto& x : c.items) {
      using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
      Eigen::Map<Array> p(x.p, x.size), m(x.m, x.size), v(x.v, x.size);
      const Eigen::Map<const Array> g(x.g, x.size);
      m = T(.9) * m + T(.1) * g;
      v = T(.999) * v + T(.001) * g.square();
      p -= x.rate * m / (v.sqrt() * x.root + T(1e-8));
    }
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Args({100, 1000})->Args({40, 90000})->Args({1, 1 << 24})->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(step, float, EigenBackend)->Apply(sizes);
BENCHMARK_TEMPLATE(step, float, Composed)->Apply(sizes);
BENCHMARK_TEMPLATE(step_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(step, double, EigenBackend)->Apply(sizes);
