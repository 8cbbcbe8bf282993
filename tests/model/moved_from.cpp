// SPDX-License-Identifier: MIT
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/infty.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"

// What was moved from answers as an empty object does, or throws an infty::Error; then it may be
// assigned to. The sanitizers see to it that it does nothing else.

using infty::Index;
using infty::Random;
using infty::Shape;
using infty::Tensor;
using infty::Variable;

namespace {

template <class X>
struct Call {
  const char* name;
  std::function<void(X&)> call;
};

/// Makes each of the calls on an object that was moved from, and then on one that took its place.
template <class X, class Make>
void each_after_move(const char* type, Make make, const std::vector<Call<X>>& calls) {
  for (const Call<X>& each : calls) {
    CAPTURE(type, each.name);
    X x = make();
    [[maybe_unused]] const X taken = std::move(x);
    const auto outcome = [&](X& object) -> std::string {
      try {
        each.call(object);
        return "";
      } catch (const infty::Error& error) {
        return error.what();
      }
    };
    CHECK_NOTHROW(outcome(x));
    X copy = x;  // of one that was moved from
    CHECK_NOTHROW(outcome(copy));
    x = make();
    CHECK(outcome(x) == "");
  }
}

const infty::LongTermConfig small_memory{
    .model_dim = 4, .heads = 2, .head_dim = 3, .basis = 8, .widths = {.05, .2}, .samples = 6};
constexpr infty::AttentionSizes attention_sizes{.model_dim = 4, .heads = 2, .head_dim = 3};

/// A segment with an answer and one without, for the sizes above.
template <class M>
void forward(const M& memory, typename M::State& state) {
  for (const bool answer : {true, false}) {
    infty::Pass<float> pass{.answer = answer};
    if constexpr (requires { state.held; })  // what it remembers stands in front
      for (const Index held : state.held) pass.before = std::max(pass.before, held);
    const Variable<float> x(Tensor<float>::full({2, pass.before + 2, 4}, 1));
    infty::run_layer(memory, state, x, pass);
  }
}

/// Calls that every memory has, on the memory and on a state of it.
template <class M>
void memory_after_move(const char* type, const typename M::Config& config) {
  const auto make = [&] { return M(config, attention_sizes, Random(1)); };
  each_after_move<M>(type, make,
                     {{"forward",
                       [](M& memory) {
                         auto state = memory.make_state(2);
                         forward(memory, state);
                         forward(memory, state);
                       }},
                      {"flops",
                       [](M& memory) {
                         if constexpr (requires { memory.flops(1, 2); }) memory.flops(1, 2);
                       }},
                      {"parameters", [](M& memory) { infty::count_parameters(memory); }}});
  using State = typename M::State;
  const M memory = make();
  each_after_move<State>(
      type, [&] { return memory.make_state(2); },
      {{"forward", [&](State& state) { forward(memory, state); }},
       {"batch_of", [](State& state) { infty::batch_of(state); }},
       {"bytes_of", [](State& state) { infty::bytes_of(state); }},
       {"is_finite", [](State& state) { infty::is_finite(state); }},
       {"reset_row", [](State& state) { infty::reset_row(state, 0); }},
       {"take_rows", [](State& state) { infty::take_rows(state, 0, 1); }},
       {"join_rows",
        [](State& state) {
          infty::join_rows(std::vector{state, state});
        }},
       {"put_rows", [](State& state) { infty::put_rows(state, 0, State(state)); }}});
}

}  // namespace

