// SPDX-License-Identifier: MIT
// How time and memory of an ∞-former's training step, and of its next token, grow with one size at
// a time: width, layers, length of a segment, rows of the batch, N, threads. Beside each the slope
// that operations and bytes have which are counted, not measured. Writes growth.csv and growth.md;
// growth.gp draws them.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/train/train_step.hpp>

#include "../../examples/support/files.hpp"
#include "../../examples/support/lock.hpp"
#include "../../examples/support/model_need.hpp"
#include "../../examples/support/options.hpp"
#include "../../examples/support/program.hpp"
#include "../../examples/support/progress_line.hpp"
#include "../support/clock.hpp"
#include "../support/flops.hpp"
#include "table.hpp"

namespace {

using namespace infty::bench;
using infty::Index, infty::Tensor;

/// The sizes of a model in training; each grows while the others stay as they are.
struct Sizes {
  Index width = 256, layers = 4, length = 128, rows = 4, basis = 128, threads = 1;

  infty::TransformerConfig model() const {
    return {.vocabulary = 1024,
            .model_dim = width,
            .layers = layers,
            .heads = width / 32,
            .feed_forward = 4 * width,
            .pre_norm = true};
  }
  infty::InftyConfig memory() const {
    return {.attention = {.capacity = length}, .memory = infty::LongTermConfig{.basis = basis}};
  }
  /// The same as the programs' models, for the bytes that they need.
  support::ModelConfig need() const {
    support::ModelConfig config;
    config.transformer = model();
    config.memory = "infty";
    config.segment = length;
    config.compressed = basis;
    config.memory_length = length + basis;
    config.long_term = *memory().memory;
    return config;
  }
};

/// An axis: its name, the size that grows, and its values.
struct Axis {
  const char* name;
  Index Sizes::*size;
  std::vector<Index> values;
};

std::vector<Axis> axes() {
  std::vector<Index> threads;
  for (Index t = 1; t <= infty::num_threads(); t *= 2) threads.push_back(t);
  return {
      {"width", &Sizes::width, {64, 128, 256, 512}},       {"layers", &Sizes::layers, {1, 2, 4, 8}},
      {"length", &Sizes::length, {32, 64, 128, 256, 512}}, {"rows", &Sizes::rows, {1, 2, 4, 8, 16}},
      {"N", &Sizes::basis, {32, 64, 128, 256, 512}},       {"threads", &Sizes::threads, threads}};
}

/// What one point costs, measured and counted.
struct Cost {
  double seconds = 0, flops = 0, bytes = 0, counted_bytes = 0;
};

/// Median seconds of calls of `body`, five at least and for half a second, and the tensors' peak.
template <class Body>
Cost measure(Body&& body) {
  body();
  Peak::restart();
  std::vector<double> times;
  for (double all = 0; times.size() < 5 || all < .5; all += times.back()) {
    const auto start = Clock::now();
    body();
    times.push_back(seconds_since(start));
  }
  return {.seconds = median(times), .bytes = static_cast<double>(Peak().tensors)};
}

using Model = infty::TransformerLM<infty::InftyMemory<float>>;

/// A step of Adam on the third of three segments, which the first two have filled the memories for.
Cost training_step(const Sizes& s) {
  Model model(s.model(), s.memory(), infty::Random(1));
  infty::Adam<float> optimizer(model);
  const auto before = Tensor<Index>::full({s.rows, 2 * s.length}, 5);
  const auto tokens = Tensor<Index>::full({s.rows, s.length}, 5);
  Cost cost = measure([&] {
    auto state = model.make_state(s.rows);
    model.observe(state, before, s.length);
    infty::train_step(optimizer, {.learning_rate = 1e-4, .max_norm = 1}, [&] {
      infty::Pass<float> pass;
      return infty::cross_entropy(model.logits(model.forward(state, tokens, pass)), tokens);
    });
  });
  cost.flops = training_step_flops(s.model(), s.memory(), s.rows, s.length, 2, s.length);
  const support::ModelNeed need(s.need());
  const auto rows = static_cast<double>(s.rows);
  cost.counted_bytes =
      need.model() + need.state(rows) + need.segment(rows, static_cast<double>(s.length), true);
  return cost;
}

/// The next token of every row behind full memories.
Cost next_token(const Sizes& s) {
  const Model model(s.model(), s.memory(), infty::Random(1));
  const auto guard = infty::no_grad();
  auto state = model.make_state(s.rows);
  model.observe(state, Tensor<Index>::full({s.rows, 3 * s.length}, 5), s.length);
  const auto token = Tensor<Index>::full({s.rows, 1}, 5);
  model.forward(state, token);  // writes what has left the short-term memory
  const auto start = state;
  Index calls = 0;
  Cost cost = measure([&] {
    // A text goes on, and memories stay about as full.
    if (++calls % (s.length / 4) == 0) state = start;
    model.logits(model.forward(state, token));
  });
  cost.flops = token_flops(s.model(), s.memory(), s.rows);
  const support::ModelNeed need(s.need());
  const auto rows = static_cast<double>(s.rows);
  cost.counted_bytes = need.model() / 2 + need.state(rows) + need.segment(rows, 1, false);
  return cost;
}

/// The slope of log y against log x, by least squares.
double slope(const std::vector<double>& x, const std::vector<double>& y) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i, ++n) {
    const double a = std::log(x[i]), b = std::log(y[i]);
    sx += a, sy += b, sxx += a * a, sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

/// A row of the table: an axis, from where to where, and four slopes.
std::string row(const char* what, const Axis& axis, const std::vector<Cost>& costs) {
  const auto of = [&](double Cost::*member) {
    std::vector<double> x, y;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      x.push_back(static_cast<double>(axis.values[i]));
      y.push_back(costs[i].*member);
    }
    char number[32];
    std::snprintf(number, sizeof number, " %.2f |", slope(x, y));
    return std::string(number);
  };
  const bool threads = axis.size == &Sizes::threads;
  return std::string("| ") + what + " | " + axis.name + ", " + std::to_string(axis.values.front()) +
         " to " + std::to_string(axis.values.back()) + " |" + of(&Cost::seconds) +
         (threads ? " -1 |" : of(&Cost::flops)) + of(&Cost::bytes) + of(&Cost::counted_bytes) +
         '\n';
}

