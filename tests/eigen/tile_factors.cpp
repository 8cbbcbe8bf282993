// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/eigen/products.hpp>
#include <infty/eigen/tile_factors.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/plain_attention.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/signal/gaussian_density.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/expectation_case.hpp"
#include "support/plain_attention_case.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using infty::AttentionSize;
using infty::EigenBackend;
using infty::GaussianBasis;
using infty::Index;
using infty::Products;
using infty::ProductsScope;
using infty::Random;
using infty::ReadSize;
using infty::Tensor;
using infty::detail::PairLayout;
using infty::detail::RoundedFactors;
using infty::detail::WholeFactors;

namespace tile_factors_tests {

using Floats = std::vector<float>;
using Numbers = std::vector<Floats>;
using Attention = EigenBackend::FusedAttention;
using PlainAttention = EigenBackend::FusedPlainAttention;
using Expectation = EigenBackend::FusedExpectation<infty::GaussianDensity>;
template <class T>
using AttentionCase = infty::tests::AttentionCase<T, EigenBackend>;
template <class T>
using PlainCase = infty::tests::PlainAttentionCase<T, EigenBackend>;
template <class T>
using ReadCase = infty::tests::ExpectationCase<T, EigenBackend>;

/// All layouts of left factors that this processor multiplies.
std::vector<PairLayout> layouts() {
  std::vector<PairLayout> all{PairLayout::halves};
  if (infty::detail::has_dot_instruction()) all.push_back(PairLayout::joined);
  if (infty::detail::has_tile_registers()) all.push_back(PairLayout::rows);
  return all;
}

/// A kernel by rounded factors, of which left ones stand so.
template <class Kernel, PairLayout (*layout)()>
struct Rounded {
  template <class... Arguments>
  static void forward(const Arguments&... arguments) {
    Kernel::forward_by(RoundedFactors{layout()}, arguments...);
  }
  template <class... Arguments>
  static void backward(const Arguments&... arguments) {
    Kernel::backward_by(RoundedFactors{layout()}, arguments...);
  }
};

PairLayout joined() { return PairLayout::joined; }
PairLayout halves() { return PairLayout::halves; }
PairLayout usual() { return infty::detail::left_layout(); }

/// Around tiles of 64 queries and 128 or 256 keys; odd widths, and rows whose first key is odd.
const std::vector<AttentionSize>& sizes() {
  static const std::vector<AttentionSize> all{{1, 1, 1, 1, 1},    {3, 7, 20, 3, 7},
                                              {2, 65, 130, 2, 5}, {1, 70, 70, 1, 33},
                                              {3, 64, 193, 2, 8}, {2, 66, 450, 1, 16}};
  return all;
}

const std::vector<ReadSize>& read_sizes() {
  static const std::vector<ReadSize> all{
      {1, 1, 1, 1, 1}, {2, 7, 6, 3, 5}, {1, 65, 131, 1, 4}, {2, 130, 66, 2, 17}};
  return all;
}

GaussianBasis<float> gaussians(Index n) {
  return n % 2 ? GaussianBasis<float>(n, {.3f}) : GaussianBasis<float>(n, {.05f, .2f});
}

/// Calls take(run) for cases of all kernels: run.operator()<How>() gives all that How<Kernel> makes
/// of one, in floats.
template <class Take>
void each_case(const Take& take) {
  for (const AttentionSize& s : sizes())
    for (const bool limited : {false, true}) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, limited);
      const AttentionCase<float> c(s, limited);
      take([&]<template <class> class How>() { return c.run<How<Attention>>(); });
      for (const bool causal : {false, true}) {
        const PlainCase<float> plain(s, causal, limited);
        take([&]<template <class> class How>() { return plain.run<How<PlainAttention>>(); });
      }
    }
  for (const ReadSize& s : read_sizes()) {
    CAPTURE(s.batch, s.queries, s.basis, s.heads, s.head_dim);
    const ReadCase<float> c(s);
    take([&]<template <class> class How>() { return c.run<How<Expectation>>(gaussians(s.basis)); });
  }
}

template <class Kernel>
using ByPairs = Rounded<Kernel, joined>;
template <class Kernel>
using ByHalves = Rounded<Kernel, halves>;
template <class Kernel>
using AsUsual = Rounded<Kernel, usual>;
template <class Kernel>
using AsSet = Kernel;

std::vector<std::uint32_t> bit_patterns(const Floats& x) {
  std::vector<std::uint32_t> bits;
  for (const float value : x) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

Floats drawn(Index n, std::uint64_t seed) {
  Random random(seed);
  return infty::tests::uniform_tensor<float>(infty::Shape{n}, random).to_vector();
}

}  // namespace tile_factors_tests

using namespace tile_factors_tests;