TEST_CASE("moved from: tensors") {
  using X = Tensor<float>;
  each_after_move<X>("Tensor",
                     [] {
                       return X::full({2, 3}, 1);
                     },
                     {{"shape", [](X& x) { x.shape(); }},
                      {"size", [](X& x) { x.bytes(); }},
                      {"data", [](X& x) { x.data(); }},
                      {"version", [](X& x) { x.version(); }},
                      {"reshape",
                       [](X& x) {
                         x.reshape({3, 2});
                       }},
                      {"slice", [](X& x) { x.slice(1, 2); }},
                      {"clone", [](X& x) { x.clone(); }},
                      {"copy_from",
                       [](X& x) {
                         x.copy_from(X::zeros({2, 3}));
                       }},
                      {"fill", [](X& x) { x.fill(2); }},
                      {"to_vector", [](X& x) { x.to_vector(); }},
                      {"item", [](X& x) { x.reshape({6}).slice(0, 1).item(); }},
                      {"cast", [](X& x) { x.cast<double>(); }},
                      {"same", [](X& x) { same(x, x); }},
                      {"matrix", [](X& x) { infty::matrix(x).setZero(); }}});
  X x = X::full({2}, 1);
  const X y = std::move(x);
  CHECK(x.shape() == Shape{0});
}

TEST_CASE("moved from: variables") {
  using V = Variable<float>;
  each_after_move<V>("Variable",
                     [] {
                       return V(Tensor<float>::full({2, 3}, 1), true);
                     },
                     {{"value", [](V& x) { x.value().fill(3); }},
                      {"const value", [](V& x) { std::as_const(x).value().to_vector(); }},
                      {"shape", [](V& x) { x.dim(-1); }},
                      {"size", [](V& x) { x.size(); }},
                      {"requires_grad", [](V& x) { x.requires_grad(); }},
                      {"set_requires_grad", [](V& x) { x.set_requires_grad(true); }},
                      {"has_grad", [](V& x) { x.has_grad(); }},
                      {"grad", [](V& x) { x.grad().fill(1); }},
                      {"grad_target", [](V& x) { x.grad_target(); }},
                      {"zero_grad", [](V& x) { x.zero_grad(); }},
                      {"detach", [](V& x) { x.detach(); }},
                      {"to", [](V& x) { x.to<infty::EigenBackend>(); }},
                      {"same", [](V& x) { same(x, x); }},
                      {"multiply", [](V& x) {
                         infty::Tape tape;
                         tape.backward(infty::sum(x * x + x));
                       }}});
  V x(Tensor<float>::full({2}, 1), true);
  const V y = std::move(x);
  CHECK(x.shape() == Shape{0});
  CHECK_FALSE(x.requires_grad());
  x.value() = Tensor<float>::full({3}, 2);
  x.set_requires_grad(true);
  infty::Tape tape;
  tape.backward(infty::sum(x * x));
  CHECK(x.grad().to_vector() == std::vector<float>(3, 4));
  CHECK(y.shape() == Shape{2});
}

TEST_CASE("moved from: a variable between recording and backward") {
  infty::Tape tape;
  Variable<float> x(Tensor<float>::full({2}, 1), true), y = infty::sum(x * x);
  const Variable<float> taken = std::move(x), loss = std::move(y);
  CHECK_THROWS_AS(tape.backward(y), infty::Error);
  tape.backward(loss);
  CHECK(taken.grad().to_vector() == std::vector<float>{2, 2});
}

