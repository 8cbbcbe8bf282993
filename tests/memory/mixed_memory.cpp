// SPDX-License-Identifier: MIT
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/recurrent_tokens.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/to.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/signal/gibbs_density.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/testing/memory_invariants.hpp>
#include <infty/train/named_parameters.hpp>

#include "io/temporary_folder.hpp"
#include "memory/long_term.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace mixed {

using infty::ContractionRule;
using infty::FixedContraction;
using infty::Index;
using infty::LongTermConfig;
using infty::MixedConfig;
using infty::MixedReading;
using infty::Pass;
using infty::PowerContraction;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::Tensor;
using infty::Variable;
using infty::tests::error;

template <class T = double, class B = infty::EigenBackend>
using Signal = infty::LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>;
template <class T = double, class B = infty::EigenBackend>
using Uniform = infty::UniformMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>;
template <class T = double, class B = infty::EigenBackend>
using Mixed = infty::MixedMemory<Signal<T, B>>;

constexpr Index d = 4, H = 2, D = 3;
const std::vector<ContractionRule> two = {FixedContraction{.6}, PowerContraction{1}};
const auto both = {MixedReading::heads, MixedReading::gate};

/// A memory's constants, small enough for every test, that a kind is made of.
template <class Config = LongTermConfig>
Config one(bool project = true) {
  Config config;
  static_cast<LongTermConfig&>(config) = infty::tests::small_config();
  config.project = project;
  if constexpr (requires { config.block; }) config.block = 4;
  return config;
}

/// A state of two rows of different age.
template <class M, class T = typename M::Scalar, class B = typename M::BackendType>
typename M::State written(const M& memory, std::uint64_t seed = 3) {
  Random random(seed);
  auto state = memory.make_state(2);
  memory.write(state, infty::tests::uniform_variable<T, B>({2, 5, d}, random), RowCounts{5, 3});
  memory.write(state, infty::tests::uniform_variable<T, B>({2, 3, d}, random), RowCounts{3, 0});
  return state;
}

template <class T, class B>
Variable<T, B> queries(Index heads = H) {
  Random random(9);
  return infty::tests::uniform_variable<T, B>({2, 3, heads * D}, random);
}

template <class V>
auto values(const V& variable) {
  return variable.value().to_vector();
}

/// What f() says where it throws infty::ValueError; else nothing.
template <class F>
std::string said_by(const F& f) {
  try {
    f();
  } catch (const infty::ValueError& e) {
    return e.what();
  }
  return {};
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace mixed

TEMPLATE_LIST_TEST_CASE("MixedMemory: of one part it is that memory", "", infty::tests::Types) {
  using namespace mixed;
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const MixedReading reading : both) {
    const Mixed<T, B> mixture(mixed_config(one(), {FixedContraction{.6}}, reading), Random(1));
    auto config = one();
    config.tau = .6;
    Signal<T, B> alone(config, Random(2));
    const auto& part = mixture.parts.front();
    alone.gate_weight = part.gate_weight;
    alone.gate_bias = part.gate_bias;
    alone.key = part.key;
    alone.value = part.value;
    alone.density_weight = part.density_weight;
    alone.out = mixture.out;
    auto state = written(mixture);
    auto same = written(alone);
    CHECK(values(state.parts.front().coefficients) == values(same.coefficients));
    const auto q = queries<T, B>();
    const auto read = mixture.read(state, q), expected = alone.read(same, q);
    CHECK(read.shape() == Shape{2, 3, d});
    CHECK(mixture.read_flops(2, 8) == Approx(alone.read_flops(2, 8)));
    CHECK(mixture.write_flops(2, 8) == Approx(alone.write_flops(2, 8)));
    CHECK(error(values(read), values(expected)) <= infty::tests::tolerance<T>);
  }
}

