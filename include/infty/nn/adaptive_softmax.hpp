// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/core/math.hpp>
#include <infty/core/row.hpp>
#include <infty/core/verify.hpp>
#include <infty/nn/adaptive_config.hpp>
#include <infty/nn/adaptive_embedding.hpp>
#include <infty/nn/clustered_rows.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

namespace detail {

/// Columns [first, first + weight.dim(0)) of y (rows, columns) = x weightᵀ + bias.
template <class T, class B>
void linear_columns(Index rows, const Variable<T, B>& x, const Variable<T, B>& weight,
                    const Variable<T, B>& bias, Index first, Index columns, T* y) {
  const Index out = weight.dim(0), in = weight.dim(1);
  const T* const b = bias.value().data();
  for_each_element<B>(
      rows, out, [=] INFTY_HOST_DEVICE(Index i, Index j) { y[i * columns + first + j] = b[j]; });
  B::matmul({.m = rows,
             .n = out,
             .k = in,
             .a = {.leading = in},
             .b = {.leading = in, .transposed = true},
             .c = {.leading = columns}},
            T(1), x.value().data(), weight.value().data(), T(1), y + first);
}

/// The gradients of the above, where dy is that of all columns and `sums` what it sums to in each.
template <class T, class B>
void linear_columns_backward(Index rows, const Variable<T, B>& x, const Variable<T, B>& weight,
                             const Variable<T, B>& bias, Index first, Index columns, const T* dy,
                             const T* sums) {
  const Index out = weight.dim(0), in = weight.dim(1);
  if (x.requires_grad()) {
    const auto to = x.grad_target();
    B::matmul({.m = rows,
               .n = in,
               .k = out,
               .a = {.leading = columns},
               .b = {.leading = in},
               .c = {.leading = in}},
              T(1), dy + first, weight.value().data(), to.beta(), to.data);
  }
  if (weight.requires_grad()) {
    const auto to = weight.grad_target();
    B::matmul({.m = out,
               .n = in,
               .k = rows,
               .a = {.leading = columns, .transposed = true},
               .b = {.leading = in},
               .c = {.leading = in}},
              T(1), dy + first, x.value().data(), to.beta(), to.data);
  }
  if (bias.requires_grad())
    add_to_grad(bias, [=] INFTY_HOST_DEVICE(Index j) { return sums[first + j]; });
}

/// x [Wᵀ, Vᵀ] + [a, b] without putting the parameters together, which would copy a large table:
/// [rows, in], [m, in], [m], [n, in], [n] -> [rows, m + n].
template <class T, class B>
Variable<T, B> linear_pair(const Variable<T, B>& x, const Variable<T, B>& w,
                           const Variable<T, B>& a, const Variable<T, B>& v,
                           const Variable<T, B>& b) {
  const Index rows = x.dim(0), m = w.dim(0), columns = m + v.dim(0);
  Variable<T, B> y(Tensor<T, B>(Shape{rows, columns}));
  linear_columns(rows, x, w, a, 0, columns, y.value().data());
  linear_columns(rows, x, v, b, m, columns, y.value().data());
  return record(
      y,
      [x, w, a, v, b, rows, m, columns](const Tensor<T, B>& dy) {
        auto sums = Tensor<T, B>::zeros(Shape{columns});
        if (a.requires_grad() || b.requires_grad())
          add_column_sums<B>(rows, columns, dy.data(), sums.data());
        linear_columns_backward(rows, x, w, a, 0, columns, dy.data(), sums.data());
        linear_columns_backward(rows, x, v, b, m, columns, dy.data(), sums.data());
      },
      x, w, Unread(a), v, Unread(b));
}

/// The logarithm of each row's sum of exp(x), [rows, n] -> [rows], by the kernel of token losses.
template <class T, class B>
Tensor<T, B> log_sums(const Tensor<T, B>& x) {
  const Index rows = x.dim(0);
  const auto none = Tensor<Index, B>::full(Shape{rows}, ignore_index);
  Tensor<T, B> sums(Shape{rows}), losses(Shape{rows});
  ChosenTokenLosses<B>::type::forward(rows, x.dim(1), x.data(), none.data(), ignore_index,
                                      sums.data(), losses.data());
  return sums;
}

/// Targets in the first cluster as they are, for others the place of their cluster in the head:
/// behind the first cluster's tokens, the last cluster first. What is ignored becomes
/// `ignore_index`.
template <class B>
Tensor<Index, B> head_targets(const ClusterBounds& bounds, const Tensor<Index, B>& targets,
                              Index ignored) {
  Tensor<Index, B> out(Shape{targets.size()});
  const Index* const from = targets.data();
  Index* const to = out.data();
  B::for_each(targets.size(), [=] INFTY_HOST_DEVICE(Index i) {
    const Index target = from[i], cluster = bounds.cluster_of(target);
    to[i] = target == ignored || cluster < 0 ? ignore_index
            : cluster == 0                   ? target
                                             : bounds.bound[1] + bounds.clusters - 1 - cluster;
  });
  return out;
}

/// What lies in no cluster for `clustered_rows`, where targets are ignored.
template <class B>
Tensor<Index, B> without_ignored(const Tensor<Index, B>& targets, Index ignored) {
  Tensor<Index, B> out(targets.shape());
  const Index* const from = targets.data();
  Index* const to = out.data();
  B::for_each(targets.size(),
              [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] == ignored ? Index{-1} : from[i]; });
  return out;
}

