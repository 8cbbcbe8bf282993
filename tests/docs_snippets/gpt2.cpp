// SPDX-License-Identifier: MIT
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <infty/infty.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace gpt2_page {

using infty::Index, infty::Shape, infty::Tensor, infty::Variable;

const std::filesystem::path folder_of_gpt2 =
    std::filesystem::path(INFTY_TEST_DATA) / "golden/gpt2/gpt2_tied.saved";

}  // namespace gpt2_page

using namespace gpt2_page;

TEST_CASE("docs, GPT-2: a text goes on") {
  const auto folder = folder_of_gpt2;
  const std::vector<Index> prompt{1, 2, 3};
  // clang-format off
  const auto model = infty::load_gpt2<infty::CachedAttention<float>>(folder);
  auto state = model.make_state(1);
  auto next = Tensor<Index>::from(Shape{1, std::ssize(prompt)}, prompt);
  std::vector<Index> text = prompt;
  for (int i = 0; i < 20; ++i) {
    const auto hidden = model.forward(state, next);                  // [1, L, d]
    const auto last = narrow(hidden, next.dim(1) - 1, next.dim(1));  // [1, 1, d]
    const auto scores = model.logits(last).value().to_vector();
    text.push_back(std::max_element(scores.begin(), scores.end()) - scores.begin());
    next = Tensor<Index>::from(Shape{1, 1}, {text.back()});
  }
  // clang-format on
  CHECK(text.size() == 23);
  CHECK(state.body.places.front() <= model.config().places);
}

TEST_CASE("docs, GPT-2: a memory beside every attention, and back to files") {
  const auto folder = folder_of_gpt2;
  const infty::tests::TemporaryFolder temporary;
  const auto out = temporary.path();
  const auto segment = Tensor<Index>::from(Shape{1, 4}, {1, 2, 3, 4});
  const auto targets = Tensor<Index>::from(Shape{1, 4}, {2, 3, 4, 5});
  // clang-format off
  using Mixer = infty::WithMemory<infty::CausalAttention<float>, infty::LongTermMemory<float>>;
  auto experiment = infty::presets::gpt2_wikitext();
  auto model = infty::load_gpt2<Mixer>(folder, experiment.memory);
  infty::Adam<float> adam(model, experiment.adam);
  adam.fix_rate(".mixer.memory.", experiment.memory_learning_rate);
  auto state = model.make_state(1);
  {
    infty::Tape tape;
    infty::Pass<float> pass;
    const auto hidden = model.forward(state, segment, pass);
    const double weight = infty::weight_of_sum(experiment.kl_weight, 1, model.config().heads, 4);
    tape.backward(objective(model, hidden, targets, pass, {{"divergence", weight}}).total);
    adam.step();
  }
  infty::save_gpt2(out, model);
  // clang-format on
  CHECK(std::filesystem::exists(out / "config.json"));
  // clang-format off
  using Cached = infty::WithMemory<infty::CachedAttention<float>, infty::LongTermMemory<float>>;
  const auto writer = infty::load_gpt2<Cached>(
      out, {.attention = {.capacity = 512}, .memory = experiment.memory.memory, .normed = false});
  auto written = writer.make_state(1);
  writer.forward(written, segment);  // then one token a call
  // clang-format on
  CHECK(std::filesystem::exists(out / "memory.safetensors"));
  CHECK(infty::load_gpt2<infty::CausalAttention<float>>(out).config().layers == 2);
}

TEST_CASE("docs, GPT-2: the memory is trained alone") {
  auto experiment = infty::presets::gpt2_wikitext();
  using Mixer = infty::WithMemory<infty::CausalAttention<float>, infty::LongTermMemory<float>>;
  auto model = infty::load_gpt2<Mixer>(folder_of_gpt2, experiment.memory);
  // clang-format off
  infty::set_requires_grad(model, false);
  infty::set_requires_grad(model, true, ".mixer.memory.");
  infty::Adam<float> adam(model, experiment.adam);
  // clang-format on
  CHECK_FALSE(model.embedding.weight.requires_grad());
}

TEST_CASE("docs, GPT-2: weights in bfloat16") {
  const auto folder = folder_of_gpt2;
  // clang-format off
  auto writer = infty::load_gpt2<infty::CachedAttention<float>>(folder);
  infty::store_in_bfloat16(writer);
  infty::HostPool::instance().trim();  // what they took in full goes back to the system
  // clang-format on
  CHECK(writer.embedding.weight.stored_in_bfloat16());
  auto state = writer.make_state(1);
  writer.forward(state, Tensor<Index>::from(Shape{1, 4}, {1, 2, 3, 4}));
}

TEST_CASE("docs, GPT-2: with a compressed memory") {
  const auto folder = folder_of_gpt2;
  const auto segment = Tensor<Index>::from(Shape{1, 4}, {1, 2, 3, 4});
  const auto targets = Tensor<Index>::from(Shape{1, 4}, {2, 3, 4, 5});
  // clang-format off
  using Compressive = infty::CompressiveCausalAttention<float>;
  const auto baseline = infty::presets::gpt2_wikitext_compressive();
  auto model = infty::load_gpt2<Compressive>(folder, baseline.memory);
  infty::Adam<float> adam(model, baseline.adam);
  adam.fix_rate(".mixer.memory.", baseline.memory_learning_rate);
  auto state = model.make_state(1);
  infty::train_step(adam, {.learning_rate = baseline.learning_rate, .max_norm = 1}, [&] {
    infty::Pass<float> pass;
    const auto hidden = model.forward(state, segment, pass);
    return objective(model, hidden, targets, pass, {{"compression", 1.}}).total;
  });
  // clang-format on
  CHECK(adam.steps() == 1);
}
