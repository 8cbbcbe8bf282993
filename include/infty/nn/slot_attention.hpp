// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/tape.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/attention.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

/// How `slot_attention` attends.
template <class B = EigenBackend>
struct SlotAttentionOptions {
  Index heads = 1;         ///< H, that queries, keys and values are cut into
  double temperature = 1;  ///< that scores are divided by besides sqrt(D); > 0, sharper below 1
  /// [B], how many of the K tokens (the last ones) count in a row, in [0, K]; empty for all.
  Tensor<Index, B> visible{};
};

namespace detail {

/// What `slot_attention` reads: q, own_key and own_value (B, m, H D), k and v (B, K, H D).
template <class T>
struct SlotAttentionInputs {
  const T *q, *own_key, *own_value, *k, *v;
  const Index* visible;  ///< [B] or null; out of [0, K] counts as the nearest in it
  T scale;               ///< that scores are multiplied by

  INFTY_HOST_DEVICE Index first_key(Index keys, Index b) const {
    const Index hidden = visible ? keys - visible[b] : 0;
    return hidden < 0 ? 0 : hidden > keys ? keys : hidden;
  }
};

/// Where its gradients are added; null where none is wanted.
template <class T>
struct SlotAttentionGradients {
  T *q, *own_key, *own_value, *k, *v;
};

/// The weights of one softmax: of all tokens, and of the slot itself.
template <class T, class B>
struct SlotWeights {
  Tensor<T, B> tokens;  ///< (H, B, m, K), zeros for those that do not count
  Tensor<T, B> own;     ///< (H, B, m)
};

template <class B, class T>
SlotWeights<T, B> slot_weights(const AttentionSize& s, const SlotAttentionInputs<T>& in) {
  SlotWeights<T, B> weights{Tensor<T, B>(Shape{s.heads, s.batch, s.queries, s.keys}),
                            Tensor<T, B>(Shape{s.heads, s.batch, s.queries})};
  T *const p = weights.tokens.data(), *const own = weights.own.data();
  head_scores<B>(s, in.q, in.k, p);
  B::for_each_row(s.heads * s.batch * s.queries, 8 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index slot = row % (s.batch * s.queries), head = row / (s.batch * s.queries);
    const Index at = (slot * s.heads + head) * s.head_dim;
    const T *const a = in.q + at, *const b = in.own_key + at;
    const T score = in.scale * row_sum<T>(s.head_dim, [=](Index j) { return a[j] * b[j]; });
    const Index begin = in.first_key(s.keys, slot / s.queries), count = s.keys - begin;
    T* const x = p + row * s.keys;
    for (Index j = 0; j < begin; ++j) x[j] = T(0);
    for (Index j = begin; j < s.keys; ++j) x[j] *= in.scale;
    own[row] = T(1);
    if (count == 0) return;
    const T log_sum = row_softmax(count, x + begin), rest = math::sigmoid(log_sum - score);
    own[row] = math::sigmoid(score - log_sum);
    for (Index j = begin; j < s.keys; ++j) x[j] *= rest;
  });
  return weights;
}

/// to (B, m, H D) += factor (H, B, m) of the head times x (B, m, H D).
template <class B, class T>
void add_own(const AttentionSize& s, const T* factor, const T* x, T* to) {
  const Index slots = s.batch * s.queries, head_dim = s.head_dim;
  for_each_element<B>(slots, s.model(), [=] INFTY_HOST_DEVICE(Index i, Index j) {
    const Index at = i * s.model() + j;
    to[at] += factor[j / head_dim * slots + i] * x[at];
  });
}

/// y (B, m, H D), what the slots read.
template <class B, class T>
void slot_attention_forward(const AttentionSize& s, const SlotAttentionInputs<T>& in, T* y) {
  const auto weights = slot_weights<B>(s, in);
  weigh_values<B>(s, false, weights.tokens.data(), in.v, T(0), y);
  add_own<B>(s, weights.own.data(), in.own_value, y);
}

/// Adds to the gradients that are not null, from dy (B, m, H D).
template <class B, class T>
void slot_attention_backward(const AttentionSize& s, const SlotAttentionInputs<T>& in, const T* dy,
                             const SlotAttentionGradients<T>& to) {
  const auto weights = slot_weights<B>(s, in);
  if (to.v) weigh_values<B>(s, true, weights.tokens.data(), dy, T(1), to.v);
  if (to.own_value) add_own<B>(s, weights.own.data(), dy, to.own_value);
  if (!to.q && !to.k && !to.own_key) return;
  // ds = p (dp - sum of p dp) scale, over the tokens and the slot itself
  Tensor<T, B> grad(weights.tokens.shape()), own_grad(weights.own.shape());
  head_scores<B>(s, dy, in.v, grad.data());
  const T *const p = weights.tokens.data(), *const own = weights.own.data();
  T *const d = grad.data(), *const d_own = own_grad.data();
  B::for_each_row(s.heads * s.batch * s.queries, 4 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index slot = row % (s.batch * s.queries), head = row / (s.batch * s.queries);
    const Index at = (slot * s.heads + head) * s.head_dim;
    const T *const a = dy + at, *const b = in.own_value + at, *const w = p + row * s.keys;
    T* const dw = d + row * s.keys;
    const T by_own = row_sum<T>(s.head_dim, [=](Index j) { return a[j] * b[j]; });
    const T mean = own[row] * by_own + row_sum<T>(s.keys, [=](Index j) { return w[j] * dw[j]; });
    for (Index j = 0; j < s.keys; ++j) dw[j] = w[j] * (dw[j] - mean) * in.scale;
    d_own[row] = own[row] * (by_own - mean) * in.scale;
  });
  if (to.q) {
    weigh_values<B>(s, false, grad.data(), in.k, T(1), to.q);
    add_own<B>(s, own_grad.data(), in.own_key, to.q);
  }
  if (to.k) weigh_values<B>(s, true, grad.data(), in.q, T(1), to.k);
  if (to.own_key) add_own<B>(s, own_grad.data(), in.q, to.own_key);
}

