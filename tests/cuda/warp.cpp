// SPDX-License-Identifier: MIT
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <infty/core/bfloat16.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/random.hpp>
#include <infty/core/tensor.hpp>
#include <infty/thrust/tensor_product.hpp>
#include <infty/thrust/tile.hpp>

#include "support/catch.hpp"
#include "support/system_of.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::detail::nearest_tf32;
using infty::detail::tf32_pair;

namespace warp_test {

// Where the PTX ISA (9.7.14.5, "Matrix Fragments for mma.m16n8k8" and "... m16n8k16") says that
// elements are, in its words: groupID = %laneid >> 2, threadID_in_group = %laneid % 4.
struct Ptx {
  int group, thread;
  INFTY_HOST_DEVICE explicit Ptx(int lane) : group(lane >> 2), thread(lane & 3) {}

  // a0: groupID, a1: groupID + 8, a2: groupID, a3: groupID + 8; a2 and a3: thread + 4.
  INFTY_HOST_DEVICE int row_a(int i) const { return i == 0 || i == 2 ? group : group + 8; }
  INFTY_HOST_DEVICE int column_a(int i) const { return i < 2 ? thread : thread + 4; }
  INFTY_HOST_DEVICE int row_b(int i) const { return i == 0 ? thread : thread + 4; }
  // ai, bi of bfloat16: element i of the register's halves.
  INFTY_HOST_DEVICE int row_half_a(int i) const {
    return (0 <= i && i < 2) || (4 <= i && i < 6) ? group : group + 8;
  }
  INFTY_HOST_DEVICE int column_half_a(int i) const {
    return i < 4 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
  }
  INFTY_HOST_DEVICE int row_half_b(int i) const {
    return i < 2 ? thread * 2 + (i & 1) : thread * 2 + (i & 1) + 8;
  }
  INFTY_HOST_DEVICE int row_c(int i) const { return i < 2 ? group : group + 8; }
  INFTY_HOST_DEVICE int column_c(int i) const { return thread * 2 + (i & 1); }
};

/// c (16, 8) += a (16, k) b (k, 8), one product a warp, k = 8 in TF32 or 16 in bfloat16.
template <int k>
struct Products {
  static constexpr int threads = 64;
  const float *a, *b;
  float* c;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    using Warp = typename Block::Warp;
    struct State {
      typename Warp::template Lanes<float, 8> sum;
      typename Warp::template Lanes<std::uint32_t, 4> x;
      typename Warp::template Lanes<std::uint32_t, 2> y;
    };
    typename Block::template OfWarps<State> states;
    block.each_warp(states, [&](const Warp& warp, State& state) {
      const Index product = block.index() * (threads / 32) + warp.index();
      const float *const from_a = a + product * 16 * k, *const from_b = b + product * k * 8;
      float* const to = c + product * 128;
      // The second half of the registers is the one that is used.
      warp.lanes([&](int lane) {
        const Ptx at(lane);
        for (int i = 0; i < 4; ++i) state.sum[lane][4 + i] = to[at.row_c(i) * 8 + at.column_c(i)];
        if constexpr (k == 8) {
          for (int i = 0; i < 4; ++i)
            state.x[lane][i] = nearest_tf32(from_a[at.row_a(i) * 8 + at.column_a(i)]);
          for (int i = 0; i < 2; ++i)
            state.y[lane][i] = nearest_tf32(from_b[at.row_b(i) * 8 + at.group]);
        } else {
          const auto left = [&](int i) {
            return from_a[at.row_half_a(i) * 16 + at.column_half_a(i)];
          };
          const auto right = [&](int i) { return from_b[at.row_half_b(i) * 8 + at.group]; };
          for (int i = 0; i < 4; ++i)
            state.x[lane][i] = infty::detail::bfloat16_pair(left(2 * i), left(2 * i + 1));
          for (int i = 0; i < 2; ++i)
            state.y[lane][i] = infty::detail::bfloat16_pair(right(2 * i), right(2 * i + 1));
        }
      });
      if constexpr (k == 8)
        warp.multiply_tf32(state.sum, 4, state.x, state.y);
      else
        warp.multiply_bf16(state.sum, 4, state.x, state.y);
      warp.lanes([&](int lane) {
        const Ptx at(lane);
        for (int i = 0; i < 4; ++i) to[at.row_c(i) * 8 + at.column_c(i)] = state.sum[lane][4 + i];
      });
    });
  }
};

/// c (16, 8) = a (16, 16) b (16, 8) of floats as tensor cores are given them.
template <class In>
struct FloatProduct {
  static constexpr int threads = 32;
  const float *a, *b;
  float* c;

