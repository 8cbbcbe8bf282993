// SPDX-License-Identifier: MIT
#include <utility>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "support/states.hpp"
#include "threads/at_once.hpp"

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::same_at_once;
using Model = infty::TransformerLM<infty::InftyMemory<float>>;

namespace {

Model make_model(std::uint64_t seed) {
  return Model({.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = 6},
               {.attention = {.capacity = 4, .stride = 2},
                .memory = infty::LongTermConfig{.basis = 4,
                                                .widths = {.1, .2},
                                                .samples = 6,
                                                .resampling = infty::Resampling::sticky,
                                                .bins = 8}},
               Random(seed));
}

Tensor<Index> tokens(Index length, Random& random) {
  Tensor<Index> out(Shape{2, length});
  for (Index i = 0; i < out.size(); ++i) out.data()[i] = random.below(5);
  return out;
}

/// Whether one model with memory M reads in threads at once as it reads in one: states of their
/// own, fresh ones and branches of one that has been read before.
/// @param bfloat16  whether its matrices are stored so
template <class Mixer>
bool is_read_at_once(const typename Mixer::Config& config, bool bfloat16 = false) {
  infty::TransformerLM<Mixer> model(
      {.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = 6}, config,
      Random(1));
  Random random(2);
  auto trunk = model.make_state(2);
  for (int n = 0; n < 4; ++n) model.forward(trunk, tokens(3, random));
  const auto written = trunk;
  if (bfloat16) infty::store_in_bfloat16(model);
  return same_at_once([&, &model = std::as_const(model)](int i) {
    const auto guard = infty::no_grad();
    Random own(static_cast<std::uint64_t>(i / 2));
    std::vector<float> all;
    auto state = i % 2 ? model.make_state(2, i) : written;
    for (Index n = 0; n < 4; ++n) {
      const auto input = tokens(1 + (n + i) % 3, own);
      const auto hidden = model.forward(state, input);
      for (const float x : model.losses(hidden, input).value().to_vector()) all.push_back(x);
      auto branch = state;
      model.observe(branch, tokens(5, own), 2);
      for (const double x : infty::tests::numbers_of(branch)) all.push_back(static_cast<float>(x));
    }
    return all;
  });
}

infty::LongTermConfig long_term(infty::Resampling resampling) {
  return {.basis = 4, .widths = {.1, .2}, .samples = 6, .resampling = resampling, .bins = 8};
}

using LaMemoAndLongTerm = infty::WithMemory<infty::LaMemo<float>, infty::LongTermMemory<float>>;

}  // namespace

TEST_CASE("threads: one model of each kind of memory is read for states of their own") {
  using infty::Resampling;
  const infty::ShortTermConfig recent{.capacity = 4, .stride = 2};
  CHECK(is_read_at_once<infty::NoMemory<float>>({}));
  CHECK(is_read_at_once<infty::ShortTermMemory<float>>({.capacity = 5}));
  CHECK(is_read_at_once<infty::CompressiveMemory<float>>(
      {.capacity = 4, .compressed_capacity = 3, .rate = 2}));
  CHECK(is_read_at_once<infty::LaMemo<float>>({.capacity = 5}));
  CHECK(is_read_at_once<infty::InftyMemory<float>>(
      {.attention = recent, .memory = long_term(Resampling::even)}));
  CHECK(is_read_at_once<infty::InftyMemory<float>>(
      {.attention = recent, .memory = long_term(Resampling::sticky)}));
  CHECK(is_read_at_once<LaMemoAndLongTerm>(
      {.attention = {.capacity = 5}, .memory = long_term(Resampling::sticky)}));
}

TEST_CASE(
    "threads: one model whose matrices are stored in bfloat16 is read for states of their own") {
  CHECK(is_read_at_once<infty::InftyMemory<float>>(
      {.attention = {.capacity = 4, .stride = 2}, .memory = long_term(infty::Resampling::sticky)},
      true));
}

TEST_CASE("threads: who first asks for what is stored in bfloat16 makes it for all") {
  for (int round = 0; round < 10; ++round) {
    infty::Variable<float> x(Tensor<float>::full(Shape{40, 40}, .1F));
    x.store_in_bfloat16();
    std::vector<float> found(infty::tests::crowd);
    infty::tests::at_once(infty::tests::crowd, [&, shared = x](int i) {
      const auto y = infty::linear(shared, shared);
      found[static_cast<std::size_t>(i)] =
          std::as_const(shared).value().data()[1599] + y.value().data()[0];
    });
    CHECK(found == std::vector<float>(infty::tests::crowd, found.front()));
  }
}

TEST_CASE("threads: one model answers and observes for states of their own") {
  // Of segments that grow, and with them the model's table of distances.
  const Model model = make_model(1);
  CHECK(same_at_once([&](int i) {
    Random random(static_cast<std::uint64_t>(i));
    auto state = model.make_state(2, i);
    std::vector<float> all;
    for (Index n = 0; n < 6; ++n) {
      const auto hidden = model.forward(state, tokens(1 + n + i % 2, random));
      for (const float x : model.logits(hidden).value().to_vector()) all.push_back(x);
      model.observe(state, tokens(4, random), 3);
    }
    return all;
  }));
}

TEST_CASE("threads: models of their own, and clones of one, are trained") {
  const Model shared = make_model(1);
  CHECK(same_at_once([&](int i) {
    Model model = i % 2 ? infty::clone(shared) : make_model(static_cast<std::uint64_t>(i));
    infty::Adam<float> adam(model);
    Random random(7);
    auto state = model.make_state(2);
    std::vector<double> losses;
    for (int n = 0; n < 3; ++n) {
      const auto input = tokens(3, random), target = tokens(3, random);
      const auto loss = [&] {
        return infty::cross_entropy(model.logits(model.forward(state, input)), target);
      };
      losses.push_back(infty::train_step(adam, {}, loss).loss);
    }
    return losses;
  }));
}
