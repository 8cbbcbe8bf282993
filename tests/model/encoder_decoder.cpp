// SPDX-License-Identifier: MIT
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/memory/joint_slots.hpp>
#include <infty/memory/memformer.hpp>
#include <infty/memory/memory_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/encoder_decoder.hpp>
#include <infty/model/memory_encoder.hpp>
#include <infty/nn/any_layer.hpp>
#include <infty/nn/self_attention.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace encoder_decoder {

using infty::EncoderDecoder;
using infty::Index;
using infty::Random;
using infty::RowCounts;
using infty::tests::error;
using infty::tests::numbers_of;

/// Set for gradients, which are checked one parameter after the other.
inline bool tiny = false;

infty::EncoderDecoderConfig sizes(bool pre_norm = false) {
  const infty::TransformerConfig side{.vocabulary = tiny ? 4 : 7,
                                      .model_dim = 4,
                                      .layers = tiny ? 1 : 2,
                                      .heads = 2,
                                      .head_dim = tiny ? 1 : 3,
                                      .feed_forward = tiny ? 2 : 5,
                                      .pre_norm = pre_norm,
                                      .embedding_deviation = .5};
  infty::EncoderDecoderConfig config{.encoder = side, .decoder = side};
  config.encoder.vocabulary = tiny ? 4 : 6;
  config.encoder.layers = 1;
  return config;
}

template <class T, class B>
auto plain_encoder(const infty::TransformerConfig& config) {
  return infty::blocks<infty::SelfAttention<T, B>>(config, {}, Random(3));
}
template <class T, class B>
auto plain_decoder(const infty::TransformerConfig& config) {
  return infty::decoder_layers<infty::CachedAttention<T, B>>(config, {}, Random(4));
}

template <class T, class B = infty::EigenBackend>
auto plain(bool pre_norm = false) {
  const auto config = sizes(pre_norm);
  return EncoderDecoder(config, plain_encoder<T, B>(config.encoder),
                        plain_decoder<T, B>(config.decoder), Random(5));
}
template <class T, class B = infty::EigenBackend>
auto memory_transformer() {
  const auto config = sizes();
  return EncoderDecoder(config,
                        infty::MemoryTokens(plain_encoder<T, B>(config.encoder), {.tokens = 2},
                                            config.encoder.model_dim, Random(6)),
                        plain_decoder<T, B>(config.decoder), Random(5));
}
template <class T, class B = infty::EigenBackend>
auto bottleneck() {
  const auto config = sizes();
  infty::Layers<infty::MemoryEncoderLayer<T, B>> layers;
  for (const auto encoding : {infty::MemoryEncoding::control, infty::MemoryEncoding::bottleneck})
    layers.layers.push_back(
        {{.encoding = encoding, .feed_forward = 5}, config.encoder.attention_sizes(), Random(7)});
  return EncoderDecoder(config, infty::MemoryTokens(layers, {.tokens = 2}, 4, Random(6)),
                        plain_decoder<T, B>(config.decoder), Random(5));
}
template <class T, class B = infty::EigenBackend>
auto memsizer() {
  const auto config = sizes();
  return EncoderDecoder(config, plain_encoder<T, B>(config.encoder),
                        infty::memsizer_layers<T, B>(config.decoder,
                                                     {.self = {.slots = 3, .query_scale = 1},
                                                      .cross = {.slots = 2, .query_scale = 1},
                                                      .feed_forward = 5},
                                                     Random(4)),
                        Random(5));
}
template <class T, class B = infty::EigenBackend>
auto memformer() {
  using Mixer = infty::Memformer<infty::SelfAttention<T, B>>;
  const auto config = sizes();
  return EncoderDecoder(
      config,
      infty::RecurrentSlots<infty::Layers<infty::Block<Mixer>>>(
          infty::blocks<Mixer>(config.encoder, {.slots = {.slots = 2}}, Random(3))),
      plain_decoder<T, B>(config.decoder), Random(5));
}
template <class T, class B = infty::EigenBackend>
auto joint_slots() {
  const auto config = sizes();
  return EncoderDecoder(config,
                        infty::JointSlots<T, B>(
                            {.slots = 2, .layers = 1, .heads = 2, .feed_forward = 5}, 4, Random(3)),
                        plain_decoder<T, B>(config.decoder), Random(5));
}

