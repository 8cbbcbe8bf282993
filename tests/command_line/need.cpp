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
  std::vector<Index> lengths{4, 5};
};

template <class See>
void each_setting(Settings& s, See&& see) {
  see("", "width", s.width);
  see("", "rows", s.rows);
  see("", "lengths", s.lengths);
}

double bytes_of(const Settings& s) {
  double length = 0;
  for (const Index n : s.lengths) length = std::max(length, static_cast<double>(n));
  return static_cast<double>(s.width) * static_cast<double>(s.width) +
         static_cast<double>(s.rows) * length;
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

  auto& pool = infty::HostPool::instance();
  pool.trim();
  pool.reset_peak();
  const auto before = static_cast<double>(pool.statistics().bytes_in_use);
  const auto model = support::make_model(config);
  auto state = model->make_state(sizes.rows);
  const auto batch = batch_of(sizes.rows, sizes.length);
  const Index fill = 4 * sizes.memory / sizes.length + 1;
  for (Index i = 0; i < fill; ++i) model->observe(state, sizes.rows, batch.inputs, sizes.length);
  infty::Trainer trainer(model->named_parameters());
  for (int i = 0; i < 2; ++i)
    trainer.step([&] { return model->objective(state, batch, {}).total; });
  const auto used = static_cast<double>(pool.statistics().peak_bytes_in_use) - before;

  const support::ModelNeed need(config);
  const auto parameters = static_cast<double>(model->parameters());
  CHECK(need.parameters() > .9 * parameters);
  CHECK(need.parameters() <= parameters);
  const auto rows = static_cast<double>(sizes.rows), length = static_cast<double>(sizes.length);
  const double told = need.model() + need.state(rows) + need.segment(rows, length, true);
  CHECK(told > .4 * used);
  CHECK(told < 1.5 * used);
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
}

TEST_CASE("memory_limit: what this process may use") {
  CHECK(support::memory_limit() > 1e8);
  CHECK(support::memory_limit() <= std::numeric_limits<double>::infinity());
}
