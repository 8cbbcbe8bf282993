// SPDX-License-Identifier: MIT
// Models that are composed and no `TransformerLM`: what the layers are for.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/model/block.hpp>
#include <infty/model/language_model.hpp>
#include <infty/model/layers.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

namespace composed {

using infty::Block;
using infty::CausalAttention;
using infty::EigenBackend;
using infty::Index;
using infty::LayerNorm;
using infty::Layers;
using infty::Linear;
using infty::LongTermMemory;
using infty::Random;
using infty::Tensor;
using infty::Variable;
using infty::WithMemory;
using infty::tests::numbers_of;
using V = Variable<double>;

namespace {

constexpr Index d = 4, vocabulary = 5;
constexpr infty::AttentionSizes sizes{.model_dim = d, .heads = 2, .head_dim = 2};

/// GPT-2's feed: no member of the library, and not its `FeedForward`.
struct GeluFeed {
  Linear<double> inner, outer;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("outer", outer);
  }
  V forward(const V& x) const { return outer.forward(infty::gelu(inner.forward(x))); }
};

/// A feed of two lines, without parameters.
struct Halve {
  template <class Visitor>
  void visit(Visitor&&) {}
  V forward(const V& x) const { return infty::scale(x, .5); }
};

/// Scores by the embedding's own vectors.
struct TiedHead {
  V weight;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
  V logits(const V& hidden) const { return infty::linear(hidden, weight); }
  V losses(const V& hidden, const Tensor<Index>& targets) const {
    return infty::token_losses(logits(hidden), targets);
  }
};

const infty::LongTermConfig long_term{.basis = 4, .widths = {.2}, .samples = 4};

template <class Mixer, class Feed>
Block<Mixer, Feed> block(Mixer mixer, Feed feed) {
  return {.mixer = std::move(mixer),
          .mixer_norm = LayerNorm<double>(d),
          .feed = std::move(feed),
          .feed_norm = LayerNorm<double>(d)};
}

GeluFeed gelu_feed(Random random) { return {{d, 5, random.split(0)}, {5, d, random.split(1)}}; }

/// An embedding with places, a body, a norm behind it, and a head that is tied.
template <class Body>
auto gpt_around(Body body) {
  const infty::PositionedEmbedding<double> embedding(vocabulary, 8, d, Random(1), 1);
  using All = Layers<Body, LayerNorm<double>>;
  return infty::LanguageModel<infty::PositionedEmbedding<double>, All, TiedHead>(
      embedding, All(std::move(body), LayerNorm<double>(d)), TiedHead{embedding.tokens.weight});
}

using GptMixer = WithMemory<CausalAttention<double>, LongTermMemory<double>>;
using GptBlock = Block<GptMixer, GeluFeed>;

/// Two of GPT-2's blocks, the second with a long-term memory beside its attention.
Layers<GptBlock> gpt_blocks(bool with_memory = true) {
  Layers<GptBlock> stack;
  for (Index i = 0; i < 2; ++i) {
    const Random random = Random(2).split(static_cast<std::uint64_t>(i));
    GptMixer::Config config{.attention = {}, .memory = {}};
    if (with_memory && i == 1) config.memory = long_term;
    stack.layers.push_back(block(GptMixer(config, sizes, random), gelu_feed(random.split(9))));
  }
  return stack;
}

Tensor<Index> some(Index batch, Index length, Random& random) {
  Tensor<Index> tokens(infty::Shape{batch, length});
  for (Index i = 0; i < tokens.size(); ++i) tokens.data()[i] = random.below(vocabulary);
  return tokens;
}

/// What every composed model keeps to: gradients, rows, saving, observing.
template <class Model>
void require_model(Model& model, bool gradient_through_segments = false) {
  Random random(infty::tests::seed);
  auto before = model.make_state(2);
  for (const Index length : {5, 3, 4}) model.observe(before, some(2, length, random));
  const auto tokens = some(2, 5, random), targets = some(2, 5, random);

  const auto loss = [&] {
    auto state = gradient_through_segments ? model.make_state(2) : before;
    infty::Pass<double> pass{.regularised = true};
    if (gradient_through_segments) model.forward(state, targets, pass);
    const V hidden = model.forward(state, tokens, pass);
    return mean(model.losses(hidden, targets)) + scale(loss_named(pass, "divergence"), 1e-3);
  };
  CHECK(infty::fast_gradient_check(loss, infty::parameters<double>(model), 1e-6) < 1e-6);

  // Rows alone are rows in a batch, observing is answering, a tape changes nothing.
  auto observed = before, answered = before, taped = before;
  model.observe(observed, tokens);
  const auto both = model.forward(answered, tokens).value().to_vector();
  {
    infty::Tape tape;
    CHECK(infty::tests::error(model.forward(taped, tokens).value().to_vector(), both) < 1e-12);
  }
  CHECK(infty::tests::error(numbers_of(observed), numbers_of(answered)) < 1e-12);
  CHECK(infty::tests::error(numbers_of(taped), numbers_of(answered)) < 1e-12);
  std::vector<double> alone;
  for (Index row = 0; row < 2; ++row) {
    auto own = take_rows(before, row, row + 1);
    for (const double x : model.forward(own, tokens.slice(row, row + 1)).value().to_vector())
      alone.push_back(x);
  }
  CHECK(infty::tests::error(alone, both) < 1e-12);

  // A state that was saved and loaded continues.
  const infty::tests::TemporaryFolder folder;
  save_state(folder / "state", before);
  auto loaded = model.make_state(2);
  load_state(folder / "state", loaded);
  CHECK(model.forward(loaded, tokens).value().to_vector() == both);

  // A row that was reset is fresh.
  auto reset = before, fresh = model.make_state(2);
  reset_row(reset, 0);
  reset_row(reset, 1);
  CHECK(infty::tests::error(model.forward(reset, tokens).value().to_vector(),
                            model.forward(fresh, tokens).value().to_vector()) < 1e-12);
}

}  // namespace

