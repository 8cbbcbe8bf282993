// SPDX-License-Identifier: MIT
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/infty_memory.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/no_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/nn/cached_attention.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/testing/gradient_check.hpp>

#include "support/around.hpp"
#include "support/catch.hpp"
#include "support/mean_memory.hpp"
#include "support/states.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

using infty::CompressiveMemory;
using infty::Index;
using infty::InftyMemory;
using infty::LongTermConfig;
using infty::NoMemory;
using infty::Random;
using infty::RowCounts;
using infty::Shape;
using infty::ShortTermMemory;
using infty::Tensor;
using infty::Variable;
using infty::WithMemory;
using infty::tests::Around;
using infty::tests::MeanMemory;
using infty::tests::numbers_of;
using infty::tests::uniform_tensor;

namespace {

constexpr infty::AttentionSizes small{.model_dim = 6, .heads = 2, .head_dim = 4};

const LongTermConfig signal{.basis = 6, .widths = {.1, .3}, .samples = 5};

/// A merge of a user's own: a share of the memory that is learned.
template <class T, class B = infty::EigenBackend>
struct ShareMerge {
  using V = Variable<T, B>;
  V gate;  ///< [1, 1, d]

  explicit ShareMerge(const infty::AttentionSizes& s)
      : gate(Tensor<T, B>::full({1, 1, s.model_dim}, T(.25)), true) {}
  template <class Visitor>
  void visit(Visitor&& see) {
    see("gate", gate);
  }
  V forward(const V& attended, const V& read) const { return attended + gate * read; }
};

/// A density that has no prior to be drawn to.
struct WithoutPrior : infty::GaussianDensity {
  template <class T>
  static infty::Expectation<T> divergence(T, T, T) = delete;
};

static_assert(infty::Density<WithoutPrior> && !infty::DensityWithPrior<WithoutPrior>);

template <class M>
concept CountsProducts = requires(const M& mixer, Index n) { mixer.flops(n, n); };

static_assert(infty::Attention<InftyMemory<float>>);
static_assert(infty::HoldsInputs<InftyMemory<float>, float, infty::EigenBackend>);
static_assert(infty::Memory<infty::LongTermMemory<float>>);
static_assert(!infty::Memory<ShortTermMemory<float>>);
static_assert(!infty::Attention<infty::LongTermMemory<float>>);

}  // namespace

