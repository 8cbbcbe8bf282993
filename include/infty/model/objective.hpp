// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// What a loss of this name is multiplied by.
struct LossWeight {
  std::string_view name;  ///< as a layer reports it to the pass, such as "divergence"
  double weight;          ///< of the sum over layers; 0 leaves it out
};

/// What a model is trained by, and the part of it that says how well it predicts.
template <class T, class Backend = EigenBackend>
struct Objective {
  Variable<T, Backend> total;  ///< the scalar to go backward from
  Variable<T, Backend> loss;   ///< mean loss of the targets that are not ignored, in nats
};

/// A weight of the sum over rows, heads and queries that has the effect of `weight` on their mean,
/// which is what the weights of the ∞-former's KL term are given for.
/// @throws infty::ValueError for a count below 1
inline double weight_of_sum(double weight, Index rows, Index heads, Index queries) {
  require_at_least("weight_of_sum", "rows", rows, 1);
  require_at_least("weight_of_sum", "heads", heads, 1);
  require_at_least("weight_of_sum", "queries", queries, 1);
  return weight /
         (static_cast<double>(rows) * static_cast<double>(heads) * static_cast<double>(queries));
}

/// `loss`, a scalar, plus the losses that layers have left in a pass, those of a name summed, times
/// their weights -> scalar. A weight without a loss counts nothing, for not every model has every
/// loss. @throws infty::ValueError that names the first loss without a weight
template <class T, class B>
Variable<T, B> regularised(const Variable<T, B>& loss, const Pass<T, B>& pass,
                           std::initializer_list<LossWeight> weights) {
  const auto has = [&](const LossWeight& weight) {
    return std::any_of(pass.losses.begin(), pass.losses.end(),
                       [&](const auto& own) { return own.name == weight.name; });
  };
  for (const auto& own : pass.losses)
    require(std::any_of(weights.begin(), weights.end(),
                        [&](const LossWeight& weight) { return weight.name == own.name; }),
            "objective", "the model's loss '", own.name, "' has no weight");
  Variable<T, B> total = loss;
  for (const LossWeight& weight : weights)
    if (has(weight))
      total = total + scale(loss_named(pass, weight.name), static_cast<T>(weight.weight));
  return total;
}

/// What training on a segment makes smaller: the mean loss of the next tokens, and the losses of
/// the layers times their weights.
/// @param hidden   [B, L, d], the model's answer
/// @param targets  [B, L], or `ignore_index`
/// @param pass     the one that the model answered in
/// @throws as `model.losses` and `regularised`
template <class Model, class T, class B>
Objective<T, B> objective(const Model& model, const Variable<T, B>& hidden,
                          const Tensor<Index, B>& targets, const Pass<T, B>& pass,
                          std::initializer_list<LossWeight> weights) {
  const auto loss = mean_loss(model.losses(hidden, targets), targets);
  return {regularised(loss, pass, weights), loss};
}

}  // namespace infty
