// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/kernel/plain_attention.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

/// How `scaled_dot_product_attention` attends.
template <class B = EigenBackend>
struct PlainAttentionOptions {
  Index heads = 1;  ///< H, that queries, keys and values are cut into
  /// Whether query i sees the keys up to K - L + i alone, so that the last query sees all.
  bool causal = false;
  /// What scores are multiplied by; 1 / sqrt(D) if not given.
  std::optional<double> scale{};
  /// [B], how many of the K keys (the last ones) a row may see, in [0, K]; empty for all.
  Tensor<Index, B> visible{};
  double dropout = 0;        ///< share of the weights that is dropped, in [0, 1), with `random`
  Random* random = nullptr;  ///< draws which; null: nothing is dropped
};

namespace detail {

/// The attention weights (H, B, L, K): softmax over the keys that a query sees of scale q kᵀ, zeros
/// for the others. The logarithms of the denominators go to log_sum (B, L, H) unless that is null,
/// -infinity where there is no key.
template <class B, class T>
Tensor<T, B> plain_attention_weights(const AttentionSize& s, const PlainAttentionInputs<T>& in,
                                     T* log_sum = nullptr) {
  Tensor<T, B> weights(Shape{s.heads, s.batch, s.queries, s.keys});
  T* const p = weights.data();
  head_scores<B>(s, in.q, in.k, p);
  B::for_each_row(s.heads * s.batch * s.queries, 8 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index i = row % s.queries, b = row / s.queries % s.batch;
    const Index head = row / s.queries / s.batch;
    const Index begin = in.first_key(s, b), end = in.end_key(s, i);
    T* const x = p + row * s.keys;
    for (Index j = 0; j < s.keys; ++j) x[j] = j < begin || j >= end ? T(0) : in.scale * x[j];
    T log_of_sum = -math::infinity<T>;
    if (begin < end) log_of_sum = row_softmax(end - begin, x + begin);
    if (log_sum) log_sum[(b * s.queries + i) * s.heads + head] = log_of_sum;
  });
  return weights;
}

}  // namespace detail

/// The composition that defines `scaled_dot_product_attention` and its gradient, from primitives,
/// over materialised weights [H, B, L, K]. It runs on every backend and is the oracle of the fused
/// kernels that a backend may bring.
template <class B>
struct ComposedPlainAttention {
  template <class Own = B>
  using Kernel = typename Own::FusedPlainAttention;

  /// Whether `backward` reads `y` and `log_sum`; if not, both may be null there, and log_sum in
  /// `forward`.
  static constexpr bool keeps_result = false;

  /// y [B, L, H D], and the logarithm of every softmax's denominator, log_sum [B, L, H].
  template <class T>
  static void forward(const AttentionSize& s, const PlainAttentionInputs<T>& in, T* y, T* log_sum) {
    const auto weights = detail::plain_attention_weights<B>(s, in, log_sum);
    detail::weigh_values<B>(s, false, weights.data(), in.v, T(0), y);
  }

  /// Adds to the gradients that are not null.
  template <class T>
  static void backward(const AttentionSize& s, const PlainAttentionInputs<T>& in, const T* y,
                       const T* log_sum, const T* dy, const PlainAttentionGradients<T>& to) {
    (void)y;
    (void)log_sum;
    const auto weights = detail::plain_attention_weights<B>(s, in);
    if (to.v) detail::weigh_values<B>(s, true, weights.data(), dy, T(1), to.v);
    if (!to.q && !to.k) return;
    Tensor<T, B> grad(weights.shape());  // of the weights and then of the scores
    detail::head_scores<B>(s, dy, in.v, grad.data());
    const T* const p = weights.data();
    T* const d = grad.data();
    B::for_each_row(s.heads * s.batch * s.queries, 4 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
      const T* const w = p + row * s.keys;
      T* const dw = d + row * s.keys;
      const T mean = detail::row_sum<T>(s.keys, [=](Index j) { return w[j] * dw[j]; });
      for (Index j = 0; j < s.keys; ++j) dw[j] = w[j] * (dw[j] - mean) * in.scale;
    });
    if (to.q) detail::weigh_values<B>(s, false, grad.data(), in.k, T(1), to.q);
    if (to.k) detail::weigh_values<B>(s, true, grad.data(), in.q, T(1), to.k);
  }
};

