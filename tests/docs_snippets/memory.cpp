// SPDX-License-Identifier: MIT
#include <utility>

#include <infty/autograd/gradient_check.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/io/checkpoint.hpp>
#include <infty/memory/state.hpp>
#include <infty/nn/linear.hpp>
#include <infty/testing/invariants.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::Index, infty::Random, infty::RowCounts, infty::Shape, infty::Tensor, infty::Variable;

/// What an average remembers: rows of sums, and of how many vectors.
template <class T, class B = infty::EigenBackend>
struct AverageState {
  Tensor<T, B> sum;  // [batch, d]
  RowCounts written;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("sum", sum);
    see("written", written);
  }
};

/// The plainest memory: every query reads the mean of all vectors, through a linear layer.
template <class T, class B = infty::EigenBackend>
struct AverageMemory {
  using State = AverageState<T, B>;
  infty::Linear<T, B> out;  // d -> d

  AverageMemory(Index dim, Random random) : out(dim, dim, random) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("out", out);
  }

  State make_state(Index batch) const {
    return {Tensor<T, B>::zeros({batch, out.weight.dim(1)}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// x [batch, L, d]
  void write(State& state, const Variable<T, B>& x) const {
    const Index length = x.dim(1), d = x.dim(2);
    infty::require<infty::ShapeError>(Shape{x.dim(0), d} == state.sum.shape(), "write", "x is ",
                                      x.shape(), ", the state holds ", state.sum.shape());
    auto total = state.sum.clone();  // other handles of the old state keep what they have
    const T* const from = x.value().data();
    T* const to = total.data();
    B::for_each_row(total.size(), length, [=] INFTY_HOST_DEVICE(Index i) {
      for (Index l = 0; l < length; ++l) to[i] += from[(i / d * length + l) * d + i % d];
    });
    state.sum = total;
    for (Index& count : state.written) count += length;
  }

  /// queries [batch, Q, d] -> [batch, Q, d]; a fresh row reads what `out` makes of zeros
  Variable<T, B> read(State& state, const Variable<T, B>& queries) const {
    Tensor<T, B> mean(queries.shape());
    const Index each = queries.dim(1), d = queries.dim(2);
    for (Index row = 0; row < queries.dim(0); ++row) {
      const Index count = state.written[static_cast<std::size_t>(row)];
      const T share = count > 0 ? T(1) / static_cast<T>(count) : T(0);
      const T* const from = state.sum.data() + row * d;
      T* const to = mean.data() + row * each * d;
      B::for_each(each * d, [=] INFTY_HOST_DEVICE(Index i) { to[i] = share * from[i % d]; });
    }
    return out.forward(Variable<T, B>(mean));
  }
};

TEST_CASE("docs: a memory of one's own keeps the promises of all memories") {
  Random random(infty::tests::seed);
  AverageMemory<double> memory(4, Random(1));
  const auto x = infty::tests::uniform_tensor<double>({2, 6, 4}, random);
  const auto y = infty::tests::uniform_tensor<double>({2, 3, 4}, random);
  const auto queries = infty::tests::uniform_tensor<double>({2, 5, 4}, random);
  const infty::tests::TemporaryFolder folder;
  const auto path = folder / "state.safetensors";

  const infty::testing::Stream<Tensor<double>> stream{{x, y, x}, queries};
  const auto through = [&](const auto& state) {
    save_state(path, state);
    auto loaded = memory.make_state(1);
    load_state(path, loaded);
    return loaded;
  };
  require_invariants(memory, stream, through, 1e-14);  // throws, naming the first that is broken

  CHECK(pieces_equal_whole(memory, stream) < 1e-14);
  auto state = memory.make_state(2);
  memory.write(state, x);
  CHECK(bytes_of(state) == 2 * 4 * sizeof(double) + 2 * sizeof(Index));
  const auto read = [&] { return sum(memory.read(state, queries)); };
  CHECK(gradient_check(read, std::vector{memory.out.weight, memory.out.bias}) < 1e-8);
}
