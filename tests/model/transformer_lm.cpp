// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/core/pool.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>

#include "support/catch.hpp"
#include "support/count_new.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

using infty::Index;
using infty::InftyConfig;
using infty::LongTermConfig;
using infty::Random;
using infty::Resampling;

using infty::Shape;
using infty::Tensor;
using infty::TransformerConfig;
using infty::Variable;
using infty::tests::numbers_of;

namespace {

/// A model's sizes and its memory's constants.
struct Settings {
  TransformerConfig model{
      .vocabulary = 9, .model_dim = 6, .layers = 2, .heads = 2, .head_dim = 4, .feed_forward = 8};
  InftyConfig memory{.attention = {.capacity = 4},
                     .memory = LongTermConfig{.basis = 8, .widths = {.05, .2}, .samples = 6}};
};

template <class T>
using Model = infty::TransformerLM<infty::InftyMemory<T>>;

template <class T>
Model<T> make_model(const Settings& settings = {}, std::uint64_t seed = 0) {
  return Model<T>(settings.model, settings.memory, Random(seed));
}

Tensor<Index> draw(Index batch, Index length, Random& random, Index vocabulary = 9) {
  Tensor<Index> tokens(Shape{batch, length});
  for (Index i = 0; i < tokens.size(); ++i) tokens.data()[i] = random.below(vocabulary);
  return tokens;
}

/// The settings that tests of all combinations run over.
Settings combination(int i) {
  Settings settings;
  settings.model.pre_norm = i & 1;
  auto& attention = settings.memory.attention;
  auto& memory = settings.memory.memory;
  if (i & 2) memory.reset();
  if (i & 4) attention.capacity = 0;
  if (i & 8 && memory) memory->resampling = Resampling::sticky;
  if (i & 16) attention.stride = 1;
  return settings;
}

}  // namespace

TEST_CASE("TransformerLM: parameters by name") {
  Settings settings;
  settings.model.layers = 1;
  settings.model.tie_embedding = false;
  auto model = make_model<float>(settings);
  std::vector<std::string> names;
  infty::for_each_parameter(
      model, [&](const std::string& name, Variable<float>&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"embedding.weight",
                                          "layers.0.mixer.attention.query.weight",
                                          "layers.0.mixer.attention.key.weight",
                                          "layers.0.mixer.attention.value.weight",
                                          "layers.0.mixer.attention.position.weight",
                                          "layers.0.mixer.attention.out.weight",
                                          "layers.0.mixer.attention.content_bias",
                                          "layers.0.mixer.attention.position_bias",
                                          "layers.0.mixer.memory.gate_weight",
                                          "layers.0.mixer.memory.gate_bias",
                                          "layers.0.mixer.memory.key.weight",
                                          "layers.0.mixer.memory.value.weight",
                                          "layers.0.mixer.memory.density_weight",
                                          "layers.0.mixer.memory.out.weight",
                                          "layers.0.mixer_norm.weight",
                                          "layers.0.mixer_norm.bias",
                                          "layers.0.feed.inner.weight",
                                          "layers.0.feed.inner.bias",
                                          "layers.0.feed.outer.weight",
                                          "layers.0.feed.outer.bias",
                                          "layers.0.feed_norm.weight",
                                          "layers.0.feed_norm.bias",
                                          "output_weight",
                                          "output_bias"});
  CHECK(same(make_model<float>().head.weights[0], make_model<float>().embedding.weights[0]) ==
        false);
  const auto tied = make_model<float>();
  CHECK(same(tied.head.weights[0], tied.embedding.weights[0]));
}

