// SPDX-License-Identifier: MIT
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/train/last_backward.hpp>

#include "train/shard_run.hpp"

using Catch::Matchers::Contains;

namespace last_backward_tests {

using namespace shard_run;

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
    ShardRun<double, B> run(4);
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
      ShardRun<double, infty::EigenBackend> run(2);
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
  ShardRun<double, infty::EigenBackend> run(5);
  const auto step = [&] { run.trainer.step(of, [&](Index shard) { return run.loss(of, shard); }); };
  step();
  const double* const first = of.gradients<double>().sum().data();
  step();
  CHECK(of.gradients<double>().sum().data() == first);
  const auto copy = of;
  CHECK(&copy.gradients<double>() == &of.gradients<double>());
}

}  // namespace last_backward_tests
