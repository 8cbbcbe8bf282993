// SPDX-License-Identifier: MIT
#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/gather.hpp>
#include <infty/autograd/linear.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/nn/batch_norm.hpp>
#include <infty/nn/dropout.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/parallel/thread_communicator.hpp>
#include <infty/train/shard_step.hpp>
#include <infty/train/trainer.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using Catch::Matchers::Contains;
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

namespace shard_step_tests {

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
struct Run {
  Model<T, B> model{Random(infty::tests::seed)};
  Trainer<T, B> trainer;
  std::vector<Random> randoms;  // of all shards, though a rank moves its own alone
  std::vector<double> seen = {};

  explicit Run(Index steps) : trainer(model, {.steps = steps, .max_norm = .5, .save_every = 3}) {
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
std::vector<std::vector<double>> trained(int count, Index steps,
                                         Index bucket_bytes = infty::default_bucket_bytes) {
  std::vector<std::vector<double>> all(static_cast<std::size_t>(count));
  on_threads(count, [&](ThreadCommunicator& ranks) {
    const Shards of(ranks, shards, infty::Reduction::tree, bucket_bytes);
    Run<T, B> run(steps);
    run.trainer.run(
        of, [&](Index shard) { return run.loss(of, shard); },
        {.stepped = [&](const infty::TrainStep& step, const infty::Progress&) { run.note(step); }});
    all[static_cast<std::size_t>(ranks.rank())] = run.everything();
  });
  return all;
}

TEMPLATE_LIST_TEST_CASE("shards: parameters, optimiser and losses have the same bits on any ranks",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto alone = trained<T, B>(1, 12).front();
  REQUIRE(alone.size() > 3 * 12);
  for (const int count : {2, 3, 4, 5, 8}) {
    CAPTURE(count);
    for (const auto& one : trained<T, B>(count, 12)) CHECK(one == alone);
  }
}

TEMPLATE_LIST_TEST_CASE("shards: what is sent while the backward pass goes on changes no bit", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto alone = trained<T, B>(1, 6, 0).front();
  // Nothing before the end; an element at a time; an odd number of them, of several parameters or
  // a part of one; nearly all; more than there are.
  for (const Index elements : {0, 1, 7, 31, 300, 100000})
    for (const int count : {1, 2, 3, 4}) {
      CAPTURE(elements, count);
      const auto size = static_cast<Index>(sizeof(T));
      for (const auto& one : trained<T, B>(count, 6, elements * size)) CHECK(one == alone);
    }
  CHECK_THROWS_AS((trained<T, B>(2, 1, -1)), infty::ValueError);
}

// A communicator for the thread that made it alone.
struct OneThread : ThreadCommunicator {
  explicit OneThread(const ThreadCommunicator& ranks) : ThreadCommunicator(ranks) {}
  bool any_thread() const { return false; }
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    infty::require(std::this_thread::get_id() == own, "exchange", "another thread calls it");
    ++exchanges;
    ThreadCommunicator::exchange(to, bytes, from, into);
  }

  std::thread::id own = std::this_thread::get_id();
  int exchanges = 0;
};

TEST_CASE("shards: buckets are sent by the rank's own thread where the communicator wants it") {
  using B = infty::EigenBackend;
  const auto alone = trained<double, B>(1, 4).front();
  std::vector<std::vector<double>> all(2);
  std::vector<int> exchanges(2);
  on_threads(2, [&](ThreadCommunicator& ranks) {
    OneThread own(ranks);
    const Shards of(own, shards, infty::Reduction::tree, 64);
    Run<double, B> run(4);
    run.trainer.run(
        of, [&](Index shard) { return run.loss(of, shard); },
        {.stepped = [&](const infty::TrainStep& step, const infty::Progress&) { run.note(step); }});
    const auto rank = static_cast<std::size_t>(ranks.rank());
    all[rank] = run.everything();
    exchanges[rank] = own.exchanges;
  });
  for (const auto& one : all) CHECK(one == alone);
  CHECK(exchanges[0] > 4 * 2 * 8);  // buckets, not one vector
}

TEST_CASE(
    "shards: a rank that fails in its last backward pass leaves no thread, and ends the others") {
  // What is on its way by then is a part of the gradients.
  const auto failing = [](int bad) {
    on_threads(3, [&](ThreadCommunicator& ranks) {
      const Shards of(ranks, shards, infty::Reduction::tree, 16);
      Run<double, infty::EigenBackend> run(2);
      run.trainer.step(of, [&](Index shard) {
        const auto loss = run.loss(of, shard);
        if (ranks.rank() != bad || shard + 1 != of.own().last) return loss;
        return infty::record(
            Variable<double>(loss.value().clone()),
            [loss](const Tensor<double>& dy) {
              loss.grad().fill(dy.item());
              infty::raise<infty::ValueError>("backward", "the disk is full");
            },
            loss);
      });
    });
  };
  for (int bad = 0; bad < 3; ++bad) CHECK_THROWS_WITH(failing(bad), Contains("the disk is full"));
}

TEST_CASE("shards: the vectors of gradients stay for the next step") {
  SelfCommunicator self;
  const Shards of(self, shards);
  Run<double, infty::EigenBackend> run(5);
  const auto step = [&] { run.trainer.step(of, [&](Index shard) { return run.loss(of, shard); }); };
  step();
  const double* const first = of.gradients<double>().sum().data();
  step();
  CHECK(of.gradients<double>().sum().data() == first);
  const auto copy = of;
  CHECK(&copy.gradients<double>() == &of.gradients<double>());
}

struct Affine {
  Variable<double> weight;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
};

TEST_CASE("shards: a step is that of the batch in one, to the rounding") {
  // Without the batch norm, whose statistics are each shard's.
  Random random(infty::tests::seed);
  const auto x = infty::tests::uniform_tensor<double>({rows, width}, random);
  Affine whole{infty::tests::uniform_variable<double>({2, width}, random)};
  Affine cut{Variable<double>(whole.weight.value().clone(), true)};
  Adam<double> adam(whole), adam_cut(cut);
  const auto loss = [&](const Variable<double>& weight, Index first, Index last) {
    const Variable<double> part(x.slice(first, last).clone());
    const auto y = infty::linear(part, weight);
    return infty::scale(infty::sum(y * y), 1. / rows);
  };
  SelfCommunicator self;
  const Shards of(self, 5);
  for (int i = 0; i < 3; ++i) {
    const auto a =
        infty::train_step(adam, {.max_norm = 1}, [&] { return loss(whole.weight, 0, rows); });
    const auto b = infty::train_step(adam_cut, {.max_norm = 1}, of, [&](Index shard) {
      const ShardRange range = of.rows_of(shard, rows);
      return loss(cut.weight, range.first, range.last);
    });
    CHECK(b.loss == Approx(a.loss).epsilon(1e-12));
    CHECK(b.grad_norm == Approx(a.grad_norm).epsilon(1e-12));
  }
  const auto expected = whole.weight.value().to_vector(), got = cut.weight.value().to_vector();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-9));
}

