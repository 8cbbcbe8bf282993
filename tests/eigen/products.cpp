// SPDX-License-Identifier: MIT
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <infty/autograd/linear.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/products.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using infty::Index;
using infty::Matmul;
using infty::Products;
using infty::ProductsScope;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::detail::PairLayout;
using infty::tests::uniform_tensor;
using infty::tests::uniform_variable;
using infty::tests::with_threads;

namespace products_tests {

using Floats = std::vector<float>;

struct Sizes {
  Index m, n, k;
  bool transpose_a = false, transpose_b = false;
};

Matmul product_of(const Sizes& s, bool roundable = true) {
  return {.m = s.m,
          .n = s.n,
          .k = s.k,
          .a = {.leading = s.transpose_a ? s.m : s.k, .transposed = s.transpose_a},
          .b = {.leading = s.transpose_b ? s.k : s.n, .transposed = s.transpose_b},
          .c = {.leading = s.n},
          .roundable = roundable};
}

Floats multiplied(const Sizes& s, const Floats& a, const Floats& b, Products how,
                  bool roundable = true) {
  const ProductsScope scope(how);
  Floats c(static_cast<std::size_t>(s.m * s.n));
  infty::EigenBackend::matmul(product_of(s, roundable), 1.f, a.data(), b.data(), 0.f, c.data());
  return c;
}

Floats drawn(Index n, Random random, double size = 1) {
  return uniform_tensor<float>(Shape{n}, random, -size, size).to_vector();
}

/// Bits, so that zeros have signs; of what is not a number all are one.
std::vector<std::uint32_t> bits_of(const Floats& x) {
  std::vector<std::uint32_t> bits;
  for (const float value : x)
    bits.push_back(std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value));
  return bits;
}

float flushed(float x) { return infty::detail::without_subnormals(x); }
float rounded(float x) { return infty::detail::to_bfloat16(flushed(x)); }

/// The sum of k products of factors at p, as the instructions for them are documented to add up:
/// what is below the least normal number is zero before and behind each step, which rounds once.
/// `vdpbf16ps` adds of each pair first the product of the upper halves, then that of the lower
/// ones. `tdpbf16ps` adds up 16 pairs, upper and lower halves by themselves, and then these two and
/// the sum.
template <class Factor>
float defined_sum(PairLayout layout, Index k, const Factor& left, const Factor& right) {
  const auto add = [&](float sum, Index at) {
    return at < k ? flushed(std::fma(rounded(left(at)), rounded(right(at)), sum)) : flushed(sum);
  };
  float sum = 0;
  if (layout != PairLayout::rows) {
    for (Index p = 0; p < k; p += 2) sum = add(add(sum, p + 1), p);
    return sum;
  }
  for (Index first = 0; first < k; first += 32) {
    float lower = 0, upper = 0;
    for (Index p = first; p < first + 32; p += 2) {
      lower = add(lower, p);
      upper = add(upper, p + 1);
    }
    sum = flushed(sum + flushed(lower + upper));
  }
  return sum;
}

/// C = A B by that definition.
Floats defined_product(PairLayout layout, const Sizes& s, const Floats& a, const Floats& b) {
  Floats c;
  for (Index i = 0; i < s.m; ++i)
    for (Index j = 0; j < s.n; ++j) {
      const std::function<float(Index)> left = [&](Index p) {
        return a[static_cast<std::size_t>(s.transpose_a ? p * s.m + i : i * s.k + p)];
      };
      const std::function<float(Index)> right = [&](Index p) {
        return b[static_cast<std::size_t>(s.transpose_b ? j * s.k + p : p * s.n + j)];
      };
      c.push_back(defined_sum(layout, s.k, left, right));
    }
  return c;
}

Floats by_pairs(const Sizes& s, const Floats& a, const Floats& b, PairLayout layout, float alpha,
                float beta) {
  Floats c = drawn(s.m * s.n, Random(7));
  infty::detail::rounded_gemm(
      s.m, s.n, s.k, alpha, {a.data(), s.transpose_a ? s.m : s.k, s.transpose_a},
      {b.data(), s.transpose_b ? s.k : s.n, s.transpose_b}, beta, c.data(), s.n, layout);
  return c;
}

}  // namespace products_tests

using namespace products_tests;

TEST_CASE("products: what was set is what is used, for as long as the scope lives") {
  const Products before = infty::products();
  {
    const ProductsScope scope(Products::bfloat16);
    CHECK(infty::products() == Products::bfloat16);
    const ProductsScope inner(Products::full);
    CHECK(infty::products() == Products::full);
  }
  CHECK(infty::products() == before);
  infty::set_products(Products::bfloat16);
  CHECK(infty::products() == Products::bfloat16);
  infty::set_products(before);
}

