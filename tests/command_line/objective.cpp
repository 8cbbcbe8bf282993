// SPDX-License-Identifier: MIT
// What the models of the programs are trained by: the gradient through several segments.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/core/pool.hpp>
#include <infty/eigen/default.hpp>

#include "../../examples/support/model.hpp"
#include "support/catch.hpp"
#include "support/threads.hpp"

namespace objective_tests {

using infty::Random;
using infty::TextBatch;
using support::Index;
using V = infty::Variable<float>;

constexpr Index vocabulary = 11, rows = 2, length = 8;

support::ModelConfig config_of(const std::string& word, double dropout = 0) {
  support::ModelConfig config;
  support::choose_model(config, word);
  config.transformer = {.vocabulary = vocabulary,
                        .model_dim = 8,
                        .layers = 2,
                        .heads = 2,
                        .feed_forward = 12,
                        .pre_norm = true,
                        .dropout = dropout};
  config.memory_length = 8;
  config.compressed = 4;
  config.segment = 1;
  config.token_count = 2;
  config.sub_keys = 4;
  config.long_term.widths = {.1, .2};
  config.long_term.samples = 8;
  config.contraction.block = 2;
  return config;
}

/// Segments of a stream that begins anew, the last of fewer targets; a row begins anew before the
/// third.
std::vector<TextBatch> segments_of(Index count, Index each = length) {
  Random random(3);
  std::vector<TextBatch> all;
  for (Index i = 0; i < count; ++i) {
    TextBatch& batch = all.emplace_back();
    batch.batch = rows;
    batch.length = each;
    for (Index j = 0; j < rows * each; ++j) {
      const bool there = i + 1 < count || j % each < each / 2;
      batch.inputs.push_back(static_cast<Index>(random.uniform() * vocabulary));
      batch.targets.push_back(there ? static_cast<Index>(random.uniform() * vocabulary)
                                    : infty::ignore_index);
      batch.predicted += there ? 1 : 0;
    }
    if (i == 0) batch.reset = {0, 1};
    if (i == 2) batch.reset = {1};
  }
  return all;
}

/// The mean loss, what was gone backward from, all gradients, and the losses of a segment behind.
struct Outcome {
  double loss = 0, total = 0;
  std::vector<double> gradient;
  std::vector<float> next;
};

enum class Way { tape, replay, by_hand, apart };

Outcome outcome_of(const std::string& word, const std::vector<TextBatch>& segments, Way way,
                   double dropout = 0) {
  const auto model = support::make_model(config_of(word, dropout));
  Random random(7);
  support::ObjectiveConfig config{
      .kl_weight = .1, .dropout = dropout > 0 ? &random : nullptr, .replay = way == Way::replay};
  auto state = model->make_state(rows);
  Outcome out;
  double targets = 0;
  for (const TextBatch& segment : segments) targets += static_cast<double>(segment.predicted);
  const auto note = [&](const infty::Objective<float>& made, double share) {
    out.loss += share * static_cast<double>(made.loss.value().item());
    out.total += share * static_cast<double>(made.total.value().item());
  };
  const auto share_of = [&](const TextBatch& segment) {
    return static_cast<double>(segment.predicted) / targets;
  };
  if (way == Way::apart) {  // as many tapes as segments
    for (const TextBatch& segment : segments) {
      infty::Tape tape;
      const auto made = model->objective(state, segment, config);
      note(made, share_of(segment));
      tape.backward(scale(made.total, static_cast<float>(share_of(segment))));
    }
  } else {
    infty::Tape tape;
    V total(infty::Tensor<float>::zeros({}));
    if (way == Way::by_hand) {
      for (const TextBatch& segment : segments) {
        const auto made = model->objective(state, segment, config);
        note(made, share_of(segment));
        total = total + scale(made.total, static_cast<float>(share_of(segment)));
      }
    } else {
      const auto made = model->objective(state, segments, config);
      note(made, 1);
      total = made.total;
    }
    tape.backward(total);
  }
  for (const auto& parameter : model->named_parameters())
    for (const float g : parameter.variable.grad().to_vector())
      out.gradient.push_back(static_cast<double>(g));
  TextBatch behind = segments.front();
  out.next = model->losses(state, behind);
  return out;
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double a : x) sum += a * a;
  return std::sqrt(sum);
}