/// The same with dropout of the weights, a composition alone: whoever drops nothing goes without.
template <class B>
struct DroppedPlainAttention {
  /// y [B, L, H D].
  template <class T>
  static void forward(const AttentionSize& s, const PlainAttentionInputs<T>& in,
                      const detail::DropoutMask<T>& mask, T* y) {
    auto kept = detail::plain_attention_weights<B>(s, in);
    mask.template apply<B>(kept.size(), kept.data(), kept.data());
    detail::weigh_values<B>(s, false, kept.data(), in.v, T(0), y);
  }

  /// Adds to the gradients that are not null. With p the weights, m what the mask makes of a 1 and
  /// g = dy vᵀ, those of the scores are p (m g - sum(p m g)).
  template <class T>
  static void backward(const AttentionSize& s, const PlainAttentionInputs<T>& in,
                       const detail::DropoutMask<T>& mask, const T* dy,
                       const PlainAttentionGradients<T>& to) {
    const auto weights = detail::plain_attention_weights<B>(s, in);
    Tensor<T, B> kept(weights.shape());
    mask.template apply<B>(kept.size(), weights.data(), kept.data());
    if (to.v) detail::weigh_values<B>(s, true, kept.data(), dy, T(1), to.v);
    if (!to.q && !to.k) return;
    Tensor<T, B> grad(weights.shape());  // of what was kept and then of the scores
    detail::head_scores<B>(s, dy, in.v, grad.data());
    const T *const p = weights.data(), *const pm = std::as_const(kept).data();
    T* const d = grad.data();
    B::for_each_row(s.heads * s.batch * s.queries, 4 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
      const T *const w = p + row * s.keys, *const wm = pm + row * s.keys;
      T* const g = d + row * s.keys;
      const T mean = detail::row_sum<T>(s.keys, [=](Index j) { return wm[j] * g[j]; });
      for (Index j = 0; j < s.keys; ++j) g[j] = (wm[j] * g[j] - w[j] * mean) * in.scale;
    });
    if (to.q) detail::weigh_values<B>(s, false, grad.data(), in.k, T(1), to.q);
    if (to.k) detail::weigh_values<B>(s, true, grad.data(), in.q, T(1), to.k);
  }
};

namespace detail {

/// @throws infty::ShapeError; infty::ValueError where `visible` is out of range, on a GPU at the
/// next call that waits
template <class T, class B>
void require_plain_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                             const Variable<T, B>& v, const PlainAttentionOptions<B>& options) {
  const char* const op = "scaled_dot_product_attention";
  require_within(op, "scale", options.scale.value_or(1), -largest_constant, largest_constant);
  require<ShapeError>(q.shape().rank() == 3 && k.shape().rank() == 3 && k.shape() == v.shape() &&
                          k.dim(0) == q.dim(0) && k.dim(2) == q.dim(2),
                      op, "q is ", q.shape(), ", k ", k.shape(), ", v ", v.shape(),
                      ": they must be [B, L, HD] and [B, K, HD] twice");
  require<ShapeError>(options.heads >= 1 && q.dim(2) > 0 && q.dim(2) % options.heads == 0, op,
                      "q is ", q.shape(), ", heads are ", options.heads,
                      ": they must divide the last extent, which must not be 0");
  require<ShapeError>(!options.causal || k.dim(1) >= q.dim(1), op, "q is ", q.shape(), ", k ",
                      k.shape(), ": causal attention needs as many keys as queries, or more");
  require_visible(op, options.visible, q.dim(0), k.dim(1));
}

}  // namespace detail