TEMPLATE_LIST_TEST_CASE("WithMemory: answers the sum of what both read of the same queries", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const Around<T, B> around(6);
  auto infty =
      InftyMemory<T, B>({.attention = {.capacity = 3}, .memory = signal}, small, Random(1));
  infty.attention = around.drawn(infty.attention);
  auto state = infty.make_state(2);
  auto recent = infty.attention.make_state(2);
  auto past = infty.memory->make_state(2);
  infty::RowSequences<T, B> leaving{Tensor<T, B>::zeros({2, 0, 6}), {0, 0}};
  Random random(infty::tests::seed);
  for (const Index length : {4, 1, 5, 2}) {
    CAPTURE(length);
    const Variable<T, B> x(uniform_tensor<T, B>({2, length, 6}, random));
    infty::Pass<T, B> pass{.traced = true, .regularised = true};
    const auto got = around(infty, state, x, true, pass);
    // By hand: what has left is normed and written, then both are read. All rows are of one length.
    if (leaving.vectors.dim(1) > 0)
      infty.memory->write(past, around.layer_norm.forward(leaving.vectors));
    const auto attended = around(infty.attention, recent, x, true);
    const auto reading = infty.memory->attend(past, attended.queries);
    leaving = attended.leaving;
    CHECK(got.context.value().to_vector() ==
          (attended.context + reading.context).value().to_vector());
    CHECK(got.queries.value().to_vector() == attended.queries.value().to_vector());
    CHECK(got.leaving.vectors.empty());
    CHECK(numbers_of(state.attention) == numbers_of(recent));
    CHECK(numbers_of(state.past->memory) == numbers_of(past));
    CHECK(state.past->leaving.length == leaving.length);
    CHECK(state.past->leaving.vectors.to_vector() == leaving.vectors.to_vector());
    // And what the memory reports.
    REQUIRE(pass.trace.size() == (length == 4 ? 2 : 3));  // the attention's past, once there is one
    CHECK(first_shown(pass, "density").value().to_vector() == reading.density.value().to_vector());
    const auto share = first_shown(pass, "memory_share").value().to_vector();
    const auto length_of = [](const Variable<T, B>& y, std::size_t at) {
      double sum = 0;
      const auto all = y.value().to_vector();
      for (std::size_t i = 6 * at; i < 6 * (at + 1); ++i)
        sum += static_cast<double>(all[i]) * static_cast<double>(all[i]);
      return std::sqrt(sum);
    };
    REQUIRE(std::ssize(share) == 2 * length);
    for (std::size_t i = 0; i < share.size(); ++i) {
      const double near = length_of(attended.context, i), far = length_of(reading.context, i);
      CHECK(std::fabs(static_cast<double>(share[i]) - far / (near + far)) <
            infty::tests::tolerance<T>);
    }
    CHECK(loss_named(pass, "divergence").value().item() ==
          sum(infty.memory->divergence(reading.density)).value().item());
    infty::Pass<T, B> silent;
    auto branch = state;
    around(infty, branch, x, true, silent);
    CHECK(silent.trace.empty());
    CHECK(silent.losses.empty());
  }
  CHECK(past.written == RowCounts{6, 6});  // 9 have left in groups of 3; the last waits
}

TEMPLATE_LIST_TEST_CASE("WithMemory: a chunk that is read in pieces is as at once, row by row", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using Memory = infty::LongTermMemory<T, infty::GaussianDensity, infty::GaussianBasis<T>, B>;
  const WithMemory<infty::CausalAttention<T, B>, Memory> whole({.memory = signal}, small,
                                                               Random(1));
  WithMemory<infty::CachedAttention<T, B>, Memory> pieces(
      {.attention = {.capacity = 4}, .memory = signal}, small, Random(1));
  pieces.attention.maps = whole.attention.maps;
  pieces.memory = whole.memory;
  const Around<T, B> around(6);
  const auto norm = around.norm(true);
  Random random(infty::tests::seed);
  std::vector<Variable<T, B>> chunks;
  for (int i = 0; i < 3; ++i) chunks.emplace_back(uniform_tensor<T, B>({2, 4, 6}, random));
  // The second row begins two vectors later, with a chunk of its own.
  auto state = pieces.make_state(2);
  infty::Pass<T, B> pass;
  pieces.forward(state, narrow(chunks[0], 0, 2), norm, pass);
  reset_row(state, 1);
  std::vector<std::vector<T>> got(2);
  const auto vector_of = [&](Index row, Index i) {
    return narrow(chunks[static_cast<std::size_t>(i / 4)], i % 4, i % 4 + 1)
        .value()
        .slice(row, row + 1);
  };
  for (Index i = 0; i < 8; ++i) {
    Tensor<T, B> x(Shape{2, 1, 6});
    x.slice(0, 1).copy_from(vector_of(0, i + 2));
    x.slice(1, 2).copy_from(vector_of(1, i));
    const auto y = pieces.forward(state, Variable<T, B>(x), norm, pass).value().to_vector();
    got[0].insert(got[0].end(), y.begin(), y.begin() + 6);
    got[1].insert(got[1].end(), y.begin() + 6, y.end());
  }
  auto same = whole.make_state(2);
  std::vector<std::vector<T>> expected(2);
  for (const auto& chunk : chunks) {
    const auto y = whole.forward(same, chunk, norm, pass).value().to_vector();
    expected[0].insert(expected[0].end(), y.begin(), y.begin() + 24);
    expected[1].insert(expected[1].end(), y.begin() + 24, y.end());
  }
  const auto part = [](const std::vector<T>& all, Index begin) {
    return std::vector<T>(all.begin() + 6 * begin, all.begin() + 6 * (begin + 8));
  };
  CHECK(infty::tests::error(got[0], part(expected[0], 2)) < infty::tests::tolerance<T>);
  CHECK(infty::tests::error(got[1], part(expected[1], 0)) < infty::tests::tolerance<T>);
  CHECK(state.past->memory.written == RowCounts{8, 4});
  CHECK(state.past->leaving.length == RowCounts{2, 4});
}

