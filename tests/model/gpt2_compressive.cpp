// SPDX-License-Identifier: MIT
#include <filesystem>
#include <string>
#include <vector>

#include <infty/model/gpt2_files.hpp>
#include <infty/model/objective.hpp>
#include <infty/model/presets/gpt2.hpp>
#include <infty/train/train_step.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

namespace gpt2_compressive {

using infty::Gpt2;
using infty::Index;
using infty::Shape;
using infty::tests::error;
using Mixer = infty::CompressiveCausalAttention<double>;
using Tokens = infty::Tensor<Index>;

const std::filesystem::path folder_of_gpt2 =
    std::filesystem::path(INFTY_TEST_DATA) / "golden/gpt2/gpt2_tied.saved";
const Mixer::Config config{.compressed_capacity = 6, .rate = 3};

Tokens tokens(Index begin) {
  std::vector<Index> ids;
  for (Index i = begin; i < begin + 16; ++i) ids.push_back((3 * i + i * i) % 23);
  return Tokens::from(Shape{2, 8}, ids);
}

template <class Model, class State>
std::vector<double> read(const Model& model, State& state, Index begin) {
  return model.logits(model.forward(state, tokens(begin))).value().to_vector();
}

TEST_CASE("Gpt2 with a compressed memory: begins as the GPT-2 of the folder, and is saved") {
  const auto plain = infty::load_gpt2<infty::CausalAttention<double>>(folder_of_gpt2);
  auto model = infty::load_gpt2<Mixer>(folder_of_gpt2, config, infty::Random(3));
  auto of_plain = plain.make_state(2);
  auto state = model.make_state(2);
  CHECK(error(read(model, state, 0), read(plain, of_plain, 0)) < 1e-13);
  // A step, in which all that is new learns, and of GPT-2 what gets a gradient.
  infty::Adam<double> adam(model, {.learning_rate = .01});
  CHECK(adam.fix_rate(".mixer.memory.", .02) == 2 * 3);  // slopes, and the compression's map
  std::vector<std::vector<double>> before;
  for (const auto& [name, p] : adam.parameters()) before.push_back(p.value().to_vector());
  infty::train_step(adam, {.learning_rate = .01, .max_norm = 1}, [&] {
    infty::Pass<double> pass;
    const auto hidden = model.forward(state, tokens(8), pass);
    return infty::objective(model, hidden, tokens(9), pass, {{"compression", 1.}}).total;
  });
  for (std::size_t i = 0; i < before.size(); ++i) {
    CAPTURE(adam.parameters()[i].name);
    CHECK(adam.parameters()[i].variable.value().to_vector() != before[i]);
  }
  const auto second = read(model, state, 16);
  CHECK(error(second, read(plain, of_plain, 16)) > 1e-4);
  // Back to files: GPT-2's own, and what is new beside them.
  const infty::tests::TemporaryFolder folder;
  infty::save_gpt2(folder.path(), model);
  const infty::SafetensorsFile beside(folder / "memory.safetensors");
  CHECK(beside.names().size() == 2 * 3);
  const auto again = infty::load_gpt2<Mixer>(folder.path(), config);
  auto one = model.make_state(2), other = again.make_state(2);
  for (const Index begin : {0, 8, 16}) CHECK(read(again, other, begin) == read(model, one, begin));
  auto left = infty::load_gpt2<infty::CausalAttention<double>>(folder.path()).config();
  CHECK(left.layers == 2);
}

TEST_CASE("presets: GPT-2's baseline with a compressed memory") {
  const auto wiki = infty::presets::gpt2_wikitext_compressive(),
             talk = infty::presets::gpt2_cmu_dog_compressive();
  CHECK(wiki.memory.rate == 4);
  CHECK(talk.memory.rate == 3);
  CHECK(infty::presets::gpt2_books_compressive().memory.rate == 4);
  for (const auto& e : {wiki, talk}) {
    e.memory.validate();
    e.gpt2.validate();
    CHECK(e.memory.compressed_capacity == 512);
    CHECK(e.memory.capacity == 0);
    CHECK(e.memory.reconstruction);
    CHECK(e.segment == 512);
    CHECK(e.kl_weight == 0);
    CHECK(e.gpt2.attention_dropout == .1);
  }
  CHECK(wiki.memory_learning_rate == 2.5e-4);
  CHECK(wiki.learning_rate == 5e-5);
  CHECK(talk.adam.epsilon == 1e-6);
  CHECK(talk.gpt2.vocabulary == 50263);
}

}  // namespace gpt2_compressive
