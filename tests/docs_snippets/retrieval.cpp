// SPDX-License-Identifier: MIT
#include <vector>

#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/knn_lm.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

using infty::Index, infty::Random, infty::Tensor;

TEST_CASE("docs: vectors of one's own in a datastore") {
  const infty::tests::TemporaryFolder temporary;
  const auto folder = temporary / "store";
  const auto vectors = Tensor<float>::from({3, 2}, {0, 0, 1, 0, 0, 2});
  const auto queries = Tensor<float>::from({1, 2}, {0, 1.5F});

  infty::Datastore<float> store(2);  // in memory; in a folder Datastore<float>::build(folder, 2)
  store.append(vectors, {7, 8, 9});  // [3, 2], and a number, 0 or above, behind each
  infty::ExactIndex<float> index(store);        // update() takes in what is appended later
  const auto found = index.search(queries, 2);  // [1, 2]: two entries, the nearest first
  const auto numbers = store.tokens(found.indices);
  CHECK(numbers.to_vector() == std::vector<Index>{9, 7});
  CHECK(found.scores.to_vector()[0] == Approx(-.25));

  auto kept = infty::Datastore<float>::build(folder, 2);
  kept.append(vectors, {7, 8, 9});
  kept.flush();
  CHECK(infty::Datastore<float>::open(folder).size() == 3);
}

TEST_CASE("docs: a model that looks up what it has read") {
  const infty::TransformerLM<infty::ShortTermMemory<float>> model(
      {.vocabulary = 4, .model_dim = 8, .layers = 2, .heads = 2, .feed_forward = 16},
      {.capacity = 4}, Random(1));
  const auto tokens = Tensor<Index>::from({1, 6}, {1, 2, 3, 1, 2, 3});
  const auto targets = Tensor<Index>::from({1, 6}, {2, 3, 1, 2, 3, 1});

  auto state = model.make_state(1);
  infty::Datastore<float> store(8);
  infty::Pass<float> reading{.keep = infty::FeedInput::normed};
  model.forward(state, tokens, reading);
  store.append(reading.feed_input.reshape({6, 8}), targets.to_vector());

  const infty::ExactIndex<float> index(store);
  const infty::KnnConfig knn{.k = 2, .lambda = .75};
  auto again = model.make_state(1);
  infty::Pass<float> asking{.keep = infty::FeedInput::normed};
  const auto hidden = model.forward(again, tokens, asking);
  const auto found = look_up(store, index, asking.feed_input.reshape({6, 8}), knn);
  const infty::Variable<float> own(log_probabilities(model.logits(hidden).value()));
  const auto mixed = interpolated(reshape(own, {6, 4}), found, knn.lambda);  // [6, 4], logarithms

  CHECK(infty::argmax(mixed.value()).to_vector() == targets.to_vector());
}
