// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <infty/data/sorting.hpp>
#include <infty/signal/gaussian_basis.hpp>
#include <infty/train/trainer.hpp>

#include "../support/interrupt.hpp"
#include "../support/model_need.hpp"
#include "../support/progress_line.hpp"
#include "../support/running_mean.hpp"
#include "../support/training.hpp"
#include "attention.hpp"

namespace memory_study {

/// Sorting models [Martins et al. 2022, §4.1] that differ in N, their number of basis functions.
struct BasisSettings {
  std::vector<Index> basis = {4, 8, 16, 32, 64};
  infty::SortingConfig task{.symbols = 10, .length = 256};
  Index segment = 32, batch = 32, steps = 300, evaluation = 512;
  infty::TransformerConfig model{.model_dim = 48,
                                 .layers = 2,
                                 .heads = 3,
                                 .feed_forward = 96,
                                 .pre_norm = true,
                                 .embedding_deviation = 0};
  infty::LongTermConfig long_term{
      .widths = {.02, .1}, .samples = 64, .tau = .75, .ridge = 1, .variance_floor = 1e-4};
  double rate = 3e-3;
  std::uint64_t seed = 1;
};

/// What came of one N.
struct BasisPoint {
  Index basis = 0;
  double accuracy = 0;  ///< of the answers' symbols, each predicted behind the right ones
  double error = 0;     ///< of the regression
};

namespace detail {

/// The last segment: a separator and the answers but for their last symbols, then the answers.
inline infty::TextBatch question(const infty::SortingTask& task, const infty::SortingBatch& from,
                                 Index batch) {
  const Index symbols = task.config().symbols;
  infty::TextBatch out{.batch = batch,
                       .length = symbols,
                       .inputs = {},
                       .targets = {},
                       .predicted = batch * symbols,
                       .reset = {}};
  for (Index i = 0; i < batch * symbols; ++i) {
    const auto at = static_cast<std::size_t>(i);
    out.inputs.push_back(i % symbols == 0 ? static_cast<Index>(task.separator())
                                          : static_cast<Index>(from.answer[at - 1]));
    out.targets.push_back(static_cast<Index>(from.answer[at]));
  }
  return out;
}

inline std::vector<Index> tokens_of(const infty::SortingBatch& from) {
  return {from.tokens.begin(), from.tokens.end()};
}

/// |X(t) - x|² / |x|² of the first layer's memory over the vectors x of whole sequences, each at
/// its place t once all of them are written.
inline double regression_error(const support::Model& model, const BasisSettings& s, Index basis,
                               const infty::SortingTask& task, infty::Random& random) {
  double wrong = 0, all = 0;
  const infty::GaussianBasis<double> psi(basis, s.long_term.widths);
  for (int sequence = 0; sequence < 8; ++sequence) {
    const auto tokens = tokens_of(task.sample(1, random));
    auto state = model.make_state(1);
    Cells cells;
    std::vector<float> taken, coefficients;
    for (Index first = 0; first < std::ssize(tokens); first += s.segment) {
      const auto begin = tokens.begin() + first;
      const auto end = begin + std::min<Index>(s.segment, tokens.end() - begin);
      const auto view = model.look(state, {begin, end}).front();
      if (view.written > cells.size())
        cells.write(view.written - cells.size(), s.long_term.tau, Warp());
      taken.insert(taken.end(), view.taken.begin(), view.taken.end());
      coefficients = view.coefficients;
    }
    const Index width = s.model.model_dim;
    for (Index i = 0; i < cells.size(); ++i)
      for (Index c = 0; c < width; ++c) {
        double signal = 0;
        for (Index j = 0; j < basis; ++j)
          signal += psi(j, cells.place(i)) *
                    static_cast<double>(coefficients[static_cast<std::size_t>(j * width + c)]);
        const auto x = static_cast<double>(taken[static_cast<std::size_t>(i * width + c)]);
        wrong += (signal - x) * (signal - x);
        all += x * x;
      }
  }
  return all > 0 ? wrong / all : 0;
}

}  // namespace detail

/// What the model with so many basis functions is made of.
inline support::ModelConfig config_of(const BasisSettings& s, Index basis) {
  support::ModelConfig config{.memory = "infty",
                              .seed = s.seed,
                              .transformer = s.model,
                              .memory_length = s.segment + basis,
                              .compressed = basis,
                              .segment = s.segment,
                              .long_term = s.long_term,
                              .contraction = {}};
  config.transformer.vocabulary = s.task.symbols + 1;
  return config;
}

/// Throws infty::ValueError that names the option if there can be no such models.
inline void validate(const BasisSettings& s) {
  const Index widths = std::ssize(s.long_term.widths);
  for (const Index basis : s.basis)
    infty::require(basis % widths == 0, "memory_study", "--basis has ", basis,
                   ": each must be a multiple of ", widths, ", the number of widths");
  // The first segment fills the short-term memory, the second moves it on, the third is read with
  // it.
  const Index least = 2 * s.segment + 1;
  infty::require(s.task.length >= least, "memory_study", "--sorting-length is ", s.task.length,
                 ": of so few symbols nothing comes to the long-term memory, of ", least,
                 " it does");
}

/// Bytes that the largest of the models needs, in training and for the sequences that it is tried
/// on.
inline double bytes_of(const BasisSettings& s) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  double most = 0;
  for (const Index basis : s.basis) {
    const support::ModelNeed need(config_of(s, basis));
    most = std::max(most, need.model() + need.state(number(s.evaluation)) +
                              need.segment(number(s.batch), number(s.segment), true));
  }
  return most + 2 * sizeof(Index) * number(s.evaluation) * number(s.task.length);
}

