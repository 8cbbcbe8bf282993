// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/visible.hpp>

namespace infty {

/// How `local_attention` attends.
template <class B = EigenBackend>
struct LocalAttentionOptions {
  Index heads = 1;      ///< H, that queries are cut into
  Index key_heads = 1;  ///< G, that keys and values are cut into: H, or 1 that all heads share
  Index window = 0;     ///< how far back a query sees at most; 0: any distance
  bool strict = false;  ///< whether a query does not see the key at its own place
  /// The score of one more key, whose value is 0; nothing for none.
  std::optional<double> null_score{};
  /// [B], how many of the K - L keys in front of the queries' own (the last ones) a row may see;
  /// empty for all.
  Tensor<Index, B> visible{};
  bool log_sum = false;      ///< whether the logarithm of the denominator stands behind each answer
  double dropout = 0;        ///< share of the weights that is dropped, in [0, 1), with `random`
  Random* random = nullptr;  ///< draws which; null: nothing is dropped
};

namespace detail {

/// Sizes of attention whose scores lie as (B, L, H, K), and the products between these, what stands
/// with the queries (B, L, H, w) and what stands with the keys (B, K, G, D). Where heads share a
/// key head, all their queries are rows of one product.
struct LocalAttentionSize {
  Index batch, queries, keys, heads, key_heads, head_dim;
  Index window, strict;  ///< the window is never 0

  INFTY_HOST_DEVICE Index memory() const { return keys - queries; }
  INFTY_HOST_DEVICE Index rows() const { return batch * queries * heads; }
  /// Behind the last key that query i sees.
  INFTY_HOST_DEVICE Index end(Index i) const { return memory() + i + 1 - strict; }
  /// The first one, in a row that sees `visible` of those in front; a count out of range, of which
  /// a check has yet to be read, is taken for the nearest in range.
  INFTY_HOST_DEVICE Index begin(Index i, Index visible) const {
    const Index within = visible < 0 ? 0 : visible < memory() ? visible : memory();
    const Index hidden = memory() - within, out_of_sight = memory() + i - window;
    return out_of_sight > hidden ? out_of_sight : hidden;
  }

  Index per_product() const { return key_heads == 1 ? heads : 1; }
  Index products() const { return key_heads == 1 ? 1 : heads; }
  Matmul::Operand of_scores(bool transposed = false) const {
    return {key_heads == 1 ? keys : heads * keys, queries * heads * keys, keys, transposed};
  }
  Matmul::Operand of_queries(Index width) const {
    return {key_heads == 1 ? width : heads * width, queries * heads * width, width, false};
  }
  Matmul::Operand of_keys(bool transposed = false) const {
    return {key_heads * head_dim, keys * key_heads * head_dim, head_dim, transposed};
  }

  /// scores = a kᵀ for a (B, L, H, width), of which the first D numbers count.
  template <class B, class T>
  void score(const T* a, Index width, const T* k, T* scores) const {
    B::matmul({.m = queries * per_product(),
               .n = keys,
               .k = head_dim,
               .a = of_queries(width),
               .b = of_keys(true),
               .c = of_scores(),
               .outer = batch,
               .inner = products()},
              T(1), a, k, T(0), scores);
  }
  /// out (B, L, H, width) = weights v + beta out, its first D numbers.
  template <class B, class T>
  void weigh(const T* weights, const T* v, T beta, Index width, T* out) const {
    B::matmul({.m = queries * per_product(),
               .n = head_dim,
               .k = keys,
               .a = of_scores(),
               .b = of_keys(),
               .c = of_queries(width),
               .outer = batch,
               .inner = products()},
              T(1), weights, v, beta, out);
  }
  /// out (B, K, G, D) = weightsᵀ a + beta out for a (B, L, H, width).
  template <class B, class T>
  void collect(const T* weights, const T* a, Index width, T beta, T* out) const {
    B::matmul({.m = keys,
               .n = head_dim,
               .k = queries * per_product(),
               .a = of_scores(true),
               .b = of_queries(width),
               .c = of_keys(),
               .outer = batch,
               .inner = products()},
              T(1), weights, a, beta, out);
  }
};

/// Scores (B, L, H, K) become weights, zeros for keys that a query does not see; the logarithms of
/// the denominators go behind the answers y (rows, columns) unless columns is D.
template <class B, class T>
void local_weights(const LocalAttentionSize& s, const T* bias, const Index* visible, bool null,
                   T null_score, Index columns, T* scores, T* y) {
  B::for_each_row(s.rows(), 8 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const Index head = row % s.heads, i = row / s.heads % s.queries;
    const Index b = row / s.heads / s.queries, end = s.end(i);
    const Index begin = s.begin(i, visible ? visible[b] : s.memory());
    T* const x = scores + row * s.keys;
    for (Index j = 0; j < s.keys; ++j)
      if (j < begin || j >= end) x[j] = T(0);
    if (bias) {
      const T* const at = bias + head * s.keys + s.memory() + i;  // of distance memory + i - j
      for (Index j = begin; j < end; ++j) x[j] += at[-j];
    }
    T log_of_sum = -math::infinity<T>;
    if (begin < end) log_of_sum = row_softmax(end - begin, x + begin);
    if (null) {
      const T top = log_of_sum > null_score ? log_of_sum : null_score;
      const T all = top + std::log(math::exp(log_of_sum - top) + math::exp(null_score - top));
      const T share = math::exp(log_of_sum - all);
      for (Index j = begin; j < end; ++j) x[j] *= share;
      log_of_sum = all;
    }
    if (columns > s.head_dim) y[row * columns + s.head_dim] = log_of_sum;
  });
}

/// From dp (B, L, H, K), the gradient of the weights p, that of the scores in its place.
template <class B, class T>
void local_weights_backward(const LocalAttentionSize& s, const T* p, const T* dy, Index columns,
                            T* dp) {
  B::for_each_row(s.rows(), 4 * s.keys, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const w = p + row * s.keys;
    T* const d = dp + row * s.keys;
    const T mean = row_sum<T>(s.keys, [=](Index j) { return w[j] * d[j]; });
    const T log_of_sum = columns > s.head_dim ? dy[row * columns + s.head_dim] : T(0);
    for (Index j = 0; j < s.keys; ++j) d[j] = w[j] * (d[j] - mean + log_of_sum);
  });
}

