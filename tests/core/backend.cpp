// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Matmul;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::error;
using infty::tests::tolerance;
using infty::tests::uniform_tensor;

// A model of the concept that lacks one primitive is none.
struct WithoutSort {
  static void* allocate(std::size_t bytes) { return infty::EigenBackend::allocate(bytes); }
  static void release(void* data, std::size_t bytes) { infty::EigenBackend::release(data, bytes); }
  static void copy(float*, const float*, Index) {}
  static void from_host(float*, const float*, Index) {}
  static void to_host(float*, const float*, Index) {}
  static void fill(float*, Index, float) {}
  template <class F>
  static void for_each(Index, F) {}
  template <class F>
  static void for_each_row(Index, Index, F) {}
  template <class Fold, class F>
  static float reduce(Index, float, Fold, F) {
    return 0;
  }
  template <class Fold, class F>
  static void reduce_into(Index, float, Fold, F, float*) {}
  static void matmul(const Matmul&, float, const float*, const float*, float, float*) {}
  static bool cholesky_solve(Index, Index, float*, float*) { return true; }
  static void gather_rows(Index, Index, const float*, const Index*, Index, float*) {}
  static void scatter_add_rows(Index, Index, const float*, const Index*, Index, float*) {}
  static void inclusive_scan(float*, const float*, Index) {}
};
struct WithSort : WithoutSort {
  static void sort(float*, Index) {}
};
struct WithAnotherReduce : WithSort {
  template <class Fold, class F>
  static double reduce(Index, float, Fold, F) {
    return 0;
  }
};

static_assert(infty::Backend<WithSort> && !infty::Backend<WithoutSort>);
static_assert(!infty::Backend<WithAnotherReduce> && !infty::Backend<int>);

