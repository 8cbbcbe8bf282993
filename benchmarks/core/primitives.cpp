// SPDX-License-Identifier: MIT
// The primitives that move memory, and Eigen's arrays. Argument: elements; a million and more are
// those of a segment of 1,024 vectors of 300 in 8 rows, and of arrays that no cache holds.

#include <infty/autograd/elementwise.hpp>
#include <infty/core/fold.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::EigenBackend;

namespace {

template <class T>
struct Arrays {
  explicit Arrays(const benchmark::State& run)
      : n(run.range(0)),
        x(Tensor<T>::full({n}, T(1))),
        y(Tensor<T>::full({n}, T(2))),
        z(Tensor<T>::full({n}, T(3))) {}

  double bytes(int arrays) const { return static_cast<double>(arrays) * double(x.bytes()); }

  Index n;
  Tensor<T> x, y, z;
};

template <class T>
void fill(benchmark::State& run) {
  Arrays<T> a(run);
  against_copy(run, a.bytes(1), [&] { a.x.fill(T(4)); });
}

template <class T>
void copy(benchmark::State& run) {
  Arrays<T> a(run);
  against_copy(run, a.bytes(2), [&] { a.y.copy_from(a.x); });
}

template <class T>
void sum_of_two(benchmark::State& run) {
  Arrays<T> a(run);
  against_copy(run, a.bytes(3), [&] {
    const T *const x = a.x.data(), *const y = a.y.data();
    T* const z = a.z.data();
    EigenBackend::for_each(a.n, [=](Index i) { z[i] = x[i] + y[i]; });
  });
}

template <class T>
void sum_of_two_plain_eigen(benchmark::State& run) {
  Arrays<T> a(run);
  against_copy(run, a.bytes(3), [&] { matrix(a.z) = matrix(a.x) + matrix(a.y); });
}

template <class T>
void reduce(benchmark::State& run) {
  Arrays<T> a(run);
  against_copy(run, a.bytes(1), [&] {
    const T* const x = a.x.data();
    benchmark::DoNotOptimize(
        EigenBackend::reduce(a.n, T(0), infty::detail::Plus{}, [=](Index i) { return x[i]; }));
  });
}

template <class T>
void reduce_plain_eigen(benchmark::State& run) {
  Arrays<T> a(run);
  against_copy(run, a.bytes(1), [&] { benchmark::DoNotOptimize(matrix(a.x).sum()); });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Arg(1 << 14)->Arg(8 * 1024 * 300)->Arg(1 << 26)->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(fill, float)->Apply(sizes);
BENCHMARK_TEMPLATE(copy, float)->Apply(sizes);
BENCHMARK_TEMPLATE(sum_of_two, float)->Apply(sizes);
BENCHMARK_TEMPLATE(sum_of_two_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(sum_of_two, double)->Arg(8 * 1024 * 300)->UseManualTime();
BENCHMARK_TEMPLATE(reduce, float)->Apply(sizes);
BENCHMARK_TEMPLATE(reduce_plain_eigen, float)->Apply(sizes);
BENCHMARK_TEMPLATE(reduce, double)->Arg(8 * 1024 * 300)->UseManualTime();
