// SPDX-License-Identifier: MIT
// The host's products of floats, in full and in bfloat16, in a file of nvcc's, whose front end
// knows less than the host's compiler: a part of cuda_sources, compiled and not run.
#include <infty/eigen/backend.hpp>
#include <infty/eigen/products.hpp>

void multiply_on_host(const float* a, const float* b, float* c) {
  for (const auto how : {infty::Products::full, infty::Products::bfloat16}) {
    const infty::ProductsScope scope(how);
    infty::EigenBackend::matmul({.m = 2,
                                 .n = 2,
                                 .k = 2,
                                 .a = {.leading = 2},
                                 .b = {.leading = 2},
                                 .c = {.leading = 2},
                                 .roundable = true},
                                1.f, a, b, 0.f, c);
  }
}