TEST_CASE("WithMemory: without a memory it is the attention") {
  const Around<double> around(6);
  const InftyMemory<double> alone({.attention = {.capacity = 2}, .memory = {}}, small, Random(1));
  const ShortTermMemory<double> attention({.capacity = 2}, small, Random(1));
  CHECK_FALSE(alone.memory);
  CHECK(alone.attention.stride() == 1);
  CHECK(infty::count_parameters(alone) == infty::count_parameters(attention));
  CHECK(alone.flops(2, 3) == attention.flops(2, 3));
  auto state = alone.make_state(2);
  auto same = attention.make_state(2);
  CHECK_FALSE(state.past);
  Random random(infty::tests::seed);
  for (const Index length : {3, 1, 4}) {
    const Variable<double> x(uniform_tensor<double>({2, length, 6}, random));
    const auto a = around(alone, state, x, true), b = around(attention, same, x, true);
    CHECK(a.context.value().to_vector() == b.context.value().to_vector());
    CHECK(a.leaving.length == b.leaving.length);
    CHECK(a.leaving.vectors.to_vector() == b.leaving.vectors.to_vector());
    CHECK(numbers_of(state) == numbers_of(same));
  }
}

TEMPLATE_TEST_CASE("WithMemory: what leaves attention is written by the next call", "",
                   NoMemory<double>, ShortTermMemory<double>, CompressiveMemory<double>) {
  using Mixer = WithMemory<TestType, MeanMemory<double>>;
  const bool normed = GENERATE(false, true);
  const bool answer = GENERATE(false, true);
  typename Mixer::Config config;
  if constexpr (requires { config.attention.rate; })
    config.attention = {.capacity = 2, .compressed_capacity = 1, .rate = 2, .stride = 1};
  else if constexpr (requires { config.attention.capacity; })
    config.attention = {.capacity = 3, .stride = 2};
  const Around<double> around(6);
  const Mixer mixer(config, small, Random(1));
  CHECK(mixer.memory->config().model_dim == 6);
  CHECK(mixer.memory->config().heads == 2);
  CHECK(mixer.memory->config().head_dim == 4);
  auto state = mixer.make_state(2);
  auto alone = mixer.attention.make_state(2);
  std::vector<std::vector<double>> written(2, std::vector<double>(6, 0.0));  // sums of vectors
  RowCounts count{0, 0};
  std::vector<std::vector<double>> leaving[2];  // of each row
  Random random(infty::tests::seed);
  Index moved = 0;
  for (const Index length : {5, 1, 8, 2, 6}) {
    CAPTURE(normed, answer, length);
    const Variable<double> x(uniform_tensor<double>({2, length, 6}, random));
    infty::Pass<double> pass{.answer = answer}, again;
    const auto got = around(mixer, state, x, normed, pass);
    const auto attended = around(mixer.attention, alone, x, normed, again);
    for (std::size_t row = 0; row < 2; ++row) {
      for (const auto& vector : leaving[row]) {
        const auto seen =
            around.norm(normed)(Variable<double>(Tensor<double>::from({1, 6}, vector)));
        const auto mapped = mixer.memory->map.forward(seen).value().to_vector();
        for (std::size_t i = 0; i < 6; ++i) written[row][i] += mapped[i];
        ++count[row];
      }
      // In front of a shorter row there are zeros, which the memory takes for what they are.
      CHECK(state.past->memory.count[row] == count[row]);
      const auto sums = state.past->memory.sum.value().slice(static_cast<Index>(row),
                                                             static_cast<Index>(row) + 1);
      CHECK(infty::tests::error(sums.to_vector(), written[row]) < 1e-13);
      // What leaves now waits.
      leaving[row].clear();
      const auto& out = attended.leaving;
      const Index most = out.vectors.dim(1), left = out.length[row];
      CHECK(state.past->leaving.length[row] == left);
      const auto all = out.vectors.slice(static_cast<Index>(row), static_cast<Index>(row) + 1)
                           .reshape({most, 6});
      for (Index i = most - left; i < most; ++i)
        leaving[row].push_back(all.slice(i, i + 1).to_vector());
      moved += left;
      if (!answer) continue;
      for (Index place = 0; place < length; ++place)
        for (std::size_t i = 0; i < 6; ++i) {
          const auto at = (static_cast<Index>(row) * length + place) * 6 + static_cast<Index>(i);
          const double mean =
              count[row] > 0 ? written[row][i] / static_cast<double>(count[row]) : 0;
          CHECK(got.context.value().data()[at] ==
                Approx(attended.context.value().data()[at] + mean).margin(1e-12));
        }
    }
    CHECK(numbers_of(state.attention) == numbers_of(alone));
    if (length == 5) {  // rows of different lengths from here on
      reset_row(state, 1);
      reset_row(alone, 1);
      leaving[1].clear();
      written[1].assign(6, 0.0);
      count[1] = 0;
    }
  }
  CHECK(moved > 8);
  CHECK(count[0] > count[1]);
}

