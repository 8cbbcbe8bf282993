// SPDX-License-Identifier: MIT
// Matrix products through the backend, square and of the shapes that the models have, and Eigen's
// as a user would write them. Arguments: number of products, and m x n x k of each; of the
// transposed factors one is marked T. Eight products share their first factor, as the rows of a
// batch do. With AVX-512 also products of floats whose factors are rounded to bfloat16.

#include <tuple>

#include <infty/core/backend.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;

namespace {

template <class T>
struct Operands {
  explicit Operands(const benchmark::State& run)
      : count(run.range(0)),
        m(run.range(1)),
        n(run.range(2)),
        k(run.range(3)),
        transpose_a(run.range(4)),
        transpose_b(run.range(5)),
        a(transpose_a ? normal<T>({k, m}) : normal<T>({m, k})),
        b(transpose_b ? normal<T>({count, n, k}) : normal<T>({count, k, n})),
        c({count, m, n}) {}

  double flops() const { return static_cast<double>(count) * product_flops(m, n, k); }
  void multiply() {
    const infty::Matmul shape{.m = m,
                              .n = n,
                              .k = k,
                              .a = {.leading = a.dim(1), .transposed = transpose_a},
                              .b = {.leading = b.dim(2), .outer = n * k, .transposed = transpose_b},
                              .c = {.leading = n, .outer = m * n},
                              .outer = count,
                              .roundable = true};
    infty::EigenBackend::matmul(shape, T(1), a.data(), b.data(), T(0), c.data());
  }

  Index count, m, n, k;
  bool transpose_a, transpose_b;
  infty::Tensor<T> a, b, c;
};

template <class T>
void product(benchmark::State& run) {
  Operands<T> x(run);
  against_matrix_product<T>(run, x.flops(), [&] { x.multiply(); });
}

// Of floats with factors in bfloat16, against what the cores multiply in registers: tiles or pairs
// by the instruction, or by floats where that is what they do.
void bfloat16_product(benchmark::State& run) {
  const infty::ProductsScope scope(infty::Products::bfloat16);
  Operands<float> x(run);
  const auto multiply = [&] { x.multiply(); };
#if defined(INFTY_TILE_REGISTERS)
  static TileProducts by_tiles;
  if (infty::detail::has_tile_registers()) return against(run, x.flops(), by_tiles, multiply);
#endif
#if defined(INFTY_DOT_INSTRUCTION)
  static DotProducts by_pairs;
  if (infty::detail::multiplies_pairs()) return against(run, x.flops(), by_pairs, multiply);
#endif
  static MultiplyAdds<float> by_floats;
  against(run, x.flops(), by_floats, multiply);
}

template <class T>
void plain_eigen(benchmark::State& run) {
  Operands<T> x(run);
  const auto a = matrix(std::as_const(x.a));
  against_matrix_product<T>(run, x.flops(), [&] {
    for (Index i = 0; i < x.count; ++i) {
      auto each_b = x.b.slice(i, i + 1), each_c = x.c.slice(i, i + 1);
      const auto b = matrix(each_b);
      auto c = matrix(each_c);
      if (x.transpose_a)
        c.noalias() = a.transpose() * b;
      else if (x.transpose_b)
        c.noalias() = a * b.transpose();
      else
        c.noalias() = a * b;
    }
  });
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"", "m", "n", "k", "T", "T"});
  for (const Index n : {64, 256, 1024}) b->Args({1, n, n, n, 0, 0});
  b->Args({1, 8192, 300, 300, 0, 1});   // a map of all vectors
  b->Args({1, 300, 300, 8192, 1, 0});   // the gradient of its weights
  b->Args({8, 1024, 300, 1024, 0, 0});  // a memory carried on, of every row
  b->Args({1, 64, 50, 1024, 0, 0});     // a tile of queries and a head's values
  for (const Index m : {8, 20}) b->Args({1, m, 64, 64, 0, 0});
  b->Args({1, 256, 32, 32, 0, 1});  // a layer of a small model,
  b->Args({1, 256, 64, 64, 0, 1});
  b->Args({1, 256, 64, 64, 0, 0});     // the gradient of its input
  b->Args({1, 64, 64, 256, 1, 0});     // and of its weights
  b->Args({1, 128, 3072, 768, 0, 1});  // layers of GPT-2 small,
  b->Args({1, 128, 768, 3072, 0, 1});
  b->Args({1, 128, 768, 3072, 0, 0});   // the gradient of an input
  b->Args({1, 192, 3072, 512, 1, 0});   // and of weights,
  b->Args({1, 512, 50257, 768, 0, 1});  // logits
  b->UseManualTime();
}

}  // namespace

BENCHMARK_TEMPLATE(product, float)->Apply(shapes);
BENCHMARK_TEMPLATE(plain_eigen, float)->Apply(shapes);
BENCHMARK(bfloat16_product)->Apply(shapes);
BENCHMARK_TEMPLATE(product, double)->Apply(shapes);
BENCHMARK_TEMPLATE(plain_eigen, double)->Apply(shapes);