TEST_CASE("moved from: layers") {
  const Variable<float> x(Tensor<float>::full({2, 4}, 1));
  const auto tokens = Tensor<Index>::full({2}, 1);
  Random random(1);
  using Linear = infty::Linear<float>;
  each_after_move<Linear>("Linear", [] { return Linear(4, 3, Random(1)); },
                          {{"forward", [&](Linear& layer) { layer.forward(x); }}});
  using Norm = infty::LayerNorm<float>;
  each_after_move<Norm>("LayerNorm", [] { return Norm(4); },
                        {{"forward", [&](Norm& layer) { layer.forward(x); }}});
  using Feed = infty::FeedForward<float>;
  each_after_move<Feed>("FeedForward", [] { return Feed(4, 8, Random(1)); },
                        {{"forward", [&](Feed& layer) {
                            infty::Pass<float> pass{.random = &random, .dropout = .1};
                            layer.forward(x, pass);
                          }}});
  using Table = infty::Embedding<float>;
  each_after_move<Table>("Embedding", [] { return Table(5, 4, Random(1)); },
                         {{"forward", [&](Table& layer) { layer.forward(tokens); }}});
  for (const std::vector<Index>& cutoffs : {std::vector<Index>{}, std::vector<Index>{3, 5}}) {
    const infty::AdaptiveConfig config{
        .vocabulary = 9, .model_dim = 4, .cutoffs = cutoffs, .div_value = 2};
    using Adaptive = infty::AdaptiveEmbedding<float>;
    each_after_move<Adaptive>(
        "AdaptiveEmbedding", [&] { return Adaptive(config); },
        {{"forward", [&](Adaptive& layer) { layer.forward(tokens); }},
         {"projection", [](Adaptive& layer) { layer.projection(0); }},
         {"parameters", [](Adaptive& layer) { infty::count_parameters(layer); }}});
    using Softmax = infty::AdaptiveSoftmax<float>;
    each_after_move<Softmax>(
        "AdaptiveSoftmax", [&] { return Softmax(config); },
        {{"losses", [&](Softmax& layer) { layer.losses(x, tokens); }},
         {"log_probabilities", [&](Softmax& layer) { layer.log_probabilities(x); }},
         {"head", [&](Softmax& layer) { layer.head(x); }},
         {"parameters", [](Softmax& layer) { infty::count_parameters(layer); }}});
  }
  using Compressor = infty::Compressor<float>;
  for (const auto kind :
       {infty::Compression::convolution, infty::Compression::dilated, infty::Compression::mean})
    each_after_move<Compressor>("Compressor", [&] { return Compressor(kind, 2, 4, Random(1)); },
                                {{"forward",
                                  [](Compressor& layer) {
                                    layer.forward(Variable<float>(Tensor<float>::zeros({1, 4, 4})));
                                  }},
                                 {"flops", [](Compressor& layer) { layer.flops(2); }}});
}

TEST_CASE("moved from: ridge caches and long-term memories") {
  using Cache = infty::RidgeCache<float, infty::EigenBackend, infty::GaussianBasis<float>>;
  each_after_move<Cache>("RidgeCache",
                         [] {
                           return Cache(infty::GaussianBasis<float>(8, {.1, .2}), {.samples = 6});
                         },
                         {{"first", [](Cache& cache) { cache.first(3); }},
                          {"next", [](Cache& cache) { cache.next(3); }},
                          {"entries", [](Cache& cache) { cache.entries(); }},
                          {"bytes", [](Cache& cache) { cache.bytes(); }},
                          {"basis", [](Cache& cache) { cache.basis().size(); }}});
  const Tensor<float> x = Tensor<float>::full({2, 3, 4}, 1), q = Tensor<float>::full({2, 3, 6}, 1);
  using Memory = infty::LongTermMemory<float>;
  using State = Memory::State;
  for (const auto resampling : {infty::Resampling::even, infty::Resampling::sticky})
    for (const auto parameters :
         {infty::DensityParameters::affine, infty::DensityParameters::moments}) {
      auto config = small_memory;
      config.resampling = resampling;
      config.parameters = parameters;
      const Memory memory(config);
      auto written = memory.make_state(2);
      memory.write(written, x);
      each_after_move<Memory>(
          "LongTermMemory", [&] { return Memory(config); },
          {{"write", [&](Memory& m) { m.write(*std::make_unique<State>(written), x); }},
           {"read", [&](Memory& m) { m.read(*std::make_unique<State>(written), q); }},
           {"make_state",
            [&](Memory& m) { m.write(*std::make_unique<State>(m.make_state(2)), x); }},
           {"next_locations", [&](Memory& m) { m.next_locations(written); }},
           {"flops", [](Memory& m) { m.write_flops(1, 2); }},
           {"basis", [](Memory& m) { m.basis().centre(0); }},
           {"sibling", [](Memory& m) { m.sibling(Random(2)); }},
           {"parameters", [](Memory& m) { infty::count_parameters(m); }}});
      each_after_move<State>(
          "LongTermState", [&] { return written; },
          {{"write", [&](State& state) { memory.write(state, x); }},
           {"read", [&](State& state) { memory.read(state, q); }},
           {"next_locations", [&](State& state) { memory.next_locations(state); }}});
    }
}

