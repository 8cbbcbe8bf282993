// SPDX-License-Identifier: MIT
// How models of the programs learn to answer.

#include "../../examples/support/answering.hpp"

#include <csignal>
#include <vector>

#include <infty/data/sorting.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using support::Index;

namespace answering {

/// A training of six steps, of which epochs have two.
struct Sorting {
  infty::SortingTask task{{.symbols = 3, .length = 8}};
  support::Training training{.trainer = {.steps = 6, .save_every = 100},
                             .batch = 2,
                             .segment = 4,
                             .unfinished = {},
                             .epoch = 2,
                             .enough = .5};
  std::vector<Index> done = {};  ///< steps, as they are told

  template <class Accuracy>
  support::Behind train(Accuracy&& accuracy) {
    support::ModelConfig config;
    config.transformer = {
        .vocabulary = 4, .model_dim = 4, .layers = 1, .heads = 1, .feed_forward = 4};
    const auto model = support::make_model(config);
    done.clear();
    return support::train(
        *model, training,
        [&](Index step) {
          infty::Random random(1, 1);
          random.seek(static_cast<std::uint64_t>(step * training.batch));
          return support::sample(task, training.batch, random);
        },
        accuracy, [&](Index steps) { done.push_back(steps); });
  }
};

}  // namespace answering

TEST_CASE(
    "train: a signal while an epoch's accuracy is asked costs no step, and it is asked again") {
  const infty::tests::TemporaryFolder folder;
  answering::Sorting sorting;
  int asked = 0;
  sorting.training.unfinished = folder.path() / "whole";
  const support::Behind whole = sorting.train([&] { return ++asked == 2 ? .9 : .1; });
  CHECK(asked == 2);
  CHECK(sorting.done == std::vector<Index>{0, 1, 1, 1, 1, 2});

  sorting.training.unfinished = folder.path() / "stopped";
  asked = 0;
  const auto interrupted = [&] {
    if (++asked == 2) {
      std::raise(SIGINT);
      support::stop_if_interrupted();
    }
    return .1;
  };
  {
    const support::InterruptGuard guard;
    CHECK_THROWS_AS(sorting.train(interrupted), support::Interrupted);
  }
  CHECK(sorting.done == std::vector<Index>{0, 1, 1, 1, 1});
  asked = 0;
  const support::Behind behind = sorting.train([&] {
    ++asked;
    return .9;
  });
  CHECK(asked == 1);
  CHECK(sorting.done == std::vector<Index>{4, 2});
  CHECK(behind.loss == whole.loss);
  CHECK(behind.accuracy == whole.accuracy);
}
