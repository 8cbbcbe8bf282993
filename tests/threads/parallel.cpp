// SPDX-License-Identifier: MIT
// Ranks that are threads: what they say to each other, and steps that they take together.
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/linear.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/parallel/thread_communicator.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index;
using infty::on_threads;
using infty::Random;
using infty::Shards;
using infty::ThreadCommunicator;

namespace parallel_threads {

std::vector<float> trained_on(int count) {
  std::vector<float> weights;
  on_threads(count, [&](ThreadCommunicator& ranks) {
    Random random(1);
    const auto x = infty::tests::uniform_tensor<float>({18, 5}, random);
    infty::Linear<float> model(5, 2, Random(2));
    infty::Trainer<float> trainer(model, {.steps = 4, .max_norm = 1});
    const Shards shards(ranks, 6);
    trainer.run(shards, [&](Index shard) {
      const auto rows = shards.rows_of(shard, 18);
      const auto y = model.forward(infty::Variable<float>(x.slice(rows.first, rows.last)));
      return infty::scale(infty::sum(y * y), 1.f / 18);
    });
    ranks.barrier();
    if (ranks.rank() == 0) weights = model.weight.value().to_vector();
  });
  return weights;
}

TEST_CASE("threads: ranks train together") {
  const auto alone = trained_on(1);
  CHECK(alone.size() == 10);
  CHECK(trained_on(3) == alone);
  CHECK(trained_on(4) == alone);
}

TEST_CASE("threads: a rank aborts while others wait and send") {
  CHECK_THROWS_AS(on_threads(4,
                             [](ThreadCommunicator& ranks) {
                               for (int i = 0; i < 20; ++i) ranks.barrier();
                               if (ranks.rank() == 3) ranks.abort("enough");
                               for (int i = 0; i < 20; ++i) ranks.barrier();
                             }),
                  infty::CommunicationError);
}

}  // namespace parallel_threads