TEMPLATE_LIST_TEST_CASE("MixedMemory: each part answers its heads, or all of them by its share", "",
                        infty::tests::Types) {
  using namespace mixed;
  using T = typename TestType::T;
  using B = typename TestType::B;
  const auto q = queries<T, B>();
  const auto flat = values(q);
  // Numbers of heads [begin, end) of all queries, of rows with H heads.
  const auto of_heads = [](const std::vector<T>& all, Index begin, Index end) {
    std::vector<T> some;
    for (Index i = 0; i < std::ssize(all); ++i)
      if (const Index h = i % (H * D) / D; h >= begin && h < end)
        some.push_back(all[static_cast<std::size_t>(i)]);
    return some;
  };
  {
    const Mixed<T, B> mixture(mixed_config(one(false), two), Random(1));
    auto state = written(mixture);
    const auto read = values(mixture.read(state, q));
    for (Index i = 0; i < 2; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const Variable<T, B> own(Tensor<T, B>::from({2, 3, D}, of_heads(flat, i, i + 1)));
      CHECK(of_heads(read, i, i + 1) == values(mixture.parts[at].read(state.parts[at], own)));
    }
  }
  Mixed<T, B> mixture(mixed_config(one(false), two, MixedReading::gate), Random(1));
  CHECK(values(mixture.shares()) == std::vector<T>(4, T(.5)));
  // Head 0 reads three quarters of the first part, head 1 a quarter.
  const T three = std::log(T(3));
  mixture.mixture = Variable<T, B>(Tensor<T, B>::from({H, 2}, {three, 0, 0, three}), true);
  auto state = written(mixture);
  const auto read = values(mixture.read(state, q));
  std::vector<T> expected(read.size(), T(0));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto part = values(mixture.parts[i].read(state.parts[i], q));
    for (std::size_t at = 0; at < part.size(); ++at)
      expected[at] += part[at] * (at % (H * D) / D == i ? T(.75) : T(.25));
  }
  CHECK(error(read, expected) <= infty::tests::tolerance<T>);
  // On another backend parts share what they shared.
  const auto copy = infty::to<infty::EigenBackend>(mixture);
  auto copied = infty::to<infty::EigenBackend>(state);
  CHECK(error(values(copy.read(copied, queries<T, infty::EigenBackend>())), expected) <=
        infty::tests::tolerance<T>);
  CHECK(infty::count_parameters(copy) == infty::count_parameters(mixture));
}

TEST_CASE("MixedMemory: of one memory's constants and two rules, as the page has it") {
  using infty::LongTermConfig, infty::LongTermMemory, infty::MixedReading;
  using Memory = infty::MixedMemory<LongTermMemory<double>>;
  const LongTermConfig one{.model_dim = 8, .heads = 2, .basis = 32};
  const Memory memory(infty::mixed_config(
      one, {infty::FixedContraction{.9}, infty::PowerContraction{1}}, MixedReading::gate));
  const auto& parts = memory.parts;
  REQUIRE(parts.size() == 2);
  CHECK((parts[0].ridge().tau(7, 1) == .9 && parts[1].ridge().tau(7, 1) != .9));
  CHECK((parts[0].config().basis == 16 && parts[1].config().basis == 16));
}

TEST_CASE("MixedMemory: as large as one memory, with as many parameters") {
  using namespace mixed;
  const auto count = [](auto memory) { return infty::count_parameters(memory); };
  const Index alone = count(Signal<>(one()));
  CHECK(count(Mixed<>(mixed_config(one(), two))) == alone);
  CHECK(count(Mixed<>(mixed_config(one(), two, MixedReading::gate))) == alone + H * 2);
  // Expectations, values and what is made of them are those of one memory together, or less.
  const double read = Signal<>(one()).read_flops(2, 8);
  CHECK(Mixed<>(mixed_config(one(), two, MixedReading::gate)).read_flops(2, 8) == Approx(read));
  CHECK(Mixed<>(mixed_config(one(), two)).read_flops(2, 8) < read);
  // The largest |x| of each coordinate, counts and the row's name are kept of each part, and the
  // sum of a mean that is not full.
  const auto bytes = [](const auto& memory) { return bytes_of(memory.make_state(1)); };
  const std::size_t largest = d * sizeof(double), number = sizeof(Index);
  CHECK(bytes(Mixed<>(mixed_config(one(), two))) == bytes(Signal<>(one())) + largest + 5 * number);
  using Config = Uniform<>::Config;
  CHECK(bytes(infty::MixedMemory<Uniform<>>(mixed_config(one<Config>(), two))) ==
        bytes(Uniform<>(one<Config>())) + 2 * largest + 9 * number);
}

