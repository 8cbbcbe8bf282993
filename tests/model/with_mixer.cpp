// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/model/presets/linear_attention.hpp>
#include <infty/model/with_mixer.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/with_places.hpp>
#include <infty/train/train_step.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace with_mixer_tests {

using infty::CausalAttention;
using infty::Index;
using infty::LinearAttention;
using infty::LinearAttentionConfig;
using infty::MemSizer;
using infty::Random;
using infty::Tensor;
using infty::TransformerLM;

const infty::TransformerConfig sizes{.vocabulary = 8,
                                     .model_dim = 16,
                                     .layers = 2,
                                     .heads = 2,
                                     .feed_forward = 32,
                                     .pre_norm = true};

template <class Model>
std::map<std::string, std::vector<double>> contents(const Model& model) {
  std::map<std::string, std::vector<double>> all;
  infty::for_each_parameter(
      model, [&](const std::string& name, const auto& x) { all[name] = x.value().to_vector(); });
  return all;
}

/// Converts a model and checks that what is named alike, but for what is reported missing, has the
/// same bits in other memory.
template <class Mixer, class Model>
infty::LoadReport converted(const Model& model, typename Mixer::Config config) {
  auto made = infty::with_mixer<Mixer>(model, config, Random(7));
  const auto before = contents(model), after = contents(made.model);
  const TransformerLM<Mixer> drawn(model.config(), config, Random(7));
  auto fresh = contents(drawn);
  std::size_t missing = 0, same = 0;
  for (const auto& [name, numbers] : after) {
    const auto& report = made.report.missing;
    const bool is_missing = std::count(report.begin(), report.end(), name) > 0;
    CAPTURE(name);
    CHECK(numbers == (is_missing ? fresh.at(name) : before.at(name)));
    ++(is_missing ? missing : same);
  }
  CHECK(missing == made.report.missing.size());
  CHECK(same + made.report.unexpected.size() == before.size());
  infty::for_each_parameter(made.model, [](const std::string&, auto& x) { x.value().fill(0); });
  CHECK(contents(model) == before);
  return made.report;
}

/// A sequence shows one of four tokens once, among others, and is asked for it at its end.
template <class Model>
double loss_on(Model& model, infty::Adam<double>* adam, Random& random) {
  constexpr Index batch = 16, length = 6;
  std::vector<Index> tokens, targets;
  for (Index row = 0; row < batch; ++row) {
    const Index shown = random.below(4), at = random.below(length - 1);
    for (Index i = 0; i < length; ++i) {
      tokens.push_back(i == at ? shown : 4 + random.below(4));
      targets.push_back(i == length - 1 ? shown : infty::ignore_index);
    }
  }
  const auto words = Tensor<Index>::from({batch, length}, tokens),
             wanted = Tensor<Index>::from({batch, length}, targets);
  const auto loss = [&] {
    auto state = model.make_state(batch);
    return infty::mean_loss(model.losses(model.forward(state, words), wanted), wanted);
  };
  if (!adam) return loss().value().item();
  return infty::train_step(*adam, {.learning_rate = 2e-2}, loss).loss;
}

template <class Model>
double trained(Model& model, int steps) {
  infty::Adam<double> adam(model);
  Random random(11);
  for (int i = 0; i < steps; ++i) loss_on(model, &adam, random);
  Random held_out(12);
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += loss_on(model, nullptr, held_out) / 4;
  return sum;
}