/// |a - b| / |b|.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  std::vector<double> d;
  for (std::size_t i = 0; i < a.size(); ++i) d.push_back(a[i] - b[i]);
  return norm(d) / norm(b);
}

TEST_CASE("Model::objective: the gradient of the mean over segments, on one tape or replayed") {
  const std::string word = GENERATE(from_range(support::compared_names()));
  CAPTURE(word);
  const auto segments = segments_of(6);
  const auto taped = outcome_of(word, segments, Way::tape, .1);
  const auto by_hand = outcome_of(word, segments, Way::by_hand, .1);
  CHECK(taped.loss == Approx(by_hand.loss));
  CHECK(taped.total == Approx(by_hand.total));
  CHECK(difference(taped.gradient, by_hand.gradient) < 1e-5);
  if (word == "product-keys") return;  // its norm takes in every batch it sees: not to be replayed
  const auto replayed = outcome_of(word, segments, Way::replay, .1);
  CHECK(replayed.loss == Approx(taped.loss));
  CHECK(replayed.total == Approx(taped.total));
  CHECK(difference(replayed.gradient, taped.gradient) < 1e-4);
  for (std::size_t i = 0; i < taped.next.size(); ++i)
    CHECK(replayed.next[i] == Approx(taped.next[i]).epsilon(1e-3));
}

TEST_CASE("Models: the values of product keys are known by their name, and nothing else is") {
  const std::string word = GENERATE(from_range(support::compared_names()));
  CAPTURE(word);
  const auto model = support::make_model(config_of(word));
  const auto all = model->named_parameters();
  const auto named = std::count_if(all.begin(), all.end(), [](const auto& parameter) {
    return parameter.name.find(support::product_key_values) != std::string::npos;
  });
  CHECK(named == (support::has_product_keys(word) ? 1 : 0));
}

TEST_CASE("make_model: single keys and lookups are made as the options say") {
  const auto parameters = [](const support::ModelConfig& config) {
    return support::make_model(config)->parameters();
  };
  const auto mean = [](const support::ModelConfig& config) {
    const auto model = support::make_model(config);
    auto state = model->make_state(rows);
    return model->objective(state, segments_of(3), {}).total.value().item();
  };
  const auto bytes = [](const support::ModelConfig& config) {
    const auto model = support::make_model(config);
    auto state = model->make_state(rows);
    const std::vector<Index> tokens(rows * 16, 1);
    model->observe(state, rows, tokens, length);
    return model->bytes_of(state);
  };
  const auto single = config_of("memorizing");
  auto changed = single;
  changed.memorizing.k = 8;  // which is all that there is, and so what 0 stands for
  CHECK(mean(changed) == mean(single));
  changed.memorizing.k = 1;
  CHECK(mean(changed) != mean(single));
  changed = single;
  changed.memorizing.merge = infty::MemorizingMerge::joint;
  CHECK(parameters(changed) < parameters(single));  // no gates
  changed = single;
  changed.memorizing.key_heads = 1;
  CHECK(parameters(changed) == parameters(single) - 2 * 2 * 8 * 4);  // two layers, keys and values
  changed = single;
  changed.memorizing.cache = 4;
  CHECK(bytes(changed) > bytes(single));
  changed = single;
  changed.memorizing.window = 2;
  CHECK(mean(changed) != mean(single));

  constexpr Index table = 4 * 4 * 8;
  const auto both = [&](const std::string& word) {
    auto config = config_of(word);
    const Index one = parameters(config);
    config.lookups.layers = {0, 1};
    return parameters(config) - one;
  };
  const Index feed = 2 * 8 * 12 + 12 + 8, keys = 4 * 2 * 4 * 2;  // of a layer, and of four heads
  const Index query = 8 * 16 + 16, norm = 4 * 16;                // with its statistics
  CHECK(both("product-keys") == table + keys + query + norm - feed);
  CHECK(both("memory-plus") == keys + query + 2 * (8 * 8 + 8) - feed);  // of one table
  auto lookup = config_of("product-keys");
  const Index before = parameters(lookup);
  lookup.lookups.norm = false;
  CHECK(parameters(lookup) == before - norm);
  lookup.lookups.heads = 1;
  CHECK(parameters(lookup) == before - norm - 3 * (keys + query) / 4);
  const double four = mean(lookup);  // 0: all four sub-keys
  lookup.lookups.slots = 1;
  CHECK(mean(lookup) != four);
}