template <class F>
void each_form(F&& f, bool small = false) {
  tiny = small;
  f(std::string("plain"), plain<double>());
  f(std::string("norms in front"), plain<double>(true));
  f(std::string("memory transformer"), memory_transformer<double>());
  f(std::string("control and bottleneck"), bottleneck<double>());
  f(std::string("memsizer"), memsizer<double>());
  f(std::string("memformer"), memformer<double>());
  f(std::string("joint slots"), joint_slots<double>());
  tiny = false;
}

using Rows = std::vector<std::vector<Index>>;
const Rows first{{1, 2, 3, 4}, {5, 3}, {}}, second{{4}, {2, 2, 1}, {3, 5}};
const std::vector<Index> inputs{0, 3, 1, 2, 0, 5, 6, 4, 0, 1, 1, 6},
    targets{3, 1, 2, 4, 5, 6, 4, infty::ignore_index, 1, 1, 6, 2};

template <class B = infty::EigenBackend>
auto tokens(const std::vector<Index>& all, Index rows = 3) {
  return infty::Tensor<Index, B>::from({rows, std::ssize(all) / rows}, all);
}

}  // namespace encoder_decoder

TEST_CASE("EncoderDecoder: gradients of every form, through sources of two lengths and the loss") {
  using namespace encoder_decoder;
  each_form(
      [](const std::string& name, auto model) {
        INFO(name);
        const bool remembers = name == "memformer";
        const auto loss = [&] {
          auto state = model.make_state(2);
          infty::Pass<double> pass;
          if (remembers) model.read(state, infty::Sources<>::of({{1, 2}, {3}}), pass);
          return model.loss(state, infty::Sources<>::of({{2, 3}, {1}}), tokens({0, 2, 0, 3}, 2),
                            tokens({2, 1, 3, infty::ignore_index}, 2), pass);
        };
        CHECK(infty::fast_gradient_check(loss, infty::named_parameters<double>(model), 1e-6) <
              1e-6);
      },
      true);
}

TEST_CASE("EncoderDecoder: targets in pieces, rows alone, and longer padding change nothing") {
  using namespace encoder_decoder;
  each_form([](const std::string& name, const auto& model) {
    INFO(name);
    infty::Pass<double> pass;
    auto state = model.make_state(3), pieces = state, padded = state;
    model.read(state, infty::Sources<>::of(second), pass);
    const auto fresh = state;
    const auto whole = model.forward(state, infty::Sources<>::of(first), tokens(inputs), pass);
    const auto wanted = whole.value().to_vector();
    CHECK(numbers_of(fresh) != numbers_of(state));

    // Token by token, behind a source that is read once.
    model.read(pieces, infty::Sources<>::of(second), pass);
    model.read(pieces, infty::Sources<>::of(first), pass);
    for (Index i = 0; i < 4; ++i) {
      std::vector<Index> column;
      for (std::size_t row = 0; row < 3; ++row)
        column.push_back(inputs[row * 4 + static_cast<std::size_t>(i)]);
      const auto y = model.logits(model.decode(pieces, tokens(column), pass));
      CHECK(error(y.value().to_vector(), narrow(whole, i, i + 1).value().to_vector()) < 1e-12);
    }
    CHECK(error(numbers_of(pieces), numbers_of(state)) < 1e-12);

    // What is in front of shorter rows, and how much of it.
    const auto pad = [](const Rows& rows, std::size_t length) {
      infty::Sources<> sources;
      std::vector<Index> all;
      for (const auto& row : rows) {
        for (std::size_t i = row.size(); i < length; ++i) all.push_back(static_cast<Index>(i % 6));
        all.insert(all.end(), row.begin(), row.end());
        sources.length.push_back(std::ssize(row));
      }
      sources.tokens = tokens(all);
      return sources;
    };
    model.read(padded, pad(second, 9), pass);
    const auto same = model.forward(padded, pad(first, 7), tokens(inputs), pass);
    CHECK(error(same.value().to_vector(), wanted) < 1e-12);
    CHECK(pass.visible.empty());

    for (std::size_t row = 0; row < 3; ++row) {
      auto own = model.make_state(1);
      model.read(own, infty::Sources<>::of({second[row]}), pass);
      const auto at = inputs.begin() + 4 * static_cast<Index>(row);
      const auto y = model.forward(own, infty::Sources<>::of({first[row]}),
                                   tokens(std::vector<Index>(at, at + 4), 1), pass);
      const auto begin = wanted.begin() + static_cast<Index>(row) * 28;
      CHECK(error(y.value().to_vector(), std::vector<double>(begin, begin + 28)) < 1e-12);
    }
  });
}