TEST_CASE("with_mixer: what both have is copied, bit for bit, and what is not is told") {
  using Names = std::vector<std::string>;
  const TransformerLM<CausalAttention<double>> plain(sizes, {}, Random(1));
  const auto to_t2r = converted<LinearAttention<double>>(plain, infty::presets::t2r());
  CHECK(to_t2r.missing == Names{"layers.0.mixer.features.weight", "layers.0.mixer.features.bias",
                                "layers.1.mixer.features.weight", "layers.1.mixer.features.bias"});
  CHECK(to_t2r.unexpected.empty());
  CHECK(converted<LinearAttention<double>>(plain, {.bias = true}).complete());
  const auto to_rfa = converted<LinearAttention<double>>(plain, infty::presets::rfa(true));
  CHECK(to_rfa.missing.size() == 2 * 4);  // projections, deviations, and the gate's two
  // A MemSizer has no keys: its query is something else, whatever its shape.
  const auto to_slots = converted<MemSizer<double>>(plain, {.slots = 8});
  CHECK(to_slots.missing.size() == 2 * 7);
  CHECK(to_slots.unexpected.size() == 2 * 8);
  const TransformerLM<infty::NoMemory<double>> relative(sizes, {}, Random(1));
  const auto to_elu = converted<LinearAttention<double>>(relative, {});
  CHECK(to_elu.missing.empty());
  CHECK(to_elu.unexpected == Names{"layers.0.mixer.content_bias", "layers.0.mixer.position.weight",
                                   "layers.0.mixer.position_bias",
                                   "layers.1.mixer.position.weight"});
  // What a decorator of the mixer's stands around is copied as what stands alone, either way.
  using Placed = infty::PlacedMixer<LinearAttention<double>>;
  const auto placed = infty::with_mixer<Placed>(relative, {});
  CHECK(placed.report.missing.empty());
  CHECK(placed.report.unexpected == to_elu.unexpected);
  CHECK(infty::with_mixer<LinearAttention<double>>(placed.model, {}).report.complete());
  CHECK(contents(placed.model).at("inner.layers.1.mixer.key.weight") ==
        contents(relative).at("layers.1.mixer.key.weight"));
  CHECK_THROWS_WITH(infty::with_mixer<infty::GatedDeltaNet<double>>(plain),
                    "[with_mixer] layers.0.mixer.value.weight is [16, 16], the new mixer's "
                    "[32, 16]");
  CHECK_THROWS_AS(infty::with_mixer<LinearAttention<double>>(plain, {.chunk = -1}),
                  infty::ValueError);
}

TEST_CASE("with_mixer: a trained transformer is trained on as T2R sooner than from nothing") {
  infty::TransformerConfig small = sizes;
  small.model_dim = 8;
  small.layers = 1;
  small.feed_forward = 16;
  LinearAttentionConfig t2r = infty::presets::t2r();
  t2r.feature_dim = 8;
  TransformerLM<CausalAttention<double>> source(small, {}, Random(1));
  const double before = trained(source, 0), learned = trained(source, 60);
  auto swapped = infty::with_mixer<LinearAttention<double>>(source, t2r, Random(2)).model;
  TransformerLM<LinearAttention<double>> fresh(small, t2r, Random(2));
  const double from_source = trained(swapped, 8), from_nothing = trained(fresh, 8);
  CAPTURE(before, learned, from_source, from_nothing);
  CHECK(learned < before / 4);
  CHECK(from_source - learned < .2 * (before - learned));
  CHECK(from_nothing > 4 * from_source);
}

TEMPLATE_TEST_CASE("with_slots: a model of MemSizers with twice the slots answers the same", "",
                   MemSizer<double>, infty::PlacedMixer<MemSizer<double>>) {
  const TransformerLM<TestType> model(sizes, {.slots = 3, .bias = true}, Random(1));
  const auto tokens = Tensor<Index>::from({2, 5}, {1, 2, 3, 4, 5, 6, 7, 0, 1, 2});
  const auto answers = [&](const auto& asked) {
    auto state = asked.make_state(2);
    return asked.forward(state, tokens).value().to_vector();
  };
  const auto twice = infty::with_slots(model, 6), fewer = infty::with_slots(model, 2);
  CHECK(twice.memory_config().slots == 6);
  CHECK(infty::tests::error(answers(twice), answers(model)) < 1e-12);
  CHECK(infty::tests::error(answers(fewer), answers(model)) > 1e-3);
  CHECK(infty::bytes_of(fewer.make_state(1)) < infty::bytes_of(model.make_state(1)));
  CHECK_THROWS_AS(infty::with_slots(model, 0), infty::ValueError);
}

TEST_CASE("with_mixer, with_slots: refuse a model that was moved from") {
  TransformerLM<MemSizer<double>> model(sizes, {.slots = 3});
  const auto taken = std::move(model);
  CHECK_THROWS_WITH(infty::with_slots(model, 6),
                    "[with_slots] the model's parameters are not there: it was moved from");
  CHECK_THROWS_WITH(infty::with_mixer<CausalAttention<double>>(model),
                    "[with_mixer] the model's parameters are not there: it was moved from");
}

}  // namespace with_mixer_tests