TEST_CASE("WithMemory: the loss of a segment reaches what the memory makes of new vectors") {
  InftyMemory<double> infty({.attention = {.capacity = 2, .stride = 1}, .memory = signal}, small,
                            Random(1));
  const Around<double> around(6);
  auto before = infty.make_state(2);
  Random random(infty::tests::seed);
  const auto draw = [&](Index length) {
    return infty::tests::uniform_variable<double>({2, length, 6}, random);
  };
  around(infty, before, draw(4), true);
  reset_row(before, 1);
  around(infty, before, draw(4), true);  // 4 vectors of row 0 and 2 of row 1 wait
  CHECK(before.past->leaving.length == RowCounts{4, 2});
  const auto x = draw(2);
  auto inputs = infty::parameters<double>(infty);
  for (const auto& v : {x, around.layer_norm.weight, around.layer_norm.bias}) inputs.push_back(v);
  const auto loss = [&] {
    auto state = before;
    infty::Pass<double> pass{.regularised = true};
    const auto y = around(infty, state, x, true, pass).context;
    return sum(y * y) + scale(loss_named(pass, "divergence"), 1e-2);
  };
  CHECK(infty::gradient_check(loss, inputs) < 1e-6);
  const auto gate = infty.memory->gate_weight.grad().to_vector();
  CHECK(gate != std::vector<double>(gate.size(), 0.0));
}

TEST_CASE("WithMemory: the past that LaMemo renews asks a sticky memory in no pass") {
  LongTermConfig sticky = signal;
  sticky.resampling = infty::Resampling::sticky_quantiles;
  sticky.bins = 4;
  const infty::WithMemory<infty::LaMemo<double>, infty::LongTermMemory<double>> layer(
      {.attention = {.capacity = 4}, .memory = sticky}, small, Random(1));
  auto answered = layer.make_state(1), silent = answered;
  Random random(infty::tests::seed);
  for (int segment = 0; segment < 4; ++segment) {
    const Index past = std::min<Index>(4, 3 * segment);
    const Variable<double> x(uniform_tensor<double>({1, past + 3, 6}, random, -5, 5));
    infty::Pass<double> pass{.before = past}, none{.answer = false, .before = past};
    layer.forward(answered, x, {}, pass);
    layer.forward(silent, x, {}, none);
    CAPTURE(segment);
    CHECK(silent.past->memory.attention.to_vector() == answered.past->memory.attention.to_vector());
  }
}

