// SPDX-License-Identifier: MIT
#pragma once

#include <climits>
#include <type_traits>

#include <thrust/execution_policy.h>
#include <thrust/for_each.h>
#include <thrust/iterator/counting_iterator.h>

#include <infty/core/backend.hpp>
#include <infty/thrust/context.hpp>
#include <infty/thrust/device_pool.hpp>
#include <infty/thrust/matmul_batch.hpp>
#include <infty/thrust/thrust_call.hpp>

namespace infty::gpu::detail {

/// What cuBLAS may make of floats that it multiplies, as this thread's settings say.
inline cublasComputeType_t float_compute_type() {
  if (allow_bf16()) return CUBLAS_COMPUTE_32F_FAST_16BF;
  if (allow_tf32()) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

}  // namespace infty::gpu::detail

/// Dense linear algebra on a GPU. cuBLAS and cuSOLVER know columns only: a row-major matrix is its
/// transpose to them.
namespace infty::detail {

/// Addresses of the products of a batch of two levels, which no single stride describes.
template <class T>
struct MatmulPointers {
  const T *a, *b;
  T* c;
  const void **to_a, **to_b;
  void** to_c;
  Matmul shape;

  INFTY_HOST_DEVICE void operator()(Index i) const {
    const Index outer = i / shape.inner, inner = i % shape.inner;
    to_a[i] = a + outer * shape.a.outer + inner * shape.a.inner;
    to_b[i] = b + outer * shape.b.outer + inner * shape.b.inner;
    to_c[i] = c + outer * shape.c.outer + inner * shape.c.inner;
  }
};

/// Scales the matrices of a batch: what is left of a product over nothing.
template <class T>
struct MatmulScale {
  T* c;
  T beta;
  Matmul shape;

  INFTY_HOST_DEVICE void operator()(Index i) const {
    const Index column = i % shape.n, row = i / shape.n % shape.m, product = i / shape.n / shape.m;
    T& x = c[product / shape.inner * shape.c.outer + product % shape.inner * shape.c.inner +
             row * shape.c.leading + column];
    x = beta == T(0) ? T(0) : beta * x;
  }
};

template <class T>
void matmul_on_device(const Matmul& s, T alpha, const T* a, const T* b, T beta, T* c) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  const Index batch = s.outer * s.inner;
  if (s.m <= 0 || s.n <= 0 || batch <= 0) return;
  const auto policy = thrust::cuda::par_nosync.on(gpu::stream());
  const thrust::counting_iterator<Index> from_zero(0);
  if (s.k <= 0) {
    gpu::detail::thrust_call("matmul", [&] {
      thrust::for_each_n(policy, from_zero, batch * s.m * s.n, MatmulScale<T>{c, beta, s});
    });
    return;
  }
  constexpr bool single = std::is_same_v<T, float>;
  constexpr cudaDataType type = single ? CUDA_R_32F : CUDA_R_64F;
  const bool even = evenly_strided(s);
  // Where cuBLAS may round, it wants all matrices that it is given by pointers at 16 bytes.
  const bool may_round = even || begins_at_16_bytes(s, sizeof(T), a, b, c);
  const cublasComputeType_t compute = !single     ? CUBLAS_COMPUTE_64F
                                      : may_round ? gpu::detail::float_compute_type()
                                                  : CUBLAS_COMPUTE_32F;
  const auto operation = [](const Matmul::Operand& x) {
    return x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  const cublasHandle_t handle = gpu::detail::libraries().blas();
  if (even) {
    const auto stride = [&](const Matmul::Operand& x) { return s.inner > 1 ? x.inner : x.outer; };
    gpu::check(cublasGemmStridedBatchedEx_64(handle, operation(s.b), operation(s.a), s.n, s.m, s.k,
                                             &alpha, b, type, s.b.leading, stride(s.b), a, type,
                                             s.a.leading, stride(s.a), &beta, c, type, s.c.leading,
                                             stride(s.c), batch, compute, CUBLAS_GEMM_DEFAULT),
               "cublasGemmStridedBatchedEx");
    return;
  }
  const DeviceScratch<void*> pointers(3 * static_cast<std::size_t>(batch));
  const auto to_a = const_cast<const void**>(pointers.data()), to_b = to_a + batch;
  void** const to_c = pointers.data() + 2 * batch;
  gpu::detail::thrust_call("matmul", [&] {
    thrust::for_each_n(policy, from_zero, batch, MatmulPointers<T>{a, b, c, to_a, to_b, to_c, s});
  });
  gpu::check(cublasGemmBatchedEx_64(handle, operation(s.b), operation(s.a), s.n, s.m, s.k, &alpha,
                                    to_b, type, s.b.leading, to_a, type, s.a.leading, &beta, to_c,
                                    type, s.c.leading, batch, compute, CUBLAS_GEMM_DEFAULT),
             "cublasGemmBatchedEx");
}

/// Factors a (n, n) by Cholesky, in place, from its lower triangle in rows, which is the upper one
/// in columns: a = uᵀ u. `info`, in device memory, will be 0 if that went well.
template <class T>
void potrf(int n, T* a, int* info) {
  const cusolverDnHandle_t handle = gpu::detail::libraries().solver();
  constexpr auto part = CUBLAS_FILL_MODE_UPPER;
  int size = 0;
  if constexpr (std::is_same_v<T, float>) {
    gpu::check(cusolverDnSpotrf_bufferSize(handle, part, n, a, n, &size), "cusolverDnSpotrf");
    const DeviceScratch<T> work(static_cast<std::size_t>(size));
    gpu::check(cusolverDnSpotrf(handle, part, n, a, n, work.data(), size, info),
               "cusolverDnSpotrf");
  } else {
    gpu::check(cusolverDnDpotrf_bufferSize(handle, part, n, a, n, &size), "cusolverDnDpotrf");
    const DeviceScratch<T> work(static_cast<std::size_t>(size));
    gpu::check(cusolverDnDpotrf(handle, part, n, a, n, work.data(), size, info),
               "cusolverDnDpotrf");
  }
}

/// b (m, n), in columns, becomes b u^-1 or, transposed, b u^-T.
template <class T>
void solve_from_the_right(bool transposed, Index m, Index n, const T* u, T* b) {
  const cublasHandle_t handle = gpu::detail::libraries().blas();
  const T one = 1;
  const auto operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  if constexpr (std::is_same_v<T, float>) {
    gpu::check(cublasStrsm_64(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, operation,
                              CUBLAS_DIAG_NON_UNIT, m, n, &one, u, n, b, m),
               "cublasStrsm");
  } else {
    gpu::check(cublasDtrsm_64(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, operation,
                              CUBLAS_DIAG_NON_UNIT, m, n, &one, u, n, b, m),
               "cublasDtrsm");
  }
}

}  // namespace infty::detail