/// d bias (H, K) += the sums of ds (B, L, H, K) over all pairs of a distance.
template <class B, class T>
void local_bias_backward(const LocalAttentionSize& s, const T* ds, T* to) {
  // Bands of distances: vector code on a CPU, a thread a distance where there are many.
  constexpr Index band = many_threads<B> ? 1 : 64;
  const Index bands = (s.keys + band - 1) / band;
  B::for_each_row(s.heads * bands, s.batch * s.queries * band, [=] INFTY_HOST_DEVICE(Index at) {
    const Index head = at / bands, first = at % bands * band;
    const Index wide = s.keys - first < band ? s.keys - first : band;
    T sum[band];
    for (Index n = 0; n < wide; ++n) sum[n] = T(0);
    for (Index row = 0; row < s.batch * s.queries; ++row) {
      const Index here = s.memory() + row % s.queries - first;  // the key at distance `first`
      const Index end = here + 1 < wide ? here + 1 : wide;
      const T* const d = ds + (row * s.heads + head) * s.keys + here;
      for (Index n = 0; n < end; ++n) sum[n] += d[-n];
    }
    for (Index n = 0; n < wide; ++n) to[head * s.keys + first + n] += sum[n];
  });
}

template <class T, class B>
void require_local_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                             const Variable<T, B>& v, const Variable<T, B>& bias,
                             const LocalAttentionOptions<B>& options) {
  const char* const op = "local_attention";
  const Index H = options.heads, G = options.key_heads;
  require<ShapeError>(H >= 1 && (G == 1 || G == H), op, "heads are ", H, ", of the keys ", G,
                      ": these must be as many, or 1");
  require<ShapeError>(q.shape().rank() == 3 && k.shape().rank() == 3 && k.shape() == v.shape() &&
                          q.dim(2) > 0 && q.dim(2) % H == 0 && k.dim(0) == q.dim(0) &&
                          k.dim(1) >= q.dim(1) && k.dim(2) == q.dim(2) / H * G,
                      op, "q is ", q.shape(), ", k ", k.shape(), ", v ", v.shape(), " in ", H,
                      " and ", G, " heads: they must be [B, L, HD] and [B, K, GD] twice, K >= L");
  require<ShapeError>(bias.size() == 0 || bias.shape() == Shape{H, k.dim(1)}, op, "bias is ",
                      bias.shape(), ": it must be [", H, ", ", k.dim(1), "] or empty");
  require_at_least(op, "window", options.window, 0);
  if (options.null_score)
    require_within(op, "null_score", *options.null_score, -largest_constant, largest_constant);
  require_visible(op, options.visible, q.dim(0), k.dim(1) - q.dim(1));
}

template <class T, class B>
LocalAttentionSize local_attention_size(const Variable<T, B>& q, const Variable<T, B>& k,
                                        const LocalAttentionOptions<B>& options) {
  return {q.dim(0),
          q.dim(1),
          k.dim(1),
          options.heads,
          options.key_heads,
          q.dim(2) / options.heads,
          options.window > 0 ? options.window : k.dim(1),
          options.strict ? 1 : 0};
}