TEST_CASE("TransformerLM: with cutoffs, losses are those of the log-probabilities") {
  Settings settings;
  settings.model.layers = 1;
  settings.model.cutoffs = {3, 5};
  settings.model.div_value = 2;
  auto model = make_model<double>(settings);
  std::vector<std::string> names;
  infty::for_each_parameter(model, [&](const std::string& name, Variable<double>&) {
    if (!name.starts_with("layers.")) names.push_back(name);
  });
  CHECK(names == std::vector<std::string>{"embedding.weights.0", "embedding.weights.1",
                                          "embedding.weights.2", "embedding.projections.0",
                                          "embedding.projections.1", "embedding.projections.2",
                                          "softmax.bias.0", "softmax.bias.1", "softmax.bias.2",
                                          "softmax.projection.0", "softmax.cluster_weight",
                                          "softmax.cluster_bias"});
  Random random(infty::tests::seed);
  auto state = model.make_state(2);
  const auto hidden = model.forward(state, draw(2, 4, random));
  const auto targets = draw(2, 4, random);
  const auto log_p = model.logits(hidden), losses = model.losses(hidden, targets);
  const Index vocabulary = model.config().vocabulary;
  CHECK(log_p.shape() == Shape{2, 4, vocabulary});
  for (Index i = 0; i < 8; ++i)
    CHECK(losses.value().data()[i] ==
          Approx(-log_p.value().data()[i * vocabulary + targets.data()[i]]));
}

TEST_CASE("TransformerLM: `observe` leaves the state that `forward` leaves") {
  const int i = GENERATE(range(0, 32));
  const auto model = make_model<double>(combination(i), 3);
  Random random(infty::tests::seed);
  auto a = model.make_state(2), b = model.make_state(2);
  for (const Index length : {3, 1, 9, 2, 5}) {
    const auto tokens = draw(2, length, random);
    model.forward(a, tokens);
    model.observe(b, tokens);
    CAPTURE(i, length);
    // `observe` takes rows one by one: a product of fewer rows may round otherwise.
    CHECK(infty::tests::error(numbers_of(b), numbers_of(a)) < 1e-13);
  }
}

TEST_CASE("TransformerLM: `observe` in segments is one `observe` a segment") {
  const auto model = make_model<double>(combination(GENERATE(range(0, 32))), 3);
  const Index batch = GENERATE(1, 3, 19), segment = GENERATE(1, 4, 50), length = 11;
  Random random(infty::tests::seed);
  const auto tokens = draw(batch, length, random);
  auto whole = model.make_state(batch), pieces = model.make_state(batch);
  model.observe(whole, tokens, segment);
  for (Index begin = 0; begin < length; begin += segment) {
    const Index width = std::min(segment, length - begin);
    std::vector<Index> piece;
    for (Index row = 0; row < batch; ++row)
      for (Index i = begin; i < begin + width; ++i)
        piece.push_back(tokens.data()[row * length + i]);
    model.observe(pieces, Tensor<Index>::from({batch, width}, piece));
  }
  CHECK(numbers_of(whole) == numbers_of(pieces));
}

TEST_CASE("TransformerLM: what is kept between segments without a gradient changes nothing") {
  const int i = GENERATE(range(0, 32));
  auto model = make_model<double>(combination(i), 3);
  Random random(infty::tests::seed);
  // One reads without a gradient and keeps keys and values, the other records and keeps none.
  auto kept = model.make_state(3), recorded = kept;
  const auto step = [&](const Tensor<Index>& tokens) {
    const auto a = model.forward(kept, tokens).value().to_vector();
    infty::Tape tape;
    const auto b = model.forward(recorded, tokens).value().to_vector();
    CHECK(a == b);
    CHECK(numbers_of(kept) == numbers_of(recorded));
  };
  CAPTURE(i);
  for (const Index length : {3, 1, 1, 9, 1, 2}) step(draw(3, length, random));
  // Rows are reset, taken apart, joined and replaced; then parameters change.
  for (auto* state : {&kept, &recorded}) infty::reset_row(*state, 1);
  step(draw(3, 1, random));
  step(draw(3, 2, random));
  for (auto* state : {&kept, &recorded}) infty::put_rows(*state, 0, infty::take_rows(*state, 2, 3));
  step(draw(3, 1, random));
  infty::for_each_parameter(model, [&](const std::string&, Variable<double>& parameter) {
    Tensor<double>& value = parameter.value();
    for (Index k = 0; k < value.size(); ++k) value.data()[k] *= 1.0625;
    // One at a time: each of them must be noticed.
    step(draw(3, 1, random));
  });
  // Another model does not take this one's keys for its own.
  const auto other = make_model<double>(combination(i), 4);
  const auto tokens = draw(3, 2, random);
  const auto a = other.forward(kept, tokens).value().to_vector();
  infty::Tape tape;
  CHECK(a == other.forward(recorded, tokens).value().to_vector());
}

