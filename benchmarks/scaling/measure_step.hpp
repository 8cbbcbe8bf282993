// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <infty/eigen/parallel.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/shard_step.hpp>

#include "../../examples/support/sharing.hpp"
#include "../support/clock.hpp"
#include "step_model.hpp"
#include "step_training.hpp"

// What a step of training costs on ranks: as a whole, and part by part, as StepCosts has it.

namespace infty::bench {

/// How a step is made. What was measured of one says nothing of another.
struct StepSettings {
  StepOptions sizes = {};
  support::Sharing sharing = {};
  int threads = 1;  ///< of each rank
};

/// All that changes what a step costs, by the names of the options.
template <class See>
void each_field(StepSettings& settings, See&& see) {
  each_field(settings.sizes, see);
  see("bucket", settings.sharing.bucket);
  see("zero", settings.sharing.zero);
  see("threads", settings.threads);
}

/// What was measured on some ranks.
struct MeasuredStep {
  int ranks = 1;
  StepSettings settings = {};
  double tokens = 0;     ///< of the batch
  StepCosts costs = {};  ///< by processors' time of the first rank
  Link processor = {};   ///< between the first two ranks, processors' time, medians; 0 of one
  Link wall = {};        ///< by the wall's clock, the fastest of some: what the link can do
  /// The processors' time of a step on the rank that spends most, the median; by the wall's clock
  /// the median and the fastest.
  double step_processor = 0, step_wall = 0, step_fastest = 0;
};

template <class See>
void each_field(MeasuredStep& measured, See&& see) {
  see("ranks", measured.ranks);
  see("settings", measured.settings);
  see("tokens", measured.tokens);
  see("costs", measured.costs);
  see("link_processor", measured.processor);
  see("link_wall", measured.wall);
  see("step_processor", measured.step_processor);
  see("step_wall", measured.step_wall);
  see("step_fastest", measured.step_fastest);
}

/// A model in training on random tokens.
class StepMeasurement {
 public:
  StepMeasurement(const StepOptions& options, AnyCommunicator& ranks,
                  const support::Sharing& sharing)
      : options_(options),
        sharing_(sharing),
        ranks_(ranks),
        model_(step_model(options)),
        adam_(model_),
        shards_(ranks_, options.shards, Reduction::tree, sharing.bucket_bytes()) {
    if (sharing.zero && ranks.size() > 1) adam_.share_out(ranks.rank(), ranks.size());
  }

  /// Measures all of it, or the step as a whole alone; the ranks do so together.
  MeasuredStep measure(bool parts) {
    MeasuredStep found{.ranks = ranks_.size(),
                       .settings = {options_, sharing_, infty::num_threads()},
                       .tokens = static_cast<double>(options_.rows * options_.segment)};
    const auto step = [&] {
      train_step(adam_, {.learning_rate = 1e-4, .max_norm = 1}, shards_,
                 [&](Index shard) { return loss_of(shard); });
      for (int i = 0; i < static_cast<int>(agreements); ++i) any_rank(ranks_, false);
    };
    step();  // allocates, and solves for the matrices of what the long-term memory takes in
    std::vector<double> wall, processor;
    for (Index i = 0; i < options_.steps; ++i) {
      ranks_.barrier();
      const Seconds start = Seconds::now();
      step();
      const auto all = gather(ranks_, Seconds::since(start));
      Seconds most;
      for (const Seconds& one : all)
        most = {(std::max)(most.wall, one.wall), (std::max)(most.processor, one.processor)};
      wall.push_back(most.wall);
      processor.push_back(most.processor);
      // In turns, for what else a machine does changes, and takes the caches with it.
      if (parts && ranks_.rank() == 0) take_parts();
    }
    found.step_processor = median(processor);
    found.step_wall = median(wall);
    found.step_fastest = *std::min_element(wall.begin(), wall.end());
    ranks_.barrier();
    if (!parts) return found;
    found.costs = costs();
    if (ranks_.size() > 1 && ranks_.rank() < 2) links(found);
    ranks_.barrier();
    return found;
  }

 private:
  Variable<float> loss_of(Index shard) const {
    return shard_loss(model_, options_, shard, shards_.rows_of(shard, options_.rows));
  }