void grow(const std::filesystem::path& folder) {
  const auto all = axes();
  const std::vector<std::pair<const char*, Cost (*)(const Sizes&)>> kinds{
      {"training step", training_step}, {"next token", next_token}};
  Csv csv("growth", folder / "growth.csv", "what,axis,value,seconds,flops,bytes,counted_bytes");
  Index points = 0, done = 0;
  for (const Axis& axis : all) points += std::ssize(kinds) * std::ssize(axis.values);
  support::ProgressLine part("growth", points, 0);
  std::string table =
      "| of a | against | time | operations | bytes | counted |\n|:-|:-|-:|-:|-:|-:|\n";
  for (const auto& [what, cost_of] : kinds)
    for (const Axis& axis : all) {
      std::vector<Cost> costs;
      for (const Index value : axis.values) {
        Sizes sizes;
        sizes.*axis.size = value;
        infty::set_num_threads(static_cast<int>(sizes.threads));
        const Cost& c = costs.emplace_back(cost_of(sizes));
        csv.line(std::string(what) + ',' + axis.name +
                 numbers({double(value), c.seconds, c.flops, c.bytes, c.counted_bytes}));
        part.update(++done, {});
      }
      if (costs.size() > 1) table += row(what, axis, costs);
    }
  part.clear();
  support::write_file(folder / "growth.md", table);
  std::printf("%s", table.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string out = "build/scaling";
  CLI::App app{"How time and memory grow with each size.", "growth"};
  app.add_option("--out", out, "folder for growth.csv and growth.md")->capture_default_str();
  if (const auto code = support::parse(app, argc, argv)) return *code;
  return support::run_program("growth", [&] {
    const auto lock = support::Lock::folder(out);
    grow(out);
    return 0;
  });
}
