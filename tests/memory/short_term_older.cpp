// SPDX-License-Identifier: MIT
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/compressive_memory.hpp>
#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "memory/uniform.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

// What waits for its block, in front of what a short-term memory holds.

namespace short_term_older {

using namespace uniform;
using infty::Pass;
using infty::ShortTermMemory;
using infty::Waiting;
using infty::tests::error;

const infty::AttentionSizes older_sizes{.model_dim = 4, .heads = 2, .head_dim = 3};

template <class M>
typename M::Config waiting_there() {
  auto config = small<M>();
  config.waiting = Waiting::short_term;
  return config;
}

}  // namespace short_term_older

TEMPLATE_LIST_TEST_CASE("ShortTermMemory: older vectors are read as if it held them", "",
                        infty::tests::Types) {
  using namespace short_term_older;
  using T = typename TestType::T;
  using B = typename TestType::B;
  using V = Variable<T, B>;
  Random random(infty::tests::seed);
  const ShortTermMemory<T, B> memory({.capacity = 3}, older_sizes, Random(1)),
      larger({.capacity = 8}, older_sizes, Random(1));
  const infty::LayerNorm<T, B> norm(4);
  // Rows that hold 3, 1, 0 and 2, behind 2, 5, 4 and 0 older ones.
  const RowCounts held{3, 1, 0, 2}, older{2, 5, 4, 0};
  const auto all = infty::tests::uniform_tensor<double>({4, 8, 4}, random);
  const auto part = [&](Index places, const RowCounts& counts, const RowCounts& behind) {
    std::vector<T> out(static_cast<std::size_t>(4 * places * 4), T(0));
    for (std::size_t row = 0; row < 4; ++row)
      for (Index i = 1; i <= counts[row]; ++i)
        for (Index j = 0; j < 4; ++j)
          out[static_cast<std::size_t>(((static_cast<Index>(row) + 1) * places - i) * 4 + j)] =
              static_cast<T>(
                  all.data()[((static_cast<Index>(row) + 1) * 8 - i - behind[row]) * 4 + j]);
    return Tensor<T, B>::from(Shape{4, places, 4}, out);
  };
  RowCounts both = held;
  for (std::size_t row = 0; row < 4; ++row) both[row] += older[row];
  const auto x = infty::tests::uniform_variable<T, B>({4, 2, 4}, random);
  for (const bool normed : {false, true})
    for (const bool recorded : {false, true}) {
      CAPTURE(normed, recorded);
      const auto of = normed ? infty::InputNorm<T, B>(norm) : infty::InputNorm<T, B>();
      auto state = memory.make_state(4), whole = larger.make_state(4);
      state.recent = {part(state.recent.vectors.dim(1), held, RowCounts(4, 0)), held};
      whole.recent = {part(whole.recent.vectors.dim(1), both, RowCounts(4, 0)), both};
      std::optional<infty::Tape> tape;
      if (recorded) tape.emplace();
      Pass<T, B> plain, told;
      told.older = {of(V(part(5, older, held))), older};
      // Twice, for the second time finds keys of the first.
      for (int segment = 0; segment < 2; ++segment) {
        const auto there = larger.forward(whole, x, of, plain).value().to_vector();
        CHECK(error(memory.forward(state, x, of, told).value().to_vector(), there) <
              10 * infty::tests::tolerance<T>);
        if (segment == 1) break;
        // What has left is older now.
        RowCounts more = older, keeps = held;
        for (std::size_t row = 0; row < 4; ++row) {
          keeps[row] = held[row] + 2 < 3 ? held[row] + 2 : 3;
          more[row] += held[row] + 2 - keeps[row];
        }
        CHECK(state.recent.length == keeps);
        const V before = concat(told.older.vectors, of(V(part(3, held, RowCounts(4, 0)))));
        std::vector<T> next(4 * 8 * 4, T(0));
        const auto from = before.value().to_vector();
        const auto newest = of(x).value().to_vector();
        for (std::size_t row = 0; row < 4; ++row) {
          // Older, held, segment, of this row alone, and of these all but the last `keeps`.
          std::vector<T> line;
          const auto take = [&](const std::vector<T>& y, Index places, Index begin, Index end) {
            for (Index i = (static_cast<Index>(row) * places + begin) * 4;
                 i < (static_cast<Index>(row) * places + end) * 4; ++i)
              line.push_back(y[static_cast<std::size_t>(i)]);
          };
          take(from, 8, 5 - older[row], 5);
          take(from, 8, 8 - held[row], 8);
          take(newest, 2, 0, 2);
          line.resize(line.size() - static_cast<std::size_t>(keeps[row]) * 4);
          REQUIRE(static_cast<Index>(line.size()) == more[row] * 4);
          std::copy(line.begin(), line.end(),
                    next.begin() + (static_cast<std::ptrdiff_t>(row) + 1) * 32 -
                        static_cast<std::ptrdiff_t>(line.size()));
        }
        told.older = {V(Tensor<T, B>::from(Shape{4, 8, 4}, next)), more};
        CHECK(whole.recent.length == RowCounts{7, 8, 6, 4});
      }
    }
}

