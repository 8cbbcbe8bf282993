// SPDX-License-Identifier: MIT
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/mixed_memory.hpp>
#include <infty/memory/uniform_memory.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "memory/uniform.hpp"
#include "memory/uniform_by_loops.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

// What waits for its block, read by attention.

namespace uniform {

using infty::Waiting;

template <class M>
typename M::Config attending() {
  auto config = small<M>();
  config.waiting = Waiting::attended;
  return config;
}

/// Rows of which one has pooled, one is younger, one has written nothing and one is fresh.
template <class M>
typename M::State four_rows(const M& memory) {
  using T = typename M::Scalar;
  using B = typename M::BackendType;
  auto state = memory.make_state(4);
  Random random(5);
  const auto write = [&](Index length, const RowCounts& counts) {
    memory.write(state, Variable<T, B>(infty::tests::uniform_tensor<T, B>({4, length, 2}, random)),
                 counts);
  };
  write(290, {290, 0, 0, 0});
  write(9, {0, 9, 3, 0});
  return state;
}

}  // namespace uniform

TEMPLATE_LIST_TEST_CASE("UniformMemory: what waits is attended to beside the signal, as by loops",
                        "", infty::tests::Types) {
  using namespace uniform;
  using T = typename TestType::T;
  using B = typename TestType::B;
  using M = UniformOf<T, B>;
  Random random(7);
  const auto queries = infty::tests::uniform_variable<T, B>({4, 3, 4}, random);
  for (const bool gate : {true, false}) {
    auto config = attending<M>();
    config.gate = gate;
    config.project = gate;
    const M memory(config, Random(3));
    auto state = four_rows(memory);
    // Of the first row the last mean is not full, and no row has all four.
    REQUIRE((state.rate[0] >= 4 && state.held[0] % state.rate[0] > 0));
    REQUIRE(state.held[0] > state.rate[0]);
    REQUIRE((state.held[1] == 1 && state.held[2] == 3 && state.held[3] == 0));
    REQUIRE((state.signal.written[1] > 0 && state.signal.written[2] == 0));
    auto alone = state;
    const auto of_signal = in_double(memory.signal.read(alone.signal, queries)),
               of_waiting = read_of_waiting(memory, state, queries),
               both = in_double(memory.read(state, queries));
    REQUIRE(both.size() == of_waiting.size());
    double most = 0, waiting = 0;
    for (std::size_t i = 0; i < both.size(); ++i) {
      most = std::fmax(most, std::fabs(both[i] - of_signal[i] - of_waiting[i]));
      waiting = std::fmax(waiting, std::fabs(of_waiting[i]));
    }
    CAPTURE(gate, most, waiting);
    CHECK(waiting > .01);
    CHECK(most < 10 * infty::tests::tolerance<T>);
    // The fresh row reads zeros, the one that has written nothing the attention alone.
    const std::size_t row = both.size() / 4;
    for (std::size_t i = 0; i < row; ++i) {
      CHECK(of_signal[2 * row + i] == 0);
      CHECK(both[3 * row + i] == 0);
    }
    // Of rows in which nothing waits it is the signal's, to the bit.
    state.held = RowCounts(4, 0);
    CHECK(in_double(memory.read(state, queries)) == of_signal);
    // What `seen` has is the signal of the full blocks.
    CHECK(memory.seen(state).coefficients.value().to_vector() ==
          alone.signal.coefficients.value().to_vector());
  }
}

TEST_CASE("UniformMemory: attention sees no place of the block that is empty, nor another row") {
  using namespace uniform;
  using M = UniformOf<>;
  const M memory(attending<M>(), Random(3));
  const auto state = four_rows(memory);
  Random random(7);
  const auto queries = infty::tests::uniform_variable<double>({4, 3, 4}, random);
  auto plain = state, littered = state;
  littered.means = Variable<double>(state.means.value().clone());
  for (Index row = 0; row < 4; ++row) {
    const auto entries = static_cast<Index>(waiting_of_row(state, row).size());
    for (Index at = (row * 4 + entries) * 2; at < (row + 1) * 8; ++at)
      littered.means.value().data()[at] = at % 3 == 0 ? std::nan("") : 1e30;
  }
  const auto all = memory.read(plain, queries).value();
  CHECK(memory.read(littered, queries).value().to_vector() == all.to_vector());
  for (Index row = 0; row < 4; ++row) {
    auto one = infty::take_rows(state, row, row + 1);
    const Variable<double> own(queries.value().slice(row, row + 1).clone());
    const auto mine = memory.read(one, own).value().to_vector(),
               there = all.slice(row, row + 1).to_vector();
    for (std::size_t i = 0; i < mine.size(); ++i) CHECK(mine[i] == Approx(there[i]).margin(1e-14));
  }
}

