// SPDX-License-Identifier: MIT
#pragma once

// Without a word from the build, Thrust's default system would be CUDA.
#if !defined(THRUST_DEVICE_SYSTEM) && !defined(__CUDACC__)
#define THRUST_DEVICE_SYSTEM THRUST_DEVICE_SYSTEM_CPP
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <thrust/execution_policy.h>
#include <thrust/system/cpp/execution_policy.h>
#if defined(_OPENMP)
#include <thrust/system/omp/execution_policy.h>
#endif

#include <infty/core/pool.hpp>
#include <infty/eigen/cholesky.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/thrust/backend.hpp>
#include <infty/thrust/carried.hpp>
#include <infty/thrust/fence.hpp>

namespace infty {

namespace detail {

inline auto thrust_policy(const Cpp*) { return thrust::cpp::par; }
#if defined(_OPENMP)
inline auto thrust_policy(const Omp*) { return thrust::omp::par; }
#endif

/// What Thrust's host systems have in common: memory of the host, Eigen for dense linear algebra.
template <class System>
struct ThrustHost {
  static auto policy() { return thrust_policy(static_cast<const System*>(nullptr)); }
  /// For algorithms whose result must not depend on how threads cut the work.
  static auto ordered_policy() { return thrust::seq; }

#if defined(INFTY_THRUST_FENCE)
  static Fence::Open open() { return Fence::instance().open(); }
  static void* allocate(std::size_t bytes) { return Fence::instance().allocate(bytes); }
  static void release(void* data, std::size_t bytes) { Fence::instance().release(data, bytes); }
  /// Sees to it that a GPU could use what `call` hands to it, and an address that it works on.
  template <class F>
  static void carry(const char* call, const F& f) {
    require_carried(call, f);
  }
  static void reach(const char* call, const void* data) { require_fenced(call, data); }
#else
  struct Open {
    ~Open() {}  // so that nobody warns of a guard that is not used
  };
  static Open open() { return {}; }
  static void* allocate(std::size_t bytes) { return HostPool::instance().allocate(bytes); }
  static void release(void* data, std::size_t bytes) { HostPool::instance().release(data, bytes); }
  template <class F>
  static void carry(const char*, const F&) {}
  static void reach(const char*, const void*) {}
#endif

  /// Calls f, an algorithm of Thrust's by the name of `call`, with the memory open.
  template <class F>
  static void run(const char* call, F&& f) {
    (void)call;
    const auto guard = open();
    f();
  }

  static void copy(void* to, const void* from, std::size_t bytes) {
    reach("copy", from);
    from_host(to, from, bytes);
  }
  static void from_host(void* to, const void* from, std::size_t bytes) {
    reach("from_host", to);
    move(to, from, bytes);
  }
  static void to_host(void* to, const void* from, std::size_t bytes) {
    reach("to_host", from);
    move(to, from, bytes);
  }

  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    // The pieces of EigenBackend, each folded in order.
    constexpr Index least = 32768, most_pieces = 256;
    carry("reduce", f);
    const auto guard = open();
    const Index grain = (std::max)(least, (n + most_pieces - 1) / most_pieces);
    T partial[most_pieces];
    T* const to = partial;
    const Index pieces = (n + grain - 1) / grain;
    thrust::for_each_n(policy(), thrust::counting_iterator<Index>(0), pieces, [=](Index piece) {
      const Index end = (std::min)(n, (piece + 1) * grain);
      T sum = f(piece * grain);
      for (Index i = piece * grain + 1; i < end; ++i) sum = fold(sum, f(i));
      to[piece] = sum;
    });
    T total = init;
    for (Index piece = 0; piece < pieces; ++piece) total = fold(total, partial[piece]);
    return total;
  }
  template <class T, class Fold, class F>
  static void reduce_into(Index n, T init, Fold fold, F f, T* to) {
    reach("reduce_into", to);
    const auto guard = open();
    *to = reduce(n, init, fold, f);
  }

  template <class T>
  static void matmul(const Matmul& shape, T alpha, const T* a, const T* b, T beta, T* c) {
    reach("matmul", c);
    const auto guard = open();
    detail::matmul(shape, alpha, a, b, beta, c);
  }
  /// y (rows, out) = x (rows, in) Wᵀ + b, the bias added last, as cuBLAS does.
  static bool biased_product(Index rows, Index out, Index in, const float* x, const float* w,
                             const float* b, float* y) {
    matmul({.m = rows,
            .n = out,
            .k = in,
            .a = {.leading = in},
            .b = {.leading = in, .transposed = true},
            .c = {.leading = out}},
           1.f, x, w, 0.f, y);
    const auto guard = open();
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < out; ++j) y[i * out + j] += b[j];
    return true;
  }
  template <class T>
  static bool cholesky_solve(Index n, Index m, T* a, T* b) {
    const auto guard = open();
    return detail::cholesky_solve(n, m, a, b);
  }

 private:
  static void move(void* to, const void* from, std::size_t bytes) {
    const auto guard = open();
    std::memmove(to, from, bytes);
  }
};

template <>
struct ThrustSystem<Cpp> : ThrustHost<Cpp> {};
#if defined(_OPENMP)
template <>
struct ThrustSystem<Omp> : ThrustHost<Omp> {};
#endif

}  // namespace detail

static_assert(Backend<ThrustBackend<Cpp>>);

}  // namespace infty