TEST_CASE("moved from: a uniform memory takes in nothing, not even what only waits") {
  using Memory = infty::UniformMemory<float>;
  Memory::Config config;
  static_cast<infty::LongTermConfig&>(config) = small_memory;
  Memory memory(config);
  auto state = memory.make_state(2);
  const Tensor<float> x = Tensor<float>::full({2, 1, 4}, 1);
  const Memory taken = std::move(memory);
  CHECK_THROWS_AS(memory.write(state, x), infty::ValueError);
  CHECK_THROWS_AS(memory.seen(state), infty::ValueError);
  CHECK(state.taken == infty::RowCounts{0, 0});
  CHECK_NOTHROW(taken.write(state, x));
}

TEST_CASE("moved from: memories of parts, memories that learn, and lookups take in nothing") {
  const Variable<float> x(Tensor<float>::full({2, 3, 4}, 1)), q(Tensor<float>::full({2, 3, 6}, 1));
  const auto takes_in_nothing = [&]<class M>(const char* type, const M& made) {
    CAPTURE(type);
    M memory = made;
    auto state = memory.make_state(2);
    memory.write(state, x, {3, 3});
    const M taken = std::move(memory);
    const auto before = infty::tests::numbers_of(state);
    CHECK_THROWS_AS(memory.write(state, x, {3, 3}), infty::ValueError);
    CHECK_THROWS_AS(memory.read(state, q), infty::ValueError);
    CHECK(infty::tests::numbers_of(state) == before);
    if constexpr (requires { memory.shows_older(); }) CHECK_FALSE(memory.shows_older());
    [[maybe_unused]] const auto gone = std::move(state);
    CHECK_THROWS_AS(memory.write(state, x, {3, 3}), infty::ValueError);
    CHECK_THROWS_AS(taken.write(state, x, {3, 3}), infty::Error);
    memory = made;
    state = memory.make_state(2);
    CHECK_NOTHROW(memory.write(state, x, {3, 3}));
  };
  using Uniform = infty::UniformMemory<float>;
  Uniform::Config uniform{small_memory};
  uniform.waiting = infty::Waiting::short_term;
  for (const auto reading : {infty::MixedReading::heads, infty::MixedReading::gate}) {
    const auto mixed = [&]<class M>(const auto& part) {
      return M(
          {.model_dim = 4, .heads = 2, .head_dim = 3, .reading = reading, .parts = {part, part}});
    };
    takes_in_nothing(
        "MixedMemory<LongTermMemory>",
        mixed.operator()<infty::MixedMemory<infty::LongTermMemory<float>>>(small_memory));
    takes_in_nothing("MixedMemory<UniformMemory>",
                     mixed.operator()<infty::MixedMemory<Uniform>>(uniform));
  }
  takes_in_nothing(
      "TitansMemory",
      infty::TitansMemory<float>(
          {.model_dim = 4, .heads = 2, .head_dim = 3, .chunk = 2, .weights_every = 2}));
  using Engram = infty::Engram<float>;
  for (const Index words : {2, 0})
    each_after_move<Engram>(
        "Engram",
        [] {
          return Engram({.lookup = {0, 1}, .pad = 0, .heads = 1, .width = 2, .table_sizes = {3, 3}},
                        4);
        },
        {{"forward", [words](Engram& engram) {
            auto state = engram.make_state(2);
            infty::Pass<float> pass{.words = Tensor<Index>::full({2, words}, 1)};
            engram.forward(state, Variable<float>(Tensor<float>::full({2, words, 4}, 1)), pass);
          }}});
}

