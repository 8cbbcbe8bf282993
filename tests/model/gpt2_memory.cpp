// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/memory/titans_memory.hpp>
#include <infty/model/presets/gpt2.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/train_step.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_gpt2_ltm.hpp"
#include "support/tensors.hpp"

namespace gpt2_memory {

using infty::Gpt2;
using infty::Index;
using infty::Shape;
using infty::tests::error;
using Tokens = infty::Tensor<Index>;

template <class Memory>
using Mixer = infty::WithMemory<infty::CausalAttention<double>, Memory>;
using LongTerm = Mixer<infty::LongTermMemory<double>>;

const infty::Gpt2Config small_config{
    .vocabulary = 11, .places = 8, .model_dim = 6, .layers = 2, .heads = 2};

LongTerm::Config signal(bool normed = true) {
  return {.memory = infty::LongTermConfig{.basis = 6, .widths = {.1, .3}, .samples = 5},
          .normed = normed};
}

template <class Memory>
Gpt2<Mixer<Memory>> loud(typename Mixer<Memory>::Config config) {
  Gpt2<Mixer<Memory>> model(small_config, config);
  infty::Random random(5);
  infty::for_each_parameter(
      model, [&](const std::string&, auto& p) { fill_normal(p.value(), 0, .4, random); });
  return model;
}

Tokens tokens(Index batch, Index begin, Index end) {
  std::vector<Index> ids;
  for (Index row = 0; row < batch; ++row)
    for (Index i = begin; i < end; ++i) ids.push_back((7 * row + 3 * i + i * i) % 11);
  return Tokens::from(Shape{batch, end - begin}, ids);
}

template <class Model>
std::vector<double> read(const Model& model, typename Model::State& state, const Tokens& ids) {
  return model.logits(model.forward(state, ids)).value().to_vector();
}

}  // namespace gpt2_memory

using namespace gpt2_memory;

TEST_CASE("Gpt2 with the long-term memory: the recorded numbers in double, to 1e-9") {
  // Every call's logits, losses, gradients, reads and states; parameters behind every step.
  const auto [name, count] =
      GENERATE(table<std::string, std::size_t>({{"gpt2_ltm_linear", 345},
                                                {"gpt2_ltm_sticky", 302},
                                                {"gpt2_ltm_dialogue", 426},
                                                {"gpt2_ltm_train", 322},
                                                {"gpt2_ltm_train_dialogue", 230}}));
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/gpt2/" + name +
                                ".safetensors");
  const auto result = infty::tests::replay_gpt2_ltm<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == count);
}

TEST_CASE("Gpt2 with any memory: the second segment reads the first, the first alone does not") {
  const auto check = [](const auto& model) {
    const Gpt2<infty::CausalAttention<double>> plain(small_config);
    auto state = model.make_state(2), other = model.make_state(2), rows = model.make_state(2);
    const auto first = read(model, state, tokens(2, 0, 8));
    read(model, other, tokens(2, 1, 9));
    const auto second = read(model, state, tokens(2, 8, 12));
    CHECK(error(second, read(model, other, tokens(2, 8, 12))) > 1e-6);
    auto fresh = model.make_state(2);
    CHECK(error(second, read(model, fresh, tokens(2, 8, 12))) > 1e-6);
    // A row by itself is as in the batch, and a state that is saved goes on.
    auto alone = model.make_state(1, 1);
    read(model, alone, tokens(2, 0, 8).slice(1, 2));
    const auto own = read(model, alone, tokens(2, 8, 12).slice(1, 2));
    CHECK(error(own, std::vector(second.begin() + 44, second.end())) < 1e-13);
    const infty::tests::TemporaryFolder folder;
    infty::save_state(folder / "state", state);
    infty::load_state(folder / "state", rows);
    CHECK(read(model, rows, tokens(2, 12, 20)) == read(model, state, tokens(2, 12, 20)));
  };
  check(loud<infty::LongTermMemory<double>>(signal()));
  check(loud<infty::TitansMemory<double>>({}));
}

TEST_CASE("Gpt2 with the long-term memory: a settled state is read as it is, again and again") {
  const auto model = loud<infty::LongTermMemory<double>>(signal(GENERATE(true, false)));
  const auto& blocks = std::get<1>(model.stack().layers).layers;
  auto state = model.make_state(1);
  read(model, state, tokens(1, 0, 8));
  auto settled = state;
  auto& layers = std::get<1>(settled.body.layers).layers;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const infty::InputNorm<double> norm(blocks[i].mixer_norm);
    layers[i].mixer = blocks[i].mixer.settled(layers[i].mixer, norm);
    CHECK(layers[i].mixer.past->leaving.vectors.dim(1) == 0);
    CHECK(layers[i].mixer.past->memory.written == infty::RowCounts{8});
  }
  for (Index end = 10; end < 13; ++end) {
    auto from_settled = settled, from_state = state;
    CHECK(error(read(model, from_settled, tokens(1, 8, end)),
                read(model, from_state, tokens(1, 8, end))) < 1e-14);
  }
}