TEMPLATE_LIST_TEST_CASE("WithMemory: a pass without an answer leaves the state that one leaves", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  for (const auto resampling :
       {infty::Resampling::even, infty::Resampling::sticky, infty::Resampling::sticky_quantiles})
    for (const bool normed : {false, true}) {
      LongTermConfig long_term = signal;
      long_term.resampling = resampling;
      long_term.bins = 8;
      const Around<T, B> around(6);
      auto infty = InftyMemory<T, B>(
          {.attention = {.capacity = 2, .stride = 1}, .memory = long_term}, small, Random(1));
      infty.attention = around.drawn(infty.attention);
      auto answered = infty.make_state(2, 5), silent = answered, recorded = answered,
           recorded_silent = answered;
      Random random(infty::tests::seed);
      for (const Index length : {4, 1, 5, 3}) {
        CAPTURE(static_cast<int>(resampling), normed, length);
        // Memory tokens ask, too, and leave no vectors.
        const Variable<T, B> x(uniform_tensor<T, B>({2, length + 2, 6}, random));
        const auto attend = [&](auto& state, bool answer) {
          infty::Pass<T, B> pass{.answer = answer, .before = 1, .behind = 1, .traced = true};
          const auto attended = around(infty, state, x, normed, pass);
          CHECK((attended.context.size() > 0) == answer);
          CHECK((pass.losses.size() > 0) == (answer && infty::Tape::active() != nullptr));
        };
        attend(answered, true);
        attend(silent, false);
        {
          infty::Tape tape;
          attend(recorded, true);
          attend(recorded_silent, false);
        }
        const auto expected = numbers_of(answered);
        CHECK(numbers_of(silent) == expected);
        CHECK(infty::tests::error(numbers_of(recorded), expected) < infty::tests::tolerance<T>);
        CHECK(numbers_of(recorded_silent) == numbers_of(recorded));
        if (length == 4)
          for (auto* state : {&answered, &silent, &recorded, &recorded_silent})
            reset_row(*state, 1);
      }
      CHECK(answered.past->memory.written == RowCounts{8, 4});
    }
}

TEST_CASE("WithMemory: another merge, which may learn") {
  using Gated = WithMemory<ShortTermMemory<double>, MeanMemory<double>, ShareMerge<double>>;
  using Summed = WithMemory<ShortTermMemory<double>, MeanMemory<double>>;
  const Gated gated({.attention = {.capacity = 2, .stride = 1}}, small, Random(1));
  const Summed summed({.attention = {.capacity = 2, .stride = 1}}, small, Random(1));
  std::vector<std::string> names;
  infty::for_each_parameter(gated,
                            [&](const std::string& name, const auto&) { names.push_back(name); });
  CHECK(names.front() == "attention.query.weight");
  CHECK(names[names.size() - 2] == "memory.map.weight");
  CHECK(names.back() == "merge.gate");
  const Around<double> around(6);
  auto a = gated.make_state(1);
  auto b = summed.make_state(1);
  auto c = summed.attention.make_state(1);
  Random random(infty::tests::seed);
  for (const Index length : {4, 3}) {
    const Variable<double> x(uniform_tensor<double>({1, length, 6}, random));
    const auto got = around(gated, a, x, false).context,
               whole = around(summed, b, x, false).context,
               attended = around(summed.attention, c, x, false).context;
    CHECK(infty::tests::error(
              got.value().to_vector(),
              (attended + infty::scale(whole - attended, .25)).value().to_vector()) < 1e-14);
    CHECK((got.value().to_vector() == attended.value().to_vector()) == (length == 4));
  }
}