/// The weights (B, L, H, K) of `local_attention` before dropout, which go on as `local_weights`
/// says to what stands behind the answers y.
template <class T, class B>
Tensor<T, B> local_attention_weights(const LocalAttentionSize& s, const Variable<T, B>& q,
                                     const Variable<T, B>& k, const Variable<T, B>& bias,
                                     const LocalAttentionOptions<B>& options, Index columns, T* y) {
  Tensor<T, B> weights(Shape{s.batch, s.queries, s.heads, s.keys});
  s.score<B>(q.value().data(), s.head_dim, k.value().data(), weights.data());
  const T* const by_distance = bias.size() > 0 ? bias.value().data() : nullptr;
  local_weights<B>(s, by_distance, options.visible.empty() ? nullptr : options.visible.data(),
                   options.null_score.has_value(), static_cast<T>(options.null_score.value_or(0)),
                   columns, weights.data(), y);
  return weights;
}

}  // namespace detail

/// Causal attention over a segment and what stands in front of it, with a bias of the distance:
/// every query reads the average of the values by softmax(q · k + bias) over the keys that it sees,
/// and zeros if it sees none. Scores are not scaled. Values that are not finite reach all queries.
/// @param q        [B, L, H D], of the last L places
/// @param k, v     [B, K, G D], K >= L; in front of the L places a row may hold fewer, see
/// `visible`
/// @param bias     [H, K], that of distance n at n; or empty for none
/// @return         [B, L, H, D], with `log_sum` [B, L, H, D + 1]: -infinity stands there where a
/// query sees nothing. A gradient flows through it, too.
/// @throws infty::ShapeError if the shapes do not fit; infty::ValueError for a negative window,
/// where `visible` is not in [0, K - L], or the dropout, where there is one, not in [0, 1)
template <class T, class B>
Variable<T, B> local_attention(const Variable<T, B>& q, const Variable<T, B>& k,
                               const Variable<T, B>& v, const Variable<T, B>& bias,
                               const LocalAttentionOptions<B>& options) {
  detail::require_local_attention(q, k, v, bias, options);
  const detail::LocalAttentionSize s = detail::local_attention_size(q, k, options);
  const Index columns = s.head_dim + (options.log_sum ? 1 : 0);
  Variable<T, B> y(Tensor<T, B>(Shape{s.batch, s.queries, s.heads, columns}));
  Tensor<T, B> weights =
      detail::local_attention_weights(s, q, k, bias, options, columns, y.value().data());
  std::optional<detail::DropoutMask<T>> mask;
  Tensor<T, B> kept = weights;
  if (options.random && options.dropout != 0) {
    mask = detail::DropoutMask<T>::draw(weights.size(), options.dropout, *options.random);
    kept = Tensor<T, B>(weights.shape());
    mask->template apply<B>(kept.size(), std::as_const(weights).data(), kept.data());
  }
  s.weigh<B>(std::as_const(kept).data(), v.value().data(), T(0), columns, y.value().data());
  return record(
      y,
      [q, k, v, bias, s, weights = std::as_const(weights), kept = std::as_const(kept), mask,
       columns](const Tensor<T, B>& dy) {
        if (v.requires_grad()) {
          const auto to = v.grad_target();
          s.template collect<B>(kept.data(), dy.data(), columns, to.beta(), to.data);
        }
        if (!q.requires_grad() && !k.requires_grad() && !bias.requires_grad()) return;
        Tensor<T, B> scores(weights.shape());
        s.template score<B>(dy.data(), columns, v.value().data(), scores.data());
        if (mask) mask->template apply<B>(scores.size(), scores.data(), scores.data());
        detail::local_weights_backward<B>(s, weights.data(), dy.data(), columns, scores.data());
        const T* const ds = std::as_const(scores).data();
        if (bias.requires_grad()) detail::local_bias_backward<B>(s, ds, bias.grad().data());
        if (q.requires_grad()) {
          const auto to = q.grad_target();
          s.template weigh<B>(ds, k.value().data(), to.beta(), s.head_dim, to.data);
        }
        if (k.requires_grad()) {
          const auto to = k.grad_target();
          s.template collect<B>(ds, q.value().data(), s.head_dim, to.beta(), to.data);
        }
      },
      q, k, v, Unread(bias), weights, kept);
}

/// The weights by which `local_attention` averages values, before dropout, for those who look; no
/// gradient flows through them. Parameters as there.
/// @return  [B, H, L, K], of which a query's sum to one, to less with a null score, or are zeros
/// @throws as `local_attention`
template <class T, class B>
Tensor<T, B> local_attention_weights(const Variable<T, B>& q, const Variable<T, B>& k,
                                     const Variable<T, B>& bias,
                                     const LocalAttentionOptions<B>& options) {
  detail::require_local_attention(q, k, k, bias, options);
  const detail::LocalAttentionSize s = detail::local_attention_size(q, k, options);
  const auto weights = detail::local_attention_weights<T, B>(s, q, k, bias, options, s.head_dim,
                                                             static_cast<T*>(nullptr));
  return transpose(Variable<T, B>(weights), 1, 2).value();
}

}  // namespace infty
