// SPDX-License-Identifier: MIT
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/eigen/default.hpp>
#include <infty/train/trainer.hpp>

#include "../../examples/support/model_need.hpp"
#include "support/catch.hpp"
#include "support/threads.hpp"

using support::Index;

namespace {

infty::TextBatch batch_of(Index rows, Index length) {
  const auto size = static_cast<std::size_t>(rows * length);
  return {.batch = rows,
          .length = length,
          .inputs = std::vector<Index>(size, 1),
          .targets = std::vector<Index>(size, 2),
          .predicted = rows * length,
          .reset = {}};
}

struct Settings {
  Index width = 8, rows = 2;
  std::vector<Index> lengths{4, 5}, more = {};
};

template <class See>
void each_setting(Settings& s, See&& see) {
  see("", "width", s.width);
  see("", "rows", s.rows);
  see("", "lengths", s.lengths);
  see("", "more", s.more);
}

double bytes_of(const Settings& s) {
  double length = 0;
  for (const auto* const lengths : {&s.lengths, &s.more})
    for (const Index n : *lengths) length = std::max(length, static_cast<double>(n));
  return static_cast<double>(s.width) * static_cast<double>(s.width) +
         static_cast<double>(s.rows) * length;
}

/// Trains a model on segments behind full memories, and holds what that took to what was told.
void hold_to_its_need(const support::ModelConfig& config, Index length, Index rows) {
  auto& pool = infty::HostPool::instance();
  pool.trim();
  pool.reset_peak();
  const auto before = static_cast<double>(pool.statistics().bytes_in_use);
  const auto model = support::make_model(config);
  auto state = model->make_state(rows);
  const auto batch = batch_of(rows, length);
  const Index fill = 4 * config.memory_length / length + 1;
  for (Index i = 0; i < fill; ++i) model->observe(state, rows, batch.inputs, length);
  infty::Trainer trainer(model->named_parameters());
  // Each thread of a product packs its own factors.
  infty::tests::with_threads(1, [&] {
    for (int i = 0; i < 2; ++i)
      trainer.step([&] { return model->objective(state, batch, {}).total; });
  });
  const auto used = static_cast<double>(pool.statistics().peak_bytes_in_use) - before;

  const support::ModelNeed need(config);
  const auto parameters = static_cast<double>(model->parameters());
  const auto batch_rows = static_cast<double>(rows);
  const double told = need.model() + need.state(batch_rows) +
                      need.segment(batch_rows, static_cast<double>(length), true);
  CAPTURE(told, used, need.parameters(), parameters);
  CHECK(need.parameters() > .9 * parameters);
  CHECK(need.parameters() <= parameters);
  CHECK(told > .4 * used);
  CHECK(told < 1.5 * used);
}

}  // namespace

TEST_CASE("ModelNeed: what training takes is told before it is taken") {
  struct Sizes {
    Index vocabulary, width, layers, feed_forward, memory, length, rows;
  };
  const auto sizes = GENERATE(Sizes{1000, 32, 2, 64, 32, 16, 4}, Sizes{50, 64, 3, 128, 128, 64, 4},
                              Sizes{50, 16, 2, 32, 800, 16, 4}, Sizes{50, 128, 2, 512, 16, 8, 1});
  const std::string memory = GENERATE(from_range(support::memory_names));
  CAPTURE(memory, sizes.width, sizes.memory, sizes.length);
  support::ModelConfig config;
  config.memory = memory;
  config.memory_length = sizes.memory;
  config.compressed = sizes.memory / 2;
  config.segment = 1;
  config.transformer = {.vocabulary = sizes.vocabulary,
                        .model_dim = sizes.width,
                        .layers = sizes.layers,
                        .heads = 2,
                        .feed_forward = sizes.feed_forward,
                        .pre_norm = true};
  config.long_term.widths = {.02, .1};
  config.long_term.samples = 64;

  hold_to_its_need(config, sizes.length, sizes.rows);
}

