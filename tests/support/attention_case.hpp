// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/attention.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace infty::tests {

/// The inputs of one call on a backend, drawn evenly, and all that comes of it.
template <class T, class B>
struct AttentionCase {
  AttentionSize size;
  Tensor<T, B> q, k, v, r, u, w, dy, d_log_sum;
  Tensor<Index, B> visible;

  AttentionCase(const AttentionSize& s, bool limited, double scale = 1) : size(s) {
    Random random(infty::tests::seed);
    const Index e = s.model();
    q = uniform_tensor<T, B>({s.batch, s.queries, e}, random, -scale, scale);
    k = uniform_tensor<T, B>({s.batch, s.keys, e}, random, -scale, scale);
    v = uniform_tensor<T, B>({s.batch, s.keys, e}, random);
    r = uniform_tensor<T, B>({s.distances(), e}, random);
    u = uniform_tensor<T, B>({s.heads, s.head_dim}, random);
    w = uniform_tensor<T, B>({s.heads, s.head_dim}, random);
    dy = uniform_tensor<T, B>({s.batch, s.queries, e}, random);
    if (s.mirrored) d_log_sum = uniform_tensor<T, B>({s.batch, s.queries, s.heads}, random);
    if (limited) {
      std::vector<Index> seen;
      const Index all = s.mirrored ? s.keys : s.memory();
      for (Index b = 0; b < s.batch; ++b) seen.push_back((s.mirrored + b * 7) % (all + 1));
      visible = Tensor<Index, B>::from({s.batch}, seen);
    }
  }
  AttentionInputs<T> inputs() const {
    return {q.data(),
            k.data(),
            v.data(),
            r.data(),
            u.data(),
            w.data(),
            visible.empty() ? nullptr : visible.data()};
  }

  /// y, the gradients, which are added to ones, and the logarithms of the denominators. Bits of
  /// `wanted` say which of the gradients by q, k, v, r, u and w are asked for.
  template <class Kernel>
  std::vector<std::vector<T>> run(unsigned wanted = 63) const {
    Tensor<T, B> y(q.shape()), log_sum(Shape{size.batch, size.queries, size.heads});
    const auto ones = [](const Tensor<T, B>& x) { return Tensor<T, B>::full(x.shape(), T(1)); };
    Tensor<T, B> dq = ones(q), dk = ones(k), dv = ones(v), dr = ones(r), du = ones(u), dw = ones(w);
    Kernel::forward(size, inputs(), y.data(), log_sum.data());
    const auto to = [&](unsigned bit, Tensor<T, B>& x) {
      return wanted >> bit & 1 ? x.data() : nullptr;
    };
    Kernel::backward(
        size, inputs(), y.data(), log_sum.data(), dy.data(),
        AttentionGradients<T>{to(0, dq), to(1, dk), to(2, dv), to(3, dr), to(4, du), to(5, dw)},
        size.mirrored ? d_log_sum.data() : nullptr);
    return {y.to_vector(),  dq.to_vector(), dk.to_vector(), dv.to_vector(),
            dr.to_vector(), du.to_vector(), dw.to_vector(), log_sum.to_vector()};
  }
};

/// What a case reads, and behind it the gradients of the sum of its squares.
template <class Case>
std::vector<float> read_and_gradients(const Case& c, const Tensor<Index>& visible) {
  Tape tape;
  const auto y = c.read(visible);
  tape.backward(sum(y * y));
  auto all = y.value().to_vector();
  for (const auto* x : {&c.q, &c.k, &c.v, &c.r, &c.u, &c.w}) {
    const auto g = x->grad().to_vector();
    all.insert(all.end(), g.begin(), g.end());
  }
  return all;
}

}  // namespace infty::tests