TEST_CASE("products in bfloat16: sums of rounded factors, in the order of k") {
  Random random(infty::tests::seed);
  for (const Sizes& s : {Sizes{5, 9, 7}, Sizes{1, 1, 1}, Sizes{3, 40, 64, true, false},
                         Sizes{17, 2, 33, false, true}, Sizes{15, 33, 12, true, true}}) {
    const Floats a = drawn(s.m * s.k, random.split(1)), b = drawn(s.k * s.n, random.split(2));
    const auto wanted = defined_product(infty::detail::left_layout(), s, a, b);
    CAPTURE(s.m, s.n, s.k);
    CHECK(multiplied(s, a, b, Products::bfloat16) == wanted);
  }
}

TEST_CASE("products in bfloat16: the instruction and its definition give the same bits") {
  if (!infty::detail::has_dot_instruction()) {
    WARN("left out: this processor or this program has no such instruction");
    return;
  }
  Random random(infty::tests::seed);
  const auto bits = [&] { return static_cast<std::uint32_t>(std::ldexp(random.uniform(), 32)); };
  for (int round = 0; round < 120; ++round) {
    const auto size = [&](std::uint32_t most) { return static_cast<Index>(1 + bits() % most); };
    Sizes s{size(40), size(70), size(90), size(2) == 1, size(2) == 1};
    if (round % 4 == 3) s = {size(8), size(70), size(900), false, true};  // few rows, of weights
    Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
    if (round % 3 == 1)  // of all magnitudes: subnormal sums, infinities, what is not a number
      for (Floats* x : {&a, &b})
        for (float& value : *x) value = std::bit_cast<float>(bits());
    if (round % 3 == 2)
      for (Floats* x : {&a, &b})
        for (float& value : *x) value = std::ldexp(value, round % 2 == 0 ? -64 : -74);
    const float alpha = round / 4 % 2 == 0 ? 1.f : .3f;
    const float beta = round % 5 == 0 ? 1.f : round % 5 == 1 ? 0.f : .5f;
    CAPTURE(s.m, s.n, s.k, s.transpose_a, s.transpose_b, alpha, beta);
    CHECK(bits_of(by_pairs(s, a, b, PairLayout::joined, alpha, beta)) ==
          bits_of(by_pairs(s, a, b, PairLayout::halves, alpha, beta)));
  }
}

TEST_CASE("products in bfloat16: by halves and by tiles, the bits that instructions are to make") {
  Random random(infty::tests::seed);
  const auto bits = [&] { return static_cast<std::uint32_t>(std::ldexp(random.uniform(), 32)); };
  std::vector<PairLayout> layouts{PairLayout::halves};
  if (infty::detail::has_tile_registers())
    layouts.push_back(PairLayout::rows);
  else
    WARN("tiles left out: this processor, this system or this program has no registers for them");
#if defined(__FMA__)
  constexpr int kinds = 3;
#else
  constexpr int kinds = 1;  // a product that is subnormal is lost in a sum that is not
#endif
  for (int round = 0; round < 90; ++round) {
    const auto size = [&](std::uint32_t most) { return static_cast<Index>(1 + bits() % most); };
    Sizes s{size(40), size(70), size(90), size(2) == 1, size(2) == 1};
    if (round % 9 == 8) s.k += 1100;                                     // in several parts
    if (round % 9 == 7) s = {size(8), size(70), size(90), false, true};  // few rows, of weights
    if (round % 9 == 6) s.n += 250;  // more columns than are laid out at once
    const int kind = (round + round / 9) % kinds;
    Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
    for (Floats* x : {&a, &b})
      for (float& value : *x)
        value = kind == 1   ? std::bit_cast<float>(bits())
                : kind == 2 ? std::ldexp(value, round % 2 == 0 ? -64 : -74)
                            : value;
    for (const PairLayout layout : layouts) {
      CAPTURE(s.m, s.n, s.k, s.transpose_a, s.transpose_b, round, layout == PairLayout::rows);
      if (layout == PairLayout::halves && s.k > 640) continue;  // whose parts are summed apart
      CHECK(bits_of(by_pairs(s, a, b, layout, 1, 0)) == bits_of(defined_product(layout, s, a, b)));
    }
  }
}

TEST_CASE("products in bfloat16: by tiles, what is added to and scaled") {
  if (!infty::detail::has_tile_registers()) {
    WARN("left out: this processor, this system or this program has no registers for tiles");
    return;
  }
  for (const Sizes& s : {Sizes{5, 37, 70, false, true},
                         {5, 37, 700, false, true},
                         {33, 300, 31},
                         {40, 5, 1030, true, false},
                         {16, 32, 64},
                         {1, 1, 1}}) {
    const Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
    const Floats before = drawn(s.m * s.n, Random(7)),
                 sums = by_pairs(s, a, b, PairLayout::rows, 1, 0);
    for (const float alpha : {1.f, .25f})
      for (const float beta : {0.f, .5f, 1.f}) {
        CAPTURE(s.m, s.n, s.k, alpha, beta);
        const Floats c = by_pairs(s, a, b, PairLayout::rows, alpha, beta);
        for (std::size_t i = 0; i < c.size(); ++i) {
          const float wanted = alpha * sums[i] + beta * before[i];
          CHECK(std::abs(c[i] - wanted) <= 1e-6f * static_cast<float>(s.k));
          if (beta == 0.f) CHECK(c[i] == wanted);
        }
      }
  }
}

