// SPDX-License-Identifier: MIT
// What a GPU can do at most, and what our kernels do of it: a line of JSON for each measurement,
// the middle one of 21 after 3 that do not count.
//
//   ceilings --ceilings   copies, and products of 8192 x 8192 matrices
//   ceilings --kernels    our kernels, and their share of the ceiling that is nearest to them
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_bf16.h>

#include <infty/core/bfloat16.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/thrust/cuda.hpp>

#include "clock.hpp"

namespace {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::Clock;
using Gpu = infty::ThrustBackend<infty::Cuda>;
using Vector = infty::Variable<float, Gpu>;

Vector uniform(const Shape& shape) {
  static Random random(1);
  Tensor<float, Gpu> x(shape);
  fill_uniform(x, -1, 1, random);
  return Vector(x, true);
}

/// 10^9 bytes a second of a copy of a GiB, read and written.
double copy_rate(Clock& clock) {
  const Index n = Index{1} << 28;
  Tensor<float, Gpu> from(Shape{n}), to(Shape{n});
  Gpu::fill(from.data(), n, 1.0f);
  const double ms = clock.time([&] { Gpu::copy(to.data(), from.data(), n); });
  return 2 * static_cast<double>(n) * sizeof(float) / ms / 1e6;
}

/// 10^12 operations a second of a product of 8192 x 8192 matrices.
double product_rate(Clock& clock, cudaDataType type, cublasComputeType_t compute) {
  constexpr int n = 8192;
  const Tensor<float, Gpu> a(Shape{n, n}), b(Shape{n, n}), c(Shape{n, n});
  // Zeros would spare power, and so run at a higher clock.
  const Vector noise = uniform(Shape{n, n});
  for (const auto& x : {a, b}) {
    auto* const to = const_cast<float*>(x.data());
    const float* const from = noise.value().data();
    if (type == CUDA_R_32F)
      Gpu::copy(to, from, Index{n} * n);
    else
      Gpu::for_each(Index{n} * n, [=] INFTY_HOST_DEVICE(Index i) {
        reinterpret_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16(from[i]);
      });
  }
  const float one = 1, zero = 0;
  const double ms = clock.time([&] {
    infty::gpu::check(
        cublasGemmEx(infty::gpu::detail::libraries().blas(), CUBLAS_OP_N, CUBLAS_OP_N, n, n, n,
                     &one, a.data(), type, n, b.data(), type, n, &zero,
                     const_cast<float*>(c.data()), type, n, compute, CUBLAS_GEMM_DEFAULT),
        "cublasGemmEx");
  });
  return 2.0 * n * n * n / ms / 1e9;
}

void print(std::string_view what, double ms, double rate, const char* unit, double ceiling) {
  std::cout << "{\"what\": \"" << what << "\", \"ms\": " << ms << ", \"rate\": " << rate
            << ", \"unit\": \"" << unit << "\", \"share\": " << rate / ceiling << "}" << std::endl;
}

void print_ceilings(Clock& clock) {
  const auto say = [](std::string_view what, double rate, const char* unit) {
    std::cout << "{\"what\": \"" << what << "\", \"rate\": " << rate << ", \"unit\": \"" << unit
              << "\"}" << std::endl;
  };
  std::cout << "{\"what\": \"device\", \"is\": \"" << infty::gpu::description() << "\"}"
            << std::endl;
  say("copy of 1 GiB", copy_rate(clock), "GB/s");
  say("product of 8192, FP32", product_rate(clock, CUDA_R_32F, CUBLAS_COMPUTE_32F), "TFLOP/s");
  say("product of 8192, TF32", product_rate(clock, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
      "TFLOP/s");
  say("product of 8192, BF16", product_rate(clock, CUDA_R_16BF, CUBLAS_COMPUTE_32F), "TFLOP/s");
}

/// Forward, and forward with backward less that, of an operation: `make()` is a Variable.
template <class Make>
void measure(Clock& clock, const std::string& name, double work, double backward_work,
             const char* unit, double ceiling, const Make& make) {
  const double forward = clock.time([&] {
    const auto quiet = infty::no_grad();
    make();
  });
  const double both = clock.time([&] {
    infty::Tape tape;
    const auto y = make();
    tape.backward(y, y.value());
  });
  print(name + ", forward", forward, work / forward, unit, ceiling);
  print(name + ", forward and backward", both, (work + backward_work) / both, unit, ceiling);
}

/// Operations without a gradient of their own: `work` is done once by run().
template <class Run>
void measure_once(Clock& clock, const std::string& name, double work, const char* unit,
                  double ceiling, const Run& run) {
  const double ms = clock.time(run);
  print(name, ms, work / ms, unit, ceiling);
}

/// What a read of the long-term memory takes, with all functions and without those out of reach of
/// queries that look at neighbouring places; the rate counts them all in both.
void print_reads(Clock& clock, double fp32) {
  const Index batch = 8, heads = 16, queries = 512, basis = 512, width = 64 * heads;
  const infty::GaussianBasis<float> psi(basis, {.01, .05});
  std::vector<float> numbers;
  const Index n = batch * heads * queries;
  for (Index i = 0; i < n; ++i)
    numbers.push_back(static_cast<float>(i % queries) / static_cast<float>(queries));
  numbers.resize(static_cast<std::size_t>(2 * n), 1e-4f);
  const Vector density(Tensor<float, Gpu>::from({2, batch, heads, queries}, numbers), true);
  const Vector values = uniform({batch, basis, width});
  // A product of D for each pair, and two more backward.
  const double products = static_cast<double>(n * basis) * 2 * 64 / 1e9;
  for (const bool skips : {false, true})
    measure(clock,
            std::string("LTM read, 512 of 512 functions, 16 heads of 64") +
                (skips ? ", without tails" : ""),
            products, 2 * products, "TFLOP/s", fp32, [&] {
              return infty::expected_values<infty::GaussianDensity>(psi, density, values, skips);
            });
}

/// The kernels of a training step that no operation of its own stands for.
void print_training(Clock& clock, double copy, double fp32) {
  const Index rows = 16384, d = 1024, items = 48, size = Index{1} << 20;
  {
    // 48 parameters of a MiB: Adam reads four numbers of each and writes three.
    std::vector<Tensor<float, Gpu>> all;
    std::vector<infty::AdamItem<float>> steps;
    std::vector<infty::GradientItem<float>> gradients;
    for (Index i = 0; i < items; ++i) {
      for (int k = 0; k < 4; ++k) all.push_back(Tensor<float, Gpu>::full(Shape{size}, .5f));
      const std::size_t at = all.size() - 4;
      steps.push_back({all[at].data(), all[at + 1].data(), all[at + 2].data(), all[at + 3].data(),
                       size, 1e-6f, 1.0f});
      gradients.push_back({all[at + 1].data(), size});
    }
    const infty::AdamFactors<float> factors{.9f, .1f, .999f, .001f, 1.0f, 1e-8f};
    const double bytes = static_cast<double>(items * size) * 4 / 1e6;
    measure_once(clock, "Adam, 48 x 2^20", 7 * bytes, "GB/s", copy,
                 [&] { Gpu::FusedAdam::step(factors, steps.data(), items); });
    Tensor<double, Gpu> sums(Shape{items});
    measure_once(clock, "squares of gradients, 48 x 2^20", bytes, "GB/s", copy,
                 [&] { Gpu::FusedGradients::squares(gradients.data(), items, sums.data()); });
    measure_once(clock, "scaling of gradients, 48 x 2^20", 2 * bytes, "GB/s", copy,
                 [&] { Gpu::FusedGradients::scale(gradients.data(), items, 1.0f); });
  }
  const Vector x = uniform({rows, d});
  const double bytes = static_cast<double>(rows * d) * 4 / 1e6;
  {
    Tensor<float, Gpu> sums = Tensor<float, Gpu>::full(Shape{d}, 0.0f);
    measure_once(clock, "column sums, 16384 x 1024", bytes, "GB/s", copy,
                 [&] { Gpu::FusedColumnSums::add(rows, d, x.value().data(), sums.data()); });
  }
  {
    const Index vocabulary = 50257;
    Tensor<float, Gpu> table = Tensor<float, Gpu>::full(Shape{vocabulary, d}, 0.0f);
    std::vector<Index> drawn(static_cast<std::size_t>(rows));
    Random random(3);
    for (Index& token : drawn) token = random.below(vocabulary);
    const auto tokens = Tensor<Index, Gpu>::from({rows}, drawn);
    measure_once(clock, "scatter_add_rows, 16384 of 50257 x 1024", 3 * bytes, "GB/s", copy, [&] {
      Gpu::scatter_add_rows(rows, d, x.value().data(), tokens.data(), vocabulary, table.data());
    });
  }
  {
    // As a layer makes it and its gradients: x W, dy Wᵀ and xᵀ dy.
    const Index wide = 4096;
    const Vector w = uniform({d, wide}), y = uniform({rows, wide});
    Tensor<float, Gpu> to(Shape{rows, wide}), dx(Shape{rows, d}), dw(Shape{d, wide});
    const double work = 2.0 * static_cast<double>(rows * d * wide) / 1e9;
    measure_once(clock, "product x W, 16384 x 1024 x 4096", work, "TFLOP/s", fp32, [&] {
      Gpu::matmul({.m = rows,
                   .n = wide,
                   .k = d,
                   .a = {.leading = d},
                   .b = {.leading = wide},
                   .c = {.leading = wide}},
                  1.0f, x.value().data(), w.value().data(), 0.0f, to.data());
    });
    measure_once(clock, "product dy W^T", work, "TFLOP/s", fp32, [&] {
      Gpu::matmul({.m = rows,
                   .n = d,
                   .k = wide,
                   .a = {.leading = wide},
                   .b = {.leading = wide, .transposed = true},
                   .c = {.leading = d}},
                  1.0f, y.value().data(), w.value().data(), 0.0f, dx.data());
    });
    measure_once(clock, "product x^T dy", work, "TFLOP/s", fp32, [&] {
      Gpu::matmul({.m = d,
                   .n = wide,
                   .k = rows,
                   .a = {.leading = d, .transposed = true},
                   .b = {.leading = wide},
                   .c = {.leading = wide}},
                  1.0f, x.value().data(), y.value().data(), 0.0f, dw.data());
    });
  }
}

/// The search for 32 of 262,144 keys of each of 8 heads of 64: of one query, which reads them all,
/// and of 512, as a product that is not written.
template <class Stored>
void print_searches(Clock& clock, double copy, double fp32, const std::string& kept) {
  const Index heads = 8, keys = 262144, part = 4096;
  infty::KeyValueStore<float, Gpu, Stored> store(1, heads, 64);
  for (Index at = 0; at < keys; at += part)
    store.append({uniform({1, part, 2 * heads * 64}).value(), {part}}, keys);
  const auto stored = store.latest(keys);
  const double numbers = static_cast<double>(heads * keys) * 64;
  for (const Index queries : {1, 512}) {
    const Vector q = uniform({1, queries, heads * 64});
    const auto run = [&] { infty::nearest(q.value(), stored, heads, 32); };
    const auto name = "search for 32 of 262144 keys" + kept + ", 8 heads of 64, ";
    if (queries == 1)
      measure_once(clock, name + "1 query", numbers * sizeof(Stored) / 1e6, "GB/s", copy, run);
    else
      measure_once(clock, name + "512 queries", 512 * 2 * numbers / 1e9, "TFLOP/s", fp32, run);
  }
}

/// Attention of 512 queries to 1,024 keys, without tensor cores and by them: their share is that of
/// FP32, too, which they may well be above.
void print_attention(Clock& clock, double fp32) {
  const Index batch = 8, queries = 512, keys = 1024, width = 1024;
  for (const Index d : {64, 128}) {
    const Index heads = width / d;
    const Vector q = uniform({batch, queries, width}), k = uniform({batch, keys, width}),
                 v = uniform({batch, keys, width}), r = uniform({keys, width}),
                 u = uniform({heads, d}), w = uniform({heads, d});
    // Three products of D for each pair that is seen: about all of M keys and half of the rest.
    const double pairs = static_cast<double>(batch * heads * d) * 512 * (512 + 256.5);
    const auto name = "relative attention, 512 of 1024, " + std::to_string(heads) + " heads of " +
                      std::to_string(d);
    for (const char* const way : {"", ", two parts of TF32", ", TF32", ", BF16"}) {
      const std::string_view asked(way);
      infty::gpu::set_tensor_attention(!asked.empty());
      infty::gpu::set_allow_tf32(asked == ", TF32");
      infty::gpu::set_allow_bf16(asked == ", BF16");
      measure(clock, name + way, pairs * 6 / 1e9, pairs * 18 / 1e9, "TFLOP/s", fp32,
              [&] { return infty::relative_attention(q, k, v, r, u, w); });
    }
    infty::gpu::set_tensor_attention(false);
    infty::gpu::set_allow_bf16(false);
  }
}

void print_kernels(Clock& clock) {
  const double copy = copy_rate(clock), fp32 = product_rate(clock, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  print_attention(clock, fp32);
  {
    const Index rows = 16384, d = 1024;
    const Vector x = uniform({rows, d}), gain = uniform({d}), bias = uniform({d});
    const double bytes = static_cast<double>(rows * d) * 4 / 1e6;
    measure(clock, "layer norm, 16384 x 1024", 2 * bytes, 4 * bytes, "GB/s", copy,
            [&] { return infty::layer_norm(x, gain, bias); });
  }
  {
    const Index rows = 4096, tokens = 50257;
    const Vector logits = uniform({rows, tokens});
    const auto targets = Tensor<Index, Gpu>::full(Shape{rows}, 3);
    const double bytes = static_cast<double>(rows * tokens) * 4 / 1e6;
    measure(clock, "token losses, 4096 x 50257", bytes, 3 * bytes, "GB/s", copy,
            [&] { return infty::token_losses(logits, targets); });
  }
  {
    const Index rows = 16384, d = 1024, vocabulary = 50257;
    const Vector table = uniform({vocabulary, d});
    std::vector<Index> drawn(static_cast<std::size_t>(rows));
    Random random(2);
    for (Index& token : drawn) token = random.below(vocabulary);
    const auto tokens = Tensor<Index, Gpu>::from({rows}, drawn);
    const double bytes = static_cast<double>(rows * d) * 4 / 1e6;
    measure(clock, "embedding, 16384 of 50257 x 1024", 2 * bytes, 3 * bytes, "GB/s", copy,
            [&] { return infty::embedding(tokens, table); });
  }
  print_reads(clock, fp32);
  print_training(clock, copy, fp32);
  print_searches<float>(clock, copy, fp32, "");
  print_searches<infty::BFloat16>(clock, copy, fp32, " in bfloat16");
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what != "--ceilings" && what != "--kernels") {
    std::cerr << "ceilings: one of --ceilings and --kernels\n";
    return 2;
  }
  if (const std::string reason = infty::gpu::why_unusable(); !reason.empty()) {
    std::cout << "skipped: " << reason << '\n';
    return 77;
  }
  Clock clock;
  what == "--kernels" ? print_kernels(clock) : print_ceilings(clock);
} catch (const infty::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