TEST_CASE("EncoderDecoder: who wants the first answers alone has the source read whole") {
  using namespace encoder_decoder;
  each_form([](const std::string& name, const auto& model) {
    INFO(name);
    const auto sources = infty::Sources<>::of({{1, 2, 3}, {5, 3, 4}, {2, 2, 1}});
    infty::Pass<double> all, first_one{.first = 1};
    auto state = model.make_state(3), other = state;
    const auto y = model.forward(state, sources, tokens(inputs), all);
    const auto part = model.forward(other, sources, tokens(inputs), first_one);
    CHECK(narrow(part, 0, 1).value().to_vector() == narrow(y, 0, 1).value().to_vector());
    CHECK(numbers_of(other) == numbers_of(state));
    CHECK(first_one.first == 1);
  });
}

TEST_CASE("EncoderDecoder: targets draw from the streams of their rows, behind every source") {
  using namespace encoder_decoder;
  const auto config = sizes();
  infty::InftyConfig memory;
  memory.attention.capacity = 2;
  memory.memory->basis = 8;
  memory.memory->widths = {.1};
  memory.memory->samples = 8;
  memory.memory->bins = 8;
  memory.memory->resampling = infty::Resampling::sticky;
  const EncoderDecoder model(
      config, plain_encoder<double, infty::EigenBackend>(config.encoder),
      infty::decoder_layers<infty::InftyMemory<double>>(config.decoder, memory, Random(4)),
      Random(5));
  const auto streams = [](const auto& state) {
    std::vector<RowCounts> all;
    infty::for_each_member(state, [&]<class M>(const std::string&, const M& member) {
      if constexpr (std::is_same_v<M, infty::RowIds>) all.push_back(member.id);
    });
    return all;
  };
  const auto guard = infty::no_grad();
  infty::Pass<double> pass;
  const auto read = [&](auto& state, const Rows& sources, const std::vector<Index>& target) {
    std::vector<double> last;
    const Index rows = std::ssize(sources);
    model.read(state, infty::Sources<>::of(sources), pass);
    for (std::size_t i = 0; i < target.size(); ++i)
      last = model
                 .logits(model.decode(
                     state,
                     tokens(std::vector<Index>(static_cast<std::size_t>(rows), target[i]), rows),
                     pass))
                 .value()
                 .to_vector();
    return last;
  };
  const std::vector<Index> target{0, 3, 1, 2, 5, 6, 4, 1, 1, 6, 2, 3};
  auto both = model.make_state(2, 10), second_row = model.make_state(1, 11),
       elsewhere = model.make_state(1);
  const auto whole = read(both, {{1, 2}, {5, 3}}, target);
  REQUIRE(streams(both) == std::vector<RowCounts>(2, {10, 11}));
  const auto alone = read(second_row, {{5, 3}}, target), other = read(elsewhere, {{5, 3}}, target);
  CHECK(error(std::vector(whole.begin() + 7, whole.end()), alone) < 1e-12);
  CHECK(error(other, alone) > 1e-12);
  infty::reset_row(both, 1);
  read(both, {{4}, {2}}, target);
  CHECK(streams(both) == std::vector<RowCounts>(2, {10, 11}));
}

TEST_CASE("EncoderDecoder: states move by rows, saved and loaded, and parameters are") {
  using namespace encoder_decoder;
  each_form([](const std::string& name, auto model) {
    INFO(name);
    infty::Pass<double> pass;
    auto state = model.make_state(3);
    model.forward(state, infty::Sources<>::of(first), tokens(inputs), pass);
    const auto chosen = infty::select_rows(state, {2, 0, 0});
    auto moved = chosen;
    const std::vector<Index> next{1, 2, 3, 4, 5, 6};
    const auto y = model.decode(moved, tokens(next), pass).value().to_vector();
    for (std::size_t i = 0; i < 3; ++i) {
      const Index row = i == 0 ? 2 : 0;
      auto own = take_rows(state, row, row + 1);
      const auto one = model.decode(own, tokens({next[2 * i], next[2 * i + 1]}, 1), pass);
      const auto begin = y.begin() + static_cast<Index>(i) * 8;
      CHECK(error(one.value().to_vector(), std::vector<double>(begin, begin + 8)) < 1e-12);
    }
    const infty::tests::TemporaryFolder folder;
    infty::save_state(folder / "state", state);
    auto loaded = model.make_state(3);
    infty::load_state(folder / "state", loaded);
    CHECK(numbers_of(loaded) == numbers_of(state));
    reset_row(loaded, 1);
    CHECK(numbers_of(take_rows(loaded, 2, 3)) == numbers_of(take_rows(state, 2, 3)));

    infty::save_parameters(folder / "model", model);
    const auto before = model.decode(state, tokens(next), pass).value().to_vector();
    infty::for_each_parameter(model, [](const std::string&, auto& p) { p.value().fill(.25); });
    infty::load_parameters(folder / "model", model);
    CHECK(model.decode(loaded, tokens(next), pass).value().to_vector() != before);
    infty::load_state(folder / "state", loaded);
    CHECK(model.decode(loaded, tokens(next), pass).value().to_vector() == before);
  });
}