TEST_CASE("products in bfloat16: the same bits by any number of threads") {
  for (const Sizes& s :
       {Sizes{700, 65, 300}, {65, 700, 301, true, false}, {128, 128, 2001, true, true}}) {
    const Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
    const auto with = [&](int threads) {
      return with_threads(threads, [&] { return multiplied(s, a, b, Products::bfloat16); });
    };
    const Floats one = with(1);
    CHECK(with(2) == one);
    CHECK(with(5) == one);
  }
}

TEST_CASE("products in bfloat16: matrices that tasks share are rounded as those of one task are") {
  const PairLayout layout = infty::detail::left_layout();
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      const Sizes s{300, 270, 301, transpose_a, transpose_b};
      const Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
      const Floats one = by_pairs(s, a, b, layout, 1, 0);
      CAPTURE(transpose_a, transpose_b);
      CHECK(multiplied(s, a, b, Products::bfloat16) == one);
      // Three products of one right factor, and of left ones that stand behind each other.
      Floats lefts = a;
      for (const std::uint64_t seed : {3u, 4u}) {
        const Floats more = drawn(s.m * s.k, Random(seed));
        lefts.insert(lefts.end(), more.begin(), more.end());
      }
      const Index part = s.m * s.k;
      Matmul product = product_of(s);
      product.outer = 3;
      product.a.outer = part;
      product.c.outer = s.m * s.n;
      Floats c(static_cast<std::size_t>(3 * s.m * s.n));
      const ProductsScope scope(Products::bfloat16);
      infty::EigenBackend::matmul(product, 1.f, lefts.data(), b.data(), 0.f, c.data());
      Floats wanted = one;
      for (const Index at : {1, 2}) {
        const Floats left(lefts.begin() + at * part, lefts.begin() + (at + 1) * part);
        const Floats next = by_pairs(s, left, b, layout, 1, 0);
        wanted.insert(wanted.end(), next.begin(), next.end());
      }
      CHECK(c == wanted);
    }
}

TEST_CASE("products in bfloat16: a row is the same alone and among others") {
  for (const Sizes& s :
       {Sizes{45, 50, 131}, Sizes{45, 50, 131, false, true}, Sizes{18, 33, 1500, false, true}}) {
    const Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
    const Floats all = multiplied(s, a, b, Products::bfloat16);
    for (const Index count : {1, 2, 3, 4, 7, 8, 9})
      for (const Index row : {Index{0}, Index{5}, s.m - count}) {
        const Floats some(a.begin() + row * s.k, a.begin() + (row + count) * s.k);
        CAPTURE(s.n, s.k, s.transpose_b, count, row);
        CHECK(multiplied({count, s.n, s.k, false, s.transpose_b}, some, b, Products::bfloat16) ==
              Floats(all.begin() + row * s.n, all.begin() + (row + count) * s.n));
      }
  }
}

TEST_CASE("products in bfloat16: nothing to sum, and nothing that may not be rounded") {
  Floats c{3};
  const ProductsScope scope(Products::bfloat16);
  infty::EigenBackend::matmul(product_of({1, 1, 0}), 1.f, c.data(), c.data(), 2.f, c.data());
  CHECK(c[0] == 6);
  const Sizes s{20, 30, 40};
  const Floats a = drawn(s.m * s.k, Random(1)), b = drawn(s.k * s.n, Random(2));
  CHECK(multiplied(s, a, b, Products::bfloat16, false) == multiplied(s, a, b, Products::full));
  CHECK(multiplied(s, a, b, Products::bfloat16) != multiplied(s, a, b, Products::full));
}

TEST_CASE("linear in bfloat16: values and gradients are as near as two roundings let them be") {
  Random random(infty::tests::seed);
  auto x = uniform_variable<float>(Shape{37, 65}, random);
  auto w = uniform_variable<float>(Shape{51, 65}, random);
  auto bias = uniform_variable<float>(Shape{51}, random);
  const auto dy = uniform_tensor<float>(Shape{37, 51}, random);
  const auto run = [&](Products how) {
    const ProductsScope scope(how);
    for (auto* const v : {&x, &w, &bias}) v->zero_grad();
    infty::Tape tape;
    const auto y = infty::linear(x, w, bias);
    tape.backward(y, dy);
    return std::vector<Floats>{y.value().to_vector(), x.grad().to_vector(), w.grad().to_vector(),
                               bias.grad().to_vector()};
  };
  const auto full = run(Products::full), rounded = run(Products::bfloat16);
  // Each factor is off by 2^-9 of itself at most, and factors are below 1: so is each product by
  // 2^-8 and a little, sums by as many of these as they have terms.
  const double off = (std::ldexp(1., -8) + std::ldexp(1., -18)) * 1.001;
  const std::vector<double> terms{65, 51, 37, 0};
  for (std::size_t i = 0; i < full.size(); ++i) {
    CHECK((i == 3) == (full[i] == rounded[i]));
    for (std::size_t j = 0; j < full[i].size(); ++j)
      CHECK(std::abs(double{full[i][j]} - double{rounded[i][j]}) <= terms[i] * off);
  }
}
