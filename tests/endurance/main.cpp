// SPDX-License-Identifier: MIT

// Tries the sentence that a long-term memory is bounded for ever: writes, for every configuration
// of a grid and every adversary who may choose where the past is sampled, and holds sup |X(t)| to
// the bound of `stability` after each write. Vectors are drawn from the corners of the cube, so
// that the largest |x| ever written is 1.
//
//     endurance [--writes N] [--brief] [--shard I --shards N] [--growing [--others N]]
//
// `--brief` leaves the large ones, of more than 8,192 samples times functions, a tenth of the
// writes.
// `--growing` takes those whose recursion, in the paper's form, has a spectral radius above 1, and
// N others. Prints what was tried and the largest |X(t)| over the bound; ends with 1 where it
// exceeds 1.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <infty/eigen/parallel.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/stability.hpp>
#include <infty/train/progress.hpp>

#include "endurance/adversary.hpp"

namespace endurance {

using infty::LongTermConfig;
using infty::LongTermMemory;
using infty::Random;
using infty::Shape;
using infty::Tensor;

/// A configuration, and the lengths that are written in turn at random.
struct Case {
  LongTermConfig config;
  std::vector<Index> lengths;
};

std::vector<Case> grid() {
  const std::vector<std::vector<Index>> lengths{
      {1}, {2}, {4}, {8}, {16}, {64}, {1, 2, 4, 8, 16, 64}};
  std::vector<Case> all;
  for (const Index basis : {16, 32, 64, 128})
    for (const Index samples : {1, 2, 4})
      for (const double tau : {.5, .75, .9})
        for (const double ridge : {.1, .5, 1.})
          for (const auto& widths :
               {std::vector{.01, .05}, std::vector{.02, .1}, std::vector{.05, .1}})
            for (const auto& length : lengths) {
              Case& c = all.emplace_back();
              c.config.model_dim = c.config.heads = 1;
              c.config.basis = basis;
              c.config.widths = widths;
              c.config.samples = samples * basis;
              c.config.tau = tau;
              c.config.ridge = ridge;
              c.config.gate = false;
              c.config.bins = 32;
              c.lengths = length;
            }
  return all;
}

/// Whether the paper's recursion grows at a length of the case.
bool grows(const Case& c) {
  LongTermConfig paper = c.config;
  paper.bounded = paper.hold_short_writes = false;
  for (const Index length : c.lengths)
    if (infty::stability(paper, length).radius > 1) return true;
  return false;
}

/// The signals of a state at places, [batch, P].
std::vector<float> signals(const Tensor<float>& psi, const Tensor<float>& coefficients) {
  const Index P = psi.dim(0), N = psi.dim(1), batch = coefficients.dim(0);
  Tensor<float> x({batch, P});
  infty::EigenBackend::matmul({.m = batch,
                               .n = P,
                               .k = N,
                               .a = {.leading = N},
                               .b = {.leading = N, .transposed = true},
                               .c = {.leading = P}},
                              1.f, coefficients.data(), psi.data(), 0.f, x.data());
  return x.to_vector();
}

/// How far a memory's states go, over their bounds.
class Watch {
 public:
  explicit Watch(const LongTermMemory<float>& memory) {
    // Two places to a narrowest width.
    const auto probes = infty::detail::probe_places(memory.basis().cast<double>());
    for (std::size_t i = 0; i < probes.size(); i += 4)
      places_.push_back(static_cast<float>(probes[i]));
    psi_ = infty::evaluate(memory.basis(), Tensor<float>::from({std::ssize(places_)}, places_));
  }

  const std::vector<float>& places() const { return places_; }
  double most() const { return most_; }

  /// The signals of a state, [batch, P].
  std::vector<float> see(const LongTermMemory<float>::State& state, double bound) {
    const auto values = signals(psi_, state.coefficients.value());
    for (const float v : values) {
      const double share = std::fabs(static_cast<double>(v)) / bound;
      most_ = share <= most_ ? most_ : share;  // keeps NaN
    }
    return values;
  }