TEST_CASE("EncoderDecoder: beams are what argmax and the sums of losses say") {
  using namespace encoder_decoder;
  each_form([](const std::string& name, const auto& model) {
    INFO(name);
    infty::Pass<double> pass;
    auto state = model.make_state(3);
    model.read(state, infty::Sources<>::of(second), pass);
    const auto before = numbers_of(state);
    const auto greedy = model.translate(state, 0, {.beam = 1, .end = 5, .longest = 6});
    const auto found =
        model.translate(state, 0, {.beam = 3, .alpha = 1, .end = 5, .longest = 6, .best = 3});
    CHECK(numbers_of(state) == before);
    for (std::size_t row = 0; row < 3; ++row) {
      const auto source = infty::Sources<>::of({second[row]});
      CHECK(greedy[row].size() == 1);
      CHECK(found[row].size() == 3);
      for (const auto& hypothesis : found[row]) {
        auto target = hypothesis.tokens;
        if (hypothesis.ended) target.push_back(5);
        auto input = target;
        input.insert(input.begin(), 0);
        input.pop_back();
        auto own = model.make_state(1);
        const auto loss = model.loss(own, source, tokens(input, 1), tokens(target, 1), pass);
        const auto n = static_cast<double>(target.size());
        CHECK(hypothesis.log_probability == Approx(-n * loss.value().item()).epsilon(1e-10));
      }
      auto own = model.make_state(1);
      model.read(own, source, pass);
      Index token = 0;
      std::vector<Index> taken;
      while (taken.size() < 6 && token != 5) {
        token = argmax(model.logits(model.decode(own, tokens({token}, 1), pass)).value()).item();
        if (token != 5) taken.push_back(token);
      }
      CHECK(greedy[row][0].tokens == taken);
    }
  });
}

TEST_CASE("EncoderDecoder: reads memory tokens unless it is told not to, and dropout drops") {
  using namespace encoder_decoder;
  infty::Pass<double> pass;
  const auto model = memory_transformer<double>();
  auto config = sizes();
  config.read_tokens = false;
  config.decoder.dropout = .5;
  EncoderDecoder words(config, model.encoder, model.decoder, Random(5));
  words.source = model.source;
  words.target = model.target;
  words.head = model.head;
  auto a = model.make_state(1), b = words.make_state(1);
  model.read(a, infty::Sources<>::of({first[0]}), pass);
  words.read(b, infty::Sources<>::of({first[0]}), pass);
  CHECK(a.decoder.layers[0].source.length == RowCounts{6});
  CHECK(b.decoder.layers[0].source.length == RowCounts{4});
  CHECK(pass.trace.empty());
  const auto still = words.decode(b, tokens({0, 1}, 1), pass).value().to_vector();
  CHECK(model.decode(a, tokens({0, 1}, 1), pass).value().to_vector() != still);
  Random random(1);
  infty::Pass<double> training{.random = &random};
  b = words.make_state(1);
  words.read(b, infty::Sources<>::of({first[0]}), training);
  CHECK(words.decode(b, tokens({0, 1}, 1), training).value().to_vector() != still);
}

