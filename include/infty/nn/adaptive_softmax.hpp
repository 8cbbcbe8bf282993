// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/linear.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/core/verify.hpp>
#include <infty/nn/adaptive_config.hpp>
#include <infty/nn/adaptive_embedding.hpp>
#include <infty/nn/cluster_probabilities.hpp>
#include <infty/nn/clustered_rows.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/linear_pair.hpp>
#include <infty/nn/recomputed_losses.hpp>

namespace infty {

/// The adaptive softmax [Grave et al. 2017] over a vocabulary sorted by falling frequency: a head
/// over the first cluster's tokens and one place for each other cluster, and a softmax inside each
/// of those, which is computed for the targets that lie there and for no others:
/// log p(token) = log head(its cluster) + log tail(token). Vectors of narrower clusters are met by
/// the input mapped to their width [Baevski & Auli 2019, §3]. Without cutoffs it is the plain
/// softmax. A GPU computes all clusters for all targets, a few scores at a time, which is more work
/// and spares the host from waiting for the number of targets in each.
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

  /// Draws weights uniformly within 1 / sqrt(width), projections within 1 / sqrt(d); biases are 0.
  /// @throws infty::ValueError if the configuration is not valid
  explicit AdaptiveSoftmax(AdaptiveConfig config, Random random = Random(0))
      : AdaptiveSoftmax(std::move(config), random, nullptr, false, false) {}

  /// Takes the embedding's tables as weights and its projections as those of all clusters but the
  /// first, whose projection stays its own, as Transformer-XL ties them.
  /// @throws infty::ValueError for an embedding that was made by default, or moved from
  AdaptiveSoftmax(const AdaptiveEmbedding<T, Backend>& embedding, Random random,
                  bool tie_weights = true, bool tie_projections = true)
      : AdaptiveSoftmax((detail::require_tables("AdaptiveSoftmax", embedding), embedding.config()),
                        random, &embedding, tie_weights, tie_projections) {}

  /// The constants as given.
  const AdaptiveConfig& config() const { return config_; }

  /// Computes the negative log-likelihood in nats of each target, 0 where it is ignored   [Grave et
  /// al. 2017].
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
    if constexpr (detail::ComputesAllRows<Backend>) {
      const auto in_range = detail::without_ignored(targets, ignored);
      for (Index i = 1; i < config_.clusters(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        all = all +
              detail::recomputed_losses(
                  narrowed(rows, i), weights[at], biases[at],
                  detail::tokens_in_cluster(bounds, in_range.reshape(Shape{n}), i, ignore_index));
      }
      return reshape(all, targets.shape());
    }
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

  /// Computes the logarithms of the probabilities of all tokens, [..., d] -> [..., vocabulary]. All
  /// clusters are computed for all rows. @throws infty::ShapeError
  V log_probabilities(const V& hidden) const {
    check(hidden);
    const Index d = config_.model_dim, n = hidden.size() / d;
    const V rows = reshape(hidden, Shape{n, d});
    detail::Variables<T, Backend> scores{head(rows)};
    for (Index i = 1; i < config_.clusters(); ++i) scores.push_back(tail(rows, i));
    return reshape(detail::joined_log_probabilities(config_.bounds(), scores),
                   hidden.shape().with(-1, config_.vocabulary));
  }

  /// Computes the scores of the head, [..., d] -> [..., tokens of the first cluster + clusters -
  /// 1]: without cutoffs those of all tokens. @throws infty::ShapeError
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
    const auto see_each = [&](const char* name, std::vector<V>& all) {
      for (std::size_t i = 0; i < all.size(); ++i)
        see(plain ? std::string(name) : name + ('.' + std::to_string(i)), all[i]);
    };
    see_each("weight", weights);
    see_each("bias", biases);
    see_each("projection", projections);
    if (config_.clusters() > 1) {
      see("cluster_weight", cluster_weight);
      see("cluster_bias", cluster_bias);
    }
  }

 private:
  AdaptiveSoftmax(AdaptiveConfig config, Random random,
                  const AdaptiveEmbedding<T, Backend>* embedding, bool tie_weights,
                  bool tie_projections)
      : config_((config.validate(), std::move(config))) {
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
    return linear(narrowed(rows, i), weights[at], biases[at]);
  }

  /// Rows mapped to the width of cluster i, [n, d] -> [n, width].
  V narrowed(const V& rows, Index i) const {
    return projections.empty() ? rows : matmul(rows, projections[static_cast<std::size_t>(i)]);
  }

  AdaptiveConfig config_;
};

}  // namespace infty