  INFTY_HOST_DEVICE std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    using Warp = typename Block::Warp;
    struct State {
      typename Warp::template Lanes<float, 4> sum;
      typename In::template Factor<Warp, 4> x;
      typename In::template Factor<Warp, 2> y;
    };
    typename Block::template OfWarps<State> states;
    block.each_warp(states, [&](const Warp& warp, State& state) {
      take_pairs(warp, state.x, [&](int lane, int i) {
        const Ptx at(lane);
        return a[at.row_half_a(i) * 16 + at.column_half_a(i)];
      });
      take_pairs(warp, state.y, [&](int lane, int i) {
        const Ptx at(lane);
        return b[at.row_half_b(i) * 8 + at.group];
      });
      infty::detail::set_zero<Warp, 4>(warp, state.sum);
      In::multiply_add(warp, state.sum, 0, state.x, state.y);
      warp.lanes([&](int lane) {
        const Ptx at(lane);
        for (int i = 0; i < 4; ++i) c[at.row_c(i) * 8 + at.column_c(i)] = state.sum[lane][i];
      });
    });
  }
};

/// What lanes get of each other: folds of fours, and through shared memory.
struct Exchanges {
  static constexpr int threads = 96;
  float* to;  ///< (warps, lanes, 3)

  INFTY_HOST_DEVICE std::size_t shared_bytes() const {
    return infty::detail::shared_bytes<float>(threads);
  }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    using Warp = typename Block::Warp;
    using Lanes = typename Warp::template Lanes<float, 2>;
    float* const shared = block.template shared<float>(threads);
    typename Block::template OfWarps<Lanes> states;
    block.each_warp(states, [&](const Warp& warp, Lanes& x) {
      float* const mine = shared + 32 * warp.index();
      warp.lanes([&](int lane) {
        x[lane][0] = static_cast<float>(lane * 7 % 32);
        x[lane][1] = static_cast<float>(100 * warp.index() + lane);
      });
      warp.exchange([&](int lane) { mine[lane] = x[lane][1]; });
      warp.fold_quads(x, infty::detail::Larger{});
      warp.lanes([&](int lane) {
        float* const out = to + (32 * warp.index() + lane) * 3;
        out[0] = x[lane][0];
        out[1] = x[lane][1];
        out[2] = mine[31 - lane];
      });
    });
  }
};

template <class B>
std::vector<float> whole_numbers(Index n, Random& random, Tensor<float, B>& to) {
  std::vector<float> numbers(static_cast<std::size_t>(n));
  for (float& x : numbers) x = static_cast<float>(random.below(17)) - 8;
  to = Tensor<float, B>::from(Shape{n}, numbers);
  return numbers;
}

template <int k, class B>
void check_products() {
  Random random(infty::tests::seed);
  const Index products = 6;
  Tensor<float, B> a, b, c;
  const auto x = whole_numbers(products * 16 * k, random, a),
             y = whole_numbers(products * k * 8, random, b),
             before = whole_numbers(products * 128, random, c);
  infty::detail::launch<infty::tests::system_of_t<B>>(products / 2,
                                                      Products<k>{a.data(), b.data(), c.data()});
  const auto got = c.to_vector();
  // Sums of whole numbers are exact however they are rounded.
  bool same = true;
  for (std::size_t p = 0; p < static_cast<std::size_t>(products); ++p)
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        float sum = before[p * 128 + i * 8 + j];
        for (std::size_t l = 0; l < k; ++l)
          sum += x[p * 16 * k + i * k + l] * y[p * k * 8 + l * 8 + j];
        same = same && got[p * 128 + i * 8 + j] == sum;
      }
  CHECK(same);
}

}  // namespace warp_test

using namespace warp_test;

TEMPLATE_LIST_TEST_CASE("warp: products are those of the matrices that the lanes hold", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  check_products<8, B>();
  check_products<16, B>();
}

namespace warp_test {

/// The most by which a sum of products of floats is off, relative to that of their sizes.
template <class In, class B>
double worst_of_products() {
  Random random(infty::tests::seed);
  double worst = 0;
  for (const double scale : {1e-10, 1., 1e3, 1e15})
    for (int round = 0; round < 20; ++round) {
      const auto a = infty::tests::uniform_tensor<float, B>({16, 16}, random, -scale, scale),
                 b = infty::tests::uniform_tensor<float, B>({16, 8}, random, -scale, scale);
      Tensor<float, B> c(Shape{16, 8});
      infty::detail::launch<infty::tests::system_of_t<B>>(
          1, FloatProduct<In>{a.data(), b.data(), c.data()});
      const auto x = a.to_vector(), y = b.to_vector(), got = c.to_vector();
      for (std::size_t i = 0; i < 16; ++i)
        for (std::size_t j = 0; j < 8; ++j) {
          double sum = 0, size = 0;
          for (std::size_t l = 0; l < 16; ++l) {
            const double product = double{x[i * 16 + l]} * double{y[l * 8 + j]};
            sum += product;
            size += std::abs(product);
          }
          worst = std::max(worst, std::abs(double{got[i * 8 + j]} - sum) / size);
        }
    }
  return worst;
}

}  // namespace warp_test

