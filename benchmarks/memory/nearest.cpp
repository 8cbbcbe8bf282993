// SPDX-License-Identifier: MIT
// The search for the 32 nearest of a head's keys, of 64 numbers each, as a Memorizing Transformer
// asks for. Of many queries against the matrix product alone, which writes the scores of 4,096 keys
// at a time over and over and chooses nothing; of one query, which reads every key once, against a
// sum of as many bytes as well; and of keys that are kept as bfloat16 against the same of floats.
// Arguments: queries and keys.

#include <algorithm>

#include <infty/core/bfloat16.hpp>
#include <infty/memory/key_value_store.hpp>
#include <infty/memory/ops/nearest.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;
using infty::Shape;
using infty::Tensor;

namespace {

constexpr Index head_dim = 64, k = 32;

template <class T, class B, class Stored = T>
struct Search {
  explicit Search(const benchmark::State& run)
      : queries(run.range(0)), keys(run.range(1)), q(normal<T, B>({1, queries, head_dim})) {
    infty::KeyValueStore<T, B, Stored> store(1, 1, head_dim);
    for (Index at = 0; at < keys; at += part)  // other numbers in every part
      store.append({drawn(at), {part}}, keys);
    stored = store.latest(keys);
  }

  static Tensor<T, B> drawn(Index seed) {
    Tensor<T, B> x(Shape{1, part, 2 * head_dim});
    infty::Random random(static_cast<std::uint64_t>(seed) + 2);
    fill_normal(x, 0, 1, random);
    return x;
  }
  double flops() const { return product_flops(queries, keys, head_dim); }
  double bytes() const { return static_cast<double>(keys * head_dim) * sizeof(Stored); }
  void operator()() const { benchmark::DoNotOptimize(infty::nearest(q, stored, 1, k)); }

  static constexpr Index part = 4096;
  Index queries, keys;
  Tensor<T, B> q;
  infty::StoredEntries<T, B, Stored> stored;
};

/// The products of as many queries and keys, the scores of 4,096 keys at a time.
template <class T>
struct ProductAlone {
  static constexpr const char* unit = "GFLOP/s";

  ProductAlone(Index queries_, Index keys_)
      : queries(queries_),
        keys(keys_),
        q(normal<T>({queries, head_dim})),
        all(normal<T>({keys, head_dim})),
        scores({queries, part}) {}

  double work() const { return product_flops(queries, keys, head_dim); }
  void operator()() {
    for (Index at = 0; at < keys; at += part)
      infty::EigenBackend::matmul({.m = queries,
                                   .n = part,
                                   .k = head_dim,
                                   .a = {.leading = head_dim},
                                   .b = {.leading = head_dim, .transposed = true},
                                   .c = {.leading = part}},
                                  T(1), std::as_const(q).data(),
                                  std::as_const(all).data() + at * head_dim, T(0), scores.data());
    benchmark::ClobberMemory();
  }

  static constexpr Index part = 4096;
  Index queries, keys;
  Tensor<T> q, all, scores;
};

template <class T, class B = infty::EigenBackend, class Stored = T>
void against_product(benchmark::State& run) {
  const Search<T, B, Stored> search(run);
  ProductAlone<T> limit(search.queries, search.keys);
  against(run, search.flops(), limit, search);
}

template <class T, class Stored = T>
void against_memory(benchmark::State& run) {
  const Search<T, infty::EigenBackend, Stored> search(run);
  against_reading(run, search.bytes(), search.bytes(), search);
}

/// The search of floats as a limit.
struct SearchOfFloats : Search<float, infty::EigenBackend> {
  using Search::Search;
  static constexpr const char* unit = "GFLOP/s";
  double work() const { return flops(); }
};

/// Of keys kept in half the bytes, against the same search of floats.
void against_floats(benchmark::State& run) {
  const Search<float, infty::EigenBackend, infty::BFloat16> search(run);
  SearchOfFloats floats(run);
  against(run, search.flops(), floats, search);
}

void sizes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"queries", "keys"});
  for (const Index queries : {8, 64, 512})
    for (const Index keys : {8192, 65536, 262144}) b->Args({queries, keys});
  b->UseManualTime();
}

void one_query(benchmark::internal::Benchmark* b) {
  b->ArgNames({"queries", "keys"});
  for (const Index keys : {8192, 65536, 262144}) b->Args({1, keys});
  b->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(against_product, float)->Apply(sizes)->Apply(one_query);
BENCHMARK_TEMPLATE(against_product, double)->Apply(sizes);
BENCHMARK_TEMPLATE(against_memory, float)->Apply(one_query);
BENCHMARK_TEMPLATE(against_memory, double)->Apply(one_query);
BENCHMARK_TEMPLATE(against_memory, float, infty::BFloat16)->Apply(one_query);
BENCHMARK(against_floats)->Apply(sizes)->Apply(one_query);
BENCHMARK_TEMPLATE(against_product, float, Composed)->Args({64, 65536})->UseManualTime();
