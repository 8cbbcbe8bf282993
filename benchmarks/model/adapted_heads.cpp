// SPDX-License-Identifier: MIT
// Local adaptation of a class head alone, 64 questions: one behind the other, and side by side,
// with all that is read for it. Arguments: width, layers, tokens of a text, neighbours K, steps L,
// and how many examples the neighbours are drawn from, which says how often they are the same.

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include <benchmark/benchmark.h>

#include <infty/lifelong/adapted_heads.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/model/blocks.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/nn/self_attention.hpp>

#include "../support/against.hpp"

using infty::Example, infty::Index, infty::Random;

namespace {

using Model = infty::Predictor<infty::PositionedEmbedding<float>,
                               infty::Layers<infty::Block<infty::SelfAttention<float>>>,
                               infty::ClassHead<float>>;
constexpr Index questions_at_once = 64, words = 100, classes = 12;

struct Case {
  explicit Case(const benchmark::State& run)
      : model({words, run.range(2), run.range(0), Random(1)},
              infty::blocks<infty::SelfAttention<float>>({.vocabulary = words,
                                                          .model_dim = run.range(0),
                                                          .layers = run.range(1),
                                                          .heads = 2,
                                                          .feed_forward = 2 * run.range(0)},
                                                         {}, Random(2)),
              infty::ClassHead<float>(run.range(0), classes, Random(3))),
        config{.neighbours = run.range(3), .steps = run.range(4), .part = "head."} {
    Random random(4);
    const auto text = [&] {
      Example e{.tokens = {}, .labels = {random.below(classes)}};
      for (Index i = 0; i < run.range(2); ++i) e.tokens.push_back(random.below(words));
      return e;
    };
    std::map<Index, Index> number;
    for (Index q = 0; q < questions_at_once; ++q) {
      questions.push_back(text());
      auto& of = neighbours.emplace_back();
      for (Index k = 0; k < config.neighbours; ++k) {
        const auto [at, fresh] =
            number.try_emplace(random.below(run.range(5)), std::ssize(examples));
        if (fresh) examples.push_back(text());
        of.push_back(at->second);
      }
    }
  }

  Model model;
  infty::LocalAdaptationConfig config;
  std::vector<Example> questions, examples;
  std::vector<std::vector<Index>> neighbours;
};

void one_by_one(benchmark::State& run) {
  const Case c(run);
  infty::bench::alone(run, [&] {
    infty::LocalAdaptation local(c.model, c.config);
    for (std::size_t q = 0; q < c.questions.size(); ++q) {
      std::vector<Example> own;
      for (const Index i : c.neighbours[q]) own.push_back(c.examples[static_cast<std::size_t>(i)]);
      benchmark::DoNotOptimize(
          local.adapt(own).answers(std::span(c.questions).subspan(q, 1)).front());
    }
  });
}

void side_by_side(benchmark::State& run) {
  const Case c(run);
  infty::bench::alone(run, [&] {
    const infty::LocalAdaptation local(c.model, c.config);
    const infty::AdaptedHeads<Model> heads(local, c.examples);
    benchmark::DoNotOptimize(heads.answers(heads.adapt(c.neighbours), c.questions));
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  for (const Index drawn_from : {200, 1'000'000})
    b->Args({32, 1, 17, 16, 10, drawn_from})
        ->Args({128, 2, 64, 32, 30, drawn_from})
        ->UseManualTime();
}

BENCHMARK(one_by_one)->Apply(sizes);
BENCHMARK(side_by_side)->Apply(sizes);

}  // namespace