/// log p of all tokens, [n, vocabulary], from the scores of the head, [n, tokens + clusters - 1],
/// and those of all other clusters, [n, tokens]: log softmax of a cluster's scores plus log p of
/// the cluster.
template <class T, class B>
Variable<T, B> joined_log_probabilities(const ClusterBounds& bounds,
                                        const Variables<T, B>& scores) {
  const Index n = scores[0].dim(0), clusters = bounds.clusters;
  const Index vocabulary = bounds.bound[clusters], columns = scores[0].dim(1);
  std::vector<Tensor<T, B>, PoolAllocator<Tensor<T, B>>> sums;
  for (const auto& part : scores) sums.push_back(log_sums(part.value()));
  Variable<T, B> y(Tensor<T, B>(Shape{n, vocabulary}));
  T* const out = y.value().data();
  const T *const head = scores[0].value().data(), *const head_sum = sums[0].data();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const T *const score = scores[i].value().data(), *const sum = sums[i].data();
    const Index begin = bounds.bound[i], size = bounds.bound[i + 1] - begin,
                width = scores[i].dim(1), place = columns - static_cast<Index>(i);
    for_each_element<B>(n, size, [=] INFTY_HOST_DEVICE(Index row, Index j) {
      const T cluster = begin == 0 ? T(0) : head[row * columns + place] - head_sum[row];
      out[row * vocabulary + begin + j] = score[row * width + j] - sum[row] + cluster;
    });
  }
  return record(
      y,
      [bounds, scores, sums, n, clusters, vocabulary, columns](const Tensor<T, B>& dy) {
        // With s_i the sum of dy over cluster i: d tail_i = dy - p_i s_i, and for the head the same
        // with s_i in the place of dy for cluster i's column.
        Tensor<T, B> totals(Shape{n, clusters}), whole(Shape{n});
        const T* const d = dy.data();
        T *const total = totals.data(), *const all = whole.data();
        B::for_each_row(n, vocabulary, [=] INFTY_HOST_DEVICE(Index row) {
          all[row] = T(0);
          for (Index i = 0; i < clusters; ++i) {
            const T* const of = d + row * vocabulary + bounds.bound[i];
            const T sum =
                row_sum<T>(bounds.bound[i + 1] - bounds.bound[i], [=](Index j) { return of[j]; });
            total[row * clusters + i] = sum;
            all[row] += sum;
          }
        });
        for (std::size_t i = 0; i < scores.size(); ++i) {
          if (!scores[i].requires_grad()) continue;
          const T *const score = scores[i].value().data(), *const sum = sums[i].data();
          const Index cluster = static_cast<Index>(i), begin = bounds.bound[i],
                      size = bounds.bound[i + 1] - begin, width = scores[i].dim(1);
          add_to_grad(scores[i], [=] INFTY_HOST_DEVICE(Index at) {
            const Index row = at / width, j = at % width;
            const T arrived =
                j < size ? d[row * vocabulary + begin + j] : total[row * clusters + columns - j];
            const T of = cluster == 0 ? all[row] : total[row * clusters + cluster];
            return arrived - math::exp(score[at] - sum[row]) * of;
          });
        }
      },
      scores);
}

}  // namespace detail