TEMPLATE_LIST_TEST_CASE("GatedMerge: half of each at first, and what the gate says then", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  const infty::GatedMerge<T, B> merge(small);
  Random random(infty::tests::seed);
  const Variable<T, B> a(uniform_tensor<T, B>({2, 3, 6}, random)),
      b(uniform_tensor<T, B>({2, 3, 6}, random));
  CHECK(infty::tests::error(merge.forward(a, b).value().to_vector(),
                            infty::scale(a + b, T(.5)).value().to_vector()) <
        infty::tests::tolerance<T>);
  Tensor<T, B> gate = merge.gate.value();
  gate.fill(T(-40));
  CHECK(infty::tests::error(merge.forward(a, b).value().to_vector(), a.value().to_vector()) <
        infty::tests::tolerance<T>);
  gate.fill(T(40));
  CHECK(infty::tests::error(merge.forward(a, b).value().to_vector(), b.value().to_vector()) <
        infty::tests::tolerance<T>);
}

TEST_CASE("SumMerge, GatedMerge: what was read must have the shape of what was attended to") {
  const Variable<float> x(Tensor<float>::zeros({2, 3, 4})), one(Tensor<float>::zeros({2, 1, 4}));
  CHECK_THROWS_AS(infty::SumMerge<float>().forward(x, one), infty::ShapeError);
  const infty::GatedMerge<float> gated(
      infty::AttentionSizes{.model_dim = 4, .heads = 1, .head_dim = 4});
  CHECK_THROWS_AS(gated.forward(x, one), infty::ShapeError);
}

TEST_CASE("WithMemory: a sibling shares what its parts share") {
  const InftyMemory<float> first({.attention = {.capacity = 2}, .memory = signal}, small,
                                 Random(1));
  InftyMemory<float> other = first.sibling(Random(2));
  other.attention.attention.content_bias.value().fill(3);
  CHECK(first.attention.attention.content_bias.value().to_vector() == std::vector<float>(8, 3));
  CHECK(other.attention.attention.encoding(4).data() ==
        first.attention.attention.encoding(4).data());
  CHECK(other.memory->key.weight.value().to_vector() !=
        first.memory->key.weight.value().to_vector());
  CHECK(other.memory->ridge().next(3).carry.data() == first.memory->ridge().next(3).carry.data());
  // Drawn as the constructor draws them.
  const InftyMemory<float> same({.attention = {.capacity = 2}, .memory = signal}, small, Random(2));
  CHECK(same.memory->key.weight.value().to_vector() ==
        other.memory->key.weight.value().to_vector());
  CHECK(same.attention.attention.query.weight.value().to_vector() ==
        other.attention.attention.query.weight.value().to_vector());
  const InftyMemory<float> none({.attention = {}, .memory = {}}, small, Random(1));
  CHECK_FALSE(none.sibling(Random(2)).memory);
}

TEST_CASE("WithMemory: a density without a prior is read, and loses nothing") {
  using Plain = WithMemory<ShortTermMemory<double>, infty::LongTermMemory<double, WithoutPrior>>;
  const Around<double> around(6);
  const Plain plain({.attention = {.capacity = 2, .stride = 1}, .memory = signal}, small,
                    Random(1));
  const InftyMemory<double> infty({.attention = {.capacity = 2, .stride = 1}, .memory = signal},
                                  small, Random(1));
  auto a = plain.make_state(1);
  auto b = infty.make_state(1);
  Random random(infty::tests::seed);
  for (const Index length : {4, 3}) {
    const Variable<double> x(uniform_tensor<double>({1, length, 6}, random));
    infty::Pass<double> pass{.traced = true, .regularised = true}, other = pass;
    const auto got = around(plain, a, x, false, pass), same = around(infty, b, x, false, other);
    CHECK(infty::tests::error(got.context.value().to_vector(), same.context.value().to_vector()) <
          1e-14);
    CHECK(first_shown(pass, "density").size() > 0);
    CHECK(pass.losses.empty());
    CHECK(other.losses.size() == 1);
  }
}