TEST_CASE("UniformMemory: gradients through attention to what waits are differences") {
  using namespace uniform;
  using M = UniformOf<>;
  M memory(attending<M>(), Random(3));
  auto state = memory.make_state(2);
  Random random(5);
  for (const Index length : {60, 37}) {
    memory.write(state,
                 Variable<double>(infty::tests::uniform_tensor<double>({2, length, 2}, random)));
    if (length == 60) reset_row(state, 1);  // rows of different age
  }
  const auto x = infty::tests::uniform_variable<double>({2, 3, 2}, random),
             q = infty::tests::uniform_variable<double>({2, 3, 4}, random),
             weight = infty::tests::uniform_variable<double>({2, 3, 2}, random);
  const auto loss = [&] {
    auto branch = state;
    memory.write(branch, x, {2, 3});
    infty::Pass<double, infty::EigenBackend> pass{.regularised = true};
    const auto answer = memory.read(branch, q, pass);
    return sum(answer * weight) + infty::loss_named(pass, "divergence");
  };
  // The gradient stops at what is written, so that both rows have room for these.
  REQUIRE((state.held[0] + 2 <= 4 * state.rate[0] && state.held[1] + 3 <= 4 * state.rate[1]));
  std::vector<Variable<double>> all{x,
                                    q,
                                    memory.signal.gate_weight,
                                    memory.signal.gate_bias,
                                    memory.signal.key.weight,
                                    memory.signal.value.weight,
                                    memory.signal.density_weight,
                                    memory.signal.out.weight};
  CHECK(infty::gradient_check(loss, all) < 1e-6);
}

TEST_CASE("UniformMemory: however what waits is read, the stream is the same state to the bit") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = small<M>();
  config.head_dim = 1;
  const infty::tests::TemporaryFolder folder;
  Random random(11);
  infty::testing::Stream<Tensor<double>> stream;
  for (const Index length : {1, 1, 5, 300, 2, 17})
    stream.pieces.push_back(infty::tests::uniform_tensor<double>({3, length, 2}, random));
  stream.queries = infty::tests::uniform_tensor<double>({3, 4, 2}, random);
  std::vector<std::vector<double>> coefficients, means;
  for (const Waiting waiting : {Waiting::written, Waiting::attended, Waiting::left_out}) {
    config.waiting = waiting;
    const M memory(config, Random(3));
    auto state = memory.make_state(3);
    for (const auto& piece : stream.pieces) {
      memory.write(state, Variable<double>(piece));
      memory.read(state, Variable<double>(stream.queries));
    }
    coefficients.push_back(state.signal.coefficients.value().to_vector());
    means.push_back(state.means.value().to_vector());
    CHECK(coefficients.back() == coefficients.front());
    CHECK(means.back() == means.front());
  }
  config.waiting = Waiting::attended;
  const M memory(config, Random(3));
  CHECK(infty::testing::pieces_equal_whole(memory, stream) == 0);
  const auto through = [&](const M::State& kept) {
    save_state(folder / "state", kept);
    auto loaded = memory.make_state(kept.signal.coefficients.dim(0));
    load_state(folder / "state", loaded);
    return loaded;
  };
  infty::testing::require_invariants(memory, stream, through, 1e-12);
}

