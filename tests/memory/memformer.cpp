// SPDX-License-Identifier: MIT
#include <limits>
#include <string>
#include <vector>

#include <infty/memory/memformer.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/golden_memformer.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace memformer_tests {

using infty::EigenBackend;
using infty::GruSlotWriter;
using infty::Index;
using infty::Memformer;
using infty::NoMemory;
using infty::Pass;
using infty::Random;
using infty::Shape;
using infty::SlotWriter;
using infty::Tensor;
using infty::Variable;
using infty::tests::numbers_of;
using infty::tests::uniform_tensor;

static_assert(infty::SequenceLayer<Memformer<NoMemory<float>>>);
static_assert(infty::SequenceLayer<infty::RecurrentSlots<NoMemory<float>>>);

TEST_CASE("Memformer: every recorded value and gradient of its programs, to 1e-9") {
  const std::string name = GENERATE("memformer_slots", "memformer_gru", "memformer_bmn");
  infty::tests::GoldenCase file(std::string(INFTY_TEST_DATA) + "/golden/" + name + ".safetensors");
  const auto result = infty::tests::replay_memformer<double, EigenBackend>(file);
  CAPTURE(name, result.worst_name, result.worst_value, result.worst_gradient);
  CHECK(result.worst <= 1e-9);
  CHECK(result.compared > 20);
}

/// A layer of a Memformer over segments, by itself inside its slots.
template <class A, class Writer>
auto one_layer(const typename Memformer<A, Writer>::Config& config) {
  using Mixer = Memformer<A, Writer>;
  const infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 3};
  const Mixer mixer(config, sizes, Random(1));
  return infty::RecurrentSlots<Mixer, Writer>(mixer, mixer.make_writer());
}

TEMPLATE_LIST_TEST_CASE("RecurrentSlots: the writer makes of slots and answers what is read next",
                        "", infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  using Attention = infty::CausalAttention<T, B>;
  const auto body = one_layer<Attention, SlotWriter<T, B>>({.slots = {.slots = 3}});
  auto state = body.make_state(2), silent = state;
  V slots = V(Tensor<T, B>::zeros({2, 3, 4})) + body.writer.initial();
  infty::NoState none;
  Random random(infty::tests::seed);
  for (const Index length : {3, 1, 5}) {
    CAPTURE(length);
    const V x(uniform_tensor<T, B>({2, length, 4}, random));
    CHECK(infty::tests::error(body.slots(state).value().to_vector(), slots.value().to_vector()) <
          infty::tests::tolerance<T>);
    Pass<T, B> pass;
    const V got = body.forward(state, x, pass);
    CHECK(pass.slots.size() == 0);
    Pass<T, B> plain;
    const V a = run_layer(body.inner.attention, none, x, plain);
    const V read = body.inner.reader.forward(body.inner.reader_norm.forward(x + a), slots);
    CHECK(infty::tests::error(got.value().to_vector(), (a + read).value().to_vector()) <
          infty::tests::tolerance<T>);
    slots = body.writer.forward(slots, got);
    CHECK(infty::tests::error(state.slots.value().to_vector(), slots.value().to_vector()) <
          infty::tests::tolerance<T>);
    for (const T length_of : (slots * slots).value().to_vector()) CHECK(length_of <= T(1.0001));
    Pass<T, B> unanswered{.answer = false};
    CHECK(body.forward(silent, x, unanswered).size() == 0);
    CHECK_FALSE(unanswered.answer);
    CHECK(numbers_of(silent) == numbers_of(state));
  }
  CHECK(state.written == infty::RowCounts{3, 3});
  // Memory tokens are read and not written.
  auto tokens = state, words = state;
  const V x(uniform_tensor<T, B>({2, 4, 4}, random));
  Pass<T, B> around{.before = 1, .behind = 2};
  const V y = body.forward(tokens, x, around);
  CHECK(y.dim(1) == 4);
  CHECK(infty::tests::error(tokens.slots.value().to_vector(),
                            body.writer.forward(state.slots, narrow(y, 1, 2)).value().to_vector()) <
        infty::tests::tolerance<T>);
  // What throws changes nothing.
  const auto before = numbers_of(words);
  for (const Shape& shape : {Shape{2, 3, 5}, Shape{1, 3, 4}, Shape{2, 0, 4}}) {
    Pass<T, B> pass;
    CHECK_THROWS_AS(body.forward(words, V(Tensor<T, B>::zeros(shape)), pass), infty::ShapeError);
    CHECK(numbers_of(words) == before);
  }
  words.written.pop_back();
  Pass<T, B> pass;
  CHECK_THROWS_AS(body.forward(words, x, pass), infty::ShapeError);
  auto alone = body.inner.make_state(2);
  CHECK_THROWS_WITH(body.inner.forward(alone, x, {}, pass),
                    Catch::Matchers::Contains("RecurrentSlots"));
}

