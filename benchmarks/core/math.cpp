// SPDX-License-Identifier: MIT
// Elementary functions over arrays, ours and the C library's. Argument: elements.

#include <cmath>

#include <infty/core/erf.hpp>
#include <infty/core/log.hpp>
#include <infty/core/math.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#include "../support/against.hpp"

using namespace infty::bench;
using infty::EigenBackend, infty::Index, infty::Tensor;

namespace {

/// y = f(x) for x spread over (0, 4).
template <class T, class F>
void over_array(benchmark::State& run, F f) {
  const Index n = run.range(0);
  Tensor<T> x({n}), y({n});
  T *const in = x.data(), *const out = y.data();
  for (Index i = 0; i < n; ++i) in[i] = T(4) * static_cast<T>(i % 997 + 1) / T(1000);
  against_copy(run, 2.0 * static_cast<double>(x.bytes()),
               [&] { EigenBackend::for_each(n, [=](Index i) { out[i] = f(in[i]); }); });
}

#define INFTY_MATH_BENCHMARK(NAME, OURS, LIBRARY)                                     \
  template <class T>                                                                  \
  void NAME(benchmark::State& run) {                                                  \
    over_array<T>(run, [](T x) { return OURS; });                                     \
  }                                                                                   \
  template <class T>                                                                  \
  void NAME##_std(benchmark::State& run) {                                            \
    over_array<T>(run, [](T x) { return LIBRARY; });                                  \
  }                                                                                   \
  BENCHMARK_TEMPLATE(NAME, float)->Arg(1 << 14)->Arg(1 << 22)->UseManualTime();       \
  BENCHMARK_TEMPLATE(NAME##_std, float)->Arg(1 << 14)->Arg(1 << 22)->UseManualTime(); \
  BENCHMARK_TEMPLATE(NAME, double)->Arg(1 << 14)->Arg(1 << 22)->UseManualTime();      \
  BENCHMARK_TEMPLATE(NAME##_std, double)->Arg(1 << 14)->Arg(1 << 22)->UseManualTime()

INFTY_MATH_BENCHMARK(exp, infty::math::exp(-x), std::exp(-x));
INFTY_MATH_BENCHMARK(log, infty::math::log(x), std::log(x));
INFTY_MATH_BENCHMARK(log1p, infty::math::log1p(x), std::log1p(x));
INFTY_MATH_BENCHMARK(erf, infty::math::erf(x), std::erf(x));
INFTY_MATH_BENCHMARK(erfc, infty::math::erfc(x), std::erfc(x));
INFTY_MATH_BENCHMARK(sigmoid, infty::math::sigmoid(x), T(1) / (T(1) + std::exp(-x)));
INFTY_MATH_BENCHMARK(softplus, infty::math::softplus(x), std::log1p(std::exp(x)));

#undef INFTY_MATH_BENCHMARK

}  // namespace