TEST_CASE("Gpt2 with the long-term memory: what is written is normed, or as it came") {
  const auto normed = loud<infty::LongTermMemory<double>>(signal(true));
  const auto plain = loud<infty::LongTermMemory<double>>(signal(false));
  auto a = normed.make_state(1), b = plain.make_state(1);
  CHECK(read(normed, a, tokens(1, 0, 8)) == read(plain, b, tokens(1, 0, 8)));
  CHECK(error(read(normed, a, tokens(1, 8, 12)), read(plain, b, tokens(1, 8, 12))) > 1e-6);
}

TEST_CASE("Gpt2 with the long-term memory: its maps begin as GPT-2's, its gate as it does") {
  const Gpt2<LongTerm> model({.vocabulary = 5, .places = 4, .model_dim = 64, .heads = 2},
                             {.memory = infty::LongTermConfig{.basis = 64}});
  const auto deviation = [](const auto& parameter) {
    double sum = 0;
    for (const double x : parameter.value().to_vector()) sum += x * x;
    return std::sqrt(sum / static_cast<double>(parameter.size()));
  };
  const auto& memory = *std::get<1>(model.stack().layers).layers[3].mixer.memory;
  for (const auto* weight :
       {&memory.key.weight, &memory.value.weight, &memory.out.weight, &memory.density_weight})
    CHECK(deviation(*weight) == Approx(.02).epsilon(.2));
  CHECK(deviation(memory.gate_weight) ==
        Approx(1 / std::sqrt(3. * 64) / std::sqrt(3.)).epsilon(.1));
}

TEST_CASE("Gpt2 with a memory and a cache: a chunk token by token is as at once") {
  // By which the memory samples its past: evenly, or where all queries of the chunk have looked.
  const auto check = [](auto config, Index chunk, auto cached_config) {
    using Memory = typename decltype(config.memory)::value_type;
    using M = std::conditional_t<std::is_same_v<Memory, infty::LongTermConfig>,
                                 infty::LongTermMemory<double>, infty::TitansMemory<double>>;
    using CachedMixer = infty::WithMemory<infty::CachedAttention<double>, M>;
    const auto whole = loud<M>(config);
    cached_config = {.attention = {.capacity = chunk}, .memory = config.memory};
    cached_config.normed = config.normed;
    Gpt2<CachedMixer> pieces(small_config, cached_config);
    auto to = infty::parameters<double>(pieces);
    std::size_t i = 0;
    infty::for_each_parameter(
        whole, [&](const std::string&, const auto& p) { to[i++].value().copy_from(p.value()); });
    REQUIRE(i == to.size());
    const Index length = (std::min)(chunk, Index{8});
    auto at_once = whole.make_state(2);
    auto state = pieces.make_state(2);
    for (Index segment = 0; segment < 4; ++segment) {
      const Index begin = segment * length, end = begin + length;
      const auto expected = read(whole, at_once, tokens(2, begin, end));
      // Pieces of one, two, ... tokens; the second chunk token by token.
      std::vector<double> got(expected.size());
      for (Index at = begin, piece = 1; at < end; at += piece++) {
        if (segment == 1) piece = 1;
        piece = (std::min)(piece, end - at);
        auto branch = state;
        const auto part = read(pieces, state, tokens(2, at, at + piece));
        CHECK(read(pieces, branch, tokens(2, at, at + piece)) == part);
        for (Index row = 0; row < 2; ++row)
          std::copy_n(part.begin() + row * piece * 11, piece * 11,
                      got.begin() + (row * length + at - begin) * 11);
      }
      CAPTURE(segment);
      CHECK(error(got, expected) < 1e-12);
    }
  };
  using Config = infty::WithMemoryConfig<infty::CachedAttentionConfig, infty::LongTermConfig>;
  check(signal(true), 8, Config());
  check(signal(false), 5, Config());
  auto sticky = signal(true);
  sticky.memory->resampling = infty::Resampling::sticky;
  sticky.memory->threshold = 15;
  check(sticky, 100, Config());
  using TitansMixer = Mixer<infty::TitansMemory<double>>;
  check(TitansMixer::Config(), 6,
        infty::WithMemory<infty::CachedAttention<double>, infty::TitansMemory<double>>::Config());
}

