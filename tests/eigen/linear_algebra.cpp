// SPDX-License-Identifier: MIT
#include <array>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/linear_algebra.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using infty::Index;
using infty::Matmul;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::uniform_tensor;
using infty::tests::with_threads;

namespace {

// A product that is added to what is there, of factors of these sizes.
template <class T>
struct Sum {
  Sum(const Matmul& of, Index a_size, Index b_size, Index c_size) : p(of) {
    Random random(infty::tests::seed);
    a = uniform_tensor<T>(Shape{a_size}, random);
    b = uniform_tensor<T>(Shape{b_size}, random);
    c = uniform_tensor<T>(Shape{c_size}, random);
  }

  std::vector<T> by(int threads) const {
    auto sum = c.clone();
    with_threads(threads,
                 [&] { infty::detail::matmul(p, T(1), a.data(), b.data(), T(1), sum.data()); });
    return sum.to_vector();
  }

  Matmul p;
  Tensor<T> a, b, c;
};

}  // namespace

TEMPLATE_TEST_CASE("matmul: the same bits with one thread and with more", "", float, double) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [m, n, k] :
           {std::array<Index, 3>{700, 65, 300}, {65, 700, 300}, {7, 2000, 64}, {128, 128, 4000}}) {
        const Matmul p{.m = m,
                       .n = n,
                       .k = k,
                       .a = {.leading = ta ? m : k, .transposed = ta},
                       .b = {.leading = tb ? k : n, .transposed = tb},
                       .c = {.leading = n}};
        const Sum<TestType> sum(p, m * k, k * n, m * n);
        const auto one = sum.by(1);
        CAPTURE(m, n, k, ta, tb);
        CHECK(sum.by(2) == one);
        CHECK(sum.by(5) == one);
      }
}

TEMPLATE_TEST_CASE("matmul: a batch gives the same bits with any number of threads", "", float,
                   double) {
  const Index m = 31, n = 45, k = 60;
  const Matmul p{.m = m,
                 .n = n,
                 .k = k,
                 .a = {.leading = k, .outer = 3 * m * k, .inner = m * k},
                 .b = {.leading = n, .outer = 0, .inner = k * n},
                 .c = {.leading = 3 * n, .outer = 3 * m * n, .inner = n},
                 .outer = 11,
                 .inner = 3};
  const Sum<TestType> sum(p, 33 * m * k, 3 * k * n, 33 * m * n);
  const auto one = sum.by(1);
  CHECK(sum.by(2) == one);
  CHECK(sum.by(4) == one);
}

TEMPLATE_TEST_CASE("matmul: a product has the same bits alone and beside others", "", float,
                   double) {
  // Sums over many terms are cut, which must not depend on how many products there are.
  for (const bool ta : {false, true})
    for (const auto& [m, n, k] :
         {std::array<Index, 3>{48, 48, 1024}, {24, 24, 4000}, {3, 20, 1500}})
      for (const Index products : {2, 20}) {
        Matmul p{.m = m,
                 .n = n,
                 .k = k,
                 .a = {.leading = ta ? m : k, .outer = m * k, .transposed = ta},
                 .b = {.leading = n, .outer = 0},
                 .c = {.leading = n, .outer = m * n},
                 .outer = products};
        Random random(infty::tests::seed);
        const auto a = uniform_tensor<TestType>(Shape{products * m * k}, random);
        const auto b = uniform_tensor<TestType>(Shape{k * n}, random);
        const TestType none{};
        Tensor<TestType> together(Shape{products, m * n}), alone(Shape{products, m * n});
        infty::detail::matmul(p, TestType(1), a.data(), b.data(), none, together.data());
        p.outer = 1;
        for (Index i = 0; i < products; ++i)
          infty::detail::matmul(p, TestType(1), a.data() + i * m * k, b.data(), none,
                                alone.data() + i * m * n);
        CAPTURE(ta, m, n, k, products);
        CHECK(together.to_vector() == alone.to_vector());
      }
}

#if defined(_OPENMP)
TEST_CASE("OneThread: OpenMP's own setting comes back") {
  const int before = omp_get_max_threads();
  {
    const infty::detail::OneThread guard;
    CHECK(omp_get_max_threads() == 1);
  }
  CHECK(omp_get_max_threads() == before);
}
#endif
