// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/core/state.hpp>
#include <infty/memory/to.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/gpt2.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_gpt2.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace gpt2 {

using Catch::Matchers::Contains;
using infty::Gpt2;
using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::tests::error;

const std::string golden = std::string(INFTY_TEST_DATA) + "/golden/gpt2/";

infty::Gpt2Config small() {
  return {.vocabulary = 11, .places = 8, .model_dim = 6, .layers = 2, .heads = 2, .kept = 3};
}

template <class T, class B>
using Cached = Gpt2<infty::CachedAttention<T, B>>;

/// Weights far from the even predictions of a fresh model.
template <class Model>
Model loud(Model model) {
  Random random(5);
  infty::for_each_parameter(model, [&](const std::string&, auto& parameter) {
    fill_normal(parameter.value(), 0, .4, random);
  });
  return model;
}

template <class B>
Tensor<Index, B> tokens(Index batch, Index begin, Index end) {
  std::vector<Index> ids;
  for (Index row = 0; row < batch; ++row)
    for (Index i = begin; i < end; ++i) ids.push_back((7 * row + 3 * i + i * i) % 11);
  return Tensor<Index, B>::from(Shape{batch, end - begin}, ids);
}

/// What a model makes of tokens, in a call of its own.
template <class Model, class State, class Ids>
auto read(const Model& model, State& state, const Ids& ids) {
  return model.logits(model.forward(state, ids)).value().to_vector();
}

template <class T>
std::vector<T> last(const std::vector<T>& logits, std::size_t classes = 11) {
  return {logits.end() - static_cast<std::ptrdiff_t>(classes), logits.end()};
}

}  // namespace gpt2

using namespace gpt2;

TEST_CASE("Gpt2: the recorded numbers in double, every value and gradient, to 1e-9") {
  // Logits, losses, hidden vectors, typed, cached and in halves; all gradients; folders.
  const auto [name, count] =
      GENERATE(table<std::string, std::size_t>({{"gpt2_tied", 47}, {"gpt2_untied", 61}}));
  infty::tests::GoldenCase file(golden + name + ".safetensors");
  const auto result = infty::tests::replay_gpt2<double, infty::EigenBackend>(file);
  CAPTURE(name, result.worst, result.worst_name);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared == count);
}

TEMPLATE_LIST_TEST_CASE("Gpt2: the recorded logits in float, from a folder", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::SafetensorsFile file(golden + "gpt2_tied.safetensors");
  const auto model = infty::load_gpt2<infty::CachedAttention<T, B>>(golden + "gpt2_tied.hub");
  const auto input = file.tensor<Index, B>("input");
  auto state = model.make_state(input.dim(0));
  CHECK(error(read(model, state, input), file.read<float>("f32.logits")) < 1e-5);
  infty::Pass<T, B> pass{.types = file.tensor<Index, B>("typed.token_type")};
  auto other = model.make_state(input.dim(0));
  const auto typed = model.logits(model.forward(other, input, pass)).value().to_vector();
  CHECK(error(typed, file.read<float>("f32.typed.logits")) < 1e-5);
}

TEMPLATE_LIST_TEST_CASE("Gpt2: in pieces as at once, with a cache as without", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto model = loud(Cached<T, B>(small()));
  auto plain = Gpt2<infty::CausalAttention<T, B>>(small());
  std::vector<infty::Variable<T, B>> from;
  infty::for_each_parameter(model, [&](const std::string&, const auto& p) { from.push_back(p); });
  auto to = infty::parameters<T, B>(plain);
  REQUIRE(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i].value().copy_from(from[i].value());
  auto without = plain.make_state(2);
  auto whole = model.make_state(2), state = whole;
  const auto expected = read(plain, without, tokens<B>(2, 0, 8));
  CHECK(error(read(model, whole, tokens<B>(2, 0, 8)), expected) < infty::tests::tolerance<T>);
  read(model, state, tokens<B>(2, 0, 5));
  read(model, state, tokens<B>(2, 5, 6));
  const auto end = read(model, state, tokens<B>(2, 6, 8));
  CHECK(error(last(end), last(expected)) < infty::tests::tolerance<T>);
  // Without a cache, places begin again.
  CHECK(error(read(plain, without, tokens<B>(2, 0, 8)), expected) == 0);
}

