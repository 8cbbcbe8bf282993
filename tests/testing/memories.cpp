// SPDX-License-Identifier: MIT
#include <cmath>

#include <infty/io/checkpoint.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/short_term_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/signal/truncated_parabola.hpp>
#include <infty/testing/invariants.hpp>

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

/// The last vectors, read by softmax attention: the smallest reader of a short-term memory.
struct RecentMemory {
  infty::ShortTermMemory<double> memory{6, 10};

  auto make_state(Index batch) const { return memory.make_state(batch); }
  void write(infty::ShortTermState<double>& state, const Tensor<double>& x) const {
    memory.write(state, x);
  }
  Tensor<double> read(const infty::ShortTermState<double>& state, const Tensor<double>& q) const {
    auto out = Tensor<double>::zeros(q.shape());
    const auto& held = state.recent;
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

/// A language model as a memory of tokens: it is written by observing, read by answering.
struct ModelMemory {
  infty::TransformerLM<double> model;

  explicit ModelMemory(const infty::TransformerConfig& settings)
      : model(settings, Random(infty::tests::seed)) {}

  auto make_state(Index batch) const { return model.make_state(batch); }
  void write(infty::TransformerState<double>& state, const Tensor<Index>& tokens) const {
    model.observe(state, tokens);
  }
  auto read(infty::TransformerState<double>& state, const Tensor<Index>& tokens) const {
    auto branch = state;
    return model.logits(model.forward(branch, tokens).hidden);
  }
};

infty::TransformerConfig model_config() {
  infty::TransformerConfig settings{.vocabulary = 7,
                                    .model_dim = 6,
                                    .layers = 2,
                                    .heads = 2,
                                    .head_dim = 4,
                                    .feed_forward = 8,
                                    .short_term = 4};
  settings.long_term = config();
  return settings;
}

kit::Stream<Tensor<Index>> tokens() {
  Random random(infty::tests::seed);
  kit::Stream<Tensor<Index>> stream;
  const auto draw = [&](Index length) {
    Tensor<Index> x(infty::Shape{3, length});
    for (Index i = 0; i < x.size(); ++i) x.data()[i] = random.below(7);
    return x;
  };
  for (const Index length : {3, 1, 6, 2}) stream.pieces.push_back(draw(length));
  stream.queries = draw(5);
  return stream;
}

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

TEST_CASE("ShortTermMemory: keeps the invariants, and pieces are the whole") {
  const RecentMemory memory;
  kit::require_invariants(memory, vectors<double>(6, 6), through_file(memory, 3));
  CHECK(kit::pieces_equal_whole(memory, vectors<double>(6, 6)) == 0);
}

TEST_CASE("TransformerLM: keeps the invariants with any combination of memories") {
  auto settings = model_config();
  SECTION("both memories") {}
  SECTION("both, norms in front") { settings.pre_norm = true; }
  SECTION("both, sticky") { settings.long_term->resampling = Resampling::sticky; }
  SECTION("long-term only") { settings.short_term = 0; }
  SECTION("short-term only") { settings.long_term.reset(); }
  SECTION("none") {
    settings.short_term = 0;
    settings.long_term.reset();
  }
  const ModelMemory memory(settings);
  kit::require_invariants(memory, tokens(), through_file(memory, 3), rounding);
}

TEST_CASE("TransformerLM: with a short-term memory that holds all, pieces are the whole") {
  auto settings = model_config();
  settings.long_term.reset();
  settings.short_term = 20;
  CHECK(kit::pieces_equal_whole(ModelMemory(settings), tokens()) < rounding);
}
