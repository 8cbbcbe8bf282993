// SPDX-License-Identifier: MIT
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <infty/io/safetensors.hpp>
#include <infty/train/shared_updates.hpp>

#include "io/temporary_folder.hpp"
#include "train/shard_run.hpp"

using Catch::Matchers::Contains;

namespace shared_updates_tests {

using namespace shard_run;

// All tensors of a file, by their names.
template <class T>
std::map<std::string, std::vector<T>> tensors_of(const std::filesystem::path& path) {
  const infty::SafetensorsFile file(path);
  std::map<std::string, std::vector<T>> all;
  for (const std::string& name : file.names())
    if (file.dtype(name) == infty::dtype_of<T>()) all[name] = file.read<T>(name);
  return all;
}

TEMPLATE_LIST_TEST_CASE("Trainer: the optimiser's state shared out over ranks changes no bit", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::tests::TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint.safetensors";
  // What the steps were, and the moments that each rank held.
  struct Seen {
    std::vector<double> steps;
    Index moments = 0;
  };
  const auto run_on = [&](int count, bool shared, Index stop_at, bool load) {
    std::vector<Seen> all(static_cast<std::size_t>(count));
    on_threads(count, [&](ThreadCommunicator& ranks) {
      const Shards of(ranks, shards, infty::Reduction::tree, 80);
      ShardRun<T, B> run(10);
      run.trainer.fix_rate("second", .01).scale_rate("first", .5);
      run.keep(of);
      if (shared) run.trainer.share_out(ranks);
      if (load) run.trainer.load(path);
      run.trainer.run(of, [&](Index shard) { return run.loss(of, shard); },
                      {.save = [&] { run.trainer.save(path, ranks); },
                       .stop = [&] { return run.trainer.steps() == stop_at; },
                       .stepped = [&](const infty::TrainStep& step,
                                      const infty::Progress&) { run.note(step); }});
      Seen& seen = all[static_cast<std::size_t>(ranks.rank())];
      seen.steps = run.seen;
      const_cast<Adam<T, B>&>(run.trainer.optimizer()).visit([&](const auto&, auto& value) {
        if constexpr (requires { value.to_vector(); }) seen.moments += value.size();
      });
    });
    return all;
  };
  const auto whole = run_on(1, false, -1, false).front();
  const auto expected = tensors_of<T>(path);
  REQUIRE(expected.size() > 10);
  for (const int count : {1, 2, 3, 4, 8}) {
    CAPTURE(count);
    std::filesystem::remove(path);
    const auto all = run_on(count, true, -1, false);
    CHECK(tensors_of<T>(path) == expected);
    Index moments = 0;
    for (const Seen& one : all) {
      CHECK(one.steps == whole.steps);
      CHECK((count == 1 || one.moments < whole.moments));
      moments += one.moments;
    }
    CHECK(moments == whole.moments);
  }
  // Any number of ranks goes on, with it or without.
  struct Way {
    int first;
    bool first_shares;
    int then;
    bool then_shares;
  };
  for (const Way way : {Way{4, true, 2, false}, Way{1, false, 3, true}, Way{3, true, 4, true},
                        Way{2, false, 1, true}}) {
    CAPTURE(way.first, way.then);
    std::filesystem::remove(path);
    run_on(way.first, way.first_shares, 4, false);
    run_on(way.then, way.then_shares, -1, true);
    CHECK(tensors_of<T>(path) == expected);
  }
}

// What a call is refused with; empty if it is not.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const infty::ValueError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("Trainer: a shared optimiser's steps, saves and ranks are those of all together") {
  const infty::tests::TemporaryFolder folder;
  // Of each rank, for Catch2's assertions are for one thread.
  std::vector<std::vector<std::string>> refused(2);
  on_threads(2, [&](ThreadCommunicator& ranks) {
    const Shards of(ranks, shards);
    ShardRun<double, infty::EigenBackend> run(3);
    run.trainer.share_out(ranks);
    SelfCommunicator self;
    const Shards alone(self, shards);
    refused[static_cast<std::size_t>(ranks.rank())] = {
        refusal([&] { run.trainer.share_out(ranks); }),
        refusal([&] { run.trainer.save(folder.path() / "alone"); }),
        refusal([&] { run.trainer.step([&] { return run.loss(of, of.own().first); }); }),
        refusal(
            [&] { run.trainer.step(alone, [&](Index shard) { return run.loss(of, shard); }); })};
  });
  for (const auto& by : refused) {
    CHECK_THAT(by[0], Contains("it must come before the first step, and once"));
    CHECK_THAT(by[1], Contains("they save together"));
    CHECK_THAT(by[2], Contains("their steps are those of shards"));
    CHECK_THAT(by[3], Contains("shared out over other ranks than rank 0 of 1"));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "alone"));
  ShardRun<double, infty::EigenBackend> run(3);
  SelfCommunicator self;
  const Shards alone(self, shards);
  run.trainer.step(alone, [&](Index shard) { return run.loss(alone, shard); });
  CHECK_THROWS_AS(run.trainer.share_out(self), infty::ValueError);  // its moments would be lost
}

}  // namespace shared_updates_tests
