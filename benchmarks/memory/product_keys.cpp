// SPDX-License-Identifier: MIT
// What a feed of product keys costs, and that a step of training does not grow with the table: 512
// vectors of width 128, 4 heads, 32 slots a head of 2^16 or 2^20, query and values of width 128.
// Forward; forward, backward and a step of Adam, by rows and, as a comparison, of the whole table;
// and the parts that it is made of: the search against the matrix product that its scores are, the
// sum of values and its way back against reading as many bytes of a table as large from end to end,
// which rows that lie anywhere cannot be.

#include <cmath>

#include <benchmark/benchmark.h>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/train/train_step.hpp>

#include "../support/against.hpp"
#include "../support/flops.hpp"
#include "../support/tensors.hpp"

using namespace infty::bench;
using infty::Index;

namespace {

constexpr Index vectors = 512, width = 128, slots_a_vector = 4 * 32;

struct Reading {
  infty::ProductKeyMemory<float> memory;
  infty::Variable<float> x{normal<float>({4, vectors / 4, width}), true};

  explicit Reading(Index slots, bool by_rows = true)
      : memory({.sub_keys = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(slots)))),
                .key_dim = 128,
                .row_gradients = by_rows},
               width, infty::Random(1)) {}

  infty::ProductKeyReading<float> read(bool training) const {
    infty::Pass<float> pass{.training = training};
    return memory.read(x, pass);
  }
};

void forward(benchmark::State& run) {
  const Reading one(run.range(0));
  const double seconds =
      alone(run, [&] { benchmark::DoNotOptimize(one.read(false).output.value().data()); });
  run.counters["vectors/s"] = vectors / seconds;
}

template <bool by_rows>
void step(benchmark::State& run) {
  Reading one(run.range(0), by_rows);
  infty::Adam<float> adam(one.memory);
  const double seconds = alone(run, [&] {
    infty::train_step(adam, {.learning_rate = 1e-4, .max_norm = 1},
                      [&] { return infty::sum(one.read(true).output); });
  });
  run.counters["vectors/s"] = vectors / seconds;
}

void search(benchmark::State& run) {
  const Reading one(run.range(0));
  const infty::Variable<float> queries(normal<float>({vectors, 4 * 128}));
  const Index n = one.memory.config().sub_keys;
  against_matrix_product<float>(run, 8 * product_flops(vectors, n, 64), [&] {
    benchmark::DoNotOptimize(infty::product_key_search(queries, one.memory.keys, 32).slots.data());
  });
}

/// What the table holds, and what is read of it.
double table_bytes(Index slots) { return static_cast<double>(slots * width) * sizeof(float); }
constexpr double read_bytes = double(vectors * slots_a_vector * width) * sizeof(float);

void rows(benchmark::State& run) {
  const Reading one(run.range(0));
  const auto reading = one.read(false);
  const infty::Shape all{vectors, slots_a_vector};
  const infty::Variable<float> weights(reading.weights.value().reshape(all));
  const auto slots = reading.slots.reshape(all);
  against_reading(run, read_bytes, table_bytes(run.range(0)), [&] {
    benchmark::DoNotOptimize(
        infty::weighted_rows(weights, slots, one.memory.values).value().data());
  });
}

/// The same and its way back: rows are read once more for the weights' gradients, and theirs are
/// written.
void rows_and_back(benchmark::State& run) {
  const Reading one(run.range(0));
  const auto reading = one.read(false);
  const infty::Shape all{vectors, slots_a_vector};
  infty::Variable<float> weights(reading.weights.value().reshape(all), true);
  infty::Variable<float> values = one.memory.values;
  const auto slots = reading.slots.reshape(all);
  const auto seed = normal<float>({vectors, width});
  against_reading(run, 3 * read_bytes, table_bytes(run.range(0)), [&] {
    weights.zero_grad();
    values.zero_grad();
    infty::Tape tape;
    tape.backward(infty::weighted_rows(weights, slots, values), seed);
  });
}

void groups(benchmark::State& run) {
  const Reading one(run.range(0));
  const auto slots = one.read(false).slots;
  alone(run, [&] { benchmark::DoNotOptimize(infty::group_rows(slots, run.range(0)).rows.data()); });
}

}  // namespace

BENCHMARK(forward)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
BENCHMARK(step<true>)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
BENCHMARK(step<false>)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
BENCHMARK(search)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
BENCHMARK(rows)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
BENCHMARK(rows_and_back)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
BENCHMARK(groups)->Arg(1 << 16)->Arg(1 << 20)->UseManualTime();
