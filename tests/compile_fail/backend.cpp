// SPDX-License-Identifier: MIT
// A backend that lacks a primitive is refused by name.
// expect: the second parameter is not an infty::Backend
// expect: B::sort(to, n)
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

struct Mine {
  using E = infty::EigenBackend;
  using Index = infty::Index;
  static void* allocate(std::size_t bytes) { return E::allocate(bytes); }
  static void release(void* data, std::size_t bytes) { E::release(data, bytes); }
  static void copy(float* to, const float* from, Index n) { E::copy(to, from, n); }
  static void from_host(float* to, const float* from, Index n) { E::copy(to, from, n); }
  static void to_host(float* to, const float* from, Index n) { E::copy(to, from, n); }
  static void fill(float* to, Index n, float value) { E::fill(to, n, value); }
  template <class F>
  static void for_each(Index n, F f) {
    E::for_each(n, f);
  }
  template <class F>
  static void for_each_row(Index n, Index cost, F f) {
    E::for_each_row(n, cost, f);
  }
  template <class Fold, class F>
  static float reduce(Index n, float init, Fold fold, F f) {
    return E::reduce(n, init, fold, f);
  }
  template <class Fold, class F>
  static void reduce_into(Index n, float init, Fold fold, F f, float* to) {
    E::reduce_into(n, init, fold, f, to);
  }
  static void matmul(const infty::Matmul&, float, const float*, const float*, float, float*) {}
  static bool cholesky_solve(Index n, Index m, float* a, float* b) {
    return E::cholesky_solve(n, m, a, b);
  }
  static void gather_rows(Index, Index, const float*, const Index*, Index, float*) {}
  static void scatter_add_rows(Index, Index, const float*, const Index*, Index, float*) {}
  static void inclusive_scan(float*, const float*, Index) {}
#ifndef BAD
  static void sort(float* data, Index n) { E::sort(data, n); }
#endif
};

int main() { return infty::Tensor<float, Mine>::zeros({2}).empty() ? 1 : 0; }