/// Trains a model with so many basis functions, from its checkpoint on if there is one, and tries
/// it on sequences of its own. `stopped()` throws where it is to stop, when all is saved.
template <class Stopped>
BasisPoint try_basis(const BasisSettings& s, Index basis, const std::filesystem::path& checkpoint,
                     const support::Saving& saving, Stopped&& stopped) {
  const infty::SortingTask task(s.task);
  const auto model = support::make_model(config_of(s, basis));
  infty::Random sequences(s.seed, 1);
  infty::Trainer trainer(model->named_parameters(),
                         {.steps = s.steps,
                          .adam = {.learning_rate = s.rate},
                          .warmup_steps = std::min<Index>(20, s.steps / 2),
                          .max_norm = 1,
                          .save_every = saving.every,
                          .save_minutes = saving.minutes});
  trainer.keep("sequences", sequences)
      .keep_settings("{\"basis\":" + std::to_string(basis) +
                     ",\"sorting-length\":" + std::to_string(s.task.length) +
                     ",\"sorting-steps\":" + std::to_string(s.steps) +
                     ",\"seed\":" + std::to_string(s.seed) + '}');
  if (std::filesystem::exists(checkpoint)) trainer.load(checkpoint);
  support::ProgressLine line("N = " + std::to_string(basis), s.steps, trainer.steps());
  infty::Objective<float> made;
  support::RunningMean mean;
  const bool done = trainer.run(
      [&] {
        const auto drawn = task.sample(s.batch, sequences);
        auto state = model->make_state(s.batch);
        model->observe(state, s.batch, detail::tokens_of(drawn), s.segment);
        made = model->objective(state, detail::question(task, drawn, s.batch), {.kl_weight = 1e-6});
        return made.total;
      },
      {.save = [&] { trainer.save(checkpoint); },
       .stop = [] { return support::InterruptGuard::signal() != 0; },
       .stepped =
           [&](const infty::TrainStep&, const infty::Progress& progress) {
             const double loss = mean.add(static_cast<double>(made.loss.value().item()));
             line.update(progress.done(), {{"loss", loss}});
           }});
  if (!done) stopped();
  infty::Random others(s.seed, 2);
  const auto drawn = task.sample(s.evaluation, others);
  auto state = model->make_state(s.evaluation);
  model->observe(state, s.evaluation, detail::tokens_of(drawn), s.segment);
  const auto batch = detail::question(task, drawn, s.evaluation);
  const auto predicted = model->likeliest(state, batch);
  BasisPoint point{.basis = basis, .accuracy = 0, .error = 0};
  for (std::size_t i = 0; i < predicted.size(); ++i)
    point.accuracy += predicted[i] == batch.targets[i] ? 1 : 0;
  point.accuracy /= static_cast<double>(predicted.size());
  point.error = detail::regression_error(*model, s, basis, task, others);
  return point;
}

inline std::string basis_csv(const std::vector<BasisPoint>& points) {
  std::string out = "basis,accuracy,error\n";
  for (const BasisPoint& point : points)
    out += std::to_string(point.basis) + ',' + number(point.accuracy) + ',' + number(point.error) +
           '\n';
  return out;
}

/// The least of 1, 2 and 5 times a power of ten that is at least x > 0.
inline double round_step(double x) {
  const double power = std::pow(10, std::floor(std::log10(x)));
  for (const double times : {1., 2., 5.})
    if (x <= times * power * (1 + 1e-9)) return times * power;
  return 10 * power;
}

/// Both axes have five steps, so that the grid is that of either.
inline std::string basis_figure(const BasisSettings& s, const std::vector<BasisPoint>& points) {
  double error = 1e-3;
  for (const BasisPoint& point : points) error = std::max(error, point.error);
  const double step = round_step(error / 5);
  const auto [least, most] = std::minmax_element(s.basis.begin(), s.basis.end());
  std::ostringstream gp;
  gp << "set terminal pngcairo size 760,460 font 'sans,11'\nset output 'basis.png'\n"
        "set datafile separator ','\nset border 11\nset tics nomirror out\nset ytics 0,.2,1\n"
        "set y2tics 0,"
     << step
     << "\n"
        "set title 'Sorting "
     << s.task.length << " symbols with N basis functions'\n"
     << "set xlabel 'N'\nset logscale x 2\nset ylabel 'accuracy' tc '#c2410c'\n"
        "set y2label 'regression error |X(t) - x|² / |x|²' tc '#1d4ed8'\nset yrange [0:1]\n"
        "set y2range [0:"
     << 5 * step << "]\nset key bottom right\nset grid y lc '#e7e5e4'\nset xrange ["
     << static_cast<double>(*least) / 1.2 << ':' << static_cast<double>(*most) * 1.2
     << "]\n"
        "plot 'basis.csv' skip 1 using 1:2 with linespoints lw 2.5 pt 7 ps 1.2 lc '#c2410c' title "
        "'accuracy, held-out sequences', \\\n  '' skip 1 using 1:3 axes x1y2 with linespoints lw "
        "2.5 dt 2 pt 5 ps 1.1 lc '#1d4ed8' title 'regression error, first layer'\n";
  return gp.str();
}

}  // namespace memory_study