TEST_CASE("tile factors in bfloat16: however they stand, the sums are those of rounded_gemm") {
  for (const Index m : {1, 5, 31})
    for (const Index n : {3, 16, 40})
      for (const Index k : {1, 2, 9, 64}) {
        CAPTURE(m, n, k);
        const Index wide = infty::detail::padded<float>(n);
        // A (m, k) and its transpose, B (k, n) with room behind its columns, and its transpose.
        const Floats a = drawn(m * k, 1);
        Floats turned(a.size()), b = drawn(k * wide, 2), b_turned(static_cast<std::size_t>(n * k));
        for (Index i = 0; i < m * k; ++i)
          turned[static_cast<std::size_t>(i % k * m + i / k)] = a[static_cast<std::size_t>(i)];
        for (Index p = 0; p < k; ++p)
          for (Index j = 0; j < n; ++j)
            b_turned[static_cast<std::size_t>(j * k + p)] =
                b[static_cast<std::size_t>(p * wide + j)];
        using R = RoundedFactors;
        Floats left(static_cast<std::size_t>(R::room(m, k))),
            right_room(
                static_cast<std::size_t>(R::rows(k) * infty::detail::panel_stride<float>(n)));
        for (const PairLayout layout : layouts()) {
          const R how{layout};
          Floats wanted(static_cast<std::size_t>(m * wide), 1.f);
          infty::detail::rounded_gemm(m, n, k, 1.f, {a.data(), k, false}, {b.data(), wide, false},
                                      1.f, wanted.data(), wide, layout);
          for (const bool across : {false, true})
            for (int way = 0; way < 3; ++way) {
              CAPTURE(static_cast<int>(layout), across, way);
              const auto x = across ? how.left(m, k, {turned.data(), 1, m}, left.data())
                                    : how.left(m, k, {a.data(), k, 1}, left.data());
              const auto y = way == 0   ? R::right(k, n, {b.data(), wide}, right_room.data())
                             : way == 1 ? R::across(n, k, b_turned.data(), k, right_room.data())
                                        : R::along(k, n, b.data(), wide, right_room.data());
              Floats c(wanted.size(), 1.f);
              how.multiply(m, n, k, x, y, true, c.data(), wide);
              for (Index i = 0; i < m; ++i)
                for (Index j = 0; j < n; ++j)
                  CHECK(c[static_cast<std::size_t>(i * wide + j)] ==
                        wanted[static_cast<std::size_t>(i * wide + j)]);
            }
        }
      }
}

TEST_CASE("fused kernels in bfloat16: the instruction and its definition give the same bits") {
  if (!infty::detail::has_dot_instruction()) {
    WARN("left out: this processor or this program has no such instruction");
    return;
  }
  each_case([](const auto& run) {
    const Numbers fast = run.template operator()<ByPairs>(),
                  slow = run.template operator()<ByHalves>();
    for (std::size_t i = 0; i < fast.size(); ++i) {
      CAPTURE(i);
      CHECK(bit_patterns(fast[i]) == bit_patterns(slow[i]));
    }
  });
}

TEST_CASE("fused kernels in bfloat16: values and gradients are near those in full") {
  // Of each factor the last of 8 bits is rounded. Behind each other stand the roundings of scores,
  // of weights or expectations, of their gradients and of what these meet, each with two factors.
  const double allowed = 8 * std::ldexp(1., -8);
  each_case([&](const auto& run) {
    const Numbers full = run.template operator()<AsSet>();
    const auto is_near = [&](Numbers rounded) {
      for (std::size_t i = 0; i < full.size(); ++i) {
        CAPTURE(i);
        Floats wanted = full[i];
        for (std::size_t j = 0; j < wanted.size(); ++j)  // of a query that sees no key
          if (wanted[j] == -infty::math::infinity<float> && rounded[i][j] == wanted[j])
            rounded[i][j] = wanted[j] = 0;
        CHECK(infty::tests::error(rounded[i], wanted) < allowed);
      }
    };
    is_near(run.template operator()<ByHalves>());
    is_near(run.template operator()<AsUsual>());
  });
}

TEST_CASE("FusedPlainAttention in bfloat16: what it reads is as near as its roundings let it be") {
  for (const AttentionSize& s : sizes()) {
    const PlainCase<float> c(s, true, false);
    const auto y = c.run<AsUsual<PlainAttention>>()[0];
    const auto wanted = c.by_definition();
    // Elements are below 1: a score's D products of two factors are each off by 2^-8 and a little,
    // weights by as much as their scores to the power of e, against each other, and by 2^-9, as
    // values are.
    const double score = 1.001 * std::sqrt(static_cast<double>(s.head_dim)) * std::ldexp(1., -8);
    const double allowed = 2 * std::expm1(score) + 2 * std::ldexp(1., -9) + 1e-5;
    CAPTURE(s.queries, s.keys, s.head_dim, allowed);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::abs(double{y[i]} - wanted[i]) <= allowed);
  }
}