TEST_CASE("WithMemory: counts its products, where its parts do") {
  using Mean = WithMemory<ShortTermMemory<float>, MeanMemory<float>>;
  static_assert(CountsProducts<InftyMemory<float>> && !CountsProducts<Mean>);
  const InftyMemory<float> infty({.attention = {.capacity = 4}, .memory = signal}, small,
                                 Random(1));
  // A write of a group of 4 comes once in two segments of 2, and once in one of 8 with all of them.
  CHECK(infty.flops(3, 2) == infty.attention.flops(3, 2) + infty.memory->read_flops(3, 2) +
                                 infty.memory->write_flops(3, 4) / 2);
  CHECK(infty.flops(3, 8) == infty.attention.flops(3, 8) + infty.memory->read_flops(3, 8) +
                                 infty.memory->write_flops(3, 8));
}

TEST_CASE("WithMemory: what cannot be is refused, and a state that does not fit is as it was") {
  LongTermConfig grouped = signal;
  grouped.group = 3;
  CHECK_THROWS_WITH(InftyMemory<float>({.attention = {}, .memory = grouped}, small),
                    "[WithMemory] memory.group is 3: it must be 1, for vectors wait, and are read, "
                    "in the attention (its stride)");
  CHECK_THROWS_AS(InftyMemory<float>({.attention = {.capacity = -1}, .memory = signal}, small),
                  infty::ValueError);
  LongTermConfig none = signal;
  none.basis = 0;
  CHECK_THROWS_AS(InftyMemory<float>({.attention = {}, .memory = none}, small), infty::ValueError);

  const Around<float> around(6);
  const InftyMemory<float> infty({.attention = {.capacity = 2, .stride = 1}, .memory = signal},
                                 small, Random(1)),
      alone({.attention = {.capacity = 2}, .memory = {}}, small, Random(1));
  CHECK_THROWS_AS(infty.make_state(0), infty::ValueError);
  auto state = infty.make_state(2);
  const Variable<float> x(Tensor<float>::full({2, 5, 6}, .5F));
  around(infty, state, x, true);
  const auto refused = [&](const auto& mixer, auto wrong, const Variable<float>& segment,
                           const std::string& what) {
    CAPTURE(what);
    const auto before = numbers_of(wrong);
    for (const bool answer : {true, false}) {
      infty::Pass<float> pass{.answer = answer};
      CHECK_THROWS_WITH(around(mixer, wrong, segment, true, pass), Catch::Contains(what));
      CHECK(numbers_of(wrong) == before);
    }
  };
  refused(alone, state, x, "[WithMemory] the state has a memory, the layer none");
  refused(infty, alone.make_state(2), x, "[WithMemory] the state has no memory, the layer one");
  auto wrong = state;
  wrong.past->leaving = {Tensor<float>::zeros({2, 3, 5}), {3, 3}};
  refused(infty, wrong, x,
          "[WithMemory] the state's leaving vectors are [2, 3, 5]: they must be [2, L, 6]");
  for (const Index n : {Index{4}, Index{-1}, Index{1} << 40}) {
    wrong = state;
    wrong.past->leaving.length[1] = n;
    refused(infty, wrong, x,
            "[WithMemory] the state's past.leaving.vectors is [2, 3, 6], and a row of it has " +
                std::to_string(n) + " vectors");
  }
  wrong = state;
  wrong.past->memory = infty.memory->make_state(1);
  refused(infty, wrong, x, "[WithMemory]");
  wrong = state;
  wrong.past->memory.coefficients = Variable<float>(Tensor<float>::zeros({2, 5, 6}));
  refused(infty, wrong, x, "[WithMemory]");
  wrong = state;
  wrong.attention = infty.attention.make_state(1);
  refused(infty, wrong, x, "[WithMemory]");
  // A segment that the attention refuses, when what has left is written already.
  refused(infty, state, Variable<float>(Tensor<float>::zeros({2, 5, 4})), "");
  refused(infty, state, Variable<float>(Tensor<float>::zeros({1, 5, 6})), "[ShortTermMemory]");
}