namespace {

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

// The product as its definition says, in long double, into a copy of c.
template <class T>
std::vector<T> plain_matmul(const Matmul& p, T alpha, const std::vector<T>& a,
                            const std::vector<T>& b, T beta, std::vector<T> c) {
  for (Index o = 0; o < p.outer; ++o)
    for (Index q = 0; q < p.inner; ++q)
      for (Index i = 0; i < p.m; ++i)
        for (Index j = 0; j < p.n; ++j) {
          long double sum = 0;
          for (Index k = 0; k < p.k; ++k) {
            const Index ia = p.a.transposed ? k * p.a.leading + i : i * p.a.leading + k;
            const Index ib = p.b.transposed ? j * p.b.leading + k : k * p.b.leading + j;
            sum += static_cast<long double>(a[at(o * p.a.outer + q * p.a.inner + ia)]) *
                   static_cast<long double>(b[at(o * p.b.outer + q * p.b.inner + ib)]);
          }
          T& out = c[at(o * p.c.outer + q * p.c.inner + i * p.c.leading + j)];
          const long double before = beta == T(0) ? 0 : static_cast<long double>(beta * out);
          out = static_cast<T>(static_cast<long double>(alpha) * sum + before);
        }
  return c;
}

// Number of elements that an operand of stored (rows, columns) spans.
Index span(const Matmul& p, const Matmul::Operand& x, Index rows, Index columns) {
  if (rows == 0 || columns == 0) return 0;
  return (p.outer - 1) * x.outer + (p.inner - 1) * x.inner + (rows - 1) * x.leading + columns;
}

// Runs a product on random operands and holds the whole of C, gaps between rows included, to the
// plain loop.
template <class T, class B>
double matmul_error(const Matmul& p, T alpha, T beta, Random& random) {
  const Index na = span(p, p.a, p.a.transposed ? p.k : p.m, p.a.transposed ? p.m : p.k);
  const Index nb = span(p, p.b, p.b.transposed ? p.n : p.k, p.b.transposed ? p.k : p.n);
  const Index nc = span(p, p.c, p.m, p.n);
  const auto a = uniform_tensor<T, B>(Shape{na}, random);
  const auto b = uniform_tensor<T, B>(Shape{nb}, random);
  auto c = uniform_tensor<T, B>(Shape{nc}, random);
  const auto expected = plain_matmul(p, alpha, a.to_vector(), b.to_vector(), beta, c.to_vector());
  B::matmul(p, alpha, a.data(), b.data(), beta, c.data());
  return error(c.to_vector(), expected);
}

// Contiguous operands, one product.
Matmul dense(Index m, Index n, Index k, bool ta, bool tb) {
  return {.m = m,
          .n = n,
          .k = k,
          .a = {.leading = ta ? m : k, .transposed = ta},
          .b = {.leading = tb ? k : n, .transposed = tb},
          .c = {.leading = n}};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Backend: copy, from_host, to_host, fill", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index n : {0, 1, 7, 20'001}) {
    std::vector<T> host(at(n)), back(at(n));
    std::iota(host.begin(), host.end(), T(1));
    Tensor<T, B> x(Shape{n}), y(Shape{n});
    B::from_host(x.data(), host.data(), n);
    B::copy(y.data(), x.data(), n);
    B::to_host(back.data(), y.data(), n);
    CHECK(back == host);
    B::fill(y.data(), n, T(4));
    CHECK(y.to_vector() == std::vector<T>(at(n), T(4)));
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: for_each and for_each_row run once for each index", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const Index n : {0, 1, 5, 8191, 8192, 8193, 50'001}) {
    for (const Index cost : {0, 1, 100, 100'000}) {
      auto x = Tensor<T, B>::zeros(Shape{n});
      T* const to = x.data();
      const auto body = [=] INFTY_HOST_DEVICE(Index i) { to[i] += static_cast<T>(i + 1); };
      if (cost == 0)
        B::for_each(n, body);
      else
        B::for_each_row(n, cost, body);
      std::vector<T> expected(at(n));
      std::iota(expected.begin(), expected.end(), T(1));
      REQUIRE(x.to_vector() == expected);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: reduce folds every term once, after init", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  CHECK(B::reduce(0, T(3), infty::detail::Plus{}, [] INFTY_HOST_DEVICE(Index) { return T(1); }) ==
        T(3));
  CHECK(B::reduce(1, T(3), infty::detail::Plus{}, [] INFTY_HOST_DEVICE(Index) { return T(1); }) ==
        T(4));
  for (const Index n : {2, 8191, 8192, 8193, 100'003, 3'000'000}) {
    // Sums of small integers are exact in float up to 2^24, whatever the order.
    CHECK(B::reduce(n, T(1), infty::detail::Plus{},
                    [] INFTY_HOST_DEVICE(Index i) { return T(i % 3 + 1); }) ==
          static_cast<T>(1 + n / 3 * 6 +
                         (n % 3 == 0   ? 0
                          : n % 3 == 1 ? 1
                                       : 3)));
    const auto x = uniform_tensor<T, B>(Shape{n}, random);
    const T* const from = x.data();
    const auto host = x.to_vector();
    CHECK(B::reduce(n, T(-5), infty::detail::Larger{}, [=] INFTY_HOST_DEVICE(Index i) {
            return from[i];
          }) == *std::max_element(host.begin(), host.end()));
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: reduce_into writes what reduce returns, and nothing else", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index n : {0, 1, 300, 100'003}) {
    const auto x = uniform_tensor<T, B>(Shape{n}, random);
    const T* const from = x.data();
    const auto term = [=] INFTY_HOST_DEVICE(Index i) { return from[i]; };
    auto sums = Tensor<T, B>::full(Shape{3}, T(7));
    B::reduce_into(n, T(2), infty::detail::Plus{}, term, sums.data() + 1);
    CHECK(sums.to_vector() ==
          std::vector<T>{T(7), B::reduce(n, T(2), infty::detail::Plus{}, term), T(7)});
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: matmul by hand", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto a = Tensor<T, B>::from({2, 2}, {1, 2, 3, 4}),
             b = Tensor<T, B>::from({2, 2}, {5, 6, 7, 8});
  const auto product = [&](bool ta, bool tb, T alpha, T beta) {
    auto c = Tensor<T, B>::full({2, 2}, T(1));
    B::matmul(dense(2, 2, 2, ta, tb), alpha, a.data(), b.data(), beta, c.data());
    return c.to_vector();
  };
  CHECK(product(false, false, T(1), T(0)) == std::vector<T>{19, 22, 43, 50});
  CHECK(product(true, false, T(1), T(0)) == std::vector<T>{26, 30, 38, 44});
  CHECK(product(false, true, T(1), T(0)) == std::vector<T>{17, 23, 39, 53});
  CHECK(product(true, true, T(1), T(0)) == std::vector<T>{23, 31, 34, 46});
  CHECK(product(false, false, T(2), T(-3)) == std::vector<T>{35, 41, 83, 97});
  CHECK(product(false, false, T(0), T(1)) == std::vector<T>{1, 1, 1, 1});
}

TEMPLATE_LIST_TEST_CASE("Backend: matmul of every size and side is the plain loop", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  const std::vector<Index> sizes{0, 1, 2, 5, 17, 33, 64};
  double worst = 0;
  for (const Index m : sizes)
    for (const Index n : sizes)
      for (const Index k : sizes)
        for (const bool ta : {false, true})
          for (const bool tb : {false, true})
            worst = std::max(worst, matmul_error<T, B>(dense(m, n, k, ta, tb), T(1.5),
                                                       T(random.below(3)) - T(1), random));
  CHECK(worst < tolerance<T>);
}

TEMPLATE_LIST_TEST_CASE("Backend: matmul of long and wide sizes is the plain loop", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      CHECK(matmul_error<T, B>(dense(601, 67, 129, ta, tb), T(1), T(0), random) < tolerance<T>);
      CHECK(matmul_error<T, B>(dense(67, 601, 129, ta, tb), T(1), T(1), random) < tolerance<T>);
      CHECK(matmul_error<T, B>(dense(1, 1001, 333, ta, tb), T(1), T(2), random) < tolerance<T>);
      CHECK(matmul_error<T, B>(dense(1001, 1, 333, ta, tb), T(-1), T(0), random) < tolerance<T>);
      CHECK(matmul_error<T, B>(dense(9, 7, 5003, ta, tb), T(1), T(0), random) < tolerance<T>);
    }
}

TEMPLATE_LIST_TEST_CASE("Backend: batched, strided matmul writes its rows and nothing else", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (int round = 0; round < 60; ++round) {
    const bool ta = random.below(2) == 1, tb = random.below(2) == 1;
    Matmul p = dense(random.below(20), random.below(20), random.below(40), ta, tb);
    p.outer = 1 + random.below(4);
    p.inner = 1 + random.below(4);
    for (Matmul::Operand* x : {&p.a, &p.b, &p.c}) x->leading += random.below(5);
    // Heads side by side in a row for one operand, one after another for the others.
    p.a.inner = (ta ? p.k : p.m) * p.a.leading + 3;
    p.a.outer = p.inner * p.a.inner;
    p.b.inner = random.below(2) == 1 ? 0 : (tb ? p.n : p.k) * p.b.leading;
    p.b.outer = random.below(2) == 1 ? 0 : p.inner * p.b.inner;
    p.c.inner = p.n;
    p.c.leading = p.inner * p.n + random.below(3);
    p.c.outer = p.m * p.c.leading + 1;
    CAPTURE(p.m, p.n, p.k, p.outer, p.inner, ta, tb);
    CHECK(matmul_error<T, B>(p, T(0.5), T(random.below(3)), random) < tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: matmul with beta 0 overwrites NaN, and k = 0 scales C", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto a = Tensor<T, B>::full({3, 2}, T(1)), b = Tensor<T, B>::full({2, 3}, T(1));
  auto c = Tensor<T, B>::full({3, 3}, std::numeric_limits<T>::quiet_NaN());
  B::matmul(dense(3, 3, 2, false, false), T(1), a.data(), b.data(), T(0), c.data());
  CHECK(c.to_vector() == std::vector<T>(9, T(2)));
  B::matmul(dense(3, 3, 0, false, false), T(1), a.data(), b.data(), T(3), c.data());
  CHECK(c.to_vector() == std::vector<T>(9, T(6)));
  B::matmul(dense(3, 3, 0, false, false), T(1), a.data(), b.data(), T(0), c.data());
  CHECK(c.to_vector() == std::vector<T>(9, T(0)));
}

TEMPLATE_LIST_TEST_CASE("Backend: cholesky_solve gives the factor and the solution", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index n : {1, 2, 3, 16, 37, 150}) {
    for (const Index m : {0, 1, 5, 64}) {
      // A = M Mᵀ / n + I: the condition number is at most about 2.5
      const auto factor = uniform_tensor<T, B>(Shape{n, n}, random);
      auto a = Tensor<T, B>::zeros({n, n});
      T* const pa = a.data();
      B::for_each(n, [=] INFTY_HOST_DEVICE(Index i) { pa[i * n + i] = T(1); });
      B::matmul(dense(n, n, n, false, true), T(1) / static_cast<T>(n), factor.data(), factor.data(),
                T(1), a.data());
      const auto x = uniform_tensor<T, B>(Shape{n, m}, random);
      Tensor<T, B> b(Shape{n, m});
      B::matmul(dense(n, m, n, false, false), T(1), a.data(), x.data(), T(0), b.data());
      const auto before = a.to_vector();

      REQUIRE(B::cholesky_solve(n, m, a.data(), b.data()));
      CHECK(error(b.to_vector(), x.to_vector()) < 10 * tolerance<T>);
      // The lower triangle L of what is left has L Lᵀ = A.
      const auto l = a.to_vector();
      std::vector<T> product(at(n * n));
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j)
          for (Index k = 0; k <= std::min(i, j); ++k)
            product[at(i * n + j)] += l[at(i * n + k)] * l[at(j * n + k)];
      CHECK(error(product, before) < tolerance<T>);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: cholesky_solve says no to what is not positive definite", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto solvable = [](std::vector<T> elements) {
    auto a = Tensor<T, B>::from({2, 2}, elements), b = Tensor<T, B>::full({2, 1}, T(1));
    return B::cholesky_solve(2, 1, a.data(), b.data());
  };
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  CHECK(solvable({2, 1, 1, 2}));
  CHECK_FALSE(solvable({1, 2, 2, 1}));
  CHECK_FALSE(solvable({0, 0, 0, 0}));
  CHECK_FALSE(solvable({-1, 0, 0, 1}));
  CHECK_FALSE(solvable({nan, 0, 0, 1}));
  CHECK_FALSE(solvable({1, nan, nan, 1}));
  CHECK_FALSE(solvable({1, 0, 0, nan}));
  CHECK_FALSE(solvable({inf, 0, 0, 1}));
}

TEMPLATE_LIST_TEST_CASE("Backend: gather_rows picks rows, scatter_add_rows adds them back", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index width : {1, 3, 40}) {
    for (const Index n : {0, 1, 200}) {
      const Index count = 9;
      const auto table = uniform_tensor<T, B>(Shape{count, width}, random);
      std::vector<Index> picks(at(n));
      for (Index& pick : picks) pick = random.below(count);
      const auto rows = Tensor<Index, B>::from({n}, picks);
      Tensor<T, B> picked(Shape{n, width});
      B::gather_rows(n, width, table.data(), rows.data(), count, picked.data());

      auto sums = table.clone();
      B::scatter_add_rows(n, width, picked.data(), rows.data(), count, sums.data());

      const auto from = table.to_vector(), got = picked.to_vector();
      auto expected = from;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < width; ++j) {
          REQUIRE(got[at(i * width + j)] == from[at(picks[at(i)] * width + j)]);
          expected[at(picks[at(i)] * width + j)] += from[at(picks[at(i)] * width + j)];
        }
      CHECK(sums.to_vector() ==
            expected);  // exactly: the order of the sums is part of the contract
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Backend: inclusive_scan and sort", "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Random random(infty::tests::seed);
  for (const Index n : {0, 1, 2, 1000}) {
    std::vector<T> host(at(n));
    for (T& x : host) x = static_cast<T>(random.below(50));
    auto x = Tensor<T, B>::from({n}, host);
    Tensor<T, B> scanned(Shape{n});
    B::inclusive_scan(scanned.data(), x.data(), n);
    std::vector<T> expected(at(n));
    std::partial_sum(host.begin(), host.end(), expected.begin());
    CHECK(scanned.to_vector() == expected);
    B::inclusive_scan(x.data(), x.data(), n);  // in place
    CHECK(x.to_vector() == expected);

    auto y = Tensor<T, B>::from({n}, host);
    B::sort(y.data(), n);
    std::sort(host.begin(), host.end());
    CHECK(y.to_vector() == host);
  }
}

#if defined(INFTY_THRUST_FENCE)
TEMPLATE_LIST_TEST_CASE("Backend: the fence shows what a GPU could not reach, or what nobody wrote",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto x = Tensor<T, B>::zeros({4});
  std::vector<T> host(4, T(3));
  T *const to = x.data(), *const from = host.data();
  const bool twice = true;  // behind which there are bytes without a meaning
  B::for_each(4, [=] INFTY_HOST_DEVICE(Index i) { to[i] = T(twice ? 2 : 1); });
  CHECK(x.to_vector() == std::vector<T>(4, T(2)));
  CHECK_THROWS_AS(B::for_each(4, [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i]; }),
                  infty::Error);
  CHECK_THROWS_AS(
      B::reduce(4, T(0), infty::detail::Plus{}, [=] INFTY_HOST_DEVICE(Index i) { return from[i]; }),
      infty::Error);
  CHECK_THROWS_AS(B::fill(from, 4, T(1)), infty::Error);
  CHECK_THROWS_AS(B::copy(to, from, 4), infty::Error);
  CHECK_THROWS_AS(B::from_host(from, to, 4), infty::Error);
  CHECK(x.to_vector() == std::vector<T>(4, T(2)));
  CHECK(host == std::vector<T>(4, T(3)));

  for (int i = 0; i < 2; ++i) {  // of new memory, and of what was given back
    Tensor<T, B> fresh(Shape{1000});
    const auto numbers = fresh.to_vector();
    CHECK(std::all_of(numbers.begin(), numbers.end(),
                      [](const T& number) { return infty::math::is_nan_at(&number); }));
    fresh.fill(T(1));
  }
}
#endif