TEST_CASE("Gpt2: a memory beside the attention of chosen blocks") {
  auto config = small_config;
  config.memory_blocks = {1};
  Gpt2<LongTerm> model(config, signal());
  infty::Random random(5);
  infty::for_each_parameter(
      model, [&](const std::string&, auto& p) { fill_normal(p.value(), 0, .4, random); });
  const auto& blocks = std::get<1>(model.stack().layers).layers;
  CHECK(!blocks[0].mixer.memory.has_value());
  CHECK(blocks[1].mixer.memory.has_value());

  // What is not in config.json is said where a folder is opened, another dropout too.
  const infty::tests::TemporaryFolder folder;
  infty::save_gpt2(folder.path(), model);
  CHECK_THROWS_AS(infty::load_gpt2<LongTerm>(folder.path(), signal()), infty::IoError);
  const auto opened = infty::load_gpt2<LongTerm>(folder.path(), signal(), infty::Random(0),
                                                 [](infty::Gpt2Config& c) {
                                                   c.memory_blocks = {1};
                                                   c.dropout = .25;
                                                 });
  CHECK(opened.config().dropout == .25);
  auto state = model.make_state(2), there = opened.make_state(2);
  std::vector<double> first;
  for (Index segment = 0; segment < 3; ++segment) {
    const auto ids = tokens(2, 8 * segment, 8 * segment + 8);
    first = read(model, state, ids);
    CHECK(read(opened, there, ids) == first);
  }
  // The block's memory is read, and the other block is as one without any.
  auto fresh = model.make_state(2);
  CHECK(read(model, fresh, tokens(2, 16, 24)) != first);
  auto none = signal();
  none.memory.reset();
  const Gpt2<LongTerm> without = infty::load_gpt2<LongTerm>(folder.path(), none);
  auto alone = without.make_state(2);
  CHECK(read(without, alone, tokens(2, 0, 8)) == [&] {
    auto again = model.make_state(2);
    return read(model, again, tokens(2, 0, 8));
  }());
}

TEST_CASE("Gpt2 with a memory and a cache: rows at different places are as each alone") {
  using CachedMixer =
      infty::WithMemory<infty::CachedAttention<double>, infty::LongTermMemory<double>>;
  auto config = signal();
  config.memory->resampling = infty::Resampling::sticky;
  Gpt2<CachedMixer> model(small_config, {.attention = {.capacity = 5}, .memory = config.memory});
  infty::Random random(5);
  infty::for_each_parameter(
      model, [&](const std::string&, auto& p) { fill_normal(p.value(), 0, .4, random); });
  std::vector<typename Gpt2<CachedMixer>::State> alone;
  const auto piece = [](Index row, Index begin, Index end) {
    return tokens(3, begin, end).slice(row, row + 1);
  };
  const Index lead[] = {2, 0, 4};
  for (Index row = 0; row < 3; ++row) {
    alone.push_back(model.make_state(1, row));
    if (lead[row] > 0) read(model, alone.back(), piece(row, 0, lead[row]));
  }
  auto batch = infty::join_rows(alone);
  for (Index step = 0; step < 14; ++step) {
    const Index length = 1 + step % 2;
    std::vector<double> expected;
    std::vector<Index> next;
    for (Index row = 0; row < 3; ++row) {
      const auto ids = piece(row, lead[row] + 2 * step, lead[row] + 2 * step + length);
      const auto own = read(model, alone[static_cast<std::size_t>(row)], ids);
      expected.insert(expected.end(), own.begin(), own.end());
      const auto words = ids.to_vector();
      next.insert(next.end(), words.begin(), words.end());
    }
    const auto ids = Tokens::from(Shape{3, length}, next);
    const auto got = read(model, batch, ids);
    CAPTURE(step);
    REQUIRE(error(got, expected) < 1e-12);
  }
}