TEST_CASE("moved from: memories and their states") {
  memory_after_move<infty::ShortTermMemory<float>>("ShortTermMemory", {.capacity = 3});
  memory_after_move<infty::NoMemory<float>>("NoMemory", {});
  memory_after_move<infty::LaMemo<float>>("LaMemo", {.capacity = 3});
  memory_after_move<infty::CompressiveMemory<float>>(
      "CompressiveMemory", {.capacity = 2, .compressed_capacity = 2, .rate = 2});
  memory_after_move<infty::InftyMemory<float>>(
      "InftyMemory", {.attention = {.capacity = 2}, .memory = small_memory});
  memory_after_move<infty::Titans<float>>("Titans", {.convolution = 2});
  memory_after_move<infty::MemorizingAttention<float>>("MemorizingAttention",
                                                       {.capacity = 4, .k = 2, .cache = 1});
  memory_after_move<infty::InfiniAttention<float>>("InfiniAttention", {.segment = 3});
  memory_after_move<infty::GatedDeltaNet<float>>("GatedDeltaNet", {});
  memory_after_move<infty::LinearAttention<float>>("LinearAttention", {});
  memory_after_move<infty::MemSizer<float>>("MemSizer", {.slots = 3});
}

TEST_CASE("moved from: models, their states and optimisers") {
  const auto tokens = Tensor<Index>::full({2, 3}, 1);
  using Model = infty::TransformerLM<infty::InftyMemory<float>>;
  for (const bool tied : {false, true}) {
    const infty::TransformerConfig config{.vocabulary = 9,
                                          .model_dim = 4,
                                          .layers = 2,
                                          .heads = 2,
                                          .head_dim = 3,
                                          .feed_forward = 8,
                                          .tie_embedding = tied};
    const auto make = [&] {
      return Model(config, {.attention = {.capacity = 2}, .memory = small_memory}, Random(1));
    };
    const Model model = make();
    auto begun = model.make_state(2);
    const auto hidden = model.forward(begun, tokens);
    each_after_move<Model>(
        "TransformerLM", make,
        {{"forward", [&](Model& m) { m.forward(*std::make_unique<Model::State>(begun), tokens); }},
         {"observe", [&](Model& m) { m.observe(*std::make_unique<Model::State>(begun), tokens); }},
         {"make_state", [&](Model& m) { m.make_state(2); }},
         {"its own state",
          [&](Model& m) { m.forward(*std::make_unique<Model::State>(m.make_state(2)), tokens); }},
         {"logits", [&](Model& m) { m.logits(hidden); }},
         {"losses", [&](Model& m) { m.losses(hidden, tokens); }},
         {"parameters", [](Model& m) { infty::count_parameters(m); }}});
    using State = Model::State;
    each_after_move<State>("LanguageModelState", [&] { return begun; },
                           {{"forward", [&](State& state) { model.forward(state, tokens); }},
                            {"observe", [&](State& state) { model.observe(state, tokens); }},
                            {"take_rows", [](State& state) { infty::take_rows(state, 0, 1); }},
                            {"reset_row", [](State& state) { infty::reset_row(state, 0); }}});
  }
  auto layer = infty::Linear<float>(3, 2, Random(1));
  infty::Adam<float> adam(layer);
  infty::Adam<float> taken = std::move(adam);
  adam.zero_grad();
  CHECK(adam.parameters().empty());
  CHECK_NOTHROW(adam.step());
  adam = std::move(taken);
  CHECK(adam.parameters().size() == 2);
}

