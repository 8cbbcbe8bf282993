// SPDX-License-Identifier: MIT
// What people do wrong with layers in their first hour, and what they read: each message says which
// function, what it got, and what it wanted.

#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/block.hpp>
#include <infty/model/layers.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"

namespace beginners {

using infty::Index;
using infty::Random;
using infty::Tensor;
using infty::TransformerConfig;

namespace {

using Numbers = Tensor<float>;
using V = infty::Variable<float>;
using Model = infty::TransformerLM<infty::InftyMemory<float>>;
using LongTerm = infty::LongTermMemory<float>;
using Attention = infty::ShortTermMemory<float>;

struct Mistake {
  std::string what;
  std::function<void()> made;
  std::string said;
};

/// The message of f(), empty if it throws none of ours.
std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const infty::Error& error) {
    return error.what();
  }
  return {};
}

V zeros(infty::Shape shape) { return V(Numbers::zeros(std::move(shape))); }

TransformerConfig sizes() {
  return {.vocabulary = 5, .model_dim = 4, .layers = 2, .heads = 2, .feed_forward = 8};
}

infty::InftyConfig memory() {
  return {.attention = {.capacity = 3},
          .memory = infty::LongTermConfig{.basis = 4, .widths = {.2}, .samples = 4}};
}

}  // namespace