TEST_CASE("TransformerLM: what leaves the short-term memory enters the long-term memory") {
  Settings settings;
  settings.memory.attention.stride = 1;
  const auto model = make_model<double>(settings);
  Random random(infty::tests::seed);
  auto state = model.make_state(1);
  Index seen = 0;
  for (const Index length : {3, 1, 9, 2, 5}) {
    model.forward(state, draw(1, length, random));
    seen += length;
    for (const auto& layer : state.body.layers) {
      const Index held = layer.mixer.attention.recent.length[0];
      CHECK(held == std::min<Index>(4, seen));
      // Leaving vectors are written by the next call.
      CHECK(layer.mixer.past->memory.written[0] + layer.mixer.past->leaving.length[0] + held ==
            seen);
    }
  }
}

TEST_CASE("TransformerLM: no output depends on a later token, and no gradient reaches one") {
  const int i = GENERATE(range(0, 8));
  const auto model = make_model<double>(combination(i), 3);
  Random random(infty::tests::seed);
  auto before = model.make_state(1);
  model.observe(before, draw(1, 9, random, 4));
  model.observe(before, draw(1, 9, random, 4));
  auto tokens = draw(1, 7, random, 4);
  auto state = before;
  const auto expected = model.forward(state, tokens).value().to_vector();
  for (Index place = 1; place < 7; ++place) {
    auto changed = tokens.clone();
    for (Index k = place; k < 7; ++k) changed.data()[k] = 5 + k % 2;
    state = before;
    infty::Tape tape;
    const auto hidden = model.forward(state, changed);
    const auto values = hidden.value().to_vector();
    for (std::size_t k = 0; k < static_cast<std::size_t>(place * 6); ++k)
      CHECK(values[k] == expected[k]);
    auto table = model.embedding.weights[0];
    table.zero_grad();
    tape.backward(infty::sum(infty::narrow(hidden, 0, place)));
    // Tokens 5 and 6 stand at later places only.
    CHECK(table.grad().slice(5, 7).to_vector() == std::vector<double>(12, 0.0));
  }
}

TEST_CASE("TransformerLM: rows of different age in one batch are as if alone") {
  const int i = GENERATE(range(0, 8));
  const auto model = make_model<double>(combination(i), 3);
  Random random(infty::tests::seed);
  auto state = model.make_state(3);
  for (int step = 0; step < 3; ++step) {
    model.observe(state, draw(3, 5, random));
    infty::reset_row(state, step);
  }
  for (int step = 0; step < 3; ++step) {
    const auto tokens = draw(3, 4, random);
    std::vector<double> alone;
    for (Index row = 0; row < 3; ++row) {
      auto own = infty::take_rows(state, row, row + 1);
      const auto z = model.forward(own, tokens.slice(row, row + 1)).value().to_vector();
      alone.insert(alone.end(), z.begin(), z.end());
    }
    CAPTURE(i, step);
    CHECK(infty::tests::error(model.forward(state, tokens).value().to_vector(), alone) < 1e-12);
  }
}

TEST_CASE("TransformerLM: the regulariser is the sum over all densities") {
  const auto model = make_model<double>();
  Random random(infty::tests::seed);
  auto state = model.make_state(2);
  infty::Pass<double> pass{.traced = true, .regularised = true};
  model.forward(state, draw(2, 5, random), pass);
  double total = 0;
  infty::Index layers = 0;
  for (const auto& shown : pass.trace) {
    if (shown.name != "density") continue;
    CHECK(shown.layer == layers++);
    CHECK(shown.value.shape() == Shape{2, 2, 2, 5});
    for (const double x : infty::kl(shown.value, .05).value().to_vector()) total += x;
  }
  CHECK(layers == 2);
  CHECK(pass.layer == -1);
  CHECK(loss_named(pass, "divergence").value().item() == Approx(total));
  CHECK(loss_named(pass, "compression").value().item() == 0);
  Settings settings;
  settings.memory.memory.reset();
  const auto without = make_model<double>(settings);
  auto plain = without.make_state(2);
  infty::Pass<double> nothing{.traced = true, .regularised = true};
  without.forward(plain, draw(2, 5, random), nothing);
  CHECK(nothing.losses.empty());
  CHECK(nothing.trace.empty());
  // Nobody asked: nothing is computed.
  infty::Pass<double> quiet;
  model.forward(state, draw(2, 5, random), quiet);
  CHECK(quiet.losses.empty());
  CHECK(quiet.trace.empty());
}

