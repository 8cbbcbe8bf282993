// SPDX-License-Identifier: MIT
// The exact search of a datastore's keys, of 64 numbers each, beside FAISS's flat index over the
// same, in one run: the limit is FAISS's, 200 % is twice as fast. Arguments: queries, keys, k. The
// BLAS that FAISS multiplies by is named on the error stream.

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include <infty/faiss/index.hpp>
#include <infty/retrieval/exact_index.hpp>

#include "../support/against.hpp"
#include "../support/blas.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;
using infty::IndexKind;
using infty::SearchMetric;
using infty::Tensor;

namespace {

constexpr Index head_dim = 64;

/// A datastore in memory, which all benchmarks of so many keys share.
const infty::Datastore<float>& store_of(Index keys) {
  static std::map<Index, std::unique_ptr<infty::Datastore<float>>> stores;
  auto& store = stores[keys];
  if (store != nullptr) return *store;
  std::fprintf(stderr, "BLAS: %s\n", blas_name().c_str());
  store = std::make_unique<infty::Datastore<float>>(head_dim);
  const auto numbers = normal<float>({keys, head_dim});
  store->append(numbers, std::vector<Index>(static_cast<std::size_t>(keys)));
  return *store;
}

/// FAISS's flat index, called by its own interface.
struct FaissFlat {
  static constexpr const char* unit = "GFLOP/s";

  FaissFlat(const infty::Datastore<float>& store, SearchMetric metric, const Tensor<float>& asked,
            Index k_)
      : index(store, {.kind = IndexKind::flat, .metric = metric}),
        queries(asked),
        k(k_),
        scores(static_cast<std::size_t>(asked.dim(0) * k)),
        labels(scores.size()) {}

  double work() const { return product_flops(queries.dim(0), index.size(), head_dim); }
  void operator()() {
    index.faiss().search(queries.dim(0), queries.data(), k, scores.data(), labels.data());
    benchmark::ClobberMemory();
  }

  infty::FaissIndex index;
  const Tensor<float> queries;
  Index k;
  std::vector<float> scores;
  std::vector<std::int64_t> labels;
};

void against_faiss(benchmark::State& run, SearchMetric metric) {
  const auto queries = normal<float>({run.range(0), head_dim});
  const Index k = run.range(2);
  const auto& store = store_of(run.range(1));
  const infty::ExactIndex<float> index(store, metric);
  FaissFlat limit(store, metric, queries, k);
  against(run, limit.work(), limit, [&] { benchmark::DoNotOptimize(index.search(queries, k)); });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"queries", "keys", "k"});
  for (const Index k : {1, 32, 1024}) b->Args({512, 262144, k});
  b->Args({16, 262144, 32})->Args({1, 262144, 32});
  b->UseManualTime();
}

}  // namespace

BENCHMARK_CAPTURE(against_faiss, squared_l2, SearchMetric::squared_l2)->Apply(sizes);
BENCHMARK_CAPTURE(against_faiss, inner_product, SearchMetric::inner_product)->Apply(sizes);