TEST_CASE("EncoderDecoder: layers whose types are chosen late, and of several, know of padding") {
  using namespace encoder_decoder;
  using Any = infty::AnyLayer<double>;
  const auto config = sizes();
  const auto model = plain<double>();
  const auto run = [&](auto encoder) {
    EncoderDecoder other(config, encoder, model.decoder, Random(5));
    auto state = other.make_state(3);
    infty::Pass<double> pass;
    return other.forward(state, infty::Sources<>::of(first), tokens(inputs), pass)
        .value()
        .to_vector();
  };
  const auto wanted = run(model.encoder);
  CHECK(run(Any(model.encoder)) == wanted);
  CHECK(run(infty::Layers<Any>{{model.encoder}}) == wanted);
  const infty::Layers<infty::SelfAttention<double>, Any> two(model.encoder.layers[0].mixer,
                                                             model.encoder);
  CHECK(infty::reads_padded(two));
  CHECK(error(run(two), run(infty::Layers<Any>{{two}})) == 0);
  CHECK_FALSE(infty::reads_padded(Any()));
  CHECK_FALSE(infty::reads_padded(infty::Layers<Any>{{model.encoder, Any()}}));
  CHECK_FALSE(infty::reads_padded(infty::MemoryTokens(
      Any(infty::ShortTermMemory<double>({}, {.model_dim = 4, .heads = 2, .head_dim = 2})),
      {.tokens = 2}, 4, Random(1))));
}

TEST_CASE("CachedAttention: holds no more than its capacity, and takes no memory tokens") {
  using namespace encoder_decoder;
  const infty::CachedAttention<double> mixer({.capacity = 2},
                                             {.model_dim = 4, .heads = 2, .head_dim = 3});
  auto state = mixer.make_state(2), fresh = state;
  Random random(infty::tests::seed);
  const infty::Variable<double> x(infty::tests::uniform_tensor<double>({2, 5, 4}, random));
  infty::Pass<double> pass;
  mixer.forward(state, narrow(x, 0, 4), pass);
  CHECK(state.keys.shape() == infty::Shape{2, 2, 6});
  CHECK(state.length == RowCounts{2, 2});
  // What it forgot is of no account any more.
  mixer.forward(fresh, narrow(x, 2, 4), pass);
  CHECK(error(mixer.forward(state, narrow(x, 4, 5), pass).value().to_vector(),
              mixer.forward(fresh, narrow(x, 4, 5), pass).value().to_vector()) < 1e-14);
  infty::Pass<double> around{.before = 1};
  const auto before = numbers_of(state);
  CHECK_THROWS_WITH(mixer.forward(state, x, around), Catch::Matchers::Contains("it takes none"));
  CHECK(numbers_of(state) == before);
  CHECK_THROWS_WITH(infty::CachedAttention<double>({.capacity = 0}, {}),
                    Catch::Matchers::Contains("capacity is 0"));
}

TEST_CASE("EncoderDecoder: one table for both languages is one") {
  using namespace encoder_decoder;
  auto config = sizes();
  config.encoder.vocabulary = 7;
  const auto count = [&] {
    EncoderDecoder model(config, plain_encoder<double, infty::EigenBackend>(config.encoder),
                         plain_decoder<double, infty::EigenBackend>(config.decoder), Random(5));
    return infty::count_parameters(model);
  };
  const Index apart = count();
  config.share_embedding = true;
  CHECK(count() == apart - 7 * 4);
  config.encoder.vocabulary = 8;
  CHECK_THROWS_WITH(count(), Catch::Matchers::Contains("share_embedding"));
  config.encoder.vocabulary = 7;
  for (auto* const side : {&config.encoder, &config.decoder}) {  // which has one softmax
    side->cutoffs = {3};
    CHECK_THROWS_WITH(count(), Catch::Matchers::Contains("share_embedding") &&
                                   Catch::Matchers::Contains("number of cutoffs"));
    side->cutoffs.clear();
    side->div_value = 2;
    CHECK_THROWS_WITH(count(), Catch::Matchers::Contains("div_value"));
    side->div_value = 1;
    side->embedding_dim = 2;
    CHECK_THROWS_WITH(count(), Catch::Matchers::Contains("embedding_dim"));
    side->embedding_dim = 0;
  }
  config.encoder.cutoffs = {3};
  config.decoder.cutoffs = {4};
  CHECK_THROWS_WITH(count(), Catch::Matchers::Contains("the encoder's cutoff is 3"));
  config.share_embedding = false;
  config.encoder.model_dim = 6;
  CHECK_THROWS_WITH(count(), Catch::Matchers::Contains("the encoder's model_dim is 6"));
}

