// SPDX-License-Identifier: MIT
#pragma once

// What the target `infty::compiled` has compiled beforehand (docs/install.md). It defines
// INFTY_COMPILED, and then each floor's list declares what a program need not instantiate itself;
// the library's source goes through the same lists with `template` in the stead of `extern
// template`. A list has what costs most. Members of a class are inline, so that programs go on
// compiling those that they call: free functions are what saves.

#include <infty/core/config.hpp>
#include <infty/eigen/cholesky.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/version.hpp>

/// The CPU backend's part that is all Eigen.
#define INFTY_COMPILED_EIGEN(how, T)                                              \
  how void detail::matmul(const Matmul&, T, const T*, const T*, T, T*, const T*); \
  how bool detail::cholesky_solve(Index, Index, T*, T*);

#if defined(INFTY_COMPILED)

namespace infty::detail {

/// Flags that decide the layout of code and what it computes, a bit each.
inline constexpr int compiled_flags = 0
#if defined(_OPENMP)
                                      + 1
#endif
#if defined(__FMA__)
                                      + 2
#endif
#if defined(__FAST_MATH__)
                                      + 4
#endif
#if defined(__cpp_exceptions)
                                      + 8
#endif
#if defined(INFTY_EIGEN_PRODUCTS)
                                      + 16
#elif defined(INFTY_ONEDNN)
                                      + 32
#elif defined(INFTY_BLAS)
                                      + 64
#endif
    ;

/// What a library is compiled for. It has `made` for its own numbers alone, so that a program of
/// other flags or of another infty does not link.
template <int infty_version_number, int vector_bytes, int flags>
struct CompiledFor {
  static const bool made;
};
#define INFTY_COMPILED_FOR CompiledFor<INFTY_VERSION_NUMBER, Simd<float>::bytes, compiled_flags>
extern template struct INFTY_COMPILED_FOR;

[[gnu::used]] static const bool* const compiled_for_this = &INFTY_COMPILED_FOR::made;

}  // namespace infty::detail

namespace infty {
INFTY_COMPILED_EIGEN(extern template, float)
INFTY_COMPILED_EIGEN(extern template, double)
}  // namespace infty

#endif
