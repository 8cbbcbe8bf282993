// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/batch_norm.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/parallel/thread_communicator.hpp>
#include <infty/train/shard_step.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

// A training on shards, for tests of what ranks make of it.

namespace shard_run {

using infty::Adam;
using infty::Index;
using infty::on_threads;
using infty::Random;
using infty::SelfCommunicator;
using infty::ShardRange;
using infty::Shards;
using infty::Tensor;
using infty::ThreadCommunicator;
using infty::Trainer;
using infty::Variable;

constexpr Index rows = 24, width = 6, words = 40, shards = 8;

// A table whose gradient comes by rows, a batch norm, whose statistics no gradient moves, dropout,
// and a parameter that no gradient ever reaches.
template <class T, class B>
struct Model {
  using V = Variable<T, B>;
  V table, first, second, unused;
  infty::BatchNorm<T, B> norm{width};

  explicit Model(Random random)
      : table(infty::tests::uniform_variable<T, B>({words, width}, random)),
        first(infty::tests::uniform_variable<T, B>({width, width}, random)),
        second(infty::tests::uniform_variable<T, B>({1, width}, random)),
        unused(infty::tests::uniform_variable<T, B>({3}, random)) {
    table.set_grad_by_rows(true);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("table", table);
    see("first", first);
    see("second", second);
    see("unused", unused);
    see("norm", norm);
  }

  // The sum of squares of what the rows' words come to.
  V loss(const std::vector<Index>& read, double dropped, Random& random) const {
    const auto x = infty::embedding(Tensor<Index, B>::from({std::ssize(read)}, read), table);
    auto h = norm.forward(infty::linear(x, first), true);
    h = infty::dropout(infty::sigmoid(h), dropped, random);
    const auto y = infty::linear(h, second);
    return infty::sum(y * y);
  }
};

// A training on some ranks: what one rank keeps, and everything that came of it.
template <class T, class B>
struct ShardRun {
  Model<T, B> model{Random(infty::tests::seed)};
  Trainer<T, B> trainer;
  std::vector<Random> randoms;  // of all shards, though a rank moves its own alone
  std::vector<double> seen = {};

  explicit ShardRun(Index steps)
      : trainer(model, {.steps = steps, .max_norm = .5, .save_every = 3}) {
    for (Index i = 0; i < shards; ++i)
      randoms.push_back(Random(infty::tests::seed, 1).split(static_cast<std::uint64_t>(i)));
  }

  template <class C>
  Variable<T, B> loss(const Shards<C>& of, Index shard) {
    const ShardRange range = of.rows_of(shard, rows);
    std::vector<Index> read;
    for (Index row = range.first; row < range.last; ++row)
      read.push_back((row * 7 + trainer.steps() * 3) % words);
    return infty::scale(model.loss(read, .25, randoms[static_cast<std::size_t>(shard)]),
                        T(1) / T(rows));
  }

  template <class C>
  void keep(const Shards<C>& of) {
    const auto each = [this, own = of.own()](auto&& see) {
      for (Index shard = own.first; shard < own.last; ++shard)
        see("shards." + std::to_string(shard), randoms[static_cast<std::size_t>(shard)]);
    };
    trainer.keep_own(
        [each](infty::SafetensorsWriter& writer) {
          each([&](const std::string& name, Random& random) {
            infty::save_random(writer, random, name);
          });
        },
        [each](infty::CheckpointLoader& loader) {
          each([&](const std::string& name, Random& random) { loader.random(random, name); });
        });
  }

  void note(const infty::TrainStep& taken) {
    seen.insert(seen.end(), {taken.loss, taken.grad_norm, taken.learning_rate});
  }

  std::vector<double> everything() {
    std::vector<double> all = seen;
    const auto add = [&](const auto& values) {
      all.insert(all.end(), values.begin(), values.end());
    };
    for (const auto& parameter : trainer.optimizer().parameters())
      add(parameter.variable.value().to_vector());
    const_cast<Adam<T, B>&>(trainer.optimizer()).visit([&](const std::string&, auto& value) {
      if constexpr (requires { value.to_vector(); })
        add(value.to_vector());
      else
        all.push_back(static_cast<double>(value));
    });
    return all;
  }
};

// What each of `count` ranks has behind `steps` steps.
template <class T, class B>
std::vector<std::vector<double>> trained(int count, Index steps, Index bucket_bytes = 0) {
  std::vector<std::vector<double>> all(static_cast<std::size_t>(count));
  on_threads(count, [&](ThreadCommunicator& ranks) {
    const Shards of(ranks, shards, infty::Reduction::tree, bucket_bytes);
    ShardRun<T, B> run(steps);
    run.trainer.run(
        of, [&](Index shard) { return run.loss(of, shard); },
        {.stepped = [&](const infty::TrainStep& step, const infty::Progress&) { run.note(step); }});
    all[static_cast<std::size_t>(ranks.rank())] = run.everything();
  });
  return all;
}

}  // namespace shard_run