TEST_CASE("EncoderDecoder: what cannot be is refused, and the state stays as it was") {
  using namespace encoder_decoder;
  using Catch::Matchers::Contains;
  using Sources = infty::Sources<>;
  const auto model = memformer<double>();
  infty::Pass<double> pass;
  auto state = model.make_state(3);
  CHECK_THROWS_WITH(model.decode(state, tokens(inputs), pass), Contains("there is no source"));
  model.read(state, Sources::of(first), pass);
  const auto before = numbers_of(state);
  const auto refused = [&](const Sources& sources, const std::string& why) {
    infty::Pass<double> own;
    CHECK_THROWS_WITH(model.forward(state, sources, tokens(inputs), own), Contains(why));
    CHECK(numbers_of(state) == before);
  };
  refused(Sources::of({{1}, {2}}), "they must be [3, S]");
  refused({tokens({1, 2, 3}), {1, 1}}, "there are 2 lengths of 3 sources");
  refused({tokens({1, 2, 3}), {1, 2, 1}}, "the source in row 1 is 2 long");
  refused({tokens({1, 2, 3}), {1, -1, 1}}, "the source in row 1 is -1 long");
  refused(Sources::of({{1}, {6}, {2}}), "token 6");
  infty::Pass<double> own;
  CHECK_THROWS_WITH(model.decode(state, tokens({7, 0, 0}), own), Contains("token 7"));
  CHECK_THROWS_AS(model.decode(state, tokens({0, 0}, 2), own), infty::ShapeError);
  CHECK(numbers_of(state) == before);
  CHECK_THROWS_WITH(Sources::of({}), Contains("there are no rows"));
  CHECK_THROWS_AS(model.make_state(0), infty::ValueError);

  // An encoder that knows nothing of padding.
  const auto config = sizes();
  const EncoderDecoder causal(
      config, infty::blocks<infty::ShortTermMemory<double>>(config.encoder, {}, Random(3)),
      plain_decoder<double, infty::EigenBackend>(config.decoder), Random(5));
  auto other = causal.make_state(3);
  CHECK_THROWS_WITH(causal.read(other, Sources::of(first), own),
                    Contains("the encoder does not go by padding"));
  causal.read(other, {tokens({1, 2, 3}), {}}, own);
}

TEMPLATE_LIST_TEST_CASE("EncoderDecoder: on every backend as in double", "", infty::tests::Types) {
  using namespace encoder_decoder;
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto run = [](const auto& model, const auto& sources, const auto& of, auto pass) {
    auto state = model.make_state(3);
    return model.forward(state, sources, of, pass).value().to_vector();
  };
  const auto compare = [&](const auto& model, const auto& like) {
    const auto wanted =
        run(like, infty::Sources<>::of(first), tokens(inputs), infty::Pass<double>());
    CHECK(error(run(model, infty::Sources<B>::of(first), tokens<B>(inputs), infty::Pass<T, B>()),
                wanted) < 20 * infty::tests::tolerance<T>);
    auto state = model.make_state(3);
    infty::Pass<T, B> pass;
    model.read(state, infty::Sources<B>::of(first), pass);
    CHECK(model.translate(state, 0, {.beam = 2, .longest = 3}).size() == 3);
  };
  compare(memory_transformer<T, B>(), memory_transformer<double>());
  compare(memsizer<T, B>(), memsizer<double>());
  compare(memformer<T, B>(), memformer<double>());
}

TEST_CASE(
    "PlacedEmbedding: a row that would go beyond all places is refused, one that is far is not") {
  using infty::Index, infty::RowCounts;
  const infty::PlacedEmbedding<float> embedding(
      infty::AdaptiveConfig{.vocabulary = 4, .model_dim = 4}, infty::Random(1));
  const auto tokens = infty::Tensor<Index>::zeros({1, 3});
  infty::Pass<float> pass;
  for (const Index first :
       {infty::most_places, infty::most_places - 2, std::numeric_limits<Index>::max()})
    CHECK_THROWS_AS(embedding.forward(tokens, RowCounts{first}, pass), infty::ValueError);
  CHECK(embedding.forward(tokens, RowCounts{-5}, pass).value().to_vector() ==
        embedding.forward(tokens, RowCounts{-7}, pass).value().to_vector());
  // A far place takes no memory for those before it.
  const auto far = embedding.forward(tokens, RowCounts{infty::most_places - 3}, pass);
  CHECK(infty::detail::all_finite(far.value()));
}
