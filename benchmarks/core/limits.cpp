// SPDX-License-Identifier: MIT
// What every share in the other tables is a share of: the fastest matrix product, and copies of as
// many bytes as a kernel moves. Shares here: of multiply-adds in registers, which is what the
// cores' arithmetic can do; and of a copy of arrays that no cache holds.

#include "../support/against.hpp"

using namespace infty::bench;

namespace {

template <class T>
void fastest_matrix_product(benchmark::State& run) {
  MatrixProduct<T> product;
  MultiplyAdds<T> limit;
  run.SetLabel(product.name());
  against(run, product.work(), limit, [&] { product(); });
}

// Argument: bytes read and written.
void copy(benchmark::State& run) {
  Copy of_bytes(static_cast<double>(run.range(0))), limit(Copy::beyond_caches());
  against(run, of_bytes.work(), limit, [&] { of_bytes(); });
}

void sizes(benchmark::internal::Benchmark* b) {
  const auto memory = static_cast<std::int64_t>(2 * Copy::beyond_caches());
  b->RangeMultiplier(8)->Range(1 << 15, 1 << 27)->Arg(memory)->UseManualTime();
}

}  // namespace

BENCHMARK(fastest_matrix_product<float>)->UseManualTime();
BENCHMARK(fastest_matrix_product<double>)->UseManualTime();
BENCHMARK(copy)->Apply(sizes);
