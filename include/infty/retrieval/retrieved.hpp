// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include <infty/autograd/tape.hpp>
#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/core/verify.hpp>
#include <infty/retrieval/fwd.hpp>

namespace infty {

/// What was looked up for each of Q queries, wherever it was found, in a datastore or in a cache:
/// the tokens that came next there, and how well they fit.
template <class T, class Backend>
struct Retrieved {
  Tensor<T, Backend> scores;      ///< [Q, k], whose softmax says how much each counts
  Tensor<Index, Backend> tokens;  ///< [Q, k]; -1 where there is nothing
};

namespace detail {

/// @throws infty::ShapeError that names `op` unless both are [Q, k]
template <class T, class B>
void require_retrieved(std::string_view op, const Retrieved<T, B>& found) {
  require<ShapeError>(found.scores.rank() == 2 && found.scores.shape() == found.tokens.shape(), op,
                      "scores are ", found.scores.shape(), ", tokens ", found.tokens.shape(),
                      ": both must be [Q, k]");
}

/// log(e^a + e^b), without overflow or underflow of either.
template <class T>
INFTY_HOST_DEVICE T log_sum(T a, T b) {
  const T top = a > b ? a : b, low = a > b ? b : a;
  if (low == -math::infinity<T>) return top;
  return low == top ? top + std::log(T(2)) : top + std::log1p(math::exp(low - top));
}

}  // namespace detail

/// How much each of what was looked up counts: the softmax of the scores over the tokens that are
/// there [Khandelwal et al. 2020, Eq. 2; Grave et al. 2017, §3]. A token that was found twice
/// counts twice. Where nothing was found all weights are 0, and where a score is NaN all are NaN.
/// @return [Q, k]   @throws infty::ShapeError
template <class T, class B>
Tensor<T, B> retrieved_weights(const Retrieved<T, B>& found) {
  detail::require_retrieved("retrieved_weights", found);
  const Index rows = found.scores.dim(0), k = found.scores.dim(1);
  Tensor<T, B> weights(found.scores.shape());
  const T* const scores = found.scores.data();
  const Index* const tokens = found.tokens.data();
  T* const out = weights.data();
  B::for_each_row(rows, 8 * k, [=] INFTY_HOST_DEVICE(Index i) {
    const T* const score = scores + i * k;
    const Index* const token = tokens + i * k;
    T* const weight = out + i * k;
    T top = -math::infinity<T>;
    for (Index j = 0; j < k; ++j)
      if (token[j] >= 0 && score[j] > top) top = score[j];
    for (Index j = 0; j < k; ++j)
      weight[j] =
          token[j] >= 0 && score[j] != -math::infinity<T> ? math::exp(score[j] - top) : T(0);
    const T sum = detail::row_sum<T>(k, [=](Index j) { return weight[j]; });
    if (sum != T(0))
      for (Index j = 0; j < k; ++j) weight[j] /= sum;
  });
  return weights;
}

/// The distribution over a vocabulary that weights of tokens make: the sum of each token's weights.
/// @param weights  [Q, k]   @param tokens  [Q, k], -1 for none
/// @return         [Q, vocabulary]
/// @throws infty::ShapeError; infty::ValueError for a token at or above the vocabulary
template <class T, class B>
Tensor<T, B> token_probabilities(const Tensor<T, B>& weights, const Tensor<Index, B>& tokens,
                                 Index vocabulary) {
  const Retrieved<T, B> found{weights, tokens};
  detail::require_retrieved("token_probabilities", found);
  const Index rows = weights.dim(0), k = weights.dim(1);
  const Index* const token = tokens.data();
  detail::verify<B>(
      tokens.size(), [=] INFTY_HOST_DEVICE(Index i) { return token[i] >= vocabulary; },
      [tokens, vocabulary](Index wrong) {
        raise<ValueError>("token_probabilities", "token ",
                          tokens.reshape(Shape{tokens.size()}).slice(wrong, wrong + 1).item(),
                          " was looked up: the vocabulary has ", vocabulary);
      });
  auto out = Tensor<T, B>::zeros(Shape{rows, vocabulary});
  const T* const weight = weights.data();
  T* const to = out.data();
  B::for_each_row(rows, k, [=] INFTY_HOST_DEVICE(Index i) {
    for (Index j = i * k; j < (i + 1) * k; ++j)
      if (token[j] >= 0 && token[j] < vocabulary) to[i * vocabulary + token[j]] += weight[j];
  });
  return out;
}

/// The same of one token a query only, without a distribution: [Q, k], [Q, k] and targets [Q] ->
/// [Q]; 0 for a target that was not found, or is below 0. @throws infty::ShapeError
template <class T, class B>
Tensor<T, B> target_probabilities(const Tensor<T, B>& weights, const Tensor<Index, B>& tokens,
                                  const Tensor<Index, B>& targets) {
  const Retrieved<T, B> found{weights, tokens};
  detail::require_retrieved("target_probabilities", found);
  const Index rows = weights.dim(0), k = weights.dim(1);
  require<ShapeError>(targets.size() == rows, "target_probabilities", "targets are ",
                      targets.shape(), " for ", rows, " queries");
  Tensor<T, B> out(Shape{rows});
  const T* const weight = weights.data();
  const Index *const token = tokens.data(), *const target = targets.data();
  T* const to = out.data();
  B::for_each_row(rows, k, [=] INFTY_HOST_DEVICE(Index i) {
    T sum = 0;
    for (Index j = i * k; j < (i + 1) * k; ++j)
      if (token[j] >= 0 && token[j] == target[i]) sum += weight[j];
    to[i] = sum;
  });
  return out;
}

/// The share of what was looked up in an interpolation, of each query: `lambda`, or 0 where nothing
/// was found, or all of it at a score of -infinity, so that the model's own distribution is left;
/// NaN where a score is NaN.
/// @return [Q]   @throws infty::ShapeError; infty::ValueError unless 0 <= lambda < 1
template <class T, class B>
Tensor<T, B> retrieved_shares(const Retrieved<T, B>& found, double lambda) {
  detail::require_retrieved("retrieved_shares", found);
  require(lambda >= 0 && static_cast<T>(lambda) < T(1), "retrieved_shares", "lambda is ", lambda,
          ": it must lie in [0, 1), and not be rounded to 1");
  const Index rows = found.tokens.dim(0), k = found.tokens.dim(1);
  Tensor<T, B> out(Shape{rows});
  const T* const score = found.scores.data();
  const Index* const token = found.tokens.data();
  T* const to = out.data();
  B::for_each_row(rows, k, [=] INFTY_HOST_DEVICE(Index i) {
    bool any = false, wrong = false;
    for (Index j = i * k; j < (i + 1) * k; ++j) {
      any = any || (token[j] >= 0 && score[j] != -math::infinity<T>);
      wrong = wrong || (token[j] >= 0 && math::is_nan_at(score + j));
    }
    to[i] = wrong ? math::not_a_number<T> : (any ? static_cast<T>(lambda) : T(0));
  });
  return out;
}

/// log(s p + (1 - s) e^x), the interpolation of kNN-LM [Khandelwal et al. 2020, Eq. 3] and of the
/// linear cache [Grave et al. 2017, §3], without underflow; a gradient flows to x. NaN where x or s
/// is, or p that has a share.
/// @param x       logarithms of a model's probabilities, [Q, n], or of one token's each, [Q]
/// @param p       the other probabilities, of the same shape
/// @param shares  s, [Q], each in [0, 1)
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> interpolated(const Variable<T, B>& x, const Tensor<T, B>& p,
                            const Tensor<T, B>& shares) {
  const Index rows = shares.size(), n = rows > 0 ? x.size() / rows : 0;
  require<ShapeError>(x.shape() == p.shape() && x.shape().rank() >= 1 && x.dim(0) == rows,
                      "interpolated", "x is ", x.shape(), ", p ", p.shape(), " and shares ",
                      shares.shape(), ": they must be [Q, n] twice, or [Q], and [Q]");
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  Tensor<T, B> kept(shares.shape());  // log(1 - s)
  const T* const share = shares.data();
  T* const rest = kept.data();
  B::for_each(rows, [=] INFTY_HOST_DEVICE(Index i) { rest[i] = std::log1p(-share[i]); });
  const T *const log_p = x.value().data(), *const other = p.data();
  T* const to = y.value().data();
  detail::for_each_element<B>(rows, n, [=] INFTY_HOST_DEVICE(Index row, Index j) {
    const Index i = row * n + j;
    const T s = share[row], own = log_p[i] + rest[row], more = s * other[i];
    if (math::is_nan_at(log_p + i) || math::is_nan_at(share + row) ||
        (s != T(0) && math::is_nan_at(other + i))) {
      to[i] = math::not_a_number<T>;
      return;
    }
    if (!(more > T(0))) {
      to[i] = own;
      return;
    }
    to[i] = detail::log_sum(own, std::log(more));
  });
  const Tensor<T, B> result = y.value();
  return record(
      y,
      [x, result, kept, rows, n](const Tensor<T, B>& dy) {
        // The model's part of the mixture, (1 - s) e^x / e^y.
        const T *const from = x.value().data(), *const mixed = result.data();
        const T *const log_rest = kept.data(), *const d = dy.data();
        T* const dx = x.grad().data();
        const Index width = n;
        detail::for_each_element<B>(rows, n, [=] INFTY_HOST_DEVICE(Index row, Index j) {
          const Index i = row * width + j;
          // All of it where there is nothing else, be it of probability 0.
          const T own = from[i] + log_rest[row];
          dx[i] += own == mixed[i] ? d[i] : d[i] * math::exp(own - mixed[i]);
        });
      },
      x, result);
}

/// The logarithms of a model's probabilities with a global cache's, one normaliser over the
/// vocabulary and what was looked up [Grave et al. 2017, §3]: log(u / Σu), where u_w = exp(x_w)
/// + Σ exp(score + alpha) over those of token w.
/// @param logits  x, [Q, vocabulary]
/// @return        [Q, vocabulary]
/// @throws infty::ShapeError; infty::ValueError for a token at or above the vocabulary
template <class T, class B>
Tensor<T, B> globally_normalized(const Tensor<T, B>& logits, const Retrieved<T, B>& found,
                                 double alpha) {
  detail::require_retrieved("globally_normalized", found);
  const Index rows = found.scores.dim(0), k = found.scores.dim(1);
  const Index vocabulary = logits.rank() == 2 ? logits.dim(1) : 0;
  require<ShapeError>(vocabulary >= 1 && logits.dim(0) == rows, "globally_normalized",
                      "logits are ", logits.shape(), ": they must be [", rows, ", vocabulary]");
  // In units of the largest term of a row, which is e^top.
  Tensor<T, B> terms(found.scores.shape()), tops(Shape{rows});
  const T *const x = logits.data(), *const scores = found.scores.data();
  const Index* const tokens = found.tokens.data();
  T *const term = terms.data(), *const top_of = tops.data();
  const T a = static_cast<T>(alpha);
  constexpr T least = (std::numeric_limits<T>::min)();
  B::for_each_row(rows, 4 * (vocabulary + k), [=] INFTY_HOST_DEVICE(Index i) {
    T top = detail::row_max<T>(vocabulary, [=](Index j) { return x[i * vocabulary + j]; });
    for (Index j = i * k; j < (i + 1) * k; ++j)
      if (tokens[j] >= 0 && scores[j] + a > top) top = scores[j] + a;
    for (Index j = i * k; j < (i + 1) * k; ++j) {
      const T share = tokens[j] >= 0 ? math::exp(scores[j] + a - top) : T(0);
      term[j] = share < least ? T(0) : share;
    }
    top_of[i] = top;
  });
  Tensor<T, B> out = token_probabilities(terms, found.tokens, vocabulary);
  T* const to = out.data();
  B::for_each_row(rows, 8 * vocabulary, [=] INFTY_HOST_DEVICE(Index i) {
    T* const u = to + i * vocabulary;
    const T *const own = x + i * vocabulary, top = top_of[i];
    const T sum =
        detail::row_sum<T>(vocabulary, [=](Index j) { return u[j] + math::exp(own[j] - top); });
    const T normaliser = top + std::log(sum);
    for (Index j = 0; j < vocabulary; ++j)
      u[j] = u[j] > T(0) ? std::log(u[j] + math::exp(own[j] - top)) - std::log(sum)
                         : own[j] - normaliser;
    // What is too small for that still counts where the token has nothing larger.
    for (Index j = i * k; j < (i + 1) * k; ++j)
      if (tokens[j] >= 0 && tokens[j] < vocabulary && term[j] == T(0))
        u[tokens[j]] = detail::log_sum(u[tokens[j]], scores[j] + a - normaliser);
  });
  return out;
}

}  // namespace infty