/// Attention by content, in H heads of D [Vaswani et al. 2017, §3.2]: every query reads the average
/// of the values by softmax(scale q · k) over the keys that it sees, and zeros if it sees none. As
/// torch.nn.functional.scaled_dot_product_attention, with heads side by side. Where K > L, causal
/// attention takes the first K - L keys for a cache in front of the queries' own. With dropout,
/// weights fall and what stays is divided by 1 - dropout; the random numbers move on by one draw a
/// weight. A key or value that is not finite may reach queries of its row that do not see it.
/// @param q     [B, L, H D]
/// @param k, v  [B, K, H D]; shorter ones end where longer ones end, see `visible`
/// @return      [B, L, H D]
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError where `visible` is not in
/// [0, K], or the dropout, where there is one, not in [0, 1)
template <class T, class B>
Variable<T, B> scaled_dot_product_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                                            const Variable<T, B>& v,
                                            const PlainAttentionOptions<B>& options = {}) {
  detail::require_plain_attention(q, k, v, options);
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), options.heads, q.dim(2) / options.heads};
  const T scale =
      static_cast<T>(options.scale.value_or(1 / std::sqrt(static_cast<double>(s.head_dim))));
  const auto inputs = [=, causal = options.causal, visible = options.visible] {
    const Index* const seen = visible.empty() ? nullptr : visible.data();
    return PlainAttentionInputs<T>{
        q.value().data(), k.value().data(), v.value().data(), seen, causal, scale};
  };
  const auto grad = [](const Variable<T, B>& x) {
    return x.requires_grad() ? x.grad().data() : nullptr;
  };
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  if (options.random && options.dropout != 0) {
    using Dropped = DroppedPlainAttention<B>;
    const auto mask = detail::DropoutMask<T>::draw(s.heads * s.batch * s.queries * s.keys,
                                                   options.dropout, *options.random);
    Dropped::forward(s, inputs(), mask, y.value().data());
    return record(
        y,
        [q, k, v, s, inputs, mask, grad](const Tensor<T, B>& dy) {
          Dropped::backward(s, inputs(), mask, dy.data(),
                            PlainAttentionGradients<T>{grad(q), grad(k), grad(v)});
        },
        q, k, v, options.visible);
  }
  using Kernel = detail::chosen_t<ComposedPlainAttention<B>>;
  Tensor<T, B> log_sums, result;
  if constexpr (Kernel::keeps_result) {
    log_sums = Tensor<T, B>(Shape{s.batch, s.queries, s.heads});
    result = y.value();
  }
  Kernel::forward(s, inputs(), y.value().data(), log_sums.data());
  return record(
      y,
      [q, k, v, s, inputs, grad, result, log_sums](const Tensor<T, B>& dy) {
        Kernel::backward(s, inputs(), result.data(), log_sums.data(), dy.data(),
                         PlainAttentionGradients<T>{grad(q), grad(k), grad(v)});
      },
      q, k, v, options.visible, result, log_sums);
}

/// The weights by which `scaled_dot_product_attention` averages values, for those who look: a
/// query's sum to one, or are zeros where it sees no key. No gradient flows through them.
/// @param q, k  [B, L, H D] and [B, K, H D]
/// @return      [B, H, L, K]
/// @throws as `scaled_dot_product_attention`
template <class T, class B>
Tensor<T, B> scaled_dot_product_weights(const Variable<T, B>& q, const Variable<T, B>& k,
                                        const PlainAttentionOptions<B>& options = {}) {
  detail::require_plain_attention(q, k, k, options);
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), options.heads, q.dim(2) / options.heads};
  const T scale =
      static_cast<T>(options.scale.value_or(1 / std::sqrt(static_cast<double>(s.head_dim))));
  const PlainAttentionInputs<T> in{
      q.value().data(), k.value().data(),
      k.value().data(), options.visible.empty() ? nullptr : options.visible.data(),
      options.causal,   scale};
  return detail::weights_by_row(detail::plain_attention_weights<B>(s, in));
}

}  // namespace infty
