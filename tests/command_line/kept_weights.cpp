// SPDX-License-Identifier: MIT
#include "../../examples/support/kept_weights.hpp"

#include <string>
#include <vector>

#include <infty/eigen/products.hpp>
#include <infty/io/settings.hpp>

#include "../../examples/support/model.hpp"
#include "support/catch.hpp"

namespace kept_weights_tests {

using support::Index;

support::ModelConfig config_of(const std::string& word) {
  support::ModelConfig config;
  support::choose_model(config, word);
  config.memory_length = 16;
  config.compressed = config.contraction.block = 8;
  config.segment = 8;
  config.sub_keys = 8;
  config.transformer = {.vocabulary = 40,
                        .model_dim = 16,
                        .layers = 2,
                        .heads = 2,
                        .feed_forward = 24,
                        .pre_norm = true};
  config.long_term.widths = {.05, .2};
  config.long_term.samples = 16;
  return config;
}

infty::TextBatch segment(Index number) {
  infty::TextBatch batch{
      .batch = 2, .length = 8, .inputs = {}, .targets = {}, .predicted = 16, .reset = {}};
  for (Index i = 0; i < 16; ++i) {
    batch.inputs.push_back((7 * i + 5 * number + i * i) % 40);
    batch.targets.push_back((11 * i + 3 * number) % 40);
  }
  return batch;
}

}  // namespace kept_weights_tests

TEST_CASE("keep_weights: every model reads as one whose matrices are rounded, to the bit") {
  using namespace kept_weights_tests;
  const std::string word = GENERATE(from_range(support::compared_names()));
  const auto how = GENERATE(infty::Products::full, infty::Products::bfloat16);
  CAPTURE(word, infty::name_of(how));
  const infty::ProductsScope scope(how);
  const auto kept = support::make_model(config_of(word)),
             rounded = support::make_model(config_of(word));
  support::keep_weights(kept->named_parameters(), "bfloat16");
  for (auto& each : rounded->named_parameters())
    if (auto& value = each.variable.value(); value.rank() == 2)
      value.copy_from(value.cast<infty::BFloat16>().cast<float>());
  auto state = kept->make_state(2), wanted = rounded->make_state(2);
  for (Index number = 0; number < 4; ++number)
    CHECK(kept->losses(state, segment(number)) == rounded->losses(wanted, segment(number)));
  const std::vector<Index> next{3, 9};
  CHECK(kept->logits(state, 2, next) == rounded->logits(wanted, 2, next));
  for (const auto& each : kept->named_parameters()) {
    CAPTURE(each.name);
    CHECK((each.variable.stored_in_bfloat16() != nullptr) == (each.variable.shape().rank() == 2));
  }
}
