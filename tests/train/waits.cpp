// SPDX-License-Identifier: MIT
// A device that works through a queue stands still while the host waits for it, and the other way
// round: what a step of training waits for is counted here.
#include <vector>

#include <infty/eigen/backend.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/trainer.hpp>

#include "support/catch.hpp"

using infty::Index;

namespace {

/// Counts the calls that would wait. It puts off checks, which it takes to be passed.
struct Queue : infty::EigenBackend {
  static inline Index waits = 0;

  template <class T>
  static void to_host(T* to, const T* from, Index n) {
    ++waits;
    EigenBackend::to_host(to, from, n);
  }
  template <class T, class Fold, class F>
  static T reduce(Index n, T init, Fold fold, F f) {
    ++waits;
    return EigenBackend::reduce(n, init, fold, f);
  }
  template <class T>
  static bool cholesky_solve(Index n, Index m, T* a, T* b) {
    ++waits;
    return EigenBackend::cholesky_solve(n, m, a, b);
  }
  template <class Bad, class Report>
  static void verify(Index, Bad, Report) {}
};

}  // namespace

TEST_CASE("train_step: waits once, whatever the memory") {
  for (const auto resampling :
       {infty::Resampling::even, infty::Resampling::sticky, infty::Resampling::sticky_quantiles}) {
    const infty::TransformerLM<infty::InftyMemory<float, Queue>> model(
        {.vocabulary = 5,
         .model_dim = 8,
         .layers = 2,
         .heads = 2,
         .feed_forward = 8,
         .dropout = 0.1},
        {.attention = {.capacity = 4},
         .memory = infty::LongTermConfig{
             .basis = 8, .widths = {.1, .2}, .samples = 12, .resampling = resampling, .bins = 16}});
    auto trained = model;
    infty::Adam<float, Queue> adam(trained);
    infty::Random random(infty::tests::seed);
    auto state = trained.make_state(3);
    const auto tokens = infty::Tensor<Index, Queue>::from(
        {3, 4}, std::vector<Index>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1});
    // Sizes come up for the first time in the first steps, and their ridge matrices with them.
    for (int step = 0; step < 6; ++step) {
      Queue::waits = 0;
      infty::train_step(adam, {.max_norm = 0.1}, [&] {
        infty::Pass<float, Queue> pass{.random = &random};
        const auto hidden = trained.forward(state, tokens, pass);
        return infty::cross_entropy(trained.logits(hidden), tokens) +
               infty::scale(loss_named(pass, "divergence"), 1e-5F);
      });
    }
    CHECK(Queue::waits == 1);
  }
}