TEMPLATE_LIST_TEST_CASE("warp: products of floats are as exact as what stands for them", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  // In two parts a product is off by 4 units of 2^-23 at most, three from the parts and one from
  // sums; rounded ones by the two roundings of it, of 11 and 8 bits.
  CHECK(worst_of_products<infty::detail::InTf32<2>, B>() < 4 * 0x1p-23);
  const double tf32 = worst_of_products<infty::detail::InTf32<1>, B>(),
               bf16 = worst_of_products<infty::detail::InBfloat16, B>();
  CHECK(tf32 < 0x1p-10 + 0x1p-20);
  CHECK(tf32 > 0x1p-13);
  CHECK(bf16 < 0x1p-7 + 0x1p-14);
  CHECK(bf16 > 0x1p-10);
}

TEMPLATE_LIST_TEST_CASE("warp: lanes fold by fours and read what others wrote", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  Tensor<float, B> to(Shape{3 * 32 * 3});
  infty::detail::launch<infty::tests::system_of_t<B>>(1, Exchanges{to.data()});
  const auto got = to.to_vector();
  for (int warp = 0; warp < 3; ++warp)
    for (int lane = 0; lane < 32; ++lane) {
      int most = 0;
      for (int i = lane / 4 * 4; i < lane / 4 * 4 + 4; ++i) most = std::max(most, i * 7 % 32);
      const auto at = static_cast<std::size_t>((32 * warp + lane) * 3);
      CHECK(got[at] == static_cast<float>(most));
      CHECK(got[at + 1] == static_cast<float>(100 * warp + lane / 4 * 4 + 3));
      CHECK(got[at + 2] == static_cast<float>(100 * warp + 31 - lane));
    }
}

TEST_CASE("TF32: the nearest of 11 bits, ties away from zero") {
  const auto rounded = [](float x) { return std::bit_cast<float>(nearest_tf32(x)); };
  // By hand: 1 + 2^-11 lies between 1 and 1 + 2^-10.
  CHECK(rounded(1 + 0x1p-11f) == 1 + 0x1p-10f);
  CHECK(rounded(-1 - 0x1p-11f) == -1 - 0x1p-10f);
  CHECK(rounded(1 + 0x1p-11f - 0x1p-23f) == 1);
  CHECK(rounded(1 + 3 * 0x1p-11f) == 1 + 2 * 0x1p-10f);
  CHECK(rounded(2 - 0x1p-23f) == 2);
  CHECK(rounded(0) == 0);
  CHECK(std::signbit(rounded(-0.f)));
  CHECK(rounded(0x1p-149f) == 0);
  CHECK(rounded(0x1p-137f) == 0x1p-136f);
  const float most = std::numeric_limits<float>::max(), infinite = infty::math::infinity<float>;
  CHECK(rounded(most) == infinite);
  CHECK(rounded(infinite) == infinite);
  CHECK(rounded(-infinite) == -infinite);
  CHECK(infty::math::is_nan(rounded(infty::math::not_a_number<float>)));
  // By its definition, of numbers of every size.
  Random random(infty::tests::seed);
  bool same = true, near = true, cut = true;
  for (int i = 0; i < 20'000; ++i) {
    const auto x = static_cast<float>(
        std::ldexp(random.uniform() * 2 - 1, static_cast<int>(random.below(200)) - 90));
    int exponent = 0;
    const double mantissa = std::frexp(double{x}, &exponent);  // in [.5, 1)
    same = same && rounded(x) == static_cast<float>(std::ldexp(std::round(std::ldexp(mantissa, 11)),
                                                               exponent - 11));
    const auto pair = tf32_pair(x);
    const float nearest = std::bit_cast<float>(pair.nearest),
                rest = std::bit_cast<float>(pair.rest);
    same = same && nearest == rounded(x);
    cut = cut && (pair.nearest & 0x1fffu) == 0 && (pair.rest & 0x1fffu) == 0;
    if (std::abs(x) > 1e-30f)
      near = near &&
             std::abs(double{nearest} + double{rest} - double{x}) <= 0x1p-22 * std::abs(double{x});
  }
  CHECK(same);
  CHECK(cut);
  CHECK(near);
  for (const float x : {most, infinite, -infinite, infty::math::not_a_number<float>,
                        std::bit_cast<float>(0x7fffffffu), std::bit_cast<float>(0xffffffffu)})
    CHECK_FALSE(infty::math::is_finite(std::bit_cast<float>(tf32_pair(x).nearest) +
                                       std::bit_cast<float>(tf32_pair(x).rest)));
}
