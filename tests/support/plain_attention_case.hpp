// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/nn/plain_attention.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace infty::tests {

/// The inputs of one call, drawn evenly.
template <class T, class B>
struct PlainAttentionCase {
  AttentionSize size;
  bool causal;
  Tensor<T, B> q, k, v, dy;
  Tensor<Index, B> visible;
  std::vector<Index> seen;

  PlainAttentionCase(const AttentionSize& s, bool causal_, bool limited, double scale = 1)
      : size(s), causal(causal_) {
    Random random(infty::tests::seed);
    q = uniform_tensor<T, B>({s.batch, s.queries, s.model()}, random, -scale, scale);
    k = uniform_tensor<T, B>({s.batch, s.keys, s.model()}, random, -scale, scale);
    v = uniform_tensor<T, B>({s.batch, s.keys, s.model()}, random);
    dy = uniform_tensor<T, B>(q.shape(), random);
    // None of the keys, a few, and all.
    for (Index b = 0; b < s.batch; ++b)
      seen.push_back(limited ? (b * 7 + 3) % (s.keys + 1) : s.keys);
    if (limited && s.batch > 1) seen[0] = 0;
    if (limited) visible = Tensor<Index, B>::from({s.batch}, seen);
  }

  /// y, the gradients, which are added to ones, and the logarithms of the denominators.
  template <class Kernel>
  std::vector<std::vector<T>> run() const {
    const auto factor = static_cast<T>(1 / std::sqrt(static_cast<double>(size.head_dim)));
    const PlainAttentionInputs<T> in{
        q.data(), k.data(), v.data(), visible.empty() ? nullptr : visible.data(), causal, factor};
    Tensor<T, B> y(q.shape()), log_sum(Shape{size.batch, size.queries, size.heads});
    const auto ones = [](const Tensor<T, B>& x) { return Tensor<T, B>::full(x.shape(), T(1)); };
    Tensor<T, B> dq = ones(q), dk = ones(k), dv = ones(v);
    Kernel::forward(size, in, y.data(), log_sum.data());
    Kernel::backward(size, in, y.data(), log_sum.data(), dy.data(),
                     PlainAttentionGradients<T>{dq.data(), dk.data(), dv.data()});
    return {y.to_vector(), dq.to_vector(), dk.to_vector(), dv.to_vector(), log_sum.to_vector()};
  }

  /// The definition, one sum after the other.
  std::vector<double> by_definition() const {
    const Index L = size.queries, K = size.keys, D = size.head_dim, e = size.model();
    const auto pq = q.to_vector(), pk = k.to_vector(), pv = v.to_vector();
    const auto at = [](const std::vector<T>& x, Index i) {
      return static_cast<double>(x[static_cast<std::size_t>(i)]);
    };
    std::vector<double> out;
    for (Index b = 0; b < size.batch; ++b)
      for (Index i = 0; i < L; ++i)
        for (Index h = 0; h < size.heads; ++h) {
          std::vector<double> sum(static_cast<std::size_t>(D));
          double total = 0;
          for (Index j = K - seen[static_cast<std::size_t>(b)]; j < (causal ? K - L + i + 1 : K);
               ++j) {
            double score = 0;
            for (Index c = h * D; c < (h + 1) * D; ++c)
              score += at(pq, (b * L + i) * e + c) * at(pk, (b * K + j) * e + c);
            const double weight = std::exp(score / std::sqrt(static_cast<double>(D)));
            total += weight;
            for (Index c = 0; c < D; ++c)
              sum[static_cast<std::size_t>(c)] += weight * at(pv, (b * K + j) * e + h * D + c);
          }
          for (const double s : sum) out.push_back(total > 0 ? s / total : 0);
        }
    return out;
  }
};

/// Around the tiles of 64 queries and 128 keys, and the 8 queries that are few; more queries than
/// keys; nothing; rows that fill vectors and rows that do not.
inline const std::vector<AttentionSize>& plain_attention_sizes() {
  static const std::vector<AttentionSize> all{
      {2, 0, 5, 2, 4},    {1, 1, 1, 1, 1},     {2, 1, 40, 2, 3},     {2, 8, 40, 2, 3},
      {2, 9, 40, 2, 3},   {2, 5, 5, 2, 4},     {3, 7, 20, 3, 7},     {2, 64, 128, 1, 16},
      {2, 65, 129, 2, 5}, {1, 63, 255, 1, 16}, {1, 130, 450, 1, 33}, {3, 1, 400, 4, 16},
      {2, 6, 3, 2, 4},    {2, 70, 1, 1, 8},    {2, 3, 0, 1, 2},      {2, 70, 0, 1, 8},
      {1, 9, 12, 1, 200}};
  return all;
}

}  // namespace infty::tests
