// SPDX-License-Identifier: MIT
#pragma once

#include <climits>
#include <cstddef>
#include <utility>

#include <cub/device/device_reduce.cuh>
#include <thrust/execution_policy.h>

#include <infty/core/fold.hpp>
#include <infty/core/number.hpp>
#include <infty/core/verify.hpp>
#include <infty/thrust/backend.hpp>
#include <infty/thrust/context.hpp>
#include <infty/thrust/cublas_lt.hpp>
#include <infty/thrust/dense.hpp>
#include <infty/thrust/device_pool.hpp>
#include <infty/thrust/thrust_call.hpp>
#include <infty/thrust/transfer.hpp>

#if !defined(__CUDACC__)
#error "<infty/thrust/cuda.hpp> is for nvcc; a host compiler takes <infty/thrust/host.hpp>"
#endif

namespace infty {

namespace detail {

/// 1 where the factor of a matrix cannot be one.
template <class T>
struct BadPivot {
  const T* a;
  Index n;
  const int* info;

  INFTY_HOST_DEVICE Index operator()(Index i) const {
    const T pivot = a[i * n + i];
    return *info == 0 && pivot > T(0) && math::is_finite(pivot) ? 0 : 1;
  }
};

/// A GPU: memory of `DevicePool`, all work on the current stream.
template <>
struct ThrustSystem<Cuda> {
  static auto policy() {
    static thread_local DevicePoolAllocator temporaries;
    return thrust::cuda::par_nosync(temporaries).on(gpu::stream());
  }
  static auto ordered_policy() { return policy(); }

  /// Calls f, an algorithm of Thrust's by the name of `call`, whose errors leave as infty's.
  template <class F>
  static void run(const char* call, F&& f) {
    gpu::detail::thrust_call(call, f);
  }

  /// What the host's systems look for, CUDA finds itself.
  template <class F>
  static void carry(const char*, const F&) {}
  static void reach(const char*, const void*) {}

  static void* allocate(std::size_t bytes) { return DevicePool::instance().allocate(bytes); }
  static void release(void* data, std::size_t bytes) {
    DevicePool::instance().release(data, bytes);
  }

  static void copy(void* to, const void* from, std::size_t bytes) {
    const char* const begin = static_cast<const char*>(from);
    const char* const target = static_cast<const char*>(to);
    if (target < begin + bytes && begin < target + bytes) {
      const DeviceScratch<char> aside(bytes);
      copy_apart(aside.data(), from, bytes);
      copy_apart(to, aside.data(), bytes);
    } else {
      copy_apart(to, from, bytes);
    }
  }
  static void from_host(void* to, const void* from, std::size_t bytes) {
    gpu::detail::upload(to, from, bytes);
  }
  static void to_host(void* to, const void* from, std::size_t bytes) {
    gpu::detail::refuse_captured("to_host");
    gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, gpu::stream()),
               "cudaMemcpyAsync");
    gpu::synchronize();
  }

  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    const DeviceScratch<T> result(1);
    reduce_into(n, init, fold, f, result.data());
    T value;
    to_host(&value, result.data(), sizeof(T));
    return value;
  }
  template <class T, class Fold, class F>
  static void reduce_into(Index n, T init, Fold fold, F f, T* to) {
    const auto run = [&](void* work, std::size_t& bytes) {
      gpu::check(
          cub::DeviceReduce::TransformReduce(work, bytes, thrust::counting_iterator<Index>(0), to,
                                             n, fold, f, init, gpu::stream()),
          "cub::DeviceReduce::TransformReduce");
    };
    std::size_t bytes = 0;
    run(nullptr, bytes);
    const DeviceScratch<char> work(bytes);
    run(work.data(), bytes);
  }

  /// Calls report(i) with the largest i in [0, n) of which bad(i) is true, at the next call of this
  /// thread that waits for the GPU; never if there is none, nor of what a `Graph` captures.
  template <class Bad, class Report>
  static void verify(Index n, Bad bad, Report report) {
    if (n <= 0 || gpu::detail::current_stream().captured) return;
    const DeviceScratch<Index> found(1);
    reduce_into(n, Index{-1}, Larger{}, PlaceOf<Bad>{bad}, found.data());
    Index* const slot = gpu::detail::pending_checks().add(std::move(report));
    gpu::check(
        cudaMemcpyAsync(slot, found.data(), sizeof(Index), cudaMemcpyDeviceToHost, gpu::stream()),
        "cudaMemcpyAsync");
  }

  template <class T>
  static void matmul(const Matmul& shape, T alpha, const T* a, const T* b, T beta, T* c) {
    matmul_on_device(shape, alpha, a, b, beta, c);
  }
  static bool biased_product(Index rows, Index out, Index in, const float* x, const float* w,
                             const float* b, float* y) {
    return gpu::detail::biased_product(rows, out, in, x, w, b, y);
  }

  template <class T>
  static bool cholesky_solve(Index n, Index m, T* a, T* b) {
    if (n == 0) return true;
    require(n <= INT_MAX, "cholesky_solve", "n is ", n, ": cuSOLVER takes at most ", INT_MAX);
    const DeviceScratch<int> info(1);
    potrf(static_cast<int>(n), a, info.data());
    const Index bad = reduce(n, Index{0}, Plus{}, BadPivot<T>{a, n, info.data()});
    if (bad > 0) return false;
    // Row-major b is bᵀ in columns, with (uᵀ u)^-1 = u^-1 u^-T at its right.
    if (m > 0) {
      solve_from_the_right(false, m, n, a, b);
      solve_from_the_right(true, m, n, a, b);
    }
    return true;
  }

 private:
  static void copy_apart(void* to, const void* from, std::size_t bytes) {
    gpu::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, gpu::stream()),
               "cudaMemcpyAsync");
  }
};

}  // namespace detail

static_assert(Backend<ThrustBackend<Cuda>>);

}  // namespace infty
