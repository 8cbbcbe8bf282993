// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/parallel/background.hpp>
#include <infty/parallel/buckets.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/flat_gradients.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty::detail {

/// The backward pass of a rank's last shard: gradients are added to those of the shards before, and
/// summed over ranks, bucket by bucket; by another thread as soon as a bucket is complete, where
/// there are other ranks, and the communicator lets it.
/// @param out  where the shard's gradients are written, in `shards.gradients()`
template <class T, class B, Communicator C>
void last_backward(Tape& tape, const Variable<T, B>& loss, const FlatGradients<T, B>& flat,
                   const std::vector<NamedParameter<T, B>>& parameters, const Shards<C>& shards,
                   std::span<T> out) {
  Buckets buckets(flat.size(), static_cast<std::size_t>(shards.bucket_bytes()) / sizeof(T));
  for (const Slice place : flat.places()) buckets.add(place);
  ShardSum<T>& sum = shards.template gradients<T>();
  const auto reduce = [&](Slice bucket) {
    sum.add(bucket);
    sum.reduce(shards.ranks(), bucket);
  };
  if (shards.bucket_bytes() == 0 || shards.ranks().size() == 1 || !any_thread(shards.ranks())) {
    if (loss.requires_grad()) tape.backward(loss);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      flat.take(i, out);
      buckets.complete(flat.places()[i], reduce);
    }
    return;
  }
  Background sending(reduce);
  const auto complete = [&](std::size_t i) {
    flat.take(i, out);
    buckets.complete(flat.places()[i], [&](Slice bucket) { sending.push(bucket); });
  };
  if (loss.requires_grad()) {
    std::vector<Variable<T, B>> leaves;
    for (const auto& parameter : parameters) leaves.push_back(parameter.variable);
    tape.backward(loss, std::span<const Variable<T, B>>(leaves), complete);
  } else {
    for (std::size_t i = 0; i < parameters.size(); ++i) complete(i);
  }
  sending.finish();
}

}  // namespace infty::detail