TEST_CASE("TransformerLM: dropout comes from the caller's generator alone") {
  Settings settings;
  settings.model.dropout = 0.3;
  const auto model = make_model<double>(settings);
  Random random(infty::tests::seed);
  const auto tokens = draw(2, 5, random);
  const auto run = [&](Random* draws) {
    auto state = model.make_state(2);
    infty::Pass<double> pass{.random = draws};
    return model.forward(state, tokens, pass).value().to_vector();
  };
  Random a(1), b(1), c(2);
  const auto first = run(&a);
  CHECK(run(&b) == first);
  CHECK(run(&a) != first);  // it has moved on
  CHECK(run(&c) != first);
  CHECK(run(nullptr) != first);
  CHECK(run(nullptr) == run(nullptr));
}

TEST_CASE("TransformerLM: the same bits with one thread and with two") {
  const int i = GENERATE(0, 1, 8);
  const auto run = [i] {
    auto settings = combination(i);
    settings.model.dropout = 0.1;
    auto model = make_model<float>(settings, 3);
    Random random(infty::tests::seed), draws(5);
    auto state = model.make_state(3);
    std::vector<double> all;
    model.observe(state, draw(3, 60, random), 20);  // by parts that the threads decide
    for (int step = 0; step < 3; ++step) {
      infty::Tape tape;
      infty::Pass<float> pass{.random = &draws};
      const auto hidden = model.forward(state, draw(3, 70, random), pass);
      const auto loss = infty::cross_entropy(model.logits(hidden), draw(3, 70, random));
      tape.backward(loss + infty::scale(loss_named(pass, "divergence"), 1e-4f));
      all.push_back(static_cast<double>(loss.value().item()));
    }
    infty::for_each_parameter(model, [&](const std::string&, Variable<float>& p) {
      for (const float g : p.grad().to_vector()) all.push_back(static_cast<double>(g));
    });
    return all;
  };
  const auto alone = infty::tests::with_threads(1, run);
  for (const int threads : {2, 8}) {  // and more than there are rows, or processors
    CAPTURE(threads);
    CHECK(infty::tests::with_threads(threads, run) == alone);
  }
}

TEST_CASE("TransformerLM: a step asks the system for no memory after the first ones") {
  const int i = GENERATE(0, 1, 8);
  auto model = make_model<float>(combination(i), 3);
  Random random(infty::tests::seed);
  const auto tokens = draw(3, 8, random), targets = draw(3, 8, random);
  auto state = model.make_state(3);
  auto parameters = infty::parameters<float>(model);
  const auto step = [&] {
    for (auto& p : parameters) p.zero_grad();
    infty::Tape tape;
    infty::Pass<float> pass;
    const auto hidden = model.forward(state, tokens, pass);
    const auto loss = infty::cross_entropy(model.logits(hidden), targets);
    tape.backward(loss + loss_named(pass, "divergence"));
  };
  const auto allocations = [] {
    return infty::HostPool::instance().statistics().system_allocations;
  };
  // One thread: with more, a second one's scratch memory is asked for when two first happen to need
  // some at once.
  infty::tests::with_threads(1, [&] {
    for (int k = 0; k < 6; ++k) step();  // memories fill, and the first contraction comes
    const std::size_t pool = allocations(), heap = infty::tests::new_calls;
    for (int k = 0; k < 5; ++k) step();
    const std::size_t pool_after = allocations(), heap_after = infty::tests::new_calls;
    CAPTURE(i);
    CHECK(pool_after == pool);
    CHECK(heap_after == heap);
  });
}