 private:
  std::vector<float> places_;
  Tensor<float> psi_;
  double most_ = 0;
};

/// The largest |X(t)| over its bound in so many writes of a case; NaN if one is met.
double worst(const Case& c, Index writes, std::uint64_t seed) {
  std::vector<double> bound(65, 0), fit(65, 0);  // by length
  for (const Index length : c.lengths) {
    const auto s = infty::stability(c.config, length);
    bound[static_cast<std::size_t>(length)] = s.bound;
    fit[static_cast<std::size_t>(length)] = 1.01 * s.lebesgue;  // found to within a hundredth
  }
  LongTermConfig drawn = c.config;
  drawn.resampling = infty::Resampling::sticky;
  Random random(seed);
  // One whose past is sampled evenly, and one with a row for every adversary and for itself, whose
  // reads say where the next write samples.
  const LongTermMemory<float> even(c.config, random.split(0)), sticky(drawn, random.split(1));
  const Index rivals = std::ssize(adversaries), rows = rivals + 1, samples = c.config.samples;
  auto plain = even.make_state(1), attacked = sticky.make_state(rows);
  Watch watch(even);
  const auto P = watch.places().size();
  Tensor<float> queries({rows, 4, 1});
  std::vector<float> seen(P * static_cast<std::size_t>(rows), 0.f);
  for (Index step = 0; step < writes && watch.most() <= 1; ++step) {
    const auto which = random.uniform() * static_cast<double>(c.lengths.size());
    const Index length = c.lengths[static_cast<std::size_t>(which)];
    Tensor<float> x({1, length, 1}), same({rows, length, 1});
    for (Index i = 0; i < length; ++i) x.data()[i] = random.uniform() < .5 ? -1.f : 1.f;
    infty::fill_normal(queries, 0, 3, random);
    sticky.read(attacked, queries);
    auto places = sticky.next_locations(attacked);
    for (Index row = 0; row < rows; ++row) {
      same.slice(row, row + 1).copy_from(x);
      const auto r = static_cast<std::size_t>(row);
      if (row < rivals)
        choose(adversaries[r], watch.places(), std::span(seen).subspan(r * P, P), random,
               {places.data() + row * samples, static_cast<std::size_t>(samples)});
    }
    const auto l = static_cast<std::size_t>(length);
    even.write(plain, x);
    watch.see(plain, bound[l]);
    sticky.write_at(attacked, same, infty::RowCounts(static_cast<std::size_t>(rows), length),
                    places);
    seen = watch.see(attacked, fit[l]);
  }
  return watch.most();
}

int run(Index writes, Index shard, Index shards, bool growing, Index others, bool brief) {
  infty::set_num_threads(1);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a failure is seen when it happens
  auto all = grid();
  if (growing) {
    std::vector<Case> chosen, left;
    for (const Case& c : all) (grows(c) ? chosen : left).push_back(c);
    std::printf("%zu of %zu grow in the paper's form\n", chosen.size(), all.size());
    const std::size_t step = others > 0 ? left.size() / static_cast<std::size_t>(others) : 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(others); ++i)
      chosen.push_back(left[i * step]);
    all = std::move(chosen);
  }
  const auto total = static_cast<Index>(all.size());
  infty::Progress progress(total);
  double most = 0, shown = 0;
  Index tried = 0, failures = 0;
  for (Index i = 0; i < total; ++i) {
    progress.update(i);
    if (progress.seconds() - shown > 5) {
      shown = progress.seconds();
      std::fprintf(stderr, "%s\n", progress.line({{"worst", most}}).c_str());
    }
    if (i % shards != shard) continue;
    const Case& c = all[static_cast<std::size_t>(i)];
    const bool large = c.config.basis * c.config.samples > 8192;
    const double share =
        worst(c, brief && large ? writes / 10 : writes, static_cast<std::uint64_t>(i));
    ++tried;
    if (!(share <= 1)) {
      ++failures;
      std::printf(
          "FAILED: |X(t)| is %g of its bound: N %td, M %td, tau %g, lambda %g, widths %g %g, "
          "%s%td\n",
          share, c.config.basis, c.config.samples, c.config.tau, c.config.ridge, c.config.widths[0],
          c.config.widths[1], c.lengths.size() > 1 ? "mixed up to " : "L ", c.lengths.back());
    } else if (share > most) {
      most = share;
    }
  }
  std::printf(
      "%td configurations, %td writes%s, %zu adversaries beside even and sticky "
      "memories: largest |X(t)| %.3f of its bound, %td failures\n",
      tried, writes, brief ? " (large ones a tenth)" : "", adversaries.size(), most, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace endurance

int main(int argc, char** argv) {
  using infty::Index;
  Index writes = 1000, shard = 0, shards = 1, others = 50;
  bool growing = false, brief = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::atol(argv[++i]) : -1; };
    if (option == "--writes") {
      writes = number();
    } else if (option == "--shard") {
      shard = number();
    } else if (option == "--shards") {
      shards = number();
    } else if (option == "--others") {
      others = number();
    } else if (option == "--growing") {
      growing = true;
    } else if (option == "--brief") {
      brief = true;
    } else {
      std::fprintf(stderr, "endurance: no such option: %s\n", option.c_str());
      return 2;
    }
  }
  if (writes < 1 || shards < 1 || shard < 0 || shard >= shards || others < 0) {
    std::fprintf(stderr, "endurance: --writes, --shard, --shards or --others is out of range\n");
    return 2;
  }
  return endurance::run(writes, shard, shards, growing, others, brief);
}