/// The adaptive softmax [Grave et al. 2017] over a vocabulary sorted by falling frequency: a head
/// over the first cluster's tokens and one place for each other cluster, and a softmax inside each
/// of those, which is computed for the targets that lie there and for no others:
/// log p(token) = log head(its cluster) + log tail(token). Vectors of narrower clusters are met by
/// the input mapped to their width [Baevski & Auli 2019, §3]. Without cutoffs it is the plain
/// softmax.
///
/// As in Transformer-XL's program, the places of the other clusters in the head stand behind its
/// tokens in falling order: the first row of `cluster_weight` is the last cluster's.
template <class T, class Backend>
class AdaptiveSoftmax {
 public:
  using V = Variable<T, Backend>;

  std::vector<V> weights;          ///< one a cluster, [its tokens, its width]
  std::vector<V> biases;           ///< one a cluster, [its tokens]
  std::vector<V> projections;      ///< one a cluster, [d, its width]; none if all are d wide
  V cluster_weight, cluster_bias;  ///< [clusters - 1, width of the first] and [clusters - 1]

  AdaptiveSoftmax() = default;

  /// Weights drawn uniformly within 1 / sqrt(width), projections within 1 / sqrt(d); biases are 0.
  /// @throws infty::ValueError if the configuration is not valid
  explicit AdaptiveSoftmax(AdaptiveConfig config, Random random = Random(0))
      : AdaptiveSoftmax(std::move(config), random, nullptr, false, false) {}

  /// With the embedding's tables as weights and its projections as those of all clusters but the
  /// first, whose projection stays its own, as Transformer-XL ties them.
  AdaptiveSoftmax(const AdaptiveEmbedding<T, Backend>& embedding, Random random,
                  bool tie_weights = true, bool tie_projections = true)
      : AdaptiveSoftmax(embedding.config(), random, &embedding, tie_weights, tie_projections) {}

  /// The constants as given.
  const AdaptiveConfig& config() const { return config_; }

  /// Negative log-likelihood in nats of each target, 0 where it is ignored.
  /// @param hidden  [..., d]   @param targets  [...], in [0, vocabulary) or `ignored`
  /// @return        [...]
  /// @throws infty::ShapeError; infty::ValueError for a target out of range
  V losses(const V& hidden, const Tensor<Index, Backend>& targets,
           Index ignored = ignore_index) const {
    check(hidden);
    if (config_.clusters() == 1) return token_losses(head(hidden), targets, ignored);
    const Index n = targets.size(), vocabulary = config_.vocabulary;
    require<ShapeError>(targets.rank() == hidden.shape().rank() - 1 &&
                            n * config_.model_dim == hidden.size() &&
                            hidden.shape().size(0, targets.rank()) == n,
                        "AdaptiveSoftmax::losses", "hidden is ", hidden.shape(), ", targets ",
                        targets.shape(), ": they must be [..., ", config_.model_dim, "] and [...]");
    const Index* const target = targets.data();
    detail::verify<Backend>(
        n,
        [=] INFTY_HOST_DEVICE(Index i) {
          return target[i] != ignored && (target[i] < 0 || target[i] >= vocabulary);
        },
        [targets, vocabulary](Index wrong) {
          raise<ValueError>("AdaptiveSoftmax::losses", "target ",
                            targets.reshape(Shape{targets.size()}).slice(wrong, wrong + 1).item(),
                            " at place ", wrong, ": targets must lie in [0, ", vocabulary, ")");
        });
    const auto bounds = config_.bounds();
    const V rows = reshape(hidden, Shape{n, config_.model_dim});
    V all = token_losses(head(rows), detail::head_targets(bounds, targets, ignored));
    const auto clustered =
        detail::clustered_rows(bounds, detail::without_ignored(targets, ignored));
    detail::RowLists<Backend> there;
    detail::Variables<T, Backend> tails;
    for (Index i = 1; i < config_.clusters(); ++i) {
      if (clustered.size(i) == 0) continue;
      there.push_back(clustered.rows(i));
      const V scores = tail(embedding(there.back(), rows), i);  // [count, tokens]
      tails.push_back(
          reshape(token_losses(scores, clustered.tokens(i)), Shape{clustered.size(i), 1}));
    }
    if (!tails.empty()) all = all + reshape(detail::spread(n, 1, there, tails), Shape{n});
    return reshape(all, targets.shape());
  }

