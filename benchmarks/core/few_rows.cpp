// SPDX-License-Identifier: MIT
// Products of few rows with weights that no cache holds, as a token of a large model is made of:
// what there is to do is to read the weights once. Arguments: rows, outputs, inputs.

#include <vector>

#include <infty/autograd/linear.hpp>

#include "../support/against.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index, infty::Tensor;

namespace {

template <class T>
void time_products(benchmark::State& run, bool stored) {
  const Index m = run.range(0), n = run.range(1), k = run.range(2);
  const auto bytes = static_cast<double>(n * k) * (stored ? sizeof(infty::BFloat16) : sizeof(T));
  constexpr double beyond_caches = 256 << 20;
  std::vector<infty::Variable<T>> weights;
  for (double held = 0; held < beyond_caches; held += bytes) {
    weights.emplace_back(normal<T>({n, k}));
    if (stored) weights.back().store_in_bfloat16();
  }
  const auto x = normal<T>({m, k});
  Tensor<T> y({m, n});
  against_copy(run, bytes * static_cast<double>(weights.size()), [&] {
    for (const auto& w : weights)
      infty::detail::weight_product(m, x.data(), w, T(0), y.data(), n, true);
  });
}

template <class T>
void few_rows(benchmark::State& run) {
  time_products<T>(run, false);
}

/// The same of weights that are stored in bfloat16, of which there are half as many bytes to read.
void few_rows_stored(benchmark::State& run) { time_products<float>(run, true); }

/// The same of factors that are rounded to bfloat16 as they are read.
void few_rows_rounded(benchmark::State& run) {
  const infty::ProductsScope scope(infty::Products::bfloat16);
  few_rows<float>(run);
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "n", "k"});
  for (const Index m : {1, 4, 8}) {
    b->Args({m, 768, 768});   // GPT-2 small's maps,
    b->Args({m, 3072, 768});  // feeds
    b->Args({m, 768, 3072});
    b->Args({m, 50257, 768});  // and head
  }
  b->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(few_rows, float)->Apply(shapes);
BENCHMARK(few_rows_rounded)->Apply(shapes);
BENCHMARK(few_rows_stored)->Apply(shapes);