TEMPLATE_LIST_TEST_CASE(
    "Gpt2: with matrices in bfloat16, the bits of one whose matrices are rounded", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  auto model = loud(Cached<T, B>(small())), rounded = loud(Cached<T, B>(small()));
  infty::for_each_parameter(rounded, [&](const std::string&, infty::Variable<T, B>& p) {
    if (p.shape().rank() == 2)
      p.value() = p.value().template cast<infty::BFloat16>().template cast<T>();
  });
  // All but norms and biases: tokens, places and, of two layers, the maps of width d.
  const Index d = 6, matrices = (11 + 8) * d + 2 * 12 * d * d;
  CHECK(infty::store_in_bfloat16(model) == static_cast<std::size_t>(matrices) * (sizeof(T) - 2));
  auto state = model.make_state(2), wanted = rounded.make_state(2);
  const auto guard = infty::no_grad();
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 6}, {6, 12}})
    CHECK(read(model, state, tokens<B>(2, begin, end)) ==
          read(rounded, wanted, tokens<B>(2, begin, end)));
  infty::for_each_parameter(model, [](const std::string& name, const infty::Variable<T, B>& p) {
    CAPTURE(name);
    CHECK((p.stored_in_bfloat16() != nullptr) == (p.shape().rank() == 2));
  });

  // Saved, it comes back as it is; loaded into, it is in full.
  const infty::tests::TemporaryFolder folder;
  infty::save_parameters(folder.path() / "model.safetensors", model);
  auto back = Cached<T, B>(small());
  infty::load_parameters(folder.path() / "model.safetensors", back);
  infty::load_parameters(folder.path() / "model.safetensors", model);
  CHECK_FALSE(model.embedding.weight.stored_in_bfloat16());
  for (const auto* const again : {&back, &model}) {
    auto fresh = again->make_state(2), first = rounded.make_state(2);
    CHECK(read(*again, fresh, tokens<B>(2, 0, 5)) == read(rounded, first, tokens<B>(2, 0, 5)));
  }
}

TEST_CASE("Gpt2: with matrices in bfloat16, reading keeps none of them in full") {
  const auto held = [] { return infty::HostPool::instance().statistics().bytes_in_use; };
  auto config = small();
  config.model_dim = 96;
  auto model = Cached<float, infty::EigenBackend>(config);
  const auto before = held();
  const std::size_t saved = infty::store_in_bfloat16(model);
  auto state = model.make_state(2);
  {
    const auto guard = infty::no_grad();
    for (const Index length : {1, 5, 2})
      read(model, state, tokens<infty::EigenBackend>(2, 0, length));
  }
  state = {};
  CHECK(held() + saved * 9 / 10 < before);
}

TEMPLATE_LIST_TEST_CASE("Gpt2: rows at different places are as each alone, over full windows", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto model = loud(Cached<T, B>(small()));
  using State = typename Cached<T, B>::State;
  const Index lead[] = {2, 7, 5};
  std::vector<State> alone;
  const auto all = tokens<B>(3, 0, 40).to_vector();
  const auto piece = [&](Index row, Index begin, Index end) {
    const auto first = all.begin() + row * 40;
    return std::vector<Index>(first + begin, first + end);
  };
  for (Index row = 0; row < 3; ++row) {
    alone.push_back(model.make_state(1));
    const auto ids = piece(row, 0, lead[row]);
    read(model, alone.back(), Tensor<Index, B>::from(Shape{1, lead[row]}, ids));
  }
  auto batch = infty::join_rows(alone);
  CHECK(infty::batch_of(batch) == 3);
  for (Index step = 0; step < 15; ++step) {
    const Index length = 1 + step % 3 % 2;
    std::vector<Index> next;
    std::vector<T> expected;
    for (Index row = 0; row < 3; ++row) {
      const auto ids = piece(row, lead[row] + 2 * step, lead[row] + 2 * step + length);
      next.insert(next.end(), ids.begin(), ids.end());
      const auto own = read(model, alone[static_cast<std::size_t>(row)],
                            Tensor<Index, B>::from(Shape{1, length}, ids));
      expected.insert(expected.end(), own.begin(), own.end());
    }
    const auto got = read(model, batch, Tensor<Index, B>::from(Shape{3, length}, next));
    REQUIRE(error(got, expected) < infty::tests::tolerance<T>);
  }
}

