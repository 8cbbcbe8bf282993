// SPDX-License-Identifier: MIT
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/core/number.hpp>
#include <infty/nn/attention.hpp>
#include <infty/thrust/kernels/attention.hpp>
#include <infty/thrust/tensor_cores.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#include "support/roomy.hpp"
#endif

using infty::AttentionSize;
using infty::ComposedAttention;
using infty::EigenBackend;
using infty::Index;
using infty::Shape;
using infty::Tensor;
using infty::tests::AttentionCase;
using infty::tests::error;

namespace attention_tensor_kernel_test {

/// What a float is to tensor cores.
enum class As { two_tf32, tf32, bfloat16 };
const std::vector<As> all_ways{As::two_tf32, As::tf32, As::bfloat16};

/// While it lives, attention goes by tensor cores.
class Switched {
 public:
  explicit Switched(As how) {
    infty::gpu::set_tensor_attention(true);
    infty::gpu::set_allow_tf32(how == As::tf32);
    infty::gpu::set_allow_bf16(how == As::bfloat16);
  }
  ~Switched() {
    infty::gpu::set_tensor_attention(false);
    infty::gpu::set_allow_tf32(false);
    infty::gpu::set_allow_bf16(false);
  }
  Switched(const Switched&) = delete;
  Switched& operator=(const Switched&) = delete;
};

/// Sizes around tiles of 64 queries and 32 keys: one query, one key, no query, memory, heads of odd
/// width, of the widths that are not padded, and wider than any.
const std::vector<AttentionSize>& tensor_sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},    {1, 1, 1, 1, 1},     {2, 1, 40, 2, 3},   {3, 7, 20, 3, 7},
      {1, 16, 16, 1, 16}, {1, 17, 33, 2, 32},  {2, 64, 96, 1, 50}, {1, 70, 70, 1, 64},
      {1, 65, 193, 2, 5}, {1, 130, 450, 1, 8}, {1, 1, 400, 2, 16}, {1, 33, 95, 1, 128},
      {1, 20, 64, 1, 97}, {1, 9, 12, 1, 130}};
  return all;
}

/// The same numbers on the host, in double.
template <class B>
AttentionCase<double, EigenBackend> in_double(const AttentionCase<float, B>& c) {
  AttentionCase<double, EigenBackend> out(c.size, false);
  const auto turned = [](const auto& x) {
    const auto numbers = x.to_vector();
    return Tensor<double>::from(x.shape(), std::vector<double>(numbers.begin(), numbers.end()));
  };
  out.q = turned(c.q), out.k = turned(c.k), out.v = turned(c.v), out.r = turned(c.r);
  out.u = turned(c.u), out.w = turned(c.w), out.dy = turned(c.dy);
  if (!c.visible.empty())
    out.visible = Tensor<Index>::from(c.visible.shape(), c.visible.to_vector());
  return out;
}

/// How far y, the gradients by q, k, v, r, u and w and log_sum are from the composition's in
/// double.
template <class B>
std::vector<double> errors_of(const AttentionCase<float, B>& c) {
  const auto got = c.template run<typename B::FusedAttention>();
  const auto expected = in_double(c).template run<ComposedAttention<EigenBackend>>();
  std::vector<double> out;
  for (std::size_t i = 0; i < got.size(); ++i) out.push_back(error(got[i], expected[i]));
  return out;
}

/// What numbers in two parts may be off, relative to the largest. A product is off by 4 units of
/// 2^-23 at most, as tests/cuda/warp.cpp has it, in any direction: D of them by as many times
/// sqrt(D), which the factor of scores makes 1; then come as few roundings as in any other way.
double in_two_parts(const AttentionSize& s) {
  return 2 * std::numeric_limits<float>::epsilon() *
         (3 + std::sqrt(static_cast<double>(s.head_dim)));
}

template <class T, class B>
Tensor<T, B> filled(const Tensor<T, B>& like, const std::vector<T>& numbers) {
  return Tensor<T, B>::from(like.shape(), numbers);
}

}  // namespace attention_tensor_kernel_test

