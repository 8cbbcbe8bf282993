// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include <infty/memory/uniform_memory.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/testing/memory_invariants.hpp>

#include "io/temporary_folder.hpp"
#include "memory/uniform.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

TEMPLATE_LIST_TEST_CASE("UniformMemory: the same stream is the same signal however it is cut", "",
                        infty::tests::Types) {
  using namespace uniform;
  using T = typename TestType::T;
  using B = typename TestType::B;
  using M = UniformOf<T, B>;
  auto config = small<M>();
  config.widths = {.1};  // so that the rate soon doubles
  const M memory(config, Random(3));
  constexpr Index length = 400;
  auto whole = memory.make_state(1), cut = whole;
  memory.write(whole, Variable<T, B>(stream_of<T, B>(length, 0, length)));
  Random random(5);
  const auto queries = infty::tests::uniform_variable<T, B>({1, 3, 4}, random);
  for (Index at = 0; at < length;) {
    const Index end = (std::min)(length, at + random.below(60));
    memory.write(cut, Variable<T, B>(stream_of<T, B>(length, at, end)));
    const auto read = memory.read(cut, queries).value().to_vector();  // which leaves no trace
    auto anew = cut;
    anew.carried = {};
    CHECK(memory.read(anew, queries).value().to_vector() == read);
    CHECK(memory.read(cut, queries).value().to_vector() == read);
    at = end;
  }
  CHECK(whole.signal.coefficients.value().to_vector() ==
        cut.signal.coefficients.value().to_vector());
  CHECK(whole.sum.to_vector() == cut.sum.to_vector());
  CHECK((whole.taken == cut.taken && whole.rate == cut.rate && whole.held == cut.held));
  CHECK(whole.rate.front() >= 8);
  CHECK(whole.taken.front() == length);
  CHECK(memory.read(whole, queries).value().to_vector() ==
        memory.read(cut, queries).value().to_vector());
}

TEST_CASE("UniformMemory: a stream in pieces is the whole to the bit, for any rule of the ratio") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = small<M>();
  config.head_dim = 1;
  Random random(11);
  infty::testing::Stream<Tensor<double>> stream;
  for (const Index length : {1, 1, 5, 300, 2, 17, 1000, 3})
    stream.pieces.push_back(infty::tests::uniform_tensor<double>({3, length, 2}, random));
  stream.queries = infty::tests::uniform_tensor<double>({3, 4, 2}, random);
  for (const double power : {.5, 1., 2.}) {
    config.power = power;
    CHECK(infty::testing::pieces_equal_whole(M(config, Random(3)), stream) == 0);
  }
  config.power = 0;
  config.contraction = infty::FixedContraction{.9};  // which is never pooled
  CHECK(infty::testing::pieces_equal_whole(M(config, Random(3)), stream) == 0);
  auto by_tau = config.signal();
  by_tau.contraction = {};
  by_tau.tau = .9;
  CHECK(M(config).signal.ridge().next(4).carry.to_vector() ==
        infty::LongTermMemory<double>(by_tau).ridge().next(4).carry.to_vector());
  // The paper's memory cannot: each write blurs what is there.
  const infty::LongTermMemory<double> paper(config.signal(), Random(3));
  CHECK(infty::testing::pieces_equal_whole(paper, stream) > .01);
}