  /// Adds the times of the parts of a step on this rank, one behind the other as a step has them,
  /// so that each finds in the caches what it finds there.
  void take_parts() {
    const auto& parameters = adam_.parameters();
    const detail::FlatGradients<float, EigenBackend> flat(parameters);
    const std::size_t length = flat.size();
    const auto timed = [](std::vector<double>& to, auto&& body) {
      const Seconds start = Seconds::now();
      body();
      to.push_back(Seconds::since(start).processor);
    };
    for (Index shard = shards_.own().first; shard < shards_.own().last; ++shard) {
      timed(parts_.token, [&] {
        adam_.zero_grad();
        Tape tape;
        const Variable<float> loss = loss_of(shard);
        timed(parts_.backward, [&] { tape.backward(loss); });
      });
    }
    SelfCommunicator self;  // as on one rank
    timed(parts_.sums, [&] {
      alone_.begin(self, shards_.own().count(), length, Reduction::tree);
      for (Index shard = 0; shard < shards_.own().count(); ++shard) {
        flat.take(alone_.next());
        alone_.add(alone_.all());
      }
      flat.put(alone_.sum());
    });
    std::vector<float> sum(length);
    const std::vector<float> own(length, 1.F);
    timed(parts_.add,
          [&] { detail::add_into<float>(std::span<float>(sum), std::span<const float>(own)); });
    timed(parts_.update, [&] {
      detail::Squares squares(parameters.size());
      detail::sums_of_squares(parameters, squares.data());
      TrainStep step;
      detail::finish_step(adam_, {.learning_rate = 0, .max_norm = 1}, step, squares.data());
    });
  }

  /// The medians of these, a token, a byte and a parameter.
  StepCosts costs() const {
    const detail::FlatGradients<float, EigenBackend> flat(adam_.parameters());
    StepCosts found{.bytes = 4 * static_cast<double>(flat.size())};
    for (const auto& parameter : adam_.parameters())
      found.parameters += static_cast<double>(parameter.variable.size());
    const double tokens = static_cast<double>(options_.rows * options_.segment) /
                          static_cast<double>(options_.shards);
    found.token = median(parts_.token) / tokens;
    found.backward = median(parts_.backward) / tokens;
    found.add = median(parts_.add) / found.bytes;
    const auto own = static_cast<double>(shards_.own().count());
    found.copy =
        (std::max)(0., (median(parts_.sums) / found.bytes - (own - 1) * found.add) / (own + 1));
    found.update = median(parts_.update) / found.parameters;
    return found;
  }

  /// What messages between this rank, the first or second, and the other of them cost: of the
  /// median and the fastest of blocks, in which no rank can be ahead by more than a message.
  void links(MeasuredStep& found) {
    const int other = 1 - ranks_.rank();
    const auto exchange = [&](std::size_t size, Index blocks, Index times) {
      const std::vector<std::byte> out(size, std::byte{1});
      std::vector<std::byte> in(size);
      std::vector<double> processor, wall;
      for (Index block = 0; block < blocks; ++block) {
        const Seconds start = Seconds::now();
        for (Index i = 0; i < times; ++i) ranks_.exchange(other, out, other, in);
        const Seconds time = Seconds::since(start);
        processor.push_back(time.processor / static_cast<double>(times));
        wall.push_back(time.wall / static_cast<double>(times));
      }
      return Seconds{*std::min_element(wall.begin(), wall.end()), median(processor)};
    };
    constexpr std::size_t small = 8, large = std::size_t{1} << 20;
    constexpr double more = large - small;
    exchange(large, 1, 4);  // connects, and opens TCP's window
    const Seconds message = exchange(small, 8, 20), many = exchange(large, 8, 8);
    found.processor = {message.processor, (many.processor - message.processor) / more};
    found.wall = {message.wall, (many.wall - message.wall) / more};
  }

  StepOptions options_;
  support::Sharing sharing_;
  AnyCommunicator ranks_;
  StepModel model_;
  Adam<float> adam_;
  Shards<AnyCommunicator> shards_;
  detail::ShardSum<float> alone_;
  struct Parts {
    std::vector<double> token, backward, sums, add, update;
  } parts_;  // seconds of processors
};

}  // namespace infty::bench