  /// The logarithms of the probabilities of all tokens, [..., d] -> [..., vocabulary]. All clusters
  /// are computed for all rows. @throws infty::ShapeError
  V log_probabilities(const V& hidden) const {
    check(hidden);
    const Index d = config_.model_dim, n = hidden.size() / d;
    const V rows = reshape(hidden, Shape{n, d});
    detail::Variables<T, Backend> scores{head(rows)};
    for (Index i = 1; i < config_.clusters(); ++i) scores.push_back(tail(rows, i));
    return reshape(detail::joined_log_probabilities(config_.bounds(), scores),
                   hidden.shape().with(-1, config_.vocabulary));
  }

  /// The scores of the head, [..., d] -> [..., tokens of the first cluster + clusters - 1]: without
  /// cutoffs those of all tokens. @throws infty::ShapeError
  V head(const V& hidden) const {
    check(hidden);
    const V x = projections.empty() ? hidden : matmul(hidden, projections[0]);
    if (config_.clusters() == 1) return linear(x, weights[0], biases[0]);
    const Index width = config_.width(0), columns = config_.size(0) + config_.clusters() - 1;
    return reshape(detail::linear_pair(reshape(x, Shape{x.size() / width, width}), weights[0],
                                       biases[0], cluster_weight, cluster_bias),
                   x.shape().with(-1, columns));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    const bool plain = config_.clusters() == 1 && projections.empty();
    const auto see_each = [&](const char* name, std::vector<V>& all, std::size_t own) {
      for (std::size_t i = 0; i < own && i < all.size(); ++i)
        see(plain ? std::string(name) : name + ('.' + std::to_string(i)), all[i]);
    };
    see_each("weight", weights, tied_weights_ ? 0 : weights.size());
    see_each("bias", biases, biases.size());
    see_each("projection", projections, tied_projections_ ? 1 : projections.size());
    if (config_.clusters() > 1) {
      see("cluster_weight", cluster_weight);
      see("cluster_bias", cluster_bias);
    }
  }

 private:
  AdaptiveSoftmax(AdaptiveConfig config, Random random,
                  const AdaptiveEmbedding<T, Backend>* embedding, bool tie_weights,
                  bool tie_projections)
      : config_((config.validate(), std::move(config))),
        tied_weights_(tie_weights),
        tied_projections_(tie_projections) {
    const Index d = config_.model_dim;
    for (Index i = 0; i < config_.clusters(); ++i) {
      const Index width = config_.width(i);
      const auto at = static_cast<std::size_t>(i);
      const Random own = i == 0 ? random : random.split(static_cast<std::uint64_t>(2 * i));
      weights.push_back(tie_weights ? embedding->weights[at]
                                    : detail::uniform_parameter<T, Backend>(
                                          Shape{config_.size(i), width}, width, own));
      biases.push_back(V(Tensor<T, Backend>::zeros(Shape{config_.size(i)}), true));
      if (!config_.projected()) continue;
      projections.push_back(
          tie_projections && i > 0
              ? embedding->projection(i)
              : detail::uniform_parameter<T, Backend>(
                    Shape{d, width}, d, random.split(static_cast<std::uint64_t>(2 * i + 1))));
    }
    if (config_.clusters() == 1) return;
    const Index others = config_.clusters() - 1, width = config_.width(0);
    cluster_weight = detail::uniform_parameter<T, Backend>(
        Shape{others, width}, width,
        random.split(static_cast<std::uint64_t>(2 * config_.clusters())));
    cluster_bias = V(Tensor<T, Backend>::zeros(Shape{others}), true);
  }

  void check(const V& hidden) const {
    require<ShapeError>(hidden.shape().rank() >= 1 && hidden.dim(-1) == config_.model_dim,
                        "AdaptiveSoftmax", "hidden is ", hidden.shape(), ": it must be [..., ",
                        config_.model_dim, "]");
    require(static_cast<Index>(weights.size()) == config_.clusters() &&
                biases.size() == weights.size() &&
                projections.size() == (config_.projected() ? weights.size() : 0),
            "AdaptiveSoftmax",
            "its parameters are not there: it was made by default, or moved from");
  }

  /// The scores of cluster i's tokens, [n, d] -> [n, tokens].
  V tail(const V& rows, Index i) const {
    const auto at = static_cast<std::size_t>(i);
    return linear(projections.empty() ? rows : matmul(rows, projections[at]), weights[at],
                  biases[at]);
  }

  AdaptiveConfig config_;
  bool tied_weights_ = false, tied_projections_ = false;
};

}  // namespace infty