TEST_CASE(
    "Gpt2 with a memory and a cache: what waits is saved, reset by row, and settled when full") {
  using CachedMixer =
      infty::WithMemory<infty::CachedAttention<double>, infty::LongTermMemory<double>>;
  const Gpt2<CachedMixer> model(small_config,
                                {.attention = {.capacity = 4}, .memory = signal().memory});
  auto state = model.make_state(2);
  read(model, state, tokens(2, 0, 3));
  const auto& block = std::get<1>(model.stack().layers).layers[0];
  const auto past = [](const auto& of) {
    return *std::get<1>(of.body.layers).layers[0].mixer.past;
  };
  CHECK(past(state).leaving.length == infty::RowCounts{3, 3});
  const infty::InputNorm<double> norm(block.mixer_norm);
  const auto& mixer_state = std::get<1>(state.body.layers).layers[0].mixer;
  CHECK(block.mixer.settled(mixer_state, norm).past->leaving.length == infty::RowCounts{3, 3});
  const infty::tests::TemporaryFolder folder;
  infty::save_state(folder / "state", state);
  auto restored = model.make_state(2);
  infty::load_state(folder / "state", restored);
  CHECK(read(model, restored, tokens(2, 3, 4)) == read(model, state, tokens(2, 3, 4)));
  const auto settled = block.mixer.settled(std::get<1>(state.body.layers).layers[0].mixer, norm);
  CHECK(settled.past->leaving.length == infty::RowCounts{0, 0});
  CHECK(settled.past->memory.written == infty::RowCounts{4, 4});
  infty::reset_row(state, 1);
  auto fresh = model.make_state(1, 1);
  const auto both = read(model, state, tokens(2, 4, 6));
  const auto own = read(model, fresh, tokens(2, 4, 6).slice(1, 2));
  CHECK(error(std::vector(both.begin() + 22, both.end()), own) < 1e-14);
  CHECK(past(state).memory.written == infty::RowCounts{4, 0});
  // A segment that no chunk holds is refused, and changes nothing.
  auto same = state;
  CHECK_THROWS_AS(model.forward(state, tokens(2, 0, 5)), infty::ShapeError);
  CHECK(read(model, state, tokens(2, 6, 8)) == read(model, same, tokens(2, 6, 8)));
  // What a file may claim.
  std::get<1>(state.body.layers).layers[0].mixer.past->leaving.length[0] = 99;
  CHECK_THROWS_AS(model.forward(state, tokens(2, 0, 1)), infty::ShapeError);
}

TEST_CASE("Gpt2 with the long-term memory: trained alone, all else stays bit for bit") {
  auto model = loud<infty::LongTermMemory<double>>(signal());
  infty::set_requires_grad(model, false);
  const Index trained = infty::set_requires_grad(model, true, ".mixer.memory.");
  infty::Adam<double> adam(model, {.learning_rate = .01, .weight_decay = .1});
  std::vector<std::vector<double>> before;
  for (const auto& [name, parameter] : adam.parameters())
    before.push_back(parameter.value().to_vector());
  auto state = model.make_state(2);
  double first = 0, last = 0;
  for (Index step = 0; step < 6; ++step) {
    const auto took = infty::train_step(adam, {.learning_rate = .01, .max_norm = 1}, [&] {
      infty::Pass<double> pass;
      const auto hidden = model.forward(state, tokens(2, 8 * step, 8 * step + 8), pass);
      return infty::mean(model.losses(hidden, tokens(2, 8 * step + 1, 8 * step + 9)));
    });
    if (step == 1) first = took.loss;
    last = took.loss;
  }
  CHECK(last != first);
  Index moved = 0;
  std::size_t i = 0;
  for (const auto& [name, parameter] : adam.parameters()) {
    CAPTURE(name);
    const bool memory = name.find(".mixer.memory.") != std::string::npos;
    CHECK(parameter.has_grad() == memory);
    CHECK((parameter.value().to_vector() == before[i]) == !memory);
    moved += memory;
    ++i;
  }
  CHECK(moved == trained);
  CHECK(moved == 12);
  std::size_t members = 0;
  adam.visit([&](const std::string& name, auto&) {
    CHECK((name == "steps" || name.find(".mixer.memory.") != std::string::npos));
    ++members;
  });
  CHECK(members == 1 + 3 * static_cast<std::size_t>(trained));
}

TEST_CASE("presets: GPT-2's experiments with the memory") {
  const auto wiki = infty::presets::gpt2_wikitext(),
             program = infty::presets::gpt2_wikitext(true, true);
  CHECK_FALSE(wiki.memory.normed);
  CHECK_FALSE(wiki.memory.memory->mean_term);
  CHECK(wiki.memory.memory->threshold == 2048);
  CHECK(wiki.memory_learning_rate == 2.5e-4);
  CHECK(program.memory.memory->mean_term);
  CHECK(program.memory.memory->mu0 == -1);
  CHECK_FALSE(program.memory.memory->bounded);
  const auto talk = infty::presets::gpt2_cmu_dog(false);
  CHECK(talk.memory.normed);
  CHECK(talk.memory.memory->resampling == infty::Resampling::even);
  CHECK(talk.adam.epsilon == 1e-6);
  CHECK(talk.gpt2.vocabulary == 50263);
  CHECK(infty::presets::gpt2_books().memory.memory->threshold == 2048);
  for (const auto& e : {wiki, program, talk}) {
    e.gpt2.validate();
    e.adam.validate();
    e.memory.resolved_memory(e.gpt2.attention_sizes()).validate();
    CHECK(e.adam.epsilon_first);
    CHECK(e.segment == 512);
  }
}
