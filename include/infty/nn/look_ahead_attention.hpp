// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/memory_interpolation.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

namespace detail {

/// to [B, n, e] = x with its vectors in reverse order, or += that.
template <class T, class B>
void copy_mirrored(const Tensor<T, B>& x, Tensor<T, B>& to, bool add) {
  const Index n = x.dim(1), e = x.dim(2);
  const T* const from = x.data();
  T* const out = to.data();
  B::for_each_row(x.dim(0) * n, e, [=] INFTY_HOST_DEVICE(Index row) {
    const Index other = row + n - 1 - 2 * (row % n);
    for (Index j = 0; j < e; ++j)
      out[row * e + j] = add ? out[row * e + j] + from[other * e + j] : from[other * e + j];
  });
}

/// x [B, n, e] with its vectors in reverse order.
template <class T, class B>
Tensor<T, B> mirrored(const Tensor<T, B>& x) {
  Tensor<T, B> y(x.shape());
  copy_mirrored(x, y, false);
  return y;
}

/// Queries, keys and values from right to left: what stood to the right of a query stands to its
/// left, as in `relative_attention`.
template <class T, class B>
struct Mirrored {
  Tensor<T, B> q, k, v;

  Mirrored(const Variable<T, B>& q_, const Variable<T, B>& k_, const Variable<T, B>& v_)
      : q(mirrored(q_.value())), k(mirrored(k_.value())), v(mirrored(v_.value())) {}

  /// Inputs with these in the place of theirs, and with r from element `longest` on.
  AttentionInputs<T> in(AttentionInputs<T> inputs, Index longest) const {
    inputs.q = q.data();
    inputs.k = k.data();
    inputs.v = v.data();
    inputs.r += longest;
    return inputs;
  }
};

}  // namespace detail

/// Computes look-ahead attention with memory interpolation [Ji et al. 2022, Eq. 7-12]: vectors of
/// the past read the keys to their right that they have not seen yet, and what they read is
/// averaged with what they had read, by the denominators of the two softmaxes. Query i of M weighs
/// the key at place p > i, of the places M - W + 1, ..., M, by softmax(((q_i + u) · k_p + (q_i + w)
/// · r_(p - i)) / sqrt(D)). Place M is the first behind the past. No gradient flows to what had
/// been read; behind `RunningAttention::nothing` it is look-ahead attention alone (Eq. 9). A key or
/// value that is not finite may reach queries of its row that do not see it.
/// @param q        [B, M, H D]   @param k, v  [B, W, H D], 1 <= W <= M
/// @param r        [R, H D], R > M, projected encodings of the distances R - 1, ..., 0
/// @param u, w     [H, D], the biases of the content scores and of the position scores to the right
/// @param past     what the queries have read until now
/// @param visible  [B], how many of the keys (the last ones) a row may see, in [0, W]; empty for
/// all. A query that could see none sees the last one
/// @param log_sum  where not null, receives the logarithms of the denominators by now, [B, M, H]
/// @param share    where not null, receives the shares of what had been read, α [B, M, H] (Eq. 11)
/// @return         [B, M, H D], what the queries have read by now
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError for `visible` out of its
/// range
template <class T, class B>
Variable<T, B> look_ahead_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                                    const Variable<T, B>& v, const Variable<T, B>& r,
                                    const Variable<T, B>& u, const Variable<T, B>& w,
                                    const RunningAttention<T, B>& past,
                                    const Tensor<Index, B>& visible = {},
                                    Tensor<T, B>* log_sum = nullptr,
                                    Tensor<T, B>* share = nullptr) {
  const bool shaped = q.shape().rank() == 3 && k.shape().rank() == 3 && u.shape().rank() == 2 &&
                      r.shape().rank() == 2;
  require<ShapeError>(shaped && k.shape() == v.shape() && u.shape() == w.shape() &&
                          k.dim(0) == q.dim(0) && k.dim(1) >= 1 && k.dim(1) <= q.dim(1) &&
                          k.dim(2) == q.dim(2) && r.dim(0) > q.dim(1) && r.dim(1) == q.dim(2) &&
                          u.size() == q.dim(2),
                      "look_ahead_attention", "q is ", q.shape(), ", k ", k.shape(), ", v ",
                      v.shape(), ", r ", r.shape(), ", u ", u.shape(), ", w ", w.shape(),
                      ": they must be [B, M, HD], [B, W, HD] twice, [R, HD], [H, D] twice, 1 <= W "
                      "<= M < R");
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), u.dim(0), u.dim(1), true};
  require<ShapeError>(
      past.context.shape() == q.shape() && past.log_sum.shape() == q.shape().with(2, s.heads),
      "look_ahead_attention", "past is ", past.context.shape(), " and ", past.log_sum.shape(),
      ", q is ", q.shape(), ": past must be [B, M, HD] and [B, M, H]");
  detail::require_visible("look_ahead_attention", visible, s.batch, s.keys);
  const Index longest = (r.dim(0) - 1 - s.queries) * s.model();  // where distance M stands in r
  using Kernel = detail::chosen_t<ComposedAttention<B>>;
  // As the kernel has them, from right to left.
  Tensor<T, B> read(q.shape()), read_log(past.log_sum.shape());
  Kernel::forward(s,
                  detail::Mirrored<T, B>(q, k, v).in(
                      detail::attention_inputs(q, k, v, r, u, w, visible), longest),
                  read.data(), read_log.data());
  Tensor<T, B> logs(past.log_sum.shape());
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  if (share) *share = Tensor<T, B>(logs.shape());
  detail::interpolate(s, past, detail::mirrored(read).data(), detail::mirrored(read_log).data(),
                      y.value().data(), logs.data(), share ? share->data() : nullptr);
  const auto result = record(
      y,
      [q, k, v, r, u, w, past, visible, s, longest, read, read_log](const Tensor<T, B>& dy) {
        Tensor<T, B> d_read(read.shape()), d_log(read_log.shape());
        detail::interpolate_grad(s, past, detail::mirrored(read).data(),
                                 detail::mirrored(read_log).data(), dy.data(), d_read.data(),
                                 d_log.data());
        const auto sums = [](const Variable<T, B>& x) {
          return x.requires_grad() ? Tensor<T, B>::zeros(x.shape()) : Tensor<T, B>();
        };
        Tensor<T, B> dq = sums(q), dk = sums(k), dv = sums(v);
        const auto grad = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        AttentionGradients<T> to{dq.data(), dk.data(), dv.data(), grad(r), grad(u), grad(w)};
        if (to.r) to.r += longest;
        Kernel::backward(s,
                         detail::Mirrored<T, B>(q, k, v).in(
                             detail::attention_inputs(q, k, v, r, u, w, visible), longest),
                         read.data(), read_log.data(), detail::mirrored(d_read).data(), to,
                         detail::mirrored(d_log).data());
        if (q.requires_grad()) detail::copy_mirrored(dq, q.grad(), true);
        if (k.requires_grad()) detail::copy_mirrored(dk, k.grad(), true);
        if (v.requires_grad()) detail::copy_mirrored(dv, v.grad(), true);
      },
      q, k, v, r, u, w, past.context, past.log_sum, visible, read, read_log);
  if (log_sum) *log_sum = logs;  // last, as it may be that of `past`
  return result;
}

}  // namespace infty
