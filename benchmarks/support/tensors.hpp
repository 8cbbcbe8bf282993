// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/random.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/map.hpp>

#if defined(INFTY_WITH_THRUST)
#include <infty/thrust/host.hpp>
#endif

namespace infty::bench {

/// A tensor from a normal distribution, the same every time.
template <class T, class B = EigenBackend>
Tensor<T, B> normal(Shape shape) {
  Tensor<T, B> x(shape);
  Random random(1);
  fill_normal(x, 0, 1, random);
  return x;
}

/// EigenBackend's primitives without its kernels by hand: every component is the composition that
/// defines it.
struct Composed : private EigenBackend {
  using EigenBackend::allocate, EigenBackend::release, EigenBackend::copy, EigenBackend::from_host,
      EigenBackend::to_host, EigenBackend::fill, EigenBackend::for_each, EigenBackend::for_each_row,
      EigenBackend::for_each_task, EigenBackend::task_rows, EigenBackend::reduce,
      EigenBackend::reduce_into, EigenBackend::matmul, EigenBackend::cholesky_solve,
      EigenBackend::gather_rows, EigenBackend::scatter_add_rows, EigenBackend::inclusive_scan,
      EigenBackend::sort;
};
static_assert(Backend<Composed>);

}  // namespace infty::bench