TEST_CASE("MixedMemory: of blocks, a stream in pieces is the whole to the bit") {
  using namespace mixed;
  Random random(11);
  infty::testing::Stream<Tensor<double>> stream;
  for (const Index length : {1, 5, 300, 2, 17, 700})
    stream.pieces.push_back(infty::tests::uniform_tensor<double>({2, length, d}, random));
  stream.queries = infty::tests::uniform_tensor<double>({2, 3, H * D}, random);
  for (const MixedReading reading : both) {
    const infty::MixedMemory<Uniform<>> memory(mixed_config(one<Uniform<>::Config>(), two, reading),
                                               Random(3));
    CHECK(infty::testing::pieces_equal_whole(memory, stream) == 0);
    // Of a long-term memory's each write blurs what is there.
    CHECK(infty::testing::pieces_equal_whole(Mixed<>(mixed_config(one(), two, reading), Random(3)),
                                             stream) > 1e-6);
  }
}

TEST_CASE("MixedMemory: keeps what all memories keep, beside attention in a model") {
  using namespace mixed;
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_memory<infty::MixedMemory<Uniform<>>>(
      mixed_config(one<Uniform<>::Config>(), two), folder / "heads");
  auto sticky = one();
  sticky.resampling = infty::Resampling::sticky;
  infty::testing::require_memory<Mixed<>>(mixed_config(sticky, two, MixedReading::gate),
                                          folder / "gate");
}

namespace mixed {

/// A mixture beside attention, with memory tokens around both: a mixer that the kit can make.
struct InTokens
    : infty::RecurrentTokens<infty::WithMemory<infty::ShortTermMemory<double>, Mixed<>>> {
  using Inner = infty::WithMemory<infty::ShortTermMemory<double>, Mixed<>>;
  using Config = Inner::Config;
  InTokens(const Config& config, infty::AttentionSizes sizes, Random random)
      : RecurrentTokens(Inner(config, sizes, random), {.tokens = 2}, sizes.model_dim,
                        random.split(1)) {}
};

}  // namespace mixed

TEST_CASE("MixedMemory: answers memory tokens, too") {
  using namespace mixed;
  const infty::tests::TemporaryFolder folder;
  infty::testing::require_mixer<InTokens>({.attention = {.capacity = 5, .stride = 2},
                                           .memory = mixed_config(one(), two, MixedReading::gate)},
                                          folder / "tokens");
}

TEST_CASE("MixedMemory: gradients of all parameters, of what is written and asked") {
  using namespace mixed;
  for (const MixedReading reading : both) {
    Mixed<> memory(mixed_config(one(), two, reading), Random(1));
    Random random(5);
    if (reading == MixedReading::gate) infty::fill_uniform(memory.mixture.value(), -1., 1., random);
    const auto x = infty::tests::uniform_variable<double>({2, 3, d}, random),
               weights = infty::tests::uniform_variable<double>({2, 3, d}, random);
    const auto q = queries<double, infty::EigenBackend>();
    const auto before = written(memory);  // gradients flow to the last write
    const auto loss = [&] {
      auto state = before;
      memory.write(state, x);
      Pass<double> pass{.regularised = true};
      const auto read = memory.read(state, q, pass);
      return sum(read * weights) + loss_named(pass, "divergence");
    };
    auto variables = infty::parameters<double>(memory);
    CHECK(variables.size() == (reading == MixedReading::gate ? 8u : 9u));
    variables.insert(variables.end(), {x, q});
    CHECK(infty::gradient_check(loss, variables) < 1e-7);
  }
}