TEST_CASE("ModelNeed: of what is composed, too, what training takes is told before it is taken") {
  struct Sizes {
    Index width, memory, sub_keys, length, rows;
  };
  const auto sizes = GENERATE(Sizes{32, 64, 32, 16, 4}, Sizes{64, 32, 16, 64, 2});
  auto words = support::compared_names();
  const auto& older = support::memory_names;
  words.erase(std::remove_if(words.begin(), words.end(),
                             [&](const std::string& word) {
                               return std::find(older.begin(), older.end(), word) != older.end();
                             }),
              words.end());
  const std::string word = GENERATE_COPY(from_range(words));
  CAPTURE(word, sizes.width, sizes.memory, sizes.length);
  support::ModelConfig config;
  support::choose_model(config, word);
  config.memory_length = sizes.memory;
  config.compressed = sizes.memory / 2;
  config.segment = 1;
  config.contraction.block = sizes.memory / 4;
  config.sub_keys = sizes.sub_keys;
  config.transformer = {.vocabulary = 100,
                        .model_dim = sizes.width,
                        .layers = 2,
                        .heads = 2,
                        .feed_forward = 2 * sizes.width,
                        .pre_norm = true};
  config.long_term.widths = {.02, .1};
  config.long_term.samples = 64;
  hold_to_its_need(config, sizes.length, sizes.rows);
}

TEST_CASE("ModelNeed: of single keys and lookups as options have them") {
  support::ModelConfig config;
  config.memory_length = 32;
  config.compressed = 16;
  config.segment = 1;
  config.transformer = {.vocabulary = 100,
                        .model_dim = 32,
                        .layers = 3,
                        .heads = 2,
                        .feed_forward = 64,
                        .pre_norm = true};
  const std::string word = GENERATE("memorizing", "product-keys", "memory-plus", "engram");
  support::choose_model(config, word);
  config.memorizing.k = 8;
  config.memorizing.merge = infty::MemorizingMerge::joint;
  config.memorizing.cache = 48;
  config.memorizing.window = 24;
  config.lookups = {.layers = {0, -1, 2}, .heads = 6, .slots = 5, .norm = false};
  CAPTURE(word);
  hold_to_its_need(config, 16, 4);
}

TEST_CASE("ModelNeed: no size is too large to be told") {
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const std::string& memory : support::memory_names) {
    support::ModelConfig config;
    config.memory = memory;
    config.memory_length = config.compressed = config.segment = config.compression_rate = most;
    config.transformer = {.vocabulary = most,
                          .model_dim = most,
                          .layers = most,
                          .heads = most,
                          .head_dim = most,
                          .feed_forward = most};
    const support::ModelNeed need(config);
    CHECK(need.model() > 1e54);
    CHECK(need.segment(1e18, 1e18, true) > 1e54);
  }
  // What a word's own sizes make of it.
  for (const std::string& word : support::compared_names()) {
    support::ModelConfig config;
    support::choose_model(config, word);
    config.memory_length = config.compressed = config.sub_keys = config.token_count = most;
    config.transformer.model_dim = 64;
    CAPTURE(word);
    const support::ModelNeed need(config);
    if (word == "product-keys" || word == "memory-plus" || word == "engram")
      CHECK(need.model() > 1e38);
    if (word == "memorizing" || support::is_infini(word) || word == "memsizer" ||
        word == "memformer")
      CHECK(need.state(1) > 1e19);
    if (word == "memory" || word == "recurrent" || word == "associative" || word == "titans-front")
      CHECK(need.segment(1, 1, true) > 1e19);
  }
}

TEST_CASE("require_memory: names the option without which least is needed") {
  const auto refused = [](const Settings& s, double limit) {
    try {
      support::require_memory("program", s, bytes_of, limit);
    } catch (const infty::ValueError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  constexpr double gib = support::gibibyte;
  CHECK(refused({}, 74) == "");
  CHECK(refused({}, 73) ==
        "[program] these settings need about 6.89e-08 GiB of memory, and there are 6.8e-08 GiB");
  CHECK(refused({.width = 1 << 18, .rows = 1 << 20}, 2 * gib) ==
        "[program] --width is 262144: with it these settings need about 64 GiB of memory, and "
        "there are 2 GiB");
  CHECK(refused({.rows = Index{1} << 40}, 2 * gib) ==
        "[program] --rows is 1099511627776: with it these settings need about 5.12e+03 GiB of "
        "memory, and there are 2 GiB");
  CHECK(refused({.lengths = {3, Index{1} << 40}}, gib) ==
        "[program] --lengths has 1099511627776: with it these settings need about 2.05e+03 GiB of "
        "memory, and there are 1 GiB");
  CHECK(refused({.more = {3, Index{1} << 40}}, gib) ==
        "[program] --more has 1099511627776: with it these settings need about 2.05e+03 GiB of "
        "memory, and there are 1 GiB");
}

TEST_CASE("memory_limit: what this process may use") {
  CHECK(support::memory_limit() > 1e8);
  CHECK(support::memory_limit() <= std::numeric_limits<double>::infinity());
}
