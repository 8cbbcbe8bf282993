// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include <infty/core/backend.hpp>
#include <infty/memory/long_term_memory.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;

/// The plainest backend: host memory, one thread, loops.
struct PlainBackend {
  static void* allocate(std::size_t bytes) { return ::operator new(bytes, std::align_val_t(64)); }
  static void release(void* block, std::size_t) { ::operator delete(block, std::align_val_t(64)); }

  template <class T>
  static void copy(T* to, const T* from, Index n) {
    if (n > 0) std::memmove(to, from, static_cast<std::size_t>(n) * sizeof(T));
  }
  template <class T>
  static void from_host(T* to, const T* from, Index n) {
    copy(to, from, n);
  }
  template <class T>
  static void to_host(T* to, const T* from, Index n) {
    copy(to, from, n);
  }
  template <class T>
  static void fill(T* to, Index n, T value) {
    std::fill(to, to + n, value);
  }

  template <class F>
  static void for_each(Index n, F f) {
    for (Index i = 0; i < n; ++i) f(i);
  }
  template <class F>
  static void for_each_row(Index rows, Index, F f) {
    for_each(rows, f);
  }
  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    for (Index i = 0; i < n; ++i) init = fold(init, f(i));
    return init;
  }
  template <class T, class Fold, class F>
  static void reduce_into(Index n, T init, Fold fold, F f, T* to) {
    *to = reduce(n, init, fold, f);
  }

  template <class T>
  static void matmul(const infty::Matmul& p, T alpha, const T* a, const T* b, T beta, T* c) {
    const auto at = [](const infty::Matmul::Operand& x, Index row, Index column) {
      return x.transposed ? column * x.leading + row : row * x.leading + column;
    };
    for (Index o = 0; o < p.outer; ++o)
      for (Index i = 0; i < p.inner; ++i)
        for (Index row = 0; row < p.m; ++row)
          for (Index column = 0; column < p.n; ++column) {
            T sum = 0;
            for (Index k = 0; k < p.k; ++k)
              sum += a[o * p.a.outer + i * p.a.inner + at(p.a, row, k)] *
                     b[o * p.b.outer + i * p.b.inner + at(p.b, k, column)];
            T& out = c[o * p.c.outer + i * p.c.inner + row * p.c.leading + column];
            out = alpha * sum + (beta == T(0) ? T(0) : beta * out);
          }
  }

  template <class T>
  static bool cholesky_solve(Index n, Index m, T* A, T* B) {
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j <= i; ++j) {
        T sum = A[i * n + j];
        for (Index k = 0; k < j; ++k) sum -= A[i * n + k] * A[j * n + k];
        if (i == j && !(sum > 0 && std::isfinite(sum))) return false;
        A[i * n + j] = i == j ? std::sqrt(sum) : sum / A[j * n + j];
      }
    for (Index column = 0; column < m; ++column) {
      for (Index i = 0; i < n; ++i) {
        for (Index k = 0; k < i; ++k) B[i * m + column] -= A[i * n + k] * B[k * m + column];
        B[i * m + column] /= A[i * n + i];
      }
      for (Index i = n - 1; i >= 0; --i) {
        for (Index k = i + 1; k < n; ++k) B[i * m + column] -= A[k * n + i] * B[k * m + column];
        B[i * m + column] /= A[i * n + i];
      }
    }
    return true;
  }

  template <class T>
  static void gather_rows(Index n, Index width, const T* from, const Index* rows, Index, T* to) {
    for (Index i = 0; i < n; ++i) copy(to + i * width, from + rows[i] * width, width);
  }
  template <class T>
  static void scatter_add_rows(Index n, Index width, const T* from, const Index* rows, Index,
                               T* to) {
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < width; ++j) to[rows[i] * width + j] += from[i * width + j];
  }
  template <class T>
  static void inclusive_scan(T* to, const T* from, Index n) {
    T sum = 0;
    for (Index i = 0; i < n; ++i) to[i] = sum += from[i];
  }
  template <class T>
  static void sort(T* data, Index n) {
    std::sort(data, data + n);
  }
};

static_assert(infty::Backend<PlainBackend>);

namespace {

/// Two writes and a read: what was read, and the gradient of its sum to the last write.
template <class B>
std::vector<double> written_and_read(infty::Resampling resampling) {
  const infty::LongTermMemory<double, infty::GaussianDensity, infty::GaussianBasis<double>, B>
      memory({.model_dim = 6,
              .heads = 2,
              .basis = 8,
              .widths = {.05, .1},
              .samples = 12,
              .resampling = resampling},
             infty::Random(1));
  infty::Random random(infty::tests::seed);
  const auto draw = [&](infty::Shape shape) {
    infty::Tensor<double, B> x(shape);
    fill_uniform(x, -1, 1, random);
    return infty::Variable<double, B>(x, true);
  };
  const auto first = draw({2, 9, 6}), second = draw({2, 5, 6}), queries = draw({2, 4, 6});
  auto state = memory.make_state(2);
  infty::Tape tape;
  memory.write(state, first);
  memory.read(state, queries);  // where sticky memories look
  memory.write(state, second);
  const auto context = memory.read(state, queries);
  tape.backward(sum(context));
  auto out = context.value().to_vector();
  for (const double g : second.grad().to_vector()) out.push_back(g);
  return out;
}

}  // namespace

TEST_CASE("docs: the long-term memory runs on a backend of one's own") {
  for (const auto resampling : {infty::Resampling::even, infty::Resampling::sticky_quantiles})
    CHECK(infty::tests::error(written_and_read<PlainBackend>(resampling),
                              written_and_read<infty::EigenBackend>(resampling)) < 1e-12);
}
