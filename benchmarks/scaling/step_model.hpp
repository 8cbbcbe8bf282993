// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/shard_tree.hpp>

// The time of a training step on any number of ranks, of what its parts were measured to cost:
// `train_step` of `Shards`, part by part as infty/parallel/tree_sum.hpp sends and adds.

namespace infty::bench {

/// What the parts of a step cost one rank.
struct StepCosts {
  double parameters = 0;  ///< numbers that are learned
  double bytes = 0;       ///< of a shard's gradient, as ranks send it
  double token = 0;       ///< seconds of a token's loss and gradient, and of two read before it
  double backward = 0;    ///< of these, those of the backward pass
  double copy = 0;        ///< seconds of a byte of gradients that is copied to new memory
  double add = 0;         ///< seconds of a byte of gradients that is added to another
  double update = 0;      ///< seconds of a parameter's norm, clipping and step of Adam
};

template <class See>
void each_field(StepCosts& costs, See&& see) {
  see("parameters", costs.parameters);
  see("bytes", costs.bytes);
  see("token", costs.token);
  see("backward", costs.backward);
  see("copy", costs.copy);
  see("add", costs.add);
  see("update", costs.update);
}

/// What two ranks pay to exchange messages, both ways at once.
struct Link {
  double message = 0;  ///< seconds of a message of some bytes
  double byte = 0;     ///< seconds of a byte more
};

template <class See>
void each_field(Link& link, See&& see) {
  see("message", link.message);
  see("byte", link.byte);
}

/// What `tree_sum` does to sum a vector a shard, on the rank that does the most: vectors are
/// counted in lengths of one.
struct SumWork {
  double shards = 0;    ///< whose vectors the rank makes
  double messages = 0;  ///< behind each other
  double sent = 0;      ///< vectors
  double added = 0;     ///< vectors to others
};

/// The work of `tree_sum` of so many shards on so many ranks. Where the number of these is no power
/// of two, copies between messages are not counted.
/// @throws infty::ValueError as `shards_of`
inline SumWork sum_work(Index shards, int ranks) {
  const double r = ranks;
  SumWork work;
  double most = 0, nodes = 0;  // of one rank, of all
  const bool halves = std::has_single_bit(static_cast<unsigned>(ranks));
  for (int rank = 0; rank < (halves ? 1 : ranks); ++rank) {
    const ShardRange own = shards_of(shards, ranks, rank);
    const auto parts = static_cast<double>(nodes_of(shards, own).size());
    work.shards = (std::max)(work.shards, static_cast<double>(own.count()));
    work.added = (std::max)(work.added, static_cast<double>(own.count()) - parts);
    most = (std::max)(most, parts);
    nodes += parts;
  }
  if (halves) {
    work.messages = 2 * std::log2(r);
    work.sent = 2 * (1 - 1 / r);
    work.added += 1 - 1 / r;
  } else {
    work.messages = 2 * (r - 1);
    work.sent = (most + 1) * (r - 1) / r;
    work.added += (nodes - 1) / r;
  }
  return work;
}

/// How a batch is trained on.
struct Plan {
  int ranks = 1;
  Index shards = 1;
  double tokens = 0;     ///< of the batch, on all ranks together
  Link link = {};        ///< between any two ranks
  double speed = 1;      ///< of a rank's computing, in times of what was measured
  bool zero = false;     ///< whether each rank updates its part of the parameters alone (ZeRO-1)
  bool overlap = false;  ///< whether the last shard's backward pass hides gradients on their way
};

/// The seconds of a step, by what they are spent on.
struct StepSeconds {
  double compute = 0;  ///< the losses and gradients of the slowest rank's shards
  double sums = 0;     ///< copying and adding gradients
  double sending = 0;  ///< exchanging them, and what ranks agree on
  double update = 0;   ///< the step of the optimiser

  double total() const { return compute + sums + sending + update; }
};

/// What ranks agree on in a step of `Trainer::run`: to stop, and to save.
inline constexpr double agreements = 2;

/// The seconds of a step. Sums of single numbers over ranks are taken to be as many messages as the
/// tree's where they are the tree's, and log2(ranks) where MPI sums them. By ZeRO-1 each rank gives
/// the parameters that it has updated to all others, one after the other; that they are equally
/// many on all ranks is the best case.
/// @throws infty::ValueError as `shards_of`
inline StepSeconds step_seconds(const StepCosts& costs, const Plan& plan) {
  const SumWork work = sum_work(plan.shards, plan.ranks);
  const double n = costs.bytes, shard = plan.tokens / static_cast<double>(plan.shards);
  const double rounds = std::ceil(std::log2(static_cast<double>(plan.ranks)));
  StepSeconds time;
  time.compute = work.shards * shard * costs.token / plan.speed;
  time.sums = n * ((work.shards + 1) * costs.copy + work.added * costs.add) / plan.speed;
  double gradients = n * work.sent * plan.link.byte + work.messages * plan.link.message;
  if (plan.overlap) gradients -= (std::min)(gradients, shard * costs.backward / plan.speed);
  time.sending = gradients + (work.messages + agreements * rounds) * plan.link.message;
  time.update = costs.parameters * costs.update / plan.speed / (plan.zero ? plan.ranks : 1);
  if (plan.zero)
    time.sending += n * (1 - 1 / static_cast<double>(plan.ranks)) * plan.link.byte +
                    static_cast<double>(plan.ranks - 1) * plan.link.message;
  return time;
}

}  // namespace infty::bench
