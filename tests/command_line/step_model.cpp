// SPDX-License-Identifier: MIT
#include "../../benchmarks/scaling/step_model.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <infty/parallel/thread_communicator.hpp>
#include <infty/parallel/tree_sum.hpp>

#include "support/catch.hpp"

using infty::Index;
using infty::bench::Plan, infty::bench::StepCosts;

namespace step_model_tests {

// Counts what a rank sends.
class Counted {
 public:
  explicit Counted(infty::ThreadCommunicator& ranks) : ranks_(&ranks) {}
  int rank() const { return ranks_->rank(); }
  int size() const { return ranks_->size(); }
  void send(int to, std::span<const std::byte> bytes) { ranks_->send(to, bytes); }
  void receive(int from, std::span<std::byte> bytes) { ranks_->receive(from, bytes); }
  void exchange(int to, std::span<const std::byte> bytes, int from, std::span<std::byte> into) {
    messages += 1;
    sent += static_cast<double>(bytes.size());
    ranks_->exchange(to, bytes, from, into);
  }
  void all_reduce(std::span<float> values) { ranks_->all_reduce(values); }
  void all_reduce(std::span<double> values) { ranks_->all_reduce(values); }
  void broadcast(std::span<std::byte> bytes, int root) { ranks_->broadcast(bytes, root); }
  void barrier() { ranks_->barrier(); }
  void abort(const std::string& why) { ranks_->abort(why); }

  double messages = 0, sent = 0;

 private:
  infty::ThreadCommunicator* ranks_;
};
static_assert(infty::Communicator<Counted>);

TEST_CASE("sum_work: the messages and bytes that tree_sum sends") {
  const Index size = 9240;  // which ranks cut evenly
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 11})
    for (const Index shards : {11, 12, 16, 23}) {
      CAPTURE(ranks, shards);
      std::vector<double> messages(static_cast<std::size_t>(ranks)), sent = messages,
                                                                     made = messages;
      infty::on_threads(ranks, [&](infty::ThreadCommunicator& own) {
        Counted counted(own);
        const auto rank = static_cast<std::size_t>(own.rank());
        infty::tree_sum<float>(counted, shards, size, [&](Index, std::span<float> out) {
          made[rank] += 1;
          std::fill(out.begin(), out.end(), 1.F);
        });
        messages[rank] = counted.messages;
        sent[rank] = counted.sent / static_cast<double>(size * 4);
      });
      const auto work = infty::bench::sum_work(shards, ranks);
      CHECK(work.messages == *std::max_element(messages.begin(), messages.end()));
      CHECK(work.shards == *std::max_element(made.begin(), made.end()));
      CHECK(work.sent == Approx(*std::max_element(sent.begin(), sent.end())));
    }
}

TEST_CASE("step_seconds: its parts by hand") {
  const StepCosts costs{.parameters = 100,
                        .bytes = 400,
                        .token = .01,
                        .backward = .006,
                        .copy = 1e-4,
                        .add = 2e-4,
                        .update = 1e-3};
  // Four ranks of two shards of five tokens each: 2 (1 - 1/4) vectors in 4 messages, as many for
  // the loss, and two agreements of two.
  Plan plan{.ranks = 4, .shards = 8, .tokens = 40, .link = {.message = 1e-3, .byte = 1e-4}};
  const auto plain = infty::bench::step_seconds(costs, plan);
  CHECK(plain.compute == Approx(.1));
  CHECK(plain.sums == Approx(400 * (3 * 1e-4 + 1.75 * 2e-4)));
  CHECK(plain.sending == Approx(400 * 1.5 * 1e-4 + 12e-3));
  CHECK(plain.update == Approx(.1));
  CHECK(plain.total() == Approx(plain.compute + plain.sums + plain.sending + plain.update));
  plan.zero = true;
  const auto zero = infty::bench::step_seconds(costs, plan);
  CHECK(zero.update == Approx(.025));
  CHECK(zero.sending == Approx(plain.sending + 400 * .75 * 1e-4 + 3e-3));
  plan.overlap = true;
  CHECK(infty::bench::step_seconds(costs, plan).sending == Approx(zero.sending - .03));
  plan.link.byte = 1e-5;  // all gradients are hidden, but not what ranks agree on, and parameters
  CHECK(infty::bench::step_seconds(costs, plan).sending == Approx(8e-3 + 400 * .75e-5 + 3e-3));
  plan.speed = 2;
  CHECK(infty::bench::step_seconds(costs, plan).compute == Approx(.05));
  // One rank sends nothing, whatever the link.
  CHECK(infty::bench::step_seconds(costs, {.ranks = 1, .shards = 8, .tokens = 40, .link = {1, 1}})
            .sending == 0);
  CHECK_THROWS_AS(infty::bench::sum_work(3, 4), infty::ValueError);
}

}  // namespace step_model_tests