TEST_CASE("composed: GPT-2's layout with a long-term memory in one layer") {
  auto model = gpt_around(gpt_blocks());
  require_model(model);
  auto state = model.make_state(1);
  Random random(3);
  model.observe(state, some(1, 6, random));
  model.observe(state, some(1, 6, random));
  const auto& blocks = std::get<0>(state.body.layers).layers;
  CHECK_FALSE(blocks[0].mixer.past);
  CHECK(blocks[1].mixer.past->memory.written[0] == 6);
  // The embedding's vectors are the head's: they stand in the model once.
  Index embeddings = 0;
  infty::for_each_parameter(model, [&](const std::string&, const V& p) {
    embeddings += same(p, model.embedding.tokens.weight);
  });
  CHECK(same(model.head.weight, model.embedding.tokens.weight));
  CHECK(embeddings == 1);
}

TEST_CASE("composed: GPT-2 without a memory remembers nothing, and needs no state of rows") {
  const auto model = gpt_around(gpt_blocks(false));
  auto state = model.make_state(2);
  Random random(3);
  const auto tokens = some(2, 6, random);
  const auto first = model.forward(state, tokens).value().to_vector();
  CHECK(model.forward(state, tokens).value().to_vector() == first);
  CHECK(infty::bytes_of(state) == 0);
  CHECK_NOTHROW(model.observe(state, some(3, 4, random)));
  CHECK_THROWS_AS(model.forward(state, some(1, 9, random)), infty::ShapeError);
}