TEST_CASE("Model::objective: which memories a gradient flows through") {
  const std::vector<std::string> through{
      "infini",       "infini-linear", "titans",      "memformer",       "linear",
      "rfa",          "t2r",           "delta-net",   "gated-delta-net", "memsizer",
      "titans-layer", "recurrent",     "associative", "titans-front"};
  const std::string word = GENERATE(from_range(support::compared_names()));
  CAPTURE(word);
  const auto segments = segments_of(6);
  const double change = difference(outcome_of(word, segments, Way::tape).gradient,
                                   outcome_of(word, segments, Way::apart).gradient);
  if (std::find(through.begin(), through.end(), word) != through.end())
    CHECK(change > 1e-4);
  else
    CHECK(change < 1e-5);
}

TEST_CASE("Model::objective: of two segments, against differences") {
  // Nothing but the tokens goes from segment to segment.
  auto config = config_of("recurrent");
  config.memory = "none";
  const auto segments = segments_of(2);
  const auto model = support::make_model(config);
  auto parameters = model->named_parameters();
  const auto loss = [&] {
    auto state = model->make_state(rows);
    return static_cast<double>(model->objective(state, segments, {}).total.value().item());
  };
  const auto gradient = [&](bool through) {
    for (auto& p : parameters) p.variable.zero_grad();
    auto state = model->make_state(rows);
    if (through) {
      infty::Tape tape;
      tape.backward(model->objective(state, segments, {}).total);
    } else {
      for (const TextBatch& segment : segments) {
        infty::Tape tape;
        const auto share = static_cast<float>(segment.predicted) /
                           static_cast<float>(segments[0].predicted + segments[1].predicted);
        tape.backward(scale(model->objective(state, segment, {}).total, share));
      }
    }
    std::vector<double> all;
    for (const auto& p : parameters)
      for (const float g : p.variable.grad().to_vector()) all.push_back(static_cast<double>(g));
    return all;
  };
  // Along what flows from the second segment into the first, and would else be missed.
  const auto whole = gradient(true), without = gradient(false);
  std::vector<double> along;
  for (std::size_t i = 0; i < whole.size(); ++i) along.push_back(whole[i] - without[i]);
  const double missed = norm(along);
  double slope = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) slope += whole[i] * along[i] / missed;
  const auto move = [&](double by) {
    std::size_t at = 0;
    for (auto& p : parameters) {
      auto x = p.variable.value().to_vector();
      for (float& number : x) number += static_cast<float>(by / missed * along[at++]);
      p.variable.value().copy_from(infty::Tensor<float>::from(p.variable.shape(), x));
    }
  };
  const double step = .001;  // small: there are kinks
  move(step);
  const double above = loss();
  move(-2 * step);
  const double below = loss();
  CAPTURE(slope, missed);
  CHECK(std::abs((above - below) / (2 * step) - slope) < .3 * missed);
}

TEST_CASE("Model::objective: replayed, it takes the memory of one segment") {
  infty::tests::with_threads(1, [] {
    const auto peak = [](Index count, bool replay) {
      const auto model = support::make_model(config_of("recurrent"));
      const auto segments = segments_of(count, 64);
      for (const auto& parameter : model->named_parameters()) parameter.variable.grad();
      auto& pool = infty::HostPool::instance();
      auto state = model->make_state(rows);
      pool.reset_peak();
      const std::size_t before = pool.statistics().bytes_in_use;
      infty::Tape tape;
      tape.backward(model->objective(state, segments, {.replay = replay}).total);
      return static_cast<double>(pool.statistics().peak_bytes_in_use - before);
    };
    peak(2, true);  // what is made once, is made here
    const double one = peak(1, false);
    CHECK(peak(8, false) > 4 * one);
    CHECK(peak(8, true) < 2 * one);
  });
}

}  // namespace objective_tests
