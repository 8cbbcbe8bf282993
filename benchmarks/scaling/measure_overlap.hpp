// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <span>
#include <vector>

#include <mpi.h>

#include <infty/autograd/tape.hpp>
#include <infty/core/error.hpp>
#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/buckets.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/last_backward.hpp>

#include "../support/clock.hpp"
#include "step_training.hpp"
#include "tested_sums.hpp"

// What is hidden of sending gradients behind the backward pass that makes them, by a thread that
// sends or by test calls of the one that computes.

namespace infty::bench {

/// The losses and gradients of a rank's shards, and their sum over ranks: without the optimiser.
class OverlapMeasurement {
 public:
  /// How gradients are sent.
  enum Way { alone, at_once, by_thread, by_tests, ways };

  /// @throws infty::CommunicationError where MPI may not be called beside the signs of life
  OverlapMeasurement(const StepOptions& options, AnyCommunicator& ranks, Index bucket_bytes)
      : options_(options),
        ranks_(ranks),
        model_(step_model(options)),
        adam_(model_),
        flat_(adam_.parameters()),
        whole_(ranks_, options.shards),
        cut_(ranks_, options.shards, Reduction::tree, bucket_bytes) {
    int level = MPI_THREAD_SINGLE;
    detail::check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
    require<CommunicationError>(level == MPI_THREAD_MULTIPLE, "ranks_scaling",
                                "overlap wants an MPI that gives MPI_THREAD_MULTIPLE: it calls MPI "
                                "while another thread shows signs of life");
    detail::check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &own_), "MPI_Comm_dup");
  }
  OverlapMeasurement(const OverlapMeasurement&) = delete;
  OverlapMeasurement& operator=(const OverlapMeasurement&) = delete;
  ~OverlapMeasurement() { MPI_Comm_free(&own_); }

  /// Measures every way in turns, one of which begins each time; the first rank prints the table.
  /// @throws infty::Error where the ways have other bits
  void measure() {
    std::array<std::vector<double>, ways> wall, processor;
    for (Index round = -1; round < options_.steps; ++round)
      for (int i = 0; i < ways; ++i) {
        const auto way = static_cast<Way>((i + std::max<Index>(round, 0)) % ways);
        ranks_.barrier();
        const Seconds start = Seconds::now();
        step(way);
        const auto all = gather(ranks_, Seconds::since(start));
        if (way == at_once && round < 0)
          keep(bits_);
        else if (way != alone)
          check(way);
        // The first of each connects and allocates, and the very first solves for the matrices of
        // what the long-term memory takes in.
        if (round < 0) continue;
        Seconds most;
        for (const Seconds& one : all)
          most = {(std::max)(most.wall, one.wall), (std::max)(most.processor, one.processor)};
        wall[way].push_back(1e3 * most.wall);
        processor[way].push_back(1e3 * most.processor);
      }
    if (ranks_.rank() == 0) print(wall, processor);
    ranks_.barrier();
  }

 private:
  static constexpr const char* names[ways] = {"nothing sent", "at once, behind", "by a thread",
                                              "by test calls"};

  void step(Way way) {
    const auto& shards = way == at_once || way == alone ? whole_ : cut_;
    auto& sum = shards.template gradients<float>();
    sum.begin(ranks_, shards.count(), flat_.size(), shards.reduction());
    for (Index shard = shards.own().first; shard < shards.own().last; ++shard) {
      const std::span<float> out = sum.next();
      adam_.zero_grad();
      Tape tape;
      const Variable<float> loss =
          shard_loss(model_, options_, shard, shards.rows_of(shard, options_.rows));
      const bool last = shard + 1 == shards.own().last;
      if (last && way == by_tests) {
        tested_backward(tape, loss, sum, out);
      } else if (last && way != alone) {
        detail::last_backward(tape, loss, flat_, adam_.parameters(), shards, out);
      } else {
        tape.backward(loss);
        flat_.take(out);
        sum.add(sum.all());
      }
    }
  }

  /// As infty::detail::last_backward, but for who sends.
  void tested_backward(Tape& tape, const Variable<float>& loss, detail::ShardSum<float>& sum,
                       std::span<float> out) {
    InTurns* turns = nullptr;
    TestedRanks ranks(ranks_, own_, [&](detail::Patience& patience) { turns->pause(patience); });
    InTurns sending([&](detail::Slice bucket) {
      sum.add(bucket);
      sum.reduce(ranks, bucket);
    });
    turns = &sending;
    detail::Buckets buckets(flat_.size(),
                            static_cast<std::size_t>(cut_.bucket_bytes()) / sizeof(float));
    for (const detail::Slice place : flat_.places()) buckets.add(place);
    std::vector<Variable<float>> leaves;
    for (const auto& parameter : adam_.parameters()) leaves.push_back(parameter.variable);
    tape.backward(loss, std::span<const Variable<float>>(leaves), [&](std::size_t i) {
      flat_.take(i, out);
      buckets.complete(flat_.places()[i], [&](detail::Slice bucket) { sending.push(bucket); });
      sending.test();
    });
    sending.finish();
  }

  /// The sum of the last step.
  void keep(std::vector<float>& to) {
    const auto sum = whole_.template gradients<float>().sum();
    to.assign(sum.begin(), sum.end());
  }
  void check(Way way) {
    const auto sum = (way == at_once ? whole_ : cut_).template gradients<float>().sum();
    require(std::equal(sum.begin(), sum.end(), bits_.begin(), bits_.end()), "ranks_scaling",
            "gradients sent ", names[way], " have another sum than those sent at once first");
  }

  void print(const std::array<std::vector<double>, ways>& wall,
             const std::array<std::vector<double>, ways>& processor) const {
    std::printf(
        "%d ranks, %lld tokens in %lld shards, %.1f MB of gradients, buckets of %.1f MB; "
        "milliseconds of %lld steps each\n\n"
        "| sent | median | fastest | processors, median | beside all at once, median of rounds |\n"
        "|:-|-:|-:|-:|-:|\n",
        ranks_.size(), static_cast<long long>(options_.rows * options_.segment),
        static_cast<long long>(options_.shards), 4e-6 * static_cast<double>(flat_.size()),
        1e-6 * static_cast<double>(cut_.bucket_bytes()), static_cast<long long>(options_.steps));
    for (std::size_t way = 0; way < ways; ++way) {
      std::vector<double> more;
      for (std::size_t round = 0; round < wall[way].size(); ++round)
        more.push_back(wall[way][round] - wall[at_once][round]);
      std::printf("| %s | %.1f | %.1f | %.1f | %+.1f |\n", names[way], median(wall[way]),
                  *std::min_element(wall[way].begin(), wall[way].end()), median(processor[way]),
                  median(more));
    }
    std::vector<double> more;
    for (std::size_t round = 0; round < wall[by_tests].size(); ++round)
      more.push_back(wall[by_tests][round] - wall[by_thread][round]);
    std::printf(
        "\nby test calls beside by a thread, median of rounds: %+.1f; faster in %td of %td\n",
        median(more), std::count_if(more.begin(), more.end(), [](double x) { return x < 0; }),
        std::ssize(more));
  }

  StepOptions options_;
  AnyCommunicator ranks_;
  StepModel model_;
  Adam<float> adam_;
  detail::FlatGradients<float, EigenBackend> flat_;
  Shards<AnyCommunicator> whole_, cut_;
  MPI_Comm own_ = MPI_COMM_NULL;
  std::vector<float> bits_;
};

}  // namespace infty::bench
