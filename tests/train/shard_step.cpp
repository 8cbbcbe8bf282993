// SPDX-License-Identifier: MIT
#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "io/temporary_folder.hpp"
#include "train/shard_run.hpp"

using Catch::Matchers::Contains;

namespace shard_step_tests {

using namespace shard_run;

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
  ShardRun<double, infty::EigenBackend> run(1);
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

// A rank of threads that is lost in its call of number `at`, before anything is said.
class Failing {
 public:
  Failing(ThreadCommunicator& ranks, int at) : ranks_(&ranks), left_(at) {}

  int rank() const { return ranks_->rank(); }
  int size() const { return ranks_->size(); }
  void send(int to, std::span<const std::byte> bytes) { said().send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) { said().receive(from, bytes); }
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    said().exchange(to, bytes, from, into);
  }
  void all_reduce(std::span<float> values) { said().all_reduce(values); }
  void all_reduce(std::span<double> values) { said().all_reduce(values); }
  void broadcast(std::span<std::byte> bytes, int root) { said().broadcast(bytes, root); }
  void barrier() { said().barrier(); }
  void abort(const std::string& why) { ranks_->abort(why); }

 private:
  ThreadCommunicator& said() {
    if (--left_ == 0) infty::raise<infty::CommunicationError>("Failing", "the rank is lost");
    return *ranks_;
  }

  ThreadCommunicator* ranks_;
  int left_;
};

TEST_CASE("shards: a rank that is lost in a step leaves parameters and statistics as they were") {
  const auto unchanged_at = [](int at) {  // of both ranks; nothing if none was lost
    std::vector<char> lost(2), unchanged(2);
    on_threads(2, [&](ThreadCommunicator& ranks) {
      const auto rank = static_cast<std::size_t>(ranks.rank());
      Failing failing(ranks, rank == 0 ? at : -1);
      const Shards of(failing, shards);
      ShardRun<double, infty::EigenBackend> run(5);
      const auto before = run.everything();
      try {
        run.trainer.step(of, [&](Index shard) { return run.loss(of, shard); });
      } catch (const infty::CommunicationError&) {
        lost[rank] = 1;
      }
      unchanged[rank] = run.everything() == before;
      ranks.abort("a rank is lost");
    });
    std::vector<char> of_lost;
    for (std::size_t rank = 0; rank < 2; ++rank)
      if (lost[rank] != 0) of_lost.push_back(unchanged[rank]);
    return of_lost;
  };
  int at = 1;
  for (;; ++at) {
    CAPTURE(at);
    const auto unchanged = unchanged_at(at);
    if (unchanged.empty()) break;
    CHECK(unchanged == std::vector<char>(unchanged.size(), 1));
  }
  CHECK(at > 4);  // gradients, the loss, what statistics have moved, and the means of two
}

TEST_CASE("Trainer: one checkpoint of all ranks, which any number of them goes on from") {
  using B = infty::EigenBackend;
  const infty::tests::TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.safetensors";
  const auto run_on = [&](int count, Index stop_at, bool load) {
    std::vector<std::vector<double>> all(static_cast<std::size_t>(count));
    on_threads(count, [&](ThreadCommunicator& ranks) {
      const Shards of(ranks, shards);
      ShardRun<double, B> run(10);
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

TEST_CASE("Trainer: ranks that have nothing to ask stop with one that has") {
  std::vector<Index> steps(3);
  std::vector<char> done(3);
  on_threads(3, [&](ThreadCommunicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    const Shards of(ranks, shards);
    ShardRun<double, infty::EigenBackend> run(10);
    infty::TrainerRun options;
    if (rank == 1) options.stop = [&] { return run.trainer.steps() == 4; };
    done[rank] = run.trainer.run(
        of, [&](Index shard) { return run.loss(of, shard); }, options);
    steps[rank] = run.trainer.steps();
  });
  CHECK(steps == std::vector<Index>(3, 4));
  CHECK(done == std::vector<char>(3, 0));
}

TEST_CASE("Trainer: ranks whose parameters differ save nothing") {
  const infty::tests::TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.safetensors";
  CHECK_THROWS_WITH(on_threads(2,
                               [&](ThreadCommunicator& ranks) {
                                 ShardRun<double, infty::EigenBackend> run(3);
                                 if (ranks.rank() == 1) run.model.unused.value().fill(.5);
                                 run.trainer.save(path, ranks);
                               }),
                    Contains("rank 1 of 2 has the parameters with the fingerprint"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("shards: a step that throws leaves parameters and optimiser as they were") {
  ShardRun<double, infty::EigenBackend> run(5);
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
  const auto& norm = run.model.norm;
  const auto mean = norm.running_mean.value().to_vector(),
             variance = norm.running_variance.value().to_vector();
  for (const Index failing : {Index{0}, Index{2}, shards - 1})
    CHECK_THROWS_WITH(run.trainer.step(of,
                                       [&](Index shard) {
                                         auto loss = run.loss(of, shard);
                                         if (shard == failing) throw std::runtime_error("no data");
                                         return loss;
                                       }),
                      "no data");
  CHECK(norm.running_mean.value().to_vector() == mean);
  CHECK(norm.running_variance.value().to_vector() == variance);
  CHECK(run.everything() == before);
  // A shard without a gradient counts its value alone.
  const auto step = run.trainer.step(
      of, [&](Index shard) { return shard == 3 ? constant : run.loss(of, shard); });
  CHECK(step.loss > 2);
}

}  // namespace shard_step_tests
