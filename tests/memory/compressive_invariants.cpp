// SPDX-License-Identifier: MIT
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/to.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Compression;
using infty::CompressiveMemory;
using infty::Index;

TEST_CASE("CompressiveMemory: keeps to what every memory keeps to") {
  // The others go the ways of the convolution.
  const auto compression = GENERATE(Compression::convolution, Compression::most_used);
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<CompressiveMemory<double>>(
      {.capacity = 4, .compressed_capacity = 3, .rate = 2, .compression = compression},
      folder / "state.safetensors");
}

namespace {

using CompressiveInfty =
    infty::WithMemory<CompressiveMemory<double>, infty::LongTermMemory<double>>;

}  // namespace

TEST_CASE("CompressiveMemory: a long-term memory takes in what leaves it") {
  const CompressiveInfty::Config config{
      .attention = {.capacity = 2, .compressed_capacity = 2, .rate = 2},
      .memory = infty::LongTermConfig{.basis = 8, .widths = {.05, .2}, .samples = 6}};
  const CompressiveInfty memory(config, {.model_dim = 4, .heads = 2, .head_dim = 3},
                                infty::Random(3));
  CHECK(memory.attention.stride() == 2);
  const infty::testing::TokenMemory<CompressiveInfty> model(config, true);
  CHECK(infty::testing::batch_equals_rows(model, infty::testing::some_stream()) < 1e-11);
  CHECK(infty::testing::reset_equals_fresh(model, infty::testing::some_stream()) < 1e-11);
  CHECK(infty::testing::observe_equals_forward(model) < 1e-11);
  auto state = model.make_state(1);
  const auto tokens = infty::Tensor<Index>::full({1, 30}, Index{3});
  model.write(state, tokens);
  model.write(state, tokens);
  // 30 vectors: 2 stay, 28 become 14, of which 12 leave in groups of 2.
  for (const auto& layer : state.body.layers)
    CHECK(layer.mixer.past->memory.written == infty::RowCounts{12});
}

TEST_CASE("CompressiveMemory: a copy of model and state on a backend goes on as they do") {
  using Model = infty::TransformerLM<CompressiveMemory<double>>;
  const Model model({.vocabulary = 9,
                     .model_dim = 4,
                     .layers = 1,
                     .heads = 2,
                     .feed_forward = 4,
                     .cutoffs = {3, 6},
                     .div_value = 2},
                    {.capacity = 3, .compressed_capacity = 2, .rate = 2}, infty::Random(3));
  auto state = model.make_state(2);
  const auto tokens = infty::Tensor<Index>::from({2, 5}, {0, 3, 8, 2, 5, 7, 7, 1, 4, 6});
  model.observe(state, tokens);
  reset_row(state, 1);
  model.observe(state, tokens);
  const auto copy = infty::to<infty::EigenBackend>(model);
  auto copied = infty::to<infty::EigenBackend>(state);
  const auto a = model.forward(state, tokens), b = copy.forward(copied, tokens);
  CHECK(copy.losses(b, tokens).value().to_vector() == model.losses(a, tokens).value().to_vector());
}
