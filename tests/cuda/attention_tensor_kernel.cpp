// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <infty/nn/attention.hpp>
#include <infty/thrust/kernels/attention.hpp>
#include <infty/thrust/tensor_cores.hpp>

#include "support/attention_case.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"
#if !defined(INFTY_TEST_CUDA)
#include "support/item_orders.hpp"
#endif

using infty::AttentionSize;
using infty::ComposedAttention;
using infty::EigenBackend;
using infty::Index;
using infty::tests::AttentionCase;
using infty::tests::error;

namespace attention_tensor_kernel_test {

/// While it lives, attention goes by tensor cores.
class Switched {
 public:
  explicit Switched(bool tf32) {
    infty::gpu::set_tensor_attention(true);
    infty::gpu::set_allow_tf32(tf32);
  }
  ~Switched() {
    infty::gpu::set_tensor_attention(false);
    infty::gpu::set_allow_tf32(false);
  }
  Switched(const Switched&) = delete;
  Switched& operator=(const Switched&) = delete;
};

/// Sizes around tiles of 64 queries and 32 keys: one query, one key, no query, memory, heads of odd
/// width, of the widths that are not padded, and wider than any.
const std::vector<AttentionSize>& sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},    {1, 1, 1, 1, 1},     {2, 1, 40, 2, 3},   {3, 7, 20, 3, 7},
      {1, 16, 16, 1, 16}, {1, 17, 33, 2, 32},  {2, 64, 96, 1, 50}, {1, 70, 70, 1, 64},
      {1, 65, 193, 2, 5}, {1, 130, 450, 1, 8}, {1, 1, 400, 2, 16}, {1, 33, 95, 1, 128},
      {1, 20, 64, 1, 97}, {1, 9, 12, 1, 130}};
  return all;
}

/// The same numbers on the host, as T.
template <class T, class From, class B>
AttentionCase<T, EigenBackend> as(const AttentionCase<From, B>& c) {
  AttentionCase<T, EigenBackend> out(c.size, false);
  const auto turned = [](const auto& x) {
    const auto numbers = x.to_vector();
    return infty::Tensor<T>::from(x.shape(), std::vector<T>(numbers.begin(), numbers.end()));
  };
  out.q = turned(c.q), out.k = turned(c.k), out.v = turned(c.v), out.r = turned(c.r);
  out.u = turned(c.u), out.w = turned(c.w), out.dy = turned(c.dy);
  if (!c.visible.empty())
    out.visible = infty::Tensor<Index>::from(c.visible.shape(), c.visible.to_vector());
  return out;
}

/// How far y, the gradients and log_sum are from the composition's in double.
template <class B>
std::vector<double> errors(const AttentionCase<float, B>& c) {
  const auto got = c.template run<typename B::FusedAttention>();
  const auto expected = as<double>(c).template run<ComposedAttention<EigenBackend>>();
  std::vector<double> out;
  for (std::size_t i = 0; i < got.size(); ++i) out.push_back(error(got[i], expected[i]));
  return out;
}

}  // namespace attention_tensor_kernel_test

using namespace attention_tensor_kernel_test;

TEMPLATE_LIST_TEST_CASE("attention by tensor cores: numbers in two parts are as exact as float", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  for (const AttentionSize& s : sizes())
    for (const bool limited : {false, true}) {
      CAPTURE(s.batch, s.queries, s.keys, s.heads, s.head_dim, limited);
      const AttentionCase<float, B> c(s, limited);
      const auto plain = errors(c);
      const Switched on(false);
      const auto got = errors(c);
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i, plain[i]);
        WARN(got[i] << " plain " << plain[i]);
      }
    }
}