TEST_CASE("moved from: texts and tasks") {
  const infty::TokenStream text{.tokens = {1, 2, 3, 4}, .documents = {0}};
  infty::BatchStream batches(text, {.batch = 2, .segment = 2});
  infty::BatchStream taken_batches = std::move(batches);
  CHECK(taken_batches.predicted() == 4);
  CHECK_THROWS_WITH(batches.predicted(), "[BatchStream] it was moved from");
  CHECK_THROWS_WITH(batches.next(), "[BatchStream] it was moved from");
  infty::TranslationTask task;
  const infty::TranslationTask taken_task = std::move(task);
  Random random(1);
  CHECK(taken_task.sample(2, random).size() == 2);
  CHECK_THROWS_WITH(task.sample(2, random), "[TranslationTask::sample] it was moved from");
  infty::TokenCounts counts;
  counts.add("a", 3);
  const infty::TokenCounts taken_counts = std::move(counts);
  CHECK(taken_counts.total() == 3);
  CHECK(counts.total() == 0);
}

TEST_CASE("moved from: a loss in parts begins anew") {
  Variable<float> x(Tensor<float>::from({1}, {3}), true);
  const auto part = [&] { return infty::sum(x * x); };
  infty::Tape tape;
  infty::LossInParts<float> loss;
  loss.add(part);
  const infty::LossInParts<float> taken = std::move(loss);
  CHECK(taken.count() == 1);
  CHECK(loss.count() == 0);
  CHECK(loss.total().value().item() == 0);
  loss.add(part);
  CHECK(loss.count() == 1);
  CHECK(loss.total().value().item() == 9);
  tape.backward(loss.total());
  CHECK(x.grad().item() == 12);  // of both parts
}

TEST_CASE("moved from: what is searched, and tables of places") {
  infty::Datastore<float> store(2);
  const float keys[] = {1, 2, 3, 4};
  const Index tokens[] = {5, 6};
  store.append(keys, tokens, 2);
  infty::ExactIndex<float> index(store);
  const Tensor<float> query = Tensor<float>::full({1, 2}, 1);
  const infty::ExactIndex<float> taken_index = std::move(index);
  CHECK(index.size() == 0);
  CHECK_NOTHROW(index.search(query, 1));
  infty::Datastore<float> other(2);
  other.append(keys, tokens, 2);
  const infty::Datastore<float> taken_store = std::move(other);
  CHECK(taken_store.size() == 2);
  CHECK(other.size() == 0);
  CHECK_THROWS_AS(other.tokens(Tensor<Index>::zeros({1})), infty::ShapeError);
  const infty::tests::TemporaryFolder folder;
  {
    auto built = infty::Datastore<float>::build(folder / "store", 2, {}, 1);
    built.append(keys, tokens, 2);
  }
  auto opened = infty::Datastore<float>::open(folder / "store");
  const auto taken_opened = std::move(opened);
  CHECK(taken_opened.key(1)[1] == 4);
  CHECK(opened.size() == 0);
  CHECK_THROWS_WITH(opened.append(keys, tokens, 2), "[Datastore::append] it was moved from");
  CHECK(opened.size() == 0);

  infty::KnnTuning tuning({2, 1}, {1.});
  const infty::KnnTuning taken_tuning = std::move(tuning);
  CHECK(taken_tuning.most() == 2);
  CHECK_THROWS_WITH(tuning.most(), "[KnnTuning] it was moved from");
  CHECK_THROWS_WITH(tuning.best(), "[KnnTuning] it was moved from");

  infty::EpisodicMemory<float> memory(3);
  const infty::EpisodicMemory<float> taken_memory = std::move(memory);
  CHECK(taken_memory.key_dim() == 3);
  CHECK(memory.key_dim() == 0);
  CHECK(memory.size() == 0);

  infty::RotaryTable<float> rotary;
  const infty::RotaryTable<float> taken_rotary = std::move(rotary);
  CHECK_THROWS_WITH(rotary.reaching(4, 2), "[RotaryTable] it was moved from");
  CHECK(taken_rotary.reaching(4, 2).shape()[0] == 4);
  infty::DistanceTable<float> distances;
  const infty::DistanceTable<float> taken_distances = std::move(distances);
  CHECK_THROWS_WITH(distances.reaching(4, 2), "[DistanceTable] it was moved from");
  CHECK(taken_distances.reaching(4, 2).shape()[0] == 4);
}