TEST_CASE(
    "UniformMemory: what one layer has read of a state changes nothing of what another does") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = small<M>();
  const M one(config, Random(1));
  config.ridge = 10;
  config.samples = 64;
  const M other(config, Random(1));
  Random random(7);
  const auto queries = infty::tests::uniform_variable<double>({4, 3, 4}, random);
  const auto state = four_rows(one);
  auto read = state, read_by_both = state;
  const auto wanted = other.read(read, queries).value().to_vector();
  one.read(read_by_both, queries);
  CHECK(other.read(read_by_both, queries).value().to_vector() == wanted);
}

TEST_CASE("UniformMemory: a pass is shown the signal's densities, whatever is attended to") {
  using namespace uniform;
  using M = UniformOf<>;
  auto config = attending<M>();
  config.resampling = infty::Resampling::sticky;
  const M memory(config, Random(3));
  CHECK(memory.notes_reads());
  const auto state = four_rows(memory);
  Random random(7);
  const auto queries = infty::tests::uniform_variable<double>({4, 3, 4}, random);
  auto plain = state, passed = state, alone = state;
  infty::Pass<double, infty::EigenBackend> pass{.traced = true, .regularised = true},
      of_signal{.traced = true, .regularised = true};
  const auto answer = memory.read(plain, queries).value().to_vector();
  CHECK(memory.read(passed, queries, pass).value().to_vector() == answer);
  const auto bare = memory.signal.read(alone.signal, queries, of_signal).value().to_vector();
  CHECK(bare != answer);
  REQUIRE((pass.trace.size() == 1 && pass.losses.size() == 1));
  CHECK(infty::first_shown(pass, "density").value().to_vector() ==
        infty::first_shown(of_signal, "density").value().to_vector());
  CHECK(pass.losses[0].value.value().item() == of_signal.losses[0].value.value().item());
  // Sticky memories sample where the signal was looked at.
  CHECK(passed.signal.attention.to_vector() == alone.signal.attention.to_vector());
  CHECK(passed.signal.attention.to_vector() != state.signal.attention.to_vector());
}

TEST_CASE("UniformMemory: attention to what waits refuses what a signal's read does") {
  using namespace uniform;
  using M = UniformOf<float>;
  const M memory(attending<M>(), Random(3));
  auto state = memory.make_state(1);
  memory.write(state, Variable<float>(Tensor<float>::full({1, 2, 2}, 1e29F)));
  Random random(7);
  for (const float v : memory.read(state, infty::tests::uniform_variable<float>({1, 3, 4}, random))
                           .value()
                           .to_vector())
    CHECK(std::isfinite(v));
  const auto said = [&](const Tensor<float>& queries) -> std::string {
    try {
      memory.read(state, Variable<float>(queries));
    } catch (const infty::Error& e) {
      return e.what();
    }
    return "";
  };
  CHECK(said(Tensor<float>::zeros({1, 3, 5})).find("[read] queries are") == 0);
  CHECK(said(Tensor<float>::zeros({2, 3, 4})).find("[read] queries are") == 0);
  CHECK_THROWS_AS(memory.read(state, Variable<float>(Tensor<float>::full(
                                         {1, 3, 4}, std::numeric_limits<float>::infinity()))),
                  infty::NonFiniteError);
  CHECK(state.held.front() == 2);
}

TEST_CASE("MixedMemory: its uniform parts attend to what waits in each") {
  using namespace uniform;
  using M = UniformOf<>;
  using Mixed = infty::MixedMemory<M>;
  const auto one_vector = Variable<double>(Tensor<double>::full({1, 1, 2}, 1.));
  Random random(7);
  const auto queries = infty::tests::uniform_variable<double>({1, 2, 4}, random);
  for (const auto reading : {infty::MixedReading::heads, infty::MixedReading::gate})
    for (const Waiting waiting : {Waiting::attended, Waiting::left_out}) {
      auto config = small<M>();
      config.waiting = waiting;
      const Mixed memory(
          mixed_config(config, {infty::PowerContraction{.5}, infty::PowerContraction{1}}, reading),
          Random(1));
      auto state = memory.make_state(1);
      memory.write(state, one_vector);
      double most = 0;
      for (const double v : memory.read(state, queries).value().to_vector())
        most = std::fmax(most, std::fabs(v));
      CHECK((most > 1e-3) == (waiting == Waiting::attended));
    }
}