TEST_CASE(
    "UniformMemory: rows that are cut each in its own way, read and reset, have the bits of "
    "streams alone") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = small<M>();
  config.head_dim = 1;
  config.widths = {.1};
  const M memory(config, Random(3));
  Random random(17);
  constexpr Index length = 500, dim = 2;
  const auto streams = infty::tests::uniform_tensor<double>({3, length, dim}, random);
  const auto queries = infty::tests::uniform_variable<double>({3, 2, 2}, random);
  auto state = memory.make_state(3);
  infty::RowCounts from(3, 0), begun(3, 0);
  bool reset = false;
  while (std::any_of(from.begin(), from.end(), [](Index n) { return n < length; })) {
    const Index most = random.below(40);
    infty::RowCounts counts(3);
    Tensor<double> x = Tensor<double>::zeros({3, most, dim});
    for (Index row = 0; row < 3; ++row) {
      Index& at = from[static_cast<std::size_t>(row)];
      const Index count = (std::min)(random.below(most + 1), length - at);
      counts[static_cast<std::size_t>(row)] = count;
      std::copy_n(streams.data() + (row * length + at) * dim, count * dim,
                  x.data() + ((row + 1) * most - count) * dim);
      at += count;
    }
    memory.write(state, Variable<double>(x), counts);
    memory.read(state, queries);
    if (!reset && from[1] > length / 3) {
      infty::reset_row(state, 1);
      begun[1] = from[1];
      reset = true;
    }
  }
  for (Index row = 0; row < 3; ++row) {
    const Index first = begun[static_cast<std::size_t>(row)];
    auto alone = memory.make_state(1);
    memory.write(
        alone, Variable<double>(Tensor<double>::from({1, length - first, dim},
                                                     {streams.data() + (row * length + first) * dim,
                                                      streams.data() + (row + 1) * length * dim})));
    const auto mine = infty::take_rows(state, row, row + 1);
    CHECK(mine.signal.coefficients.value().to_vector() ==
          alone.signal.coefficients.value().to_vector());
    CHECK(mine.means.value().to_vector() == alone.means.value().to_vector());
    CHECK(mine.sum.to_vector() == alone.sum.to_vector());
  }
}

TEST_CASE("UniformMemory: batches, resets, copies and files have what waits, in means of many") {
  using namespace uniform;
  using M = UniformOf<>;
  const infty::tests::TemporaryFolder folder;
  auto config = small<M>();
  config.head_dim = 1;
  Random random(11);
  infty::testing::Stream<Tensor<double>> stream;
  for (const Index length : {7, 300, 1, 700, 5})
    stream.pieces.push_back(infty::tests::uniform_tensor<double>({2, length, 2}, random));
  stream.queries = infty::tests::uniform_tensor<double>({2, 3, 2}, random);
  for (const double power : {.5, 1., 2.}) {
    config.power = power;
    const M memory(config, Random(3));
    auto state = memory.make_state(2);
    for (const auto& piece : stream.pieces) {
      memory.write(state, piece);
      const Index m = (std::max<Index>)(state.rate.front(), 1);
      CHECK((state.held.front() > 0 && state.held.front() < 4 * m));  // a block that is not full
    }
    CHECK(state.rate.front() >= 8);
    infty::testing::require_invariants(
        memory, stream,
        [&](const M::State& kept) {
          save_state(folder / "state", kept);
          auto loaded = memory.make_state(kept.signal.coefficients.dim(0));
          load_state(folder / "state", loaded);
          return loaded;
        },
        1e-12);
  }
}

TEST_CASE("UniformMemory: keeps what all memories keep, beside attention in a model") {
  using namespace uniform;
  const infty::tests::TemporaryFolder folder;
  using M = UniformOf<>;
  auto config = small<M>();
  config.basis = config.samples = 8;  // few and small matrices, for there are many memories
  config.widths = {.1};
  config.block = 2;
  for (const auto waiting : {infty::Waiting::written, infty::Waiting::attended}) {
    config.waiting = waiting;
    infty::testing::require_memory<M>(config, folder / "uniform");
  }
  config.resampling = infty::Resampling::sticky;
  config.power = .5;
  config.waiting = infty::Waiting::left_out;
  using Mixer = infty::WithMemory<infty::NoMemory<double>, M>;
  const infty::testing::TokenMemory<Mixer> sticky({.memory = config});
  const auto through = [&](const auto& state) {
    save_state(folder / "sticky", state);
    auto loaded = sticky.make_state(1);
    load_state(folder / "sticky", loaded);
    return loaded;
  };
  infty::testing::require_invariants(sticky, infty::testing::some_stream(), through, 1e-12);
}