TEST_CASE("fused kernels in bfloat16: what is set is what is done, by any number of threads") {
  const auto each = [](const auto& run) {
    const Numbers full = run();
    const auto rounded = [&](int threads) {
      return infty::tests::with_threads(threads, [&] {
        const ProductsScope scope(Products::bfloat16);
        return run();
      });
    };
    const Numbers one = rounded(1);
    CHECK(one != full);
    CHECK(rounded(2) == one);
    CHECK(rounded(5) == one);
    return one;
  };
  const AttentionSize s{3, 130, 301, 2, 10};
  const AttentionCase<float> c(s, true), mirrored({3, 301, 130, 2, 10, true}, true);
  const PlainCase<float> plain(s, true, true);
  const ReadCase<float> read({2, 150, 16, 3, 8});
  CHECK(each([&] { return c.run<Attention>(); }) == c.run<AsUsual<Attention>>());
  CHECK(each([&] { return mirrored.run<Attention>(); }) == mirrored.run<AsUsual<Attention>>());
  CHECK(each([&] { return plain.run<PlainAttention>(); }) == plain.run<AsUsual<PlainAttention>>());
  CHECK(each([&] { return read.run<Expectation>(gaussians(16)); }) ==
        read.run<AsUsual<Expectation>>(gaussians(16)));
}

TEST_CASE("fused kernels in bfloat16: few queries attend in full, and double is never rounded") {
  const auto same = [](const auto& run) {
    const auto full = run();
    const ProductsScope scope(Products::bfloat16);
    CHECK(run() == full);
  };
  const AttentionCase<float> few({2, 4, 40, 2, 6}, true);
  const PlainCase<float> plain_few({2, 8, 40, 2, 6}, true, true);
  const AttentionCase<double> doubles({2, 70, 90, 2, 6}, true);
  const PlainCase<double> plain_doubles({2, 70, 90, 2, 6}, true, true);
  const ReadCase<double> read({2, 70, 66, 2, 6});
  same([&] { return few.run<Attention>(); });
  same([&] { return plain_few.run<PlainAttention>(); });
  same([&] { return doubles.run<Attention>(); });
  same([&] { return plain_doubles.run<PlainAttention>(); });
  same([&] { return read.run<Expectation>(GaussianBasis<double>(66, {.05, .2})); });
}

TEST_CASE("fused kernels in bfloat16: a row of the batch is the same alone and among others") {
  const ProductsScope scope(Products::bfloat16);
  const AttentionSize s{3, 70, 201, 2, 10};
  const AttentionCase<float> all(s, true), all_mirrored({3, 201, 70, 2, 10, true}, true);
  const PlainCase<float> plain_all(s, true, true);
  const auto y = all.run<Attention>(), plain_y = plain_all.run<PlainAttention>(),
             mirrored_y = all_mirrored.run<Attention>();
  for (Index row = 0; row < s.batch; ++row) {
    AttentionSize one = s;
    one.batch = 1;
    const auto of_row = [&](const auto& x) { return x.slice(row, row + 1).clone(); };
    const auto row_of = [&](const AttentionCase<float>& from) {
      AttentionSize size = from.size;
      size.batch = 1;
      AttentionCase<float> alone(size, true);
      alone.q = of_row(from.q), alone.k = of_row(from.k), alone.v = of_row(from.v);
      alone.dy = of_row(from.dy), alone.visible = of_row(from.visible);
      alone.r = from.r, alone.u = from.u, alone.w = from.w;
      if (size.mirrored) alone.d_log_sum = of_row(from.d_log_sum);
      return alone;
    };
    const auto alone = row_of(all), mirrored_alone = row_of(all_mirrored);
    PlainCase<float> plain_alone(one, true, true);
    plain_alone.q = of_row(plain_all.q), plain_alone.k = of_row(plain_all.k);
    plain_alone.v = of_row(plain_all.v), plain_alone.dy = of_row(plain_all.dy);
    plain_alone.visible = of_row(plain_all.visible);
    const auto y_alone = alone.run<Attention>(), plain_y_alone = plain_alone.run<PlainAttention>(),
               mirrored_y_alone = mirrored_alone.run<Attention>();
    for (std::size_t i = 0; i < 4; ++i) {  // y, dq, dk and dv
      const auto same = [&](const Floats& of_all, const Floats& of_one) {
        const auto begin = of_all.begin() + row * static_cast<Index>(of_one.size());
        return std::equal(of_one.begin(), of_one.end(), begin);
      };
      CAPTURE(row, i);
      CHECK(same(y[i], y_alone[i]));
      CHECK(same(mirrored_y[i], mirrored_y_alone[i]));
      CHECK(same(plain_y[i], plain_y_alone[i]));
    }
  }
}
