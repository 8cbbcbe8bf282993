// SPDX-License-Identifier: MIT
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
using infty::Random;

namespace parallel_snippets {

std::vector<float> trained_on(int count) {
  std::vector<float> weights;
  infty::on_threads(count, [&](infty::ThreadCommunicator& ranks) {
    Random random(1);
    const auto x = infty::tests::uniform_tensor<float>({32, 8}, random);
    infty::Linear<float> model(8, 1, Random(2));
    infty::Trainer<float> trainer(model, {.steps = 5, .max_norm = 1});

    const infty::Shards shards(ranks, 8);
    const auto loss_of = [&](Index shard) {
      const auto [first, last] = shards.rows_of(shard, 32);
      const auto y = model.forward(infty::Variable<float>(x.slice(first, last)));
      return infty::scale(infty::sum(y * y), 1.f / 32);
    };
    trainer.run(shards, loss_of);
    if (ranks.rank() == 0) weights = model.weight.value().to_vector();
  });
  return weights;
}

TEST_CASE("docs/parallel.md: a loop of one's own gets the same bits on any number of ranks") {
  const auto one = trained_on(1);
  CHECK(one.size() == 8);
  for (const int count : {2, 3, 4}) CHECK(trained_on(count) == one);
}

}  // namespace parallel_snippets