TEST_CASE("ShortTermMemory: gradients reach what stands in front of it") {
  using namespace short_term_older;
  Random random(infty::tests::seed);
  const ShortTermMemory<double> memory({.capacity = 3}, older_sizes, Random(1));
  auto start = memory.make_state(2);
  Pass<double> first;
  memory.forward(start, infty::tests::uniform_variable<double>({2, 2, 4}, random), {}, first);
  auto older = infty::tests::uniform_variable<double>({2, 3, 4}, random),
       x = infty::tests::uniform_variable<double>({2, 2, 4}, random);
  const auto weights = infty::tests::uniform_variable<double>({2, 2, 4}, random).detach();
  const auto loss = [&] {
    auto state = start;
    Pass<double> pass;
    pass.older = {older, {3, 1}};
    return sum(multiply(memory.forward(state, x, {}, pass), weights));
  };
  CHECK(infty::gradient_check(loss, std::vector{older, x}) < 1e-7);
}

TEST_CASE("ShortTermMemory: older vectors of other shapes are refused, and nothing has changed") {
  using namespace short_term_older;
  const ShortTermMemory<double> memory({.capacity = 3}, older_sizes, Random(1));
  auto state = memory.make_state(2);
  const Variable<double> x(Tensor<double>::zeros({2, 2, 4}));
  for (const auto& [shape, counts] : std::vector<std::pair<Shape, RowCounts>>{
           {{2, 3, 5}, {1, 1}}, {{1, 3, 4}, {1}}, {{2, 3, 4}, {4, 0}}, {{2, 3, 4}, {-1, 0}}}) {
    Pass<double> pass;
    pass.older = {Variable<double>(Tensor<double>::zeros(shape)), counts};
    CHECK_THROWS_AS(memory.forward(state, x, {}, pass), infty::ShapeError);
    CHECK(state.recent.length == RowCounts{0, 0});
  }
}

TEST_CASE("UniformMemory: what waits stands in front of the short-term memory beside it") {
  using namespace short_term_older;
  using M = UniformOf<>;
  using Mixer = infty::WithMemory<ShortTermMemory<double>, M>;
  auto config = waiting_there<M>();
  const Mixer mixer({.attention = {.capacity = 3, .stride = 1}, .memory = config}, older_sizes,
                    Random(1));
  // Of so few vectors that nothing is written, all are seen as if nothing had left.
  const ShortTermMemory<double> all({.capacity = 9}, older_sizes, Random(1));
  auto state = mixer.make_state(1);
  auto whole = all.make_state(1);
  Random random(5);
  ShortTermMemory<double> same = all;
  same.attention = mixer.attention.attention;
  for (int segment = 0; segment < 3; ++segment) {
    const auto x = infty::tests::uniform_variable<double>({1, 2, 4}, random);
    Pass<double> pass, plain;
    const auto y = mixer.forward(state, x, {}, pass).value().to_vector();
    CHECK(pass.older.vectors.size() == 0);
    CHECK(error(y, same.forward(whole, x, {}, plain).value().to_vector()) < 1e-13);
  }
  CHECK(state.past->memory.held == RowCounts{1});
  CHECK(state.past->memory.refits == RowCounts{0});
  // A memory by itself leaves them out.
  auto left_out = config;
  left_out.waiting = Waiting::left_out;
  const M here(config, Random(3)), there(left_out, Random(3));
  auto a = here.make_state(1), b = there.make_state(1);
  for (auto* of : {&a, &b})
    here.write(*of, Variable<double>(stream_of<double, infty::EigenBackend>(99, 0, 99)));
  const auto queries = infty::tests::uniform_variable<double>({1, 2, 4}, random);
  CHECK(here.read(a, queries).value().to_vector() == there.read(b, queries).value().to_vector());
}

