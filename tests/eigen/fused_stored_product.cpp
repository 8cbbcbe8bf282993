// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/eigen/fused_stored_product.hpp>
#include <infty/eigen/linear_algebra.hpp>
#include <infty/eigen/products.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

namespace fused_stored_product_tests {

using infty::BFloat16, infty::Index, infty::Products, infty::Random, infty::Shape;
using Kernel = infty::detail::FusedStoredProduct;

/// Of m rows of k floats with n rows of weights.
struct Case {
  Index m, n, k;
  std::vector<float> x, full, before;
  std::vector<BFloat16> stored;

  Case(Index m_, Index n_, Index k_) : m(m_), n(n_), k(k_) {
    Random random(infty::tests::seed);
    x = infty::tests::uniform_tensor<float>(Shape{m * k}, random).to_vector();
    before = infty::tests::uniform_tensor<float>(Shape{m * n}, random).to_vector();
    for (const float w : infty::tests::uniform_tensor<float>(Shape{n * k}, random).to_vector()) {
      stored.emplace_back(w);
      full.push_back(stored.back());
    }
  }

  std::vector<float> by_kernel(float beta) const {
    auto y = before;
    Kernel::multiply(m, n, k, x.data(), stored.data(), beta, y.data(), n, true);
    return y;
  }
  /// The product of weights in full that hold the same numbers.
  std::vector<float> in_full(float beta) const {
    auto y = before;
    infty::detail::matmul<float>({.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = {.leading = k},
                                  .b = {.leading = k, .transposed = true},
                                  .c = {.leading = n},
                                  .roundable = true},
                                 1, x.data(), full.data(), beta, y.data());
    return y;
  }
};

}  // namespace fused_stored_product_tests

TEST_CASE("FusedStoredProduct: the bits of weights in full that hold the same numbers") {
  using namespace fused_stored_product_tests;
  for (const Products how : {Products::full, Products::bfloat16}) {
    const infty::ProductsScope scope(how);
    for (const Index n : {1, 15, 16, 17, 33, 300})
      for (const Index k : {2, 14, 16, 18, 32, 34, 322, 650, 768})
        for (Index m = 1; m <= infty::detail::most_few_rows; ++m) {
          const Case a(m, n, k);
          CAPTURE(m, n, k, names_of(how)[static_cast<std::size_t>(how)]);
          for (const float beta : {0.f, 1.f, .3f}) CHECK(a.by_kernel(beta) == a.in_full(beta));
        }
  }
}

TEST_CASE("FusedStoredProduct: takes a few rows of words") {
  using namespace fused_stored_product_tests;
  CHECK(Kernel::takes(1, 2));
  CHECK(Kernel::takes(8, 768));
  CHECK_FALSE(Kernel::takes(9, 768));
  CHECK_FALSE(Kernel::takes(0, 768));
  CHECK_FALSE(Kernel::takes(1, 767));
  CHECK_FALSE(Kernel::takes(1, 0));
}

TEST_CASE("FusedStoredProduct: numbers that are none, and the least and largest ones") {
  using namespace fused_stored_product_tests;
  Case a(2, 20, 34);
  a.x.assign(a.x.size(), 1.f);
  const auto set = [&](Index row, float w) {
    a.stored[static_cast<std::size_t>(row * a.k + 33)] = BFloat16(w);
    a.full[static_cast<std::size_t>(row * a.k + 33)] = static_cast<float>(BFloat16(w));
  };
  set(3, std::numeric_limits<float>::infinity());
  set(5, std::numeric_limits<float>::quiet_NaN());
  set(7, 3e38f);
  set(19, std::numeric_limits<float>::denorm_min() * 0x1p20f);
  const auto y = a.by_kernel(0), wanted = a.in_full(0);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto column = i % 20;
    CAPTURE(i);
    CHECK(std::isnan(y[i]) == (column == 5));
    CHECK(std::isinf(y[i]) == (column == 3));
    if (column != 5) CHECK(y[i] == wanted[i]);
  }
}

TEST_CASE("FusedStoredProduct: the same bits with one thread and with three") {
  using namespace fused_stored_product_tests;
  const Case a(3, 1000, 768);
  const auto now = [&] { return a.by_kernel(1); };
  CHECK(infty::tests::with_threads(1, now) == infty::tests::with_threads(3, now));
}
