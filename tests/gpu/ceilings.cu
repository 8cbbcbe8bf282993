// SPDX-License-Identifier: MIT
// What a GPU can do at most, and what our kernels do of it: a line of JSON for each measurement,
// the middle one of 21 after 3 that do not count.
//
//   ceilings --ceilings   copies, and products of 8192 x 8192 matrices
//   ceilings --kernels    our kernels, and their share of the ceiling that is nearest to them
#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <cuda_bf16.h>

#include <infty/nn/attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/thrust/cuda.hpp>

namespace {

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using Gpu = infty::ThrustBackend<infty::Cuda>;
using Vector = infty::Variable<float, Gpu>;

/// Milliseconds between two points of the current stream.
class Clock {
 public:
  Clock() {
    infty::gpu::check(cudaEventCreate(&begin_), "cudaEventCreate");
    infty::gpu::check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Clock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  template <class F>
  double time(const F& f) {
    std::vector<double> all;
    for (int i = 0; i < 24; ++i) {
      infty::gpu::check(cudaEventRecord(begin_, infty::gpu::stream()), "cudaEventRecord");
      f();
      infty::gpu::check(cudaEventRecord(end_, infty::gpu::stream()), "cudaEventRecord");
      infty::gpu::check(cudaEventSynchronize(end_), "cudaEventSynchronize");
      float ms = 0;
      infty::gpu::check(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
      if (i >= 3) all.push_back(static_cast<double>(ms));
    }
    std::nth_element(all.begin(), all.begin() + 10, all.end());
    return all[10];
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

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

void print_kernels(Clock& clock) {
  const double copy = copy_rate(clock), fp32 = product_rate(clock, CUDA_R_32F, CUBLAS_COMPUTE_32F);
  {
    const Index batch = 8, queries = 512, keys = 1024, heads = 16, width = 64 * heads;
    const Vector q = uniform({batch, queries, width}), k = uniform({batch, keys, width}),
                 v = uniform({batch, keys, width}), r = uniform({keys, width}),
                 u = uniform({heads, 64}), w = uniform({heads, 64});
    // Three products of D for each pair that is seen: about all of M keys and half of the rest.
    const double pairs = static_cast<double>(batch * heads) * 512 * (512 + 256.5);
    measure(clock, "relative attention, 512 of 1024, 16 heads of 64", pairs * 6 * 64 / 1e9,
            pairs * 18 * 64 / 1e9, "TFLOP/s", fp32,
            [&] { return infty::relative_attention(q, k, v, r, u, w); });
  }
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