TEMPLATE_LIST_TEST_CASE("GruSlotWriter: reads, takes in and feeds as often as it is told", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  const GruSlotWriter<T, B> writer({.slots = 3, .heads = 2, .updates = 2}, 4, Random(1));
  Random random(infty::tests::seed);
  const V x(uniform_tensor<T, B>({2, 5, 4}, random));
  V m = V(Tensor<T, B>::zeros({2, 3, 4})) + writer.initial();
  const V got = writer.forward(m, x);
  for (int i = 0; i < 2; ++i) {
    Pass<T, B> pass;
    const V read =
        slot_attention(writer.query.forward(m), writer.key.forward(m), writer.value.forward(m),
                       writer.key.forward(x), writer.value.forward(x), {.heads = 2});
    m = writer.cell.forward(writer.out.forward(read), m);
    m = m + writer.feed.forward(writer.norm.forward(m), pass);
  }
  CHECK(infty::tests::error(got.value().to_vector(), m.value().to_vector()) <
        infty::tests::tolerance<T>);
}

TEST_CASE("Memformer: keeps to what every mixer keeps to, by either writer, on any attention") {
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<Memformer<NoMemory<double>>>({.slots = {.slots = 3}},
                                                             folder / "state");
  using Program = Memformer<infty::ShortTermMemory<double>, GruSlotWriter<double>>;
  infty::testing::require_mixer<Program>({.attention = {.capacity = 3}, .slots = {.slots = 2}},
                                         folder / "state");
}

/// The largest difference of all gradients of a body through three segments with a reset.
template <class Body>
double through_segments(Body body) {
  Random random(infty::tests::seed);
  std::vector<Variable<double>> x, weights;
  for (const Index length : {3, 2, 4}) {
    x.push_back(infty::tests::uniform_variable<double>({2, length, 4}, random));
    weights.push_back(Variable<double>(uniform_tensor<double>({2, length, 4}, random)));
  }
  const auto loss = [&] {
    auto state = body.make_state(2);
    Variable<double> total(Tensor<double>::zeros({}));
    for (std::size_t i = 0; i < x.size(); ++i) {
      Pass<double> pass;
      if (i == 2) infty::reset_row(state, 1);
      total = total + sum(body.forward(state, x[i], pass) * weights[i]);
    }
    return total + sum(state.slots);
  };
  auto all = infty::named_parameters<double>(body);
  for (const auto& segment : x) all.push_back({"input", segment});
  return gradient_check(loss, all).largest;
}

TEST_CASE("Memformer: gradients through segments are those of central differences") {
  using Attention = infty::CausalAttention<double>;
  CHECK(through_segments(one_layer<Attention, SlotWriter<double>>(
            {.slots = {.slots = 3, .maps = {.bias = true, .output = true}}})) < 1e-7);
  CHECK(through_segments(one_layer<Attention, GruSlotWriter<double>>({.slots = {.slots = 3}})) <
        1e-7);
}

TEST_CASE("Memformer: slots that nothing is written to come to where they began") {
  SlotWriter<double> writer({.slots = 3, .heads = 1}, 4, Random(1));
  writer.value.weight.value().fill(0);  // only itself has a value
  Random random(2);
  const Variable<double> x(uniform_tensor<double>({1, 5, 4}, random));
  Variable<double> m = unit_vectors(Variable<double>(uniform_tensor<double>({1, 3, 4}, random)));
  for (int i = 0; i < 200; ++i) m = writer.forward(m, x);
  CHECK(infty::tests::error(m.value().to_vector(), writer.initial().value().to_vector()) < 1e-9);
}

