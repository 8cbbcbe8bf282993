// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/memory/fifo.hpp>
#include <infty/memory/lamemo.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/signal/fourier_basis.hpp>
#include <infty/signal/power_basis.hpp>
#include <infty/signal/rectangular_basis.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/invariants.hpp>
#include <infty/train/checkpoint.hpp>

#include "io/temporary_folder.hpp"
#include "support/catch.hpp"
#include "support/tensors.hpp"

using infty::DensityParameters;
using infty::Index;
using infty::LongTermConfig;
using infty::LongTermMemory;
using infty::Random;
using infty::Resampling;
using infty::Tensor;

namespace kit = infty::testing;

namespace {

template <class T>
kit::Stream<Tensor<T>> vectors(Index d, Index e) {
  Random random(infty::tests::seed);
  kit::Stream<Tensor<T>> stream;
  for (const Index length : {5, 1, 8, 3})
    stream.pieces.push_back(infty::tests::uniform_tensor<T>({3, length, d}, random));
  stream.queries = infty::tests::uniform_tensor<T>({3, 4, e}, random, -3, 3);
  return stream;
}

/// Saves and loads by a file.
template <class Memory>
auto through_file(const Memory& memory, Index batch) {
  return [&memory, batch](const kit::StateOf<Memory>& state) {
    const infty::tests::TemporaryFolder folder;
    infty::save_state(folder / "state.safetensors", state);
    auto loaded = memory.make_state(batch);
    infty::load_state(folder / "state.safetensors", loaded);
    return loaded;
  };
}

LongTermConfig config() {
  return {
      .model_dim = 6, .heads = 2, .head_dim = 4, .basis = 12, .widths = {.05, .2}, .samples = 9};
}

/// The last vectors, read by softmax attention: the smallest reader of a Fifo.
struct RecentMemory {
  infty::Fifo<double> memory{6, 10};

  auto make_state(Index batch) const { return memory.make_state(batch); }
  void write(infty::RowSequences<double>& state, const Tensor<double>& x) const {
    memory.write(state, x);
  }
  Tensor<double> read(const infty::RowSequences<double>& state, const Tensor<double>& q) const {
    auto out = Tensor<double>::zeros(q.shape());
    const auto& held = state;
    for (Index row = 0; row < q.dim(0); ++row)
      for (Index i = 0; i < q.dim(1); ++i) {
        const double* const query = q.data() + (row * q.dim(1) + i) * 6;
        double total = 0;
        double* const to = out.data() + (row * q.dim(1) + i) * 6;
        for (Index j = 10 - held.length[static_cast<std::size_t>(row)]; j < 10; ++j) {
          const double* const x = held.vectors.data() + (row * 10 + j) * 6;
          double score = 0;
          for (Index c = 0; c < 6; ++c) score += query[c] * x[c];
          total += std::exp(score);
          for (Index c = 0; c < 6; ++c) to[c] += std::exp(score) * x[c];
        }
        for (Index c = 0; c < 6 && total > 0; ++c) to[c] /= total;
      }
    return out;
  }
};

// A batch and its rows run through products of other sizes, which may round otherwise.
constexpr double rounding = 1e-12;

}  // namespace

TEST_CASE("LongTermMemory: keeps the invariants, whatever is set") {
  auto settings = config();
  SECTION("evenly resampled") {}
  SECTION("sticky") { settings.resampling = Resampling::sticky; }
  SECTION("sticky by quantiles") { settings.resampling = Resampling::sticky_quantiles; }
  SECTION("moments") { settings.parameters = DensityParameters::moments; }
  SECTION("no gate") { settings.gate = false; }
  SECTION("threshold") { settings.threshold = 7; }
  SECTION("a power") { settings.power = 1; }
  SECTION("a power, sticky") {
    settings.power = .5;
    settings.resampling = Resampling::sticky;
  }
  SECTION("a rule of one's own") {
    settings.contraction = [](Index written, Index added) {
      return static_cast<double>(written + 1) / static_cast<double>(written + 2 * added + 1);
    };
  }
  const LongTermMemory<double> memory(settings, Random(infty::tests::seed));
  kit::require_invariants(memory, vectors<double>(6, 8), through_file(memory, 3), rounding);
  // It compresses with every write, so pieces are not the whole.
  CHECK(kit::pieces_equal_whole(memory, vectors<double>(6, 8)) > 1e-3);
}

TEST_CASE("LongTermMemory: keeps the invariants with the truncated parabola, in float") {
  auto settings = config();
  settings.resampling = Resampling::sticky_quantiles;
  const LongTermMemory<float, infty::TruncatedParabola> memory(settings,
                                                               Random(infty::tests::seed));
  // Rounding of 6e-8 that a narrow function, of width .05, and four contractions raise.
  kit::require_invariants(memory, vectors<float>(6, 8), through_file(memory, 3), 1e-4);
}

TEMPLATE_TEST_CASE("LongTermMemory: keeps the invariants over any basis", "",
                   infty::FourierBasis<double>, infty::PowerBasis<double>,
                   infty::RectangularBasis<double>) {
  auto settings = config();
  settings.resampling = GENERATE(Resampling::even, Resampling::sticky);
  const LongTermMemory<double, infty::GaussianDensity, TestType> memory(settings,
                                                                        Random(infty::tests::seed));
  kit::require_invariants(memory, vectors<double>(6, 8), through_file(memory, 3), rounding);
  CHECK(kit::pieces_equal_whole(memory, vectors<double>(6, 8)) > 1e-3);
}

TEST_CASE("Fifo: keeps the invariants, and pieces are the whole") {
  const RecentMemory memory;
  kit::require_invariants(memory, vectors<double>(6, 6), through_file(memory, 3));
  CHECK(kit::pieces_equal_whole(memory, vectors<double>(6, 6)) == 0);
}