TEST_CASE("composed: memory tokens around a Transformer-XL, and around GPT-2") {
  using Xl = Block<infty::ShortTermMemory<double>>;
  Layers<Xl> stack;
  for (Index i = 0; i < 2; ++i) {
    const Random random = Random(4).split(static_cast<std::uint64_t>(i));
    const auto make = [&](Random own) {
      return infty::ShortTermMemory<double>({.capacity = 3}, sizes, own);
    };
    stack.layers.push_back(
        block(i == 0 ? make(random) : sibling_of(stack.layers[0].mixer, random, make),
              infty::FeedForward<double>(d, 5, random.split(1))));
  }
  auto xl = gpt_around(infty::RecurrentTokens<Layers<Xl>>(stack, {.tokens = 2}, d, Random(5)));
  require_model(xl);

  // Tokens carry what a transformer of segments has read to the next segment, with their gradient.
  auto gpt = gpt_around(
      infty::RecurrentTokens<Layers<GptBlock>>(gpt_blocks(false), {.tokens = 2}, d, Random(5)));
  require_model(gpt, true);
}

TEST_CASE("composed: a different memory in each layer, and feeds that are no networks") {
  using First = Block<infty::ShortTermMemory<double>, Halve>;
  using Second = Block<infty::CompressiveMemory<double>>;
  using Third = Block<infty::InftyMemory<double>, GeluFeed>;
  auto model = gpt_around(Layers<First, Second, Third>(
      block(infty::ShortTermMemory<double>({.capacity = 3}, sizes, Random(1)), Halve{}),
      block(infty::CompressiveMemory<double>({.capacity = 2, .compressed_capacity = 2, .rate = 2},
                                             sizes, Random(2)),
            infty::FeedForward<double>(d, 5, Random(3))),
      block(infty::InftyMemory<double>({.attention = {.capacity = 2}, .memory = long_term}, sizes,
                                       Random(4)),
            gelu_feed(Random(5)))));
  require_model(model);
}

TEST_CASE("composed: layers whose types are chosen while the program runs") {
  using Any = infty::AnyLayer<double>;
  Layers<Block<Any, Any>> stack;
  for (const bool remembers : {true, false, true}) {
    const Any mixer =
        remembers ? Any(infty::InftyMemory<double>(
                        {.attention = {.capacity = 2}, .memory = long_term}, sizes, Random(6)))
                  : Any(CausalAttention<double>({}, sizes, Random(7)));
    stack.layers.push_back(block(mixer, remembers ? Any(Halve{}) : Any(gelu_feed(Random(8)))));
  }
  auto model = gpt_around(stack);
  require_model(model);

  // The same types known beforehand: the same numbers, and the same names.
  Layers<Block<infty::InftyMemory<double>, Halve>> known;
  Layers<Block<Any, Any>> unknown;
  const auto mixer = infty::InftyMemory<double>({.attention = {.capacity = 2}, .memory = long_term},
                                                sizes, Random(6));
  known.layers.push_back(block(mixer, Halve{}));
  unknown.layers.push_back(block(Any(mixer), Any(Halve{})));
  auto a = known.make_state(2);
  auto b = unknown.make_state(2);
  Random random(9);
  for (int i = 0; i < 3; ++i) {
    const auto x = infty::tests::uniform_variable<double>({2, 4, d}, random);
    infty::Pass<double> pass, other;
    CHECK(known.forward(a, x, pass).value().to_vector() ==
          unknown.forward(b, x, other).value().to_vector());
  }
  std::vector<std::string> of_known, of_unknown;
  infty::for_each_member(a, [&](const std::string& name, auto&) { of_known.push_back(name); });
  infty::for_each_member(b, [&](const std::string& name, auto&) { of_unknown.push_back(name); });
  CHECK(of_known == of_unknown);
  CHECK(numbers_of(a) == numbers_of(b));
  // Copies of a state are independent; another layer's is refused.
  auto branch = b;
  reset_row(branch, 0);
  CHECK(numbers_of(a) == numbers_of(b));
  CHECK(numbers_of(branch) != numbers_of(b));
  infty::AnyState<double> foreign(infty::NoState{});
  infty::Pass<double> pass;
  const auto x = infty::tests::uniform_variable<double>({2, 4, d}, random);
  CHECK_THROWS_AS(Any(mixer).forward(foreign, x, infty::InputNorm<double>(), pass),
                  infty::ShapeError);
  CHECK_THROWS_AS(Any().make_state(1), infty::ValueError);
}

}  // namespace composed