TEST_CASE("shards: statistics are the mean of what each shard would have made of them") {
  Run<double, infty::EigenBackend> run(1);
  auto& mean = run.model.norm.running_mean;
  SelfCommunicator self;
  const Shards of(self, shards);
  std::vector<double> expected(static_cast<std::size_t>(width), 0);
  for (Index shard = 0; shard < shards; ++shard) {
    const auto before = mean.value().clone(),
               variance = run.model.norm.running_variance.value().clone();
    run.loss(of, shard);
    const auto now = mean.value().to_vector();
    for (std::size_t i = 0; i < now.size(); ++i) expected[i] += now[i] / shards;
    mean.value().copy_from(before);
    run.model.norm.running_variance.value().copy_from(variance);
  }
  run.trainer.step(of, [&](Index shard) { return run.loss(of, shard); });
  const auto got = mean.value().to_vector();
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).epsilon(1e-13));
}

TEST_CASE("Trainer: one checkpoint of all ranks, which any number of them goes on from") {
  using B = infty::EigenBackend;
  const infty::tests::TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.safetensors";
  const auto run_on = [&](int count, Index stop_at, bool load) {
    std::vector<std::vector<double>> all(static_cast<std::size_t>(count));
    on_threads(count, [&](ThreadCommunicator& ranks) {
      const Shards of(ranks, shards);
      Run<double, B> run(10);
      run.keep(of);
      if (load) run.trainer.load(path);
      run.trainer.run(
          of, [&](Index shard) { return run.loss(of, shard); },
          // One rank alone is asked to stop, and all do.
          {.save = [&] { run.trainer.save(path, ranks); },
           .stop = [&] { return ranks.rank() == count - 1 && run.trainer.steps() == stop_at; }});
      all[static_cast<std::size_t>(ranks.rank())] = run.everything();
    });
    return all;
  };
  const auto whole = run_on(1, -1, false).front();
  const infty::SafetensorsFile file(path);
  CHECK(file.has("shards.0"));
  CHECK(file.has("shards.7"));
  const int pairs[][2] = {{4, 2}, {1, 8}, {3, 4}, {8, 1}};
  for (const auto& pair : pairs) {
    CAPTURE(pair[0], pair[1]);
    std::filesystem::remove(path);
    run_on(pair[0], 4, false);
    for (const auto& one : run_on(pair[1], -1, true)) CHECK(one == whole);
  }
}

TEST_CASE("Trainer: ranks whose parameters differ save nothing") {
  const infty::tests::TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.safetensors";
  CHECK_THROWS_WITH(on_threads(2,
                               [&](ThreadCommunicator& ranks) {
                                 Run<double, infty::EigenBackend> run(3);
                                 if (ranks.rank() == 1) run.model.unused.value().fill(.5);
                                 run.trainer.save(path, ranks);
                               }),
                    Contains("rank 1 of 2 has the parameters with the fingerprint"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("shards: a step that throws leaves parameters and optimiser as they were") {
  Run<double, infty::EigenBackend> run(5);
  SelfCommunicator self;
  const Shards of(self, shards);
  const auto good = [&](Index shard) { return run.loss(of, shard); };
  run.trainer.step(of, good);
  const auto before = run.everything();
  const auto bad_at = [&](double factor) {
    return [&, factor](Index shard) {
      return infty::scale(run.loss(of, shard), shard == 5 ? factor : 1.);
    };
  };
  CHECK_THROWS_WITH(run.trainer.step(of, bad_at(std::numeric_limits<double>::quiet_NaN())),
                    Contains("step 1: the loss is nan, and all parameters are finite"));
  CHECK_THROWS_AS(run.trainer.step(of, [&](Index) { return run.model.unused; }), infty::ShapeError);
  const Variable<double> constant(Tensor<double>::full({}, 2));
  CHECK_THROWS_WITH(run.trainer.step(of, [&](Index) { return constant; }),
                    Contains("no gradient flows to the loss of any shard"));
  CHECK(run.everything() == before);
  // A shard without a gradient counts its value alone.
  const auto step = run.trainer.step(
      of, [&](Index shard) { return shard == 3 ? constant : run.loss(of, shard); });
  CHECK(step.loss > 2);
}

}  // namespace shard_step_tests