TEST_CASE("TransformerLM: with two threads, too, steps come to ask the system for nothing") {
  auto model = make_model<float>(combination(0), 3);
  Random random(infty::tests::seed);
  const auto text = draw(3, 24, random), tokens = draw(3, 8, random), targets = draw(3, 8, random);
  auto parameters = infty::parameters<float>(model);
  const auto step = [&] {
    for (auto& p : parameters) p.zero_grad();
    auto state = model.make_state(3);
    model.observe(state, text, 8);
    infty::Tape tape;
    const auto hidden = model.forward(state, tokens);
    tape.backward(infty::cross_entropy(model.logits(hidden), targets));
  };
  const auto asked = [] {
    return infty::HostPool::instance().statistics().system_allocations + infty::tests::new_calls;
  };
  // How much scratch memory two threads need at once is a matter of chance, but has an end.
  int quiet = 0;
  infty::tests::with_threads(2, [&] {
    for (int k = 0; k < 300 && quiet < 20; ++k) {
      const std::size_t before = asked();
      step();
      quiet = asked() == before ? quiet + 1 : 0;
    }
  });
  CHECK(quiet == 20);
}

TEST_CASE("TransformerLM: the state of a long text stays as large as it was") {
  const auto model = make_model<float>();
  Random random(infty::tests::seed);
  auto state = model.make_state(1);
  const auto tokens = draw(1, 20, random);
  for (int k = 0; k < 10; ++k) model.observe(state, tokens);
  const std::size_t bytes = infty::bytes_of(state);
  for (int k = 0; k < 500; ++k) model.observe(state, tokens);
  CHECK(infty::bytes_of(state) == bytes);
  CHECK(infty::is_finite(state));
  CHECK(state.body.layers[0].mixer.past->memory.written[0] > 10000);
}

TEST_CASE("TransformerLM: what does not fit is refused and leaves the state as it was") {
  const auto model = make_model<float>();
  CHECK_THROWS_AS(model.make_state(0), infty::ValueError);
  Random random(infty::tests::seed);
  auto state = model.make_state(2);
  model.observe(state, draw(2, 9, random));
  const auto before = numbers_of(state);
  CHECK_THROWS_WITH(model.forward(state, draw(1, 3, random)),
                    "[LanguageModel] tokens are [1, 3]: they must be [2, L], L >= 1");
  CHECK_THROWS_AS(model.observe(state, Tensor<Index>(Shape{2, 0})), infty::ShapeError);
  CHECK_THROWS_AS(model.forward(state, Tensor<Index>::zeros({6})), infty::ShapeError);
  CHECK_THROWS_WITH(model.forward(state, Tensor<Index>::full({2, 1}, Index{9})),
                    "[embedding] token 9 at place 1: tokens must lie in [0, 9)");
  CHECK_THROWS_AS(model.observe(state, Tensor<Index>::full({2, 1}, Index{-1})), infty::ValueError);
  CHECK_THROWS_WITH(model.observe(state, draw(2, 3, random), -1),
                    "[LanguageModel::observe] segment is -1: it must be >= 0");
  Settings settings;
  settings.model.layers = 3;
  CHECK_THROWS_WITH(make_model<float>(settings).forward(state, draw(2, 3, random)),
                    "[Layers] the state has 2 layers, the model 3");
  settings = {};
  settings.memory.memory.reset();
  CHECK_THROWS_WITH(make_model<float>(settings).forward(state, draw(2, 3, random)),
                    "[WithMemory] the state has a memory, the layer none");
  settings = {};
  settings.memory.attention.capacity = 5;
  CHECK_THROWS_AS(make_model<float>(settings).forward(state, draw(2, 3, random)),
                  infty::ShapeError);
  settings = {};
  settings.memory.memory->basis = 6;
  CHECK_THROWS_AS(make_model<float>(settings).forward(state, draw(2, 3, random)),
                  infty::ShapeError);
  settings.model.model_dim = 7;
  CHECK_THROWS_AS(make_model<float>(settings), infty::ValueError);
  CHECK_THROWS_AS(model.logits(Tensor<float>::zeros({2, 5})), infty::ShapeError);
  CHECK(numbers_of(state) == before);
}

TEST_CASE("TransformerLM: a parameter written through any handle changes the next hidden state") {
  const auto model = make_model<float>(combination(GENERATE(0, 2)));
  Random random(infty::tests::seed);
  auto state = model.make_state(1);
  const auto tokens = draw(1, 3, random), last = draw(1, 1, random);
  Tensor<float> key = model.body.layers[0].mixer.attention.attention.key.weight.value();
  for (int i = 0; i < 3; ++i) model.forward(state, tokens);
  key.fill(.5F);
  auto fresh = infty::take_rows(state, 0, 1);  // other tensors, whose keys nobody has kept
  CHECK(model.forward(state, last).value().to_vector() ==
        model.forward(fresh, last).value().to_vector());
}