TEST_CASE("mistakes: what a beginner reads says which function, what it got and what it wanted") {
  const infty::tests::TemporaryFolder folder;
  const Model model(sizes(), memory(), Random(1));
  auto config = memory().memory.value();
  config.model_dim = 4;
  config.heads = 2;
  config.head_dim = 2;
  const LongTerm long_term(config, Random(1));
  const infty::Linear<float> linear(4, 3, Random(1));
  const Attention attention({.capacity = 3}, {.model_dim = 4, .heads = 2, .head_dim = 2},
                            Random(1));
  auto state = model.make_state(2);
  auto past = long_term.make_state(1);
  infty::Pass<float> pass;
  const auto tokens = Tensor<Index>::zeros({2, 3});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto with = [](auto change) {
    auto changed = sizes();
    change(changed);
    return [changed] { Model(changed, memory()); };
  };
  const auto stored = [&](const char* name, auto numbers, infty::Shape shape) {
    infty::SafetensorsWriter writer;
    writer.add("weight", Tensor<decltype(numbers)>::full(std::move(shape), numbers));
    writer.save(folder / name);
    return folder / name;
  };

  const std::string place = folder.path().string();

  const std::vector<Mistake> mistakes{
      {"vectors of another width",
       [&] {
         linear.forward(zeros({2, 5}));
       },
       "[linear] x is [2, 5], weight is [3, 4]: x must be [..., in] and weight [out, in]"},
      {"one segment without a batch",
       [&] {
         auto s = attention.make_state(1);
         attention.forward(s, zeros({3, 4}), {}, pass);
       },
       "[ShortTermMemory] the segment is [3, 4]: it must be [1, L, 4]"},
      {"tokens without a batch", [&] { model.forward(state, Tensor<Index>::zeros({3})); },
       "[LanguageModel] tokens are [3]: they must be [2, L], L >= 1"},
      {"another batch than the state's",
       [&] {
         model.forward(state, Tensor<Index>::zeros({3, 3}));
       },
       "[LanguageModel] tokens are [3, 3]: they must be [2, L], L >= 1"},
      {"no tokens",
       [&] {
         model.forward(state, Tensor<Index>::zeros({2, 0}));
       },
       "[LanguageModel] tokens are [2, 0]: they must be [2, L], L >= 1"},
      {"a token that is not in the vocabulary",
       [&] {
         model.forward(state, Tensor<Index>::full({2, 3}, 5));
       },
       "[embedding] token 5 at place 5: tokens must lie in [0, 5)"},
      {"a negative token",
       [&] {
         model.forward(state, Tensor<Index>::full({2, 3}, -1));
       },
       "[embedding] token -1 at place 5: tokens must lie in [0, 5)"},
      {"make_state forgotten",
       [&] {
         Model::State none;
         model.forward(none, tokens);
       },
       "[Layers] the state has 0 layers, the model 2: make_state has not made it"},
      {"make_state of a memory forgotten",
       [&] {
         LongTerm::State none;
         long_term.write(none, zeros({1, 2, 4}));
       },
       "[write] the state holds coefficients [0]: make_state has not made it, ours are [batch, 4, "
       "4]"},
      {"a state of another layer",
       [&] {
         auto other = config;
         other.basis = 6;
         auto s = LongTerm(other).make_state(1);
         long_term.read(s, zeros({1, 2, 4}));
       },
       "[read] the state holds coefficients [1, 6, 4]: another memory made it, ours are [batch, 4, "
       "4]"},
      {"a state of another layer, types erased",
       [&] {
         infty::AnyLayer<float> any(attention);
         auto s = infty::AnyLayer<float>(infty::Layers<Attention>{{attention}}).make_state(1);
         any.forward(s, zeros({1, 2, 4}), {}, pass);
       },
       "[AnyLayer::forward] the state is another layer's, or none: it must be one that make_state "
       "of this layer has made"},
      {"an empty batch", [&] { model.make_state(0); },
       "[LanguageModel::make_state] batch is 0: it must be >= 1"},
      {"an empty batch of a memory", [&] { long_term.make_state(0); },
       "[LongTermMemory::make_state] batch is 0: it must be >= 1"},
      {"heads that do not divide", with([](auto& c) { c.heads = 3; }),
       "[TransformerConfig] model_dim is 4, heads is 3: head_dim must be given where heads does "
       "not divide model_dim"},
      {"no vocabulary", with([](auto& c) { c.vocabulary = 0; }),
       "[TransformerConfig] vocabulary is 0: it must be at least 1"},
      {"a negative number of layers", with([](auto& c) { c.layers = -1; }),
       "[TransformerConfig] layers is -1: it must be at least 1"},
      {"dropout above 1", with([](auto& c) { c.dropout = 1.5; }),
       "[TransformerConfig] dropout is 1.5: it must lie in [0, 1)"},
      {"a negative capacity",
       [&] {
         auto m = memory();
         m.attention.capacity = -1;
         Model(sizes(), m);
       },
       "[ShortTermConfig] capacity is -1: it must be at least 0"},
      {"no basis functions",
       [&] {
         auto m = memory();
         m.memory->basis = 0;
         Model(sizes(), m);
       },
       "[LongTermConfig] basis is 0: it must be at least 1"},
      {"NaN written to a memory",
       [&] {
         long_term.write(past, V(Numbers::full({1, 2, 4}, nan)));
       },
       "[write] coordinate 3 of a vector of row 0 is not finite"},
      {"NaN in a model's weights",
       [&] {
         Model broken(sizes(), memory());
         broken.embedding.weights[0].value().fill(nan);
         auto s = broken.make_state(2);
         broken.forward(s, tokens);
       },
       "[Layers] layer 0: [read] what is read is not finite: a query is not"},
      {"a negative count",
       [&] {
         long_term.write(past, zeros({1, 2, 4}), {-1});
       },
       "[write] a count is -1: it must lie in [0, 2]"},
      {"a count of more than there are",
       [&] {
         long_term.write(past, zeros({1, 2, 4}), {3});
       },
       "[write] a count is 3: it must lie in [0, 2]"},
      {"queries of another width",
       [&] {
         long_term.read(past, zeros({1, 2, 6}));
       },
       "[read] queries are [1, 2, 6]: they must be [1, Q, 4], 4 = heads * head_dim"},
      {"a target that is not in the vocabulary",
       [&] {
         auto s = state;
         model.losses(model.forward(s, tokens), Tensor<Index>::full({2, 3}, 7));
       },
       "[token_losses] target 7 at place 5: targets must lie in [0, 5)"},
      {"targets of another shape",
       [&] {
         auto s = state;
         model.losses(model.forward(s, tokens), Tensor<Index>::zeros({2, 2}));
       },
       "[token_losses] logits are [2, 3, 5], targets [2, 2]: they must be [..., vocabulary] and "
       "[...]"},
      {"a sum of shapes that do not fit",
       [&] {
         zeros({2, 3}) + zeros({2, 4});
       },
       "[add] a is [2, 3], b is [2, 4]: extents, counted from the last, must be equal or 1"},
      {"a product of shapes that do not fit",
       [&] {
         matmul(zeros({2, 3}), zeros({2, 3}));
       },
       "[matmul] a is [2, 3], b is [2, 3]: they must be [..., m, k] and [..., k, n]"},
      {"numbers that do not fill a shape",
       [&] {
         Numbers::from({2, 3}, {1, 2});
       },
       "[Tensor::from] 2 elements do not fill [2, 3]"},
      {"backward of more than a number",
       [&] {
         V x(Numbers::zeros({2}), true);
         infty::Tape tape;
         const V y = x * x;
         tape.backward(y);
       },
       "[backward] loss is [2]: it must have one element"},
      {"a row that is not there", [&] { reset_row(state, 2); },
       "[reset_row] row is 2: it must be one of 2 rows, from 0"},
      {"rows that are not there", [&] { take_rows(state, 1, 3); },
       "[take_rows] [1, 3): there are 2 rows"},
      {"a negative learning rate",
       [&] {
         auto l = linear;
         infty::Adam<float> adam(l, {.learning_rate = -1});
       },
       "[AdamConfig] learning_rate is -1: it must lie in [0, 1e+30]"},
      {"a file that is not there",
       [&] {
         auto l = linear;
         infty::load_parameters(folder / "none", l);
       },
       "[open] " + place + "/none: No such file or directory"},
      {"a file of another layer",
       [&] {
         auto l = linear;
         infty::load_parameters(stored("layer", 1.f, {2, 2}), l);
       },
       "[safetensors] " + place + "/layer: tensor 'weight' is [2, 2], [3, 4] is needed"},
      {"a file of integers",
       [&] {
         auto l = linear;
         infty::load_parameters(stored("integers", Index{1}, {3, 4}), l);
       },
       "[safetensors] " + place + "/integers: tensor 'weight' is I64, asked for as F32"},
      {"a layer without memory tokens",
       [&] { infty::RecurrentTokens<Attention>(attention, {.tokens = 0}, 4, Random(1)); },
       "[RecurrentTokensConfig] tokens is 0: it must be at least 1"},
      {"a stack without layers",
       [&] {
         infty::Layers<Attention> none;
         auto s = none.make_state(1);
         none.forward(s, zeros({1, 2, 4}), pass);
       },
       "[Layers] there are no layers: none was added, or the model was moved from"},
  };
  for (const auto& [what, made, said] : mistakes) {
    INFO(what);
    CHECK(message_of(made) == said);
  }
}

}  // namespace beginners