TEST_CASE("Memformer: configurations that cannot be are refused by name") {
  using infty::ValueError;
  const infty::AttentionSizes sizes{.model_dim = 4, .heads = 2, .head_dim = 3};
  using Paper = Memformer<NoMemory<float>>;
  using Program = Memformer<NoMemory<float>, GruSlotWriter<float>>;
  const auto paper = [&](infty::SlotConfig slots) { return Paper({.slots = slots}, sizes); };
  const auto program = [&](infty::GruSlotConfig slots) { return Program({.slots = slots}, sizes); };
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(paper({.slots = 0}), Contains("slots is 0"));
  CHECK_THROWS_WITH(paper({.heads = -1}), Contains("heads is -1"));
  CHECK_THROWS_WITH(paper({.heads = 3}), Contains("heads are 3"));
  CHECK_THROWS_WITH(paper({.temperature = 0}), Contains("temperature is 0"));
  CHECK_THROWS_AS(paper({.temperature = std::numeric_limits<double>::quiet_NaN()}), ValueError);
  CHECK_THROWS_AS(paper({.slots = infty::largest_size}).make_writer(), ValueError);
  CHECK_THROWS_WITH(program({.slots = -1}), Contains("slots is -1"));
  CHECK_THROWS_WITH(program({.updates = 0}), Contains("updates is 0"));
  CHECK_THROWS_WITH(program({.feed_forward = -1}), Contains("feed_forward is -1"));
  CHECK_THROWS_WITH(program({.temperature = -1}), Contains("temperature is -1"));
  CHECK_THROWS_AS(program({.feed_forward = infty::largest_size}).make_writer(), ValueError);
  CHECK_THROWS_AS(paper({}).make_state(0), ValueError);
}

TEST_CASE("Memformer: a traced pass sees what words read of slots, and slots of words") {
  using B = EigenBackend;
  using V = Variable<double>;
  const auto body = one_layer<infty::CausalAttention<double>, SlotWriter<double, B>>(
      {.slots = {.slots = 3, .heads = 2}});
  auto state = body.make_state(2);
  Random random(infty::tests::seed);
  const Index L = 5, m = 3;
  for (int segment = 0; segment < 2; ++segment) {
    const V x(uniform_tensor<double>({2, L, 4}, random)), slots = body.slots(state);
    Pass<double> pass{.traced = true}, plain;
    const V said = body.forward(state, x, pass);
    infty::NoState none;
    const V asking =
        body.inner.reader_norm.forward(x + run_layer(body.inner.attention, none, x, plain));
    // Weights [B, 2, q, k] of values [B, k, 2 D] -> [B, q, 2 D].
    const auto weighed = [](const V& weights, const V& values) {
      const V by_head = transpose(reshape(values, {2, values.dim(1), 2, 2}), 1, 2);
      return reshape(transpose(matmul(weights, by_head), 1, 2), {2, weights.dim(2), 4});
    };
    const V read = first_shown(pass, "reader_weights");
    REQUIRE(read.shape() == Shape{2, 2, L, m});
    CHECK(infty::tests::error(
              weighed(read, body.inner.reader.value.forward(slots)).value().to_vector(),
              body.inner.reader.forward(asking, slots).value().to_vector()) < 1e-14);
    const V ones(Tensor<double>::full({m, 1}, 1.));
    for (const double sum : matmul(read, ones).value().to_vector()) CHECK(sum == Approx(1));

    // Of itself and of words a slot reads one in all, and what it reads is what is written.
    const V written = first_shown(pass, "writer_weights"), kept = first_shown(pass, "writer_kept");
    REQUIRE(written.shape() == Shape{2, 2, m, L});
    REQUIRE(kept.shape() == Shape{2, 2, m});
    const auto all = matmul(written, V(Tensor<double>::full({L, 1}, 1.))).value().to_vector();
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK(all[i] + kept.value().to_vector()[i] == Approx(1));
    const V own = reshape(transpose(reshape(kept, {2, 2, m, 1}), 1, 2), {2, m, 2, 1}) *
                  reshape(slots, {2, m, 2, 2});
    const V next = infty::unit_vectors(weighed(written, body.writer.value.forward(said)) +
                                       reshape(own, {2, m, 4}) + body.writer.bias);
    CHECK(infty::tests::error(next.value().to_vector(), state.slots.value().to_vector()) < 1e-14);
  }
  Pass<double> blind;
  body.forward(state, V(uniform_tensor<double>({2, L, 4}, random)), blind);
  CHECK(blind.trace.empty());

  // The other writer tells of its first update.
  const auto gru = one_layer<infty::CausalAttention<double>, GruSlotWriter<double, B>>(
      {.slots = {.slots = 3, .heads = 2}});
  auto other = gru.make_state(2);
  Pass<double> pass{.traced = true};
  gru.forward(other, V(uniform_tensor<double>({2, L, 4}, random)), pass);
  const auto written = first_shown(pass, "writer_weights").value().to_vector(),
             kept = first_shown(pass, "writer_kept").value().to_vector();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    double sum = kept[i];
    for (std::size_t j = 0; j < 5; ++j) sum += written[5 * i + j];
    CHECK(sum == Approx(1));
  }
}

}  // namespace memformer_tests