TEST_CASE("MixedMemory: one loss and one density are reported, whatever the parts") {
  using namespace mixed;
  const auto q = queries<double, infty::EigenBackend>();
  for (const MixedReading reading : both) {
    const bool gate = reading == MixedReading::gate;
    const Mixed<> memory(mixed_config(one(), two, reading), Random(1));
    auto state = written(memory);
    Pass<double> pass{.traced = true, .regularised = true};
    pass.show("before", q);
    pass.lose("divergence", Variable<double>(Tensor<double>::from({}, {1.})));
    memory.read(state, q, pass);
    std::vector<std::vector<double>> densities;
    double divergence = 1;
    for (Index i = 0; i < 2; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto own = narrow(reshape(q, Shape{6, H * D}), i * D, (i + 1) * D);
      const auto density =
          memory.parts[at].attend(state.parts[at], gate ? q : reshape(own, Shape{2, 3, D})).density;
      densities.push_back(values(density));
      divergence += values(sum(memory.parts[at].divergence(density))).front() / (gate ? 2 : 1);
    }
    CHECK(values(infty::loss_named(pass, "divergence")).front() ==
          Approx(divergence).epsilon(1e-12));
    REQUIRE(pass.trace.size() == (gate ? 3u : 2u));
    CHECK(pass.trace[0].name == "before");
    CHECK(pass.trace[1].name == "density");
    // Of mu and var, and each row, the heads of the first part and those of the second.
    const std::size_t each = gate ? H : H / 2, run = each * 3;
    CHECK(pass.trace[1].value.shape() == Shape{2, 2, 2 * static_cast<Index>(each), 3});
    std::vector<double> expected;
    for (std::size_t outer = 0; outer < 4; ++outer)
      for (const auto& density : densities)
        expected.insert(expected.end(), &density[outer * run], &density[outer * run] + run);
    CHECK(values(pass.trace[1].value) == expected);
    if (gate)
      CHECK((pass.trace[2].name == "mixture" && pass.trace[2].value.shape() == Shape{H, 2}));
  }
}

TEST_CASE("MixedMemory: of densities of scores, too") {
  using namespace mixed;
  using Scored = infty::LongTermMemory<double, infty::GibbsDensity>;
  auto config = one();
  config.points = 20;
  config.bias = true;
  for (const MixedReading reading : both) {
    const infty::MixedMemory<Scored> memory(mixed_config(config, two, reading), Random(1));
    auto state = written(memory);
    Pass<double> pass{.traced = true, .regularised = true};
    memory.read(state, queries<double, infty::EigenBackend>(), pass);
    CHECK(pass.losses.empty());
    const Index heads = reading == MixedReading::gate ? 2 * H : H;
    CHECK(pass.trace[0].value.shape() == Shape{2, heads, 3, 20});
  }
}

TEST_CASE("MixedMemory: siblings share the matrices and nothing else") {
  using namespace mixed;
  Mixed<> memory(mixed_config(one(), two, MixedReading::gate), Random(1));
  auto sibling = memory.sibling(Random(2));
  Mixed<> other(memory.config(), Random(2));
  written(sibling);
  for (const auto& part : memory.parts) CHECK(part.ridge().entries() > 0);
  const auto own = infty::named_parameters<double>(sibling),
             expected = infty::named_parameters<double>(other),
             original = infty::named_parameters<double>(memory);
  REQUIRE(own.size() == expected.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    CAPTURE(own[i].name);
    CHECK(own[i].name == expected[i].name);
    CHECK(values(own[i].variable) == values(expected[i].variable));
    CHECK(own[i].variable.identity() != original[i].variable.identity());
  }
}

TEST_CASE("MixedMemory: a state of another number of parts is refused and stays as it was") {
  using namespace mixed;
  const Mixed<> memory(mixed_config(one(), two), Random(1)),
      more(mixed_config(one(), {two[0]}), Random(1));
  auto state = written(more);
  const auto before = values(state.parts[0].coefficients);
  const auto q = queries<double, infty::EigenBackend>();
  CHECK_THROWS_AS(memory.read(state, q), infty::ShapeError);
  CHECK_THROWS_AS(memory.write(state, queries<double, infty::EigenBackend>()), infty::ShapeError);
  CHECK(values(state.parts[0].coefficients) == before);
  // The second part throws when the first has been written.
  auto own = written(memory);
  own.parts[1].largest = infty::take_rows(own, 0, 1).parts[1].largest;
  const auto held = values(own.parts[0].coefficients);
  CHECK_THROWS_AS(memory.write(own, Variable<double>(Tensor<double>::zeros({2, 1, d}))),
                  infty::ShapeError);
  CHECK(values(own.parts[0].coefficients) == held);
  CHECK_THROWS_AS(memory.shares(), infty::ShapeError);
}

TEST_CASE("MixedMemory: what is no number is not answered") {
  using namespace mixed;
  auto config = one();
  config.resampling = infty::Resampling::sticky;  // of which the state would know
  Mixed<> memory(mixed_config(config, two, MixedReading::gate), Random(1));
  auto state = written(memory);
  const auto held = state.parts[0].attention.to_vector();
  memory.mixture.value().fill(infty::math::infinity<double>);
  CHECK_THROWS_AS(memory.read(state, queries<double, infty::EigenBackend>()),
                  infty::NonFiniteError);
  CHECK(state.parts[0].attention.to_vector() == held);
}