using namespace attention_tensor_kernel_test;

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: numbers in two parts are as exact as float", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const Switched on(As::two_tf32);
  for (const AttentionSize& s : tensor_sizes())
    for (const bool limited : {false, true}) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, limited);
      const auto errors = errors_of(AttentionCase<float, B>(s, limited));
      for (std::size_t i = 0; i < errors.size(); ++i) {
        CAPTURE(i);
        CHECK(errors[i] < in_two_parts(s));
      }
    }
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: what is rounded is off by its roundings", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  // Factors have 11 and 8 bits: one is off by 2^-11 and 2^-8 of it at most.
  for (const auto& [how, most] : {std::pair{As::tf32, 1e-3}, std::pair{As::bfloat16, 8e-3}}) {
    const Switched on(how);
    std::array<double, 8> worst{};
    for (const AttentionSize& s : tensor_sizes()) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim);
      const auto errors = errors_of(AttentionCase<float, B>(s, true));
      for (std::size_t i = 0; i < errors.size(); ++i) {
        CAPTURE(i);
        CHECK(errors[i] < most);
        worst[i] = std::max(worst[i], errors[i]);
      }
    }
    for (const double x : worst) CHECK(x > most / 16);  // they are rounded
  }
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: numbers of 1e3 beside numbers of 1e-3", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const Switched on(As::two_tf32);
  // A query is 1e3 in one column and meets one key of such; all other scores are small.
  const AttentionSize s{1, 40, 60, 1, 64};
  AttentionCase<float, B> c(s, false);
  const auto only = [](const Tensor<float, B>& x, Index step) {
    std::vector<float> numbers(static_cast<std::size_t>(x.size()), 0);
    for (Index i = 0; i < x.dim(1); ++i)
      numbers[static_cast<std::size_t>(i * 64 + i * step % 64)] = 1e3f;
    return filled(x, numbers);
  };
  const auto scaled = [](const Tensor<float, B>& x, float by) {
    auto numbers = x.to_vector();
    for (float& number : numbers) number *= by;
    return filled(x, numbers);
  };
  c.q = only(c.q, 5), c.k = only(c.k, 1), c.v = scaled(c.v, 1e3f);
  c.r = scaled(c.r, 1e-3f), c.u = scaled(c.u, 1e-3f), c.w = scaled(c.w, 1e-3f);
  const auto errors = errors_of(c);
  CHECK(errors.front() < in_two_parts(s));
  CHECK(errors.back() < in_two_parts(s));
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: large and tiny scores stay finite", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const std::array<double, 3> most{0, 1e-3, 8e-3};
  for (const As how : all_ways) {
    const Switched on(how);
    for (const double scale : {1e3, 1e15, 1e-38}) {
      CAPTURE(static_cast<int>(how), scale);
      const AttentionSize s{1, 40, 70, 2, 24};
      const AttentionCase<float, B> c(s, false, scale);
      const auto got = c.template run<typename B::FusedAttention>(0);
      // An average of values in [-1, 1).
      const double off =
          how == As::two_tf32 ? in_two_parts(s) : most[static_cast<std::size_t>(how)];
      for (const float x : got.front()) CHECK(std::abs(double{x}) <= 1 + off);
      const auto expected = in_double(c).template run<ComposedAttention<EigenBackend>>(0);
      CHECK(error(got.back(), expected.back()) < off);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: of thousands of keys no sum is cut short", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const Switched on(As::two_tf32);
  // Tensor cores cut towards zero: of values above 0 all that is cut adds up.
  const AttentionSize s{1, 16, 2048, 1, 8};
  AttentionCase<float, B> c(s, false);
  auto numbers = c.v.to_vector();
  for (float& x : numbers) x = std::abs(x) + .5f;
  c.v = filled(c.v, numbers);
  const auto errors = errors_of(c);
  CHECK(errors.front() < 2 * in_two_parts(s));
  CHECK(errors.back() < in_two_parts(s));
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: it is taken when it is asked for", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto run = [](Index head_dim) {
    return AttentionCase<T, B>({1, 70, 100, 1, head_dim}, true)
        .template run<typename B::FusedAttention>();
  };
  CHECK_FALSE(infty::gpu::tensor_attention());
  const auto plain = run(128), wide = run(129);
  {
    const Switched on(As::two_tf32);
    const auto two = run(128);
    for (std::size_t i = 0; i < two.size(); ++i) {
      CAPTURE(i);
      CHECK((two[i] == plain[i]) == std::is_same_v<T, double>);
    }
    CHECK(run(129) == wide);
    infty::gpu::set_allow_tf32(true);
    const auto rounded = run(128);
    CHECK((rounded == two) == std::is_same_v<T, double>);
    infty::gpu::set_allow_bf16(true);
    CHECK((run(128) == rounded) == std::is_same_v<T, double>);
    // The setting is this thread's.
    std::thread([&] { CHECK_FALSE(infty::gpu::tensor_attention()); }).join();
  }
  CHECK(run(128) == plain);
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: what is not visible may be anything", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  const AttentionSize s{2, 9, 60, 1, 12};
  const AttentionCase<float, B> c(s, true);  // of 51 in memory rows see none and 7
  AttentionCase<float, B> other = c;
  for (auto* x : {&other.k, &other.v}) {
    auto numbers = x->to_vector();
    std::fill_n(numbers.begin(), 51 * 12, infty::math::not_a_number<float>);
    std::fill_n(numbers.begin() + 60 * 12, 44 * 12, infty::math::infinity<float>);
    *x = filled(*x, numbers);
  }
  for (const As how : all_ways) {
    CAPTURE(static_cast<int>(how));
    const Switched on(how);
    CHECK(other.template run<typename B::FusedAttention>() ==
          c.template run<typename B::FusedAttention>());
  }
}

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: gradients are rounded as they are asked to be",
                        "", infty::tests::Types) {
  using B = typename TestType::B;
  const AttentionSize s{1, 70, 100, 2, 32};
  const AttentionCase<float, B> c(s, true);
  Tensor<float, B> y(c.q.shape()), log_sum(Shape{s.batch, s.queries, s.heads});
  B::FusedAttention::forward(s, c.inputs(), y.data(), log_sum.data());
  const auto gradients = [&] {
    std::vector<Tensor<float, B>> to;
    for (const auto* x : {&c.q, &c.k, &c.v, &c.r, &c.u, &c.w})
      to.push_back(Tensor<float, B>::full(x->shape(), 1));
    B::FusedAttention::backward(
        s, c.inputs(), y.data(), log_sum.data(), c.dy.data(),
        {to[0].data(), to[1].data(), to[2].data(), to[3].data(), to[4].data(), to[5].data()});
    std::vector<std::vector<float>> out;
    for (const auto& x : to) out.push_back(x.to_vector());
    return out;
  };
  const auto exact = gradients();
  double before = 0;
  for (const As how : all_ways) {
    CAPTURE(static_cast<int>(how));
    const Switched on(how);
    const auto got = gradients();
    double least = 1;
    for (std::size_t i = 0; i < got.size(); ++i) least = std::min(least, error(got[i], exact[i]));
    CHECK(least > before);
    before = 4 * least;
  }
}

#if !defined(INFTY_TEST_CUDA)
TEST_CASE("attention by tensor cores: tiles as large as shared memory has room for") {
  using B = infty::ThrustBackend<infty::tests::Roomy>;
  const Switched on(As::two_tf32);
  for (const AttentionSize& s : {AttentionSize{1, 70, 130, 1, 97}, {1, 65, 95, 1, 128}})
    for (const double error : errors_of(AttentionCase<float, B>(s, true)))
      CHECK(error < in_two_parts(s));
}

TEST_CASE("attention by tensor cores: the kernels have no race, and wait for their copies") {
  for (const As how : all_ways) {
    const Switched on(how);
    for (const AttentionSize& s : tensor_sizes())
      CHECK(infty::tests::same_in_all_orders([&]<class B>() {
        return AttentionCase<float, B>(s, true).template run<typename B::FusedAttention>();
      }));
  }
}
#endif