TEST_CASE("Gpt2: a full window begins again with its last tokens at the first places") {
  using B = infty::EigenBackend;
  const auto model = loud(Cached<double, B>(small()));
  auto state = model.make_state(1);
  read(model, state, tokens<B>(1, 0, 8));
  CHECK(state.body.places == infty::RowCounts{8});
  auto fresh = model.make_state(1);
  const auto expected = last(read(model, fresh, tokens<B>(1, 5, 9)));
  CHECK(error(read(model, state, tokens<B>(1, 8, 9)), expected) < 1e-14);
  CHECK(state.body.places == infty::RowCounts{4});
  // No more are kept than leave room for the segment.
  auto long_piece = model.make_state(1), again = model.make_state(1);
  read(model, long_piece, tokens<B>(1, 0, 4));
  read(model, again, tokens<B>(1, 2, 4));
  const auto whole = read(model, again, tokens<B>(1, 4, 10));
  CHECK(error(read(model, long_piece, tokens<B>(1, 4, 10)), whole) < 1e-14);
  // Every token that was kept counts.
  auto other = model.make_state(1);
  read(model, other, tokens<B>(1, 1, 9));
  auto copy = other;
  CHECK(read(model, copy, tokens<B>(1, 8, 9)) != read(model, state, tokens<B>(1, 8, 9)));
}

TEST_CASE("Gpt2: a state is saved, restored, branched and reset by row") {
  using B = infty::EigenBackend;
  const auto model = loud(Cached<double, B>(small()));
  auto state = model.make_state(2);
  read(model, state, tokens<B>(2, 0, 8));
  read(model, state, tokens<B>(2, 8, 9));
  const infty::tests::TemporaryFolder folder;
  infty::save_state(folder / "state", state);
  auto restored = model.make_state(2), branch = state;
  infty::load_state(folder / "state", restored);
  const auto expected = read(model, branch, tokens<B>(2, 9, 12));
  CHECK(read(model, restored, tokens<B>(2, 9, 12)) == expected);
  CHECK(read(model, state, tokens<B>(2, 9, 12)) == expected);
  infty::reset_row(state, 1);
  auto fresh = model.make_state(2);
  const auto after = read(model, state, tokens<B>(2, 0, 3)),
             anew = read(model, fresh, tokens<B>(2, 0, 3));
  CHECK(error(std::vector(after.begin() + 33, after.end()),
              std::vector(anew.begin() + 33, anew.end())) < 1e-14);
  CHECK(std::vector(after.begin(), after.begin() + 33) !=
        std::vector(anew.begin(), anew.begin() + 33));
  // Without a word of what was read, the text of a fresh model of other weights differs.
  const auto moved = infty::to<B>(model);
  auto there = moved.make_state(2), here = model.make_state(2);
  CHECK(read(moved, there, tokens<B>(2, 0, 3)) == read(model, here, tokens<B>(2, 0, 3)));
}

