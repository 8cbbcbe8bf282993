// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/cross_entropy.hpp>

namespace infty {

/// A loss that a layer has by itself: a scalar, and what it is called.
template <class T, class Backend = EigenBackend>
struct NamedLoss {
  std::string_view name;
  Variable<T, Backend> value;
};

/// What a loss of this name is multiplied by.
struct LossWeight {
  std::string_view name;
  double weight;
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
  return weight / static_cast<double>(rows * heads * queries);
}

/// `loss`, a scalar, plus the losses of the layers times their weights -> scalar. A weight without
/// a loss counts nothing, for not every model has every loss.
/// @param losses  a range of members `name` and `value`, a scalar variable, such as `NamedLoss`
/// @throws infty::ValueError that names the first loss without a weight
template <class T, class B, class Losses>
Variable<T, B> regularised(const Variable<T, B>& loss, const Losses& losses,
                           std::initializer_list<LossWeight> weights) {
  Variable<T, B> total = loss;
  for (const auto& own : losses) {
    const LossWeight* found = nullptr;
    for (const LossWeight& weight : weights)
      if (weight.name == own.name) found = &weight;
    require(found, "objective", "the model's loss '", own.name, "' has no weight");
    total = total + scale(own.value, static_cast<T>(found->weight));
  }
  return total;
}

/// What training on a segment makes smaller: the mean loss of the next tokens, and the losses of
/// the layers times their weights.
/// @param hidden   [B, L, d], the model's answer
/// @param targets  [B, L], or `ignore_index`
/// @param losses   what the layers lost in that answer, as for `regularised`
/// @throws as `model.losses` and `regularised`
template <class Model, class T, class B, class Losses>
Objective<T, B> objective(const Model& model, const Variable<T, B>& hidden,
                          const Tensor<Index, B>& targets, const Losses& losses,
                          std::initializer_list<LossWeight> weights) {
  const auto loss = mean_loss(model.losses(hidden, targets), targets);
  return {regularised(loss, losses, weights), loss};
}

/// The losses of a `TransformerLM`'s layers in one answer: "divergence", `kl_regulariser`, where
/// there is a long-term memory, and "compression", `auxiliary_loss`, where a memory has one.
template <class Model>
auto layer_losses(const Model& model, const typename Model::Output& output) {
  using V = typename Model::V;
  using Named = NamedLoss<typename V::Scalar, typename V::BackendType>;
  std::vector<Named, PoolAllocator<Named>> losses;
  if (!output.densities.empty()) losses.push_back({"divergence", model.kl_regulariser(output)});
  if (!output.auxiliary.empty()) losses.push_back({"compression", model.auxiliary_loss(output)});
  return losses;
}

}  // namespace infty
