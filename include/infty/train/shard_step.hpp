// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/flat_gradients.hpp>
#include <infty/train/last_backward.hpp>
#include <infty/train/shard_statistics.hpp>
#include <infty/train/shared_updates.hpp>
#include <infty/train/train_step.hpp>

namespace infty {

/// One step of training on a batch that is cut into shards: as `train_step` of the sum of
/// `loss(shard)` over all shards, of which this rank computes its own, one after the other. Every
/// rank takes the same step, and the loss, the norm and the parameters behind it have the same bits
/// on any number of ranks (with `Reduction::tree`), for each shard's gradient is one computation
/// and their sum is that of one tree. A shard whose loss no gradient flows to counts its value
/// alone.
///
///     Shards shards(ranks, 8);
///     train_step(adam, {}, shards, [&](Index shard) { return loss_of(shard); });
///
/// A loss that is a mean over the batch is the sum of the shards' means times their shares of it.
/// What is random in a shard must be drawn from a generator of the shard's own, and what is
/// remembered be the shard's own, too. Statistics that a pass moves, as a `BatchNorm` does, are
/// those of each shard, and the running ones the mean over shards of what each would have made of
/// them.
///
/// Gradients are sent in buckets (`Shards::bucket_bytes`) while the backward pass of the rank's
/// last shard goes on, by another thread; until the step returns the communicator is the step's
/// alone but for what `loss` does with it. The vectors that they are summed in stay with the
/// `Shards` for the next step.
/// @throws as `train_step`, by the same words on all ranks but for what `loss` throws, and
/// infty::CommunicationError; then parameters, moments and statistics are as they were, but where
/// ranks are lost as they share out what each has updated (`Adam::share_out`), and where only one
/// rank throws it has to abort the others
template <class T, class B, Communicator C, class Loss>
TrainStep train_step(Adam<T, B>& adam, const TrainStepConfig& config, const Shards<C>& shards,
                     Loss&& loss) {
  detail::check_max_norm(config.max_norm);
  detail::require_shared_with(adam, shards.ranks());
  const auto& parameters = adam.parameters();
  const detail::FlatGradients<T, B> flat(parameters);
  detail::ShardStatistics<T, B> statistics(parameters);
  std::vector<double> losses;  // of this rank's shards
  detail::ShardSum<T>& sum = shards.template gradients<T>();
  sum.begin(shards.ranks(), shards.count(), flat.size(), shards.reduction());
  const ShardRange own = shards.own();
  for (Index shard = own.first; shard < own.last; ++shard) {
    const std::span<T> out = sum.next();
    adam.zero_grad();
    {
      Tape tape;
      const Variable<T, B> value = detail::checked_loss(adam, [&] { return loss(shard); });
      losses.push_back(static_cast<double>(value.value().item()));
      if (shard + 1 == own.last) {
        detail::last_backward(tape, value, flat, parameters, shards, out);
      } else {
        if (value.requires_grad()) tape.backward(value);
        flat.take(out);
        sum.add(sum.all());
      }
    }
    statistics.keep();
  }
  adam.zero_grad();
  require(flat.put(sum.sum()), "train_step", "no gradient flows to the loss of any shard");
  TrainStep step{.loss = shards.sum_of(losses), .learning_rate = config.learning_rate};
  Tensor<double, B> measured(Shape{std::ssize(parameters)});
  detail::sums_of_squares(parameters, measured.data());
  detail::Squares squares(parameters.size());
  B::to_host(squares.data(), measured.data(), measured.size());
  statistics.merge(shards);  // first: ranks may be lost as they talk
  detail::finish_step(adam, config, step, squares.data());
  detail::share_updates(adam, shards.ranks());
  statistics.put_means();
  return step;
}

}  // namespace infty