TEMPLATE_TEST_CASE("Gpt2: each of the three dropouts drops while training, and none of 0", "",
                   infty::CausalAttention<double>, infty::CachedAttention<double>) {
  using B = infty::EigenBackend;
  const auto hidden = [](infty::Gpt2Config config, bool random) {
    const auto model = loud(Gpt2<TestType>(config));
    auto state = model.make_state(2);
    Random draws(3);
    infty::Pass<double, B> pass{.random = random ? &draws : nullptr};
    const auto y = model.forward(state, tokens<B>(2, 0, 8), pass).value().to_vector();
    return std::pair(y, draws.counter());
  };
  const auto none = hidden(small(), false);
  CHECK(hidden(small(), true) == none);
  auto config = small();
  const std::uint64_t vectors = 2 * 8 * 6, weights = 2 * 2 * 8 * 8;  // in one layer
  const auto drops = [&](std::uint64_t draws) {
    CHECK(hidden(config, false) == none);
    const auto dropped = hidden(config, true);
    CHECK(dropped.second == draws);
    CHECK(error(dropped.first, none.first) > 1e-3);
  };
  config.attention_dropout = .2;
  drops(2 * weights);
  config = small();
  config.embedding_dropout = .2;
  drops(vectors);
  config = small();
  config.dropout = .2;
  drops(5 * vectors);  // of the embeddings' sum as well, as long as nothing is said of it
  config.embedding_dropout = 0;
  drops(4 * vectors);
}

TEST_CASE("Gpt2: what cannot be read leaves the state as it was") {
  using B = infty::EigenBackend;
  const auto model = loud(Cached<double, B>(small()));
  auto state = model.make_state(1), same = model.make_state(1);
  read(model, state, tokens<B>(1, 0, 7));
  read(model, same, tokens<B>(1, 0, 7));
  CHECK_THROWS_WITH(model.forward(state, tokens<B>(1, 0, 9)), Contains("L at most 8"));
  CHECK_THROWS_WITH(model.forward(state, Tensor<Index, B>::from(Shape{1, 2}, {1, 11})),
                    Contains("tokens must lie in [0, 11)"));
  infty::Pass<double, B> pass{.types = tokens<B>(1, 0, 3)};
  CHECK_THROWS_WITH(model.forward(state, tokens<B>(1, 0, 2), pass), Contains("a type a token"));
  CHECK(read(model, state, tokens<B>(1, 7, 9)) == read(model, same, tokens<B>(1, 7, 9)));
  Gpt2<infty::CausalAttention<double, B>> plain(small());
  auto none = plain.make_state(1);
  CHECK_THROWS_WITH(plain.forward(none, tokens<B>(1, 0, 9)), Contains("L at most 8"));
}

TEST_CASE("Gpt2Config: what makes no model is refused by name") {
  const auto refused = [](auto change, const char* why) {
    auto config = small();
    change(config);
    using Model = Cached<float, infty::EigenBackend>;
    CHECK_THROWS_WITH(Model(config), Contains(why));
  };
  refused([](auto& c) { c.heads = 4; }, "heads must divide model_dim");
  refused([](auto& c) { c.kept = 8; }, "kept is 8, places 8");
  refused([](auto& c) { c.layers = 0; }, "layers is 0");
  refused([](auto& c) { c.dropout = 1; }, "dropout is 1");
  refused([](auto& c) { c.embedding_dropout = -.5; }, "embedding_dropout is -0.5");
  refused([](auto& c) { c.attention_dropout = 2; }, "attention_dropout is 2");
  refused([](auto& c) { c.norm_epsilon = 0; }, "norm_epsilon is 0");
  refused([](auto& c) { c.end_token = 11; }, "end_token is 11");
  refused([](auto& c) { c.vocabulary = Index{1} << 60; }, "vocabulary is");
  refused([](auto& c) { c.memory_blocks = {0, 2}; }, "memory_blocks has 2");
  refused([](auto& c) { c.memory_blocks = {-1}; }, "memory_blocks has -1");
  refused([](auto& c) { c.memory_blocks = {1, 1}; }, "memory_blocks has 1: blocks rise");
  refused([](auto& c) { c.memory_blocks = {1}; }, "the mixer has no memory");
}