TEST_CASE("UniformMemory: beside attention that reads what waits it keeps what all memories keep") {
  using namespace short_term_older;
  const infty::tests::TemporaryFolder folder;
  using M = UniformOf<>;
  auto config = waiting_there<M>();
  config.basis = config.samples = 8;
  config.widths = {.1};
  config.block = 2;
  infty::testing::require_memory<M>(config, folder / "uniform");
  using Mixer = infty::WithMemory<ShortTermMemory<double>, infty::MixedMemory<M>>;
  const infty::testing::TokenMemory<Mixer> mixed(
      {.attention = {.capacity = 2, .stride = 1},
       .memory = mixed_config(config, {infty::PowerContraction{.5}, infty::PowerContraction{1}},
                              infty::MixedReading::gate)});
  const auto through = [&](const auto& state) {
    save_state(folder / "mixed", state);
    auto loaded = mixed.make_state(1);
    load_state(folder / "mixed", loaded);
    return loaded;
  };
  infty::testing::require_invariants(mixed, infty::testing::some_stream(), through, 1e-12);
}

TEST_CASE("MixedMemory: of every row those wait in front that the part with most has") {
  using namespace short_term_older;
  using M = UniformOf<>;
  auto config = waiting_there<M>();
  const infty::MixedMemory<M> memory(
      mixed_config(config, {infty::PowerContraction{.5}, infty::PowerContraction{2}},
                   infty::MixedReading::gate),
      Random(1));
  CHECK(memory.shows_older());
  auto state = memory.make_state(3);
  const auto x = stream_of<double, infty::EigenBackend>(300, 0, 300);
  const auto rows = concat(concat(reshape(Variable<double>(x), Shape{1, 300, 2}),
                                  reshape(Variable<double>(x), Shape{1, 300, 2})),
                           reshape(Variable<double>(x), Shape{1, 300, 2}));
  const Variable<double> three(rows.value().reshape(Shape{3, 300, 2}));
  memory.write(state, three, {299, 7, 0});
  const auto older = memory.older(state);
  REQUIRE(older.vectors.shape().rank() == 3);
  bool differ = false;
  for (Index row = 0; row < 3; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const std::size_t most = state.parts[0].held[at] >= state.parts[1].held[at] ? 0 : 1;
    differ = differ || state.parts[0].held[at] != state.parts[1].held[at];
    const auto own = memory.parts[most].older(state.parts[most]);
    REQUIRE(older.length[at] == own.length[at]);
    for (Index i = 1; i <= older.length[at]; ++i)
      for (Index j = 0; j < 2; ++j)
        CHECK(older.vectors.value().data()[((row + 1) * older.vectors.dim(1) - i) * 2 + j] ==
              own.vectors.value().data()[((row + 1) * own.vectors.dim(1) - i) * 2 + j]);
  }
  CHECK(differ);
  CHECK(older.length[2] == 0);

  auto parts = mixed_config(config, {infty::PowerContraction{.5}, infty::PowerContraction{2}},
                            infty::MixedReading::gate);
  parts.parts[1].waiting = Waiting::written;
  CHECK_THROWS_WITH(infty::MixedMemory<M>(parts), Catch::Matchers::Contains("parts.1.waiting"));
}

TEST_CASE("WithMemory: attention that cannot read what waits is refused") {
  using namespace short_term_older;
  using M = UniformOf<>;
  using Mixer = infty::WithMemory<infty::CompressiveMemory<double>, M>;
  CHECK_THROWS_WITH(Mixer({.memory = waiting_there<M>()}, older_sizes),
                    Catch::Matchers::Contains("waiting is short_term"));
}