TEST_CASE("TransformerLM: a state written in place changes the next hidden state") {
  const auto model = make_model<float>();
  Random random(infty::tests::seed);
  auto state = model.make_state(1);
  const auto tokens = draw(1, 3, random), last = draw(1, 1, random);
  for (int i = 0; i < 5; ++i) model.forward(state, tokens);
  for (auto& layer : state.body.layers) {
    layer.mixer.attention.recent.vectors.fill(.25F);
    Tensor<float> coefficients = layer.mixer.past->memory.coefficients.value();
    coefficients.fill(.5F);
  }
  auto fresh = infty::take_rows(state, 0, 1);
  CHECK(model.forward(state, last).value().to_vector() ==
        model.forward(fresh, last).value().to_vector());
}

TEST_CASE("TransformerLM: a state whose members do not fit is refused and stays as it was") {
  const auto model = make_model<float>(combination(8));
  Random random(infty::tests::seed);
  auto state = model.make_state(2);
  const auto tokens = draw(2, 3, random);
  for (int i = 0; i < 3; ++i) model.forward(state, tokens);
  const auto good = state;
  auto& layer = state.body.layers[1];
  const auto refused = [&](const std::string& why) {
    const auto before = numbers_of(state);
    CHECK_THROWS_WITH(model.forward(state, tokens), "[LanguageModel] " + why);
    CHECK_THROWS_WITH(model.observe(state, tokens), "[LanguageModel] " + why);
    CHECK(numbers_of(state) == before);
    state = good;
  };
  layer = infty::take_rows(state, 0, 1).body.layers[1];
  refused(
      "the state's layers.1.mixer.attention.recent.vectors has 1 rows, its "
      "layers.0.mixer.attention.recent.vectors 2");
  layer.mixer.past->memory.written.push_back(1);
  refused(
      "the state's layers.1.mixer.past.memory.written has 3 rows, its "
      "layers.0.mixer.attention.recent.vectors 2");
  layer.mixer.past->leaving.length = {0, 9};
  refused("the state's layers.1.mixer.past.leaving.vectors is " +
          (std::ostringstream() << layer.mixer.past->leaving.vectors.shape()).str() +
          ", and a row of it has 9 vectors");
  layer.mixer.past->leaving.vectors = Tensor<float>::zeros({2, 0, 5});
  layer.mixer.past->leaving.length = {0, 0};
  CHECK_THROWS_WITH(
      model.forward(state, tokens),
      "[WithMemory] the state's leaving vectors are [2, 0, 5]: they must be [2, L, 6]");
  state = good;
  layer.mixer.past->memory.attention = Tensor<float>::zeros({2, 3});
  CHECK_THROWS_AS(model.observe(state, tokens), infty::ShapeError);
  state = good;
  layer.mixer.past.reset();
  CHECK_THROWS_AS(model.observe(state, tokens), infty::ShapeError);
}

TEST_CASE("TransformerLM: the first loss of tied embeddings is that of all tokens alike") {
  for (const bool pre_norm : {false, true}) {
    Settings settings;
    settings.model = {.vocabulary = 65,
                      .model_dim = 128,
                      .layers = 2,
                      .heads = 4,
                      .feed_forward = 64,
                      .pre_norm = pre_norm};
    const auto first_loss = [&] {
      Random random(5);
      const auto model = make_model<float>(settings, 2);
      auto state = model.make_state(4);
      const auto hidden = model.forward(state, draw(4, 32, random, 65));
      const auto losses = model.losses(hidden, draw(4, 32, random, 65));
      return static_cast<double>(infty::mean(losses).value().item());
    };
    const double alike = std::log(65.), first = first_loss();
    settings.model.embedding_deviation = 0;  // 1 / sqrt(d)
    const double repeating = first_loss();
    CAPTURE(pre_norm, first, repeating);
    CHECK(std::abs(first - alike) < .3);
    CHECK(repeating > alike + 1);
  }
}