TEST_CASE("mixed_config: divides one memory among the rules") {
  using namespace mixed;
  auto config = one();
  config.basis = 14;
  config.power = 3;
  const ContractionRule own = [](Index, Index) { return .5; };
  const auto made =
      mixed_config(config, {FixedContraction{.6}, PowerContraction{2}, own, ContractionRule()});
  CHECK_NOTHROW(MixedConfig{made}.parts.size());
  REQUIRE(made.parts.size() == 4);
  const std::vector<Index> sizes = {4, 4, 4, 2};  // seven of each width
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& part = made.parts[i];
    CHECK(part.basis == sizes[i]);
    for (std::size_t w = 0; w < 2; ++w)
      CHECK(part.widths[w] ==
            Approx(config.widths[w] * 14 / static_cast<double>(sizes[i])).epsilon(1e-14));
    CHECK(part.samples == config.samples);
  }
  CHECK((made.parts[0].tau == .6 && made.parts[0].power == 0 && !made.parts[0].contraction));
  CHECK((made.parts[1].power == 2 && !made.parts[1].contraction));
  CHECK((made.parts[2].power == 0 && made.parts[2].contraction(1, 1) == .5));
  CHECK((made.parts[3].power == 3 && !made.parts[3].contraction));
  CHECK((made.heads == H && made.head_dim == D && made.model_dim == d));
  // Of blocks, a fixed share stays a rule: no power and no rule stand for a power of 1 there.
  auto uniform = one<Uniform<>::Config>();
  uniform.block = 5;
  const auto blocks = mixed_config(uniform, two);
  CHECK((blocks.parts[0].block == 3 && blocks.parts[1].block == 2));
  CHECK((blocks.parts[0].contraction(7, 1) == .6 && blocks.parts[1].power == 1));
}

TEST_CASE("MixedConfig: what cannot be is named") {
  using namespace mixed;
  const auto said = [](auto change, MixedReading reading = MixedReading::heads) {
    auto config = mixed_config(one(), two, reading);
    change(config);
    return said_by([&] { config.validate(); });
  };
  CHECK(said([](auto&) {}) == "");
  CHECK(says(said([](auto& c) { c.parts.clear(); }), "parts is empty"));
  CHECK(says(said([](auto& c) { c.model_dim = 0; }), "model_dim is 0"));
  CHECK(says(said([](auto& c) { c.heads = 0; }), "heads is 0"));
  CHECK(says(said([](auto& c) { c.head_dim = -1; }), "head_dim is -1"));
  CHECK(says(said([](auto& c) {
               c.heads = 3;
               c.head_dim = 0;
             }),
             "heads does not divide model_dim"));
  CHECK(says(said([](auto& c) { c.heads = 3; }), "heads is 3: it must be a multiple"));
  CHECK(said([](auto& c) { c.heads = 3; }, MixedReading::gate) == "");
  CHECK(says(said([](auto& c) { c.heads = Index{1} << 62; }), "heads"));
  CHECK(says(said([](auto& c) { c.parts[1].gate = false; }), "parts.1.gate is 0"));
  CHECK(says(said([](auto& c) { c.parts[1].bias = true; }), "parts.1.bias is 1"));
  CHECK(says(said([](auto& c) { c.parts[1].project = false; }), "parts.1.project is 0"));
  CHECK(says(said([](auto& c) { c.parts[1].group = 2; }), "parts.1.group is 2"));
  CHECK(says(said([](auto& c) { c.parts[1].samples = 0; }), "samples is 0"));
  const auto made = [](Index basis, const std::vector<ContractionRule>& rules) {
    auto config = one();
    config.basis = basis;
    return said_by([&] { mixed_config(config, rules); });
  };
  CHECK(says(made(8, {}), "there are no rules"));
  CHECK(says(made(2, two), "basis is 2: there are too few for 2 parts"));
  CHECK(says(made(8, {PowerContraction{0}}), "power is 0"));
  auto blocks = one<Uniform<>::Config>();
  blocks.block = 1;
  CHECK(says(said_by([&] { mixed_config(blocks, two); }), "block is 1"));
}