/// @throws infty::ShapeError, infty::ValueError
template <class T, class B>
void require_slot_attention(const Variable<T, B>& q, const Variable<T, B>& own_key,
                            const Variable<T, B>& own_value, const Variable<T, B>& k,
                            const Variable<T, B>& v, const SlotAttentionOptions<B>& options) {
  const char* const op = "slot_attention";
  require<ShapeError>(q.shape().rank() == 3 && own_key.shape() == q.shape() &&
                          own_value.shape() == q.shape() && k.shape().rank() == 3 &&
                          v.shape() == k.shape() && k.dim(0) == q.dim(0) && k.dim(1) >= 1 &&
                          k.dim(2) == q.dim(2),
                      op, "q is ", q.shape(), ", own_key ", own_key.shape(), ", own_value ",
                      own_value.shape(), ", k ", k.shape(), ", v ", v.shape(),
                      ": they must be [B, m, HD] three times and [B, K, HD] twice, K >= 1");
  require<ShapeError>(options.heads >= 1 && q.dim(2) > 0 && q.dim(2) % options.heads == 0, op,
                      "q is ", q.shape(), ", heads are ", options.heads,
                      ": they must divide the last extent, which must not be 0");
  require(math::is_finite(options.temperature) && options.temperature >= 1e-30, op,
          "temperature is ", options.temperature, ": it must be finite and at least 1e-30");
  require_visible(op, options.visible, q.dim(0), k.dim(1));
}

}  // namespace detail

/// What a `slot_attention` averages by, for those who look: those of a slot sum to one.
template <class T, class Backend>
struct SlotAttentionWeights {
  Tensor<T, Backend> tokens;  ///< [B, H, m, K], zeros for those that do not count
  Tensor<T, Backend> own;     ///< [B, H, m], of the slot itself
};

/// Every slot reads itself and the tokens, and no other slot: the average of [own_value; v] by
/// softmax(q · [own_key; k] / (sqrt(D) temperature)), in H heads of D [Wu et al. 2022, §3.3]. A
/// token that is not finite may reach slots that do not see it.
/// @param q, own_key, own_value  [B, m, H D], of the slots
/// @param k, v                   [B, K, H D], of the tokens, K >= 1
/// @return                       [B, m, H D]
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError unless temperature > 0,
/// and where `visible` is not in [0, K]
template <class T, class B>
Variable<T, B> slot_attention(const Variable<T, B>& q, const Variable<T, B>& own_key,
                              const Variable<T, B>& own_value, const Variable<T, B>& k,
                              const Variable<T, B>& v,
                              const SlotAttentionOptions<B>& options = {}) {
  detail::require_slot_attention(q, own_key, own_value, k, v, options);
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), options.heads, q.dim(2) / options.heads};
  const T scale =
      static_cast<T>(1 / (std::sqrt(static_cast<double>(s.head_dim)) * options.temperature));
  const Tensor<Index, B> visible = options.visible;
  const auto inputs = [=] {
    return detail::SlotAttentionInputs<T>{q.value().data(),
                                          own_key.value().data(),
                                          own_value.value().data(),
                                          k.value().data(),
                                          v.value().data(),
                                          visible.empty() ? nullptr : visible.data(),
                                          scale};
  };
  Variable<T, B> y(Tensor<T, B>(q.shape()));
  detail::slot_attention_forward<B>(s, inputs(), y.value().data());
  return record(
      y,
      [q, own_key, own_value, k, v, s, inputs](const Tensor<T, B>& dy) {
        const auto grad = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        detail::slot_attention_backward<B>(
            s, inputs(), dy.data(),
            detail::SlotAttentionGradients<T>{grad(q), grad(own_key), grad(own_value), grad(k),
                                              grad(v)});
      },
      q, own_key, own_value, k, v, visible);
}

/// The weights by which `slot_attention` averages; no gradient flows through them.
/// @throws as `slot_attention`
template <class T, class B>
SlotAttentionWeights<T, B> slot_attention_weights(const Variable<T, B>& q,
                                                  const Variable<T, B>& own_key,
                                                  const Variable<T, B>& k,
                                                  const SlotAttentionOptions<B>& options = {}) {
  detail::require_slot_attention(q, own_key, own_key, k, k, options);
  const AttentionSize s{q.dim(0), q.dim(1), k.dim(1), options.heads, q.dim(2) / options.heads};
  const T scale =
      static_cast<T>(1 / (std::sqrt(static_cast<double>(s.head_dim)) * options.temperature));
  const T *const keys = k.value().data(), *const own = own_key.value().data();
  const auto weights = detail::slot_weights<B>(
      s, detail::SlotAttentionInputs<T>{q.value().data(), own, own, keys, keys,
                                        options.visible.empty() ? nullptr : options.visible.data(),
                                        scale});
  const Tensor<T, B> alone = weights.own.reshape(Shape{s.heads, s.batch, s.queries, 1});
  return {detail::weights_by_row(weights.tokens),
          detail::weights_by_row(alone).reshape(Shape{s.batch, s.heads, s.queries})};
}

}  // namespace infty
