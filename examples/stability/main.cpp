// SPDX-License-Identifier: MIT

// Does a long-term memory with these constants stay bounded, and how much of a write is left behind
// later ones? For writes of 1, 2, 4, ... vectors: the spectral radius of the recursion and how far
// a fit exceeds what is fitted (Λ), in the paper's form and in ours, the bound of the signal, and
// what is done to keep it. docs/stability.md explains the columns.
//
//     stability                         the constants of examples/language_model
//     stability --preset sorting        those of a paper's experiment
//     stability --basis 64 --samples 64 --out figures

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/memory/stability.hpp>
#include <infty/model/presets.hpp>

#include "../support/files.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"

namespace {

using infty::Index;
using infty::LongTermConfig;
using infty::Stability;

LongTermConfig paper_form(LongTermConfig config) {
  config.bounded = config.hold_short_writes = false;
  return config;
}

const std::map<std::string, LongTermConfig>& presets() {
  namespace papers = infty::presets;
  static const LongTermConfig language_model{
      .basis = 32, .widths = {.02, .1}, .samples = 64, .tau = .75, .ridge = .5};
  static const std::map<std::string, LongTermConfig> all{
      {"language_model", language_model},
      {"sorting", *papers::sorting(4000).memory.memory},
      {"wikitext103", *papers::wikitext103(false).memory.memory},
      {"gpt2", *papers::gpt2_wikitext103(false).memory.memory}};
  return all;
}

struct Row {
  Index length;
  Stability paper, ours;
};

void print(const std::vector<Row>& rows, double penalty) {
  std::printf(
      "            paper's form           ours\n"
      "vectors   radius        Λ    radius        Λ    bound   what is done\n");
  for (const auto& [length, paper, ours] : rows) {
    std::string done = ours.multiplies ? "one matrix a write" : "samples are clamped";
    if (ours.points > length) done += ", held over " + std::to_string(ours.points) + " places";
    if (ours.penalty > penalty) {
      char text[40];
      std::snprintf(text, sizeof text, ", penalty %g", ours.penalty);
      done += text;
    }
    std::printf("%7td   %6.3f %8.2f    %6.3f %8.2f %8.1f   %s\n", length, paper.radius,
                paper.lebesgue, ours.radius, ours.lebesgue, ours.bound, done.c_str());
  }
}

/// Lengths of a write and of others like it behind it, until `vectors` have come and at least 24
/// writes.
std::vector<Index> writes_of(Index length, Index vectors) {
  return std::vector<Index>(static_cast<std::size_t>(1 + std::max<Index>(24, vectors / length)),
                            length);
}

/// The share of a write that is left behind others of its length, for each of these lengths.
std::vector<std::vector<double>> shares_of(const LongTermConfig& config,
                                           const std::vector<Index>& retained, Index vectors) {
  Index count = 0, before = 0;
  for (const Index length : retained) count += std::ssize(writes_of(length, vectors));
  support::ProgressLine line("shares", count, 0, "write");
  std::vector<std::vector<double>> shares;
  for (const Index length : retained) {
    const auto lengths = writes_of(length, vectors);
    shares.push_back(
        infty::retention(config, lengths, 0, [&](Index writes) { line.update(before + writes); }));
    before += std::ssize(lengths);
  }
  return shares;
}

void write_figures(const std::filesystem::path& out, const std::vector<Row>& rows,
                   const LongTermConfig& config, const std::vector<Index>& retained,
                   Index vectors) {
  const auto shares = shares_of(config, retained, vectors);
  std::ostringstream radius, kept;
  for (const Row& r : rows)
    radius << r.length << ' ' << r.paper.radius << ' ' << r.ours.radius << ' ' << r.paper.lebesgue
           << ' ' << r.ours.lebesgue << '\n';
  std::string writes, by_vectors;
  for (std::size_t i = 0; i < retained.size(); ++i) {
    for (std::size_t k = 0; k < shares[i].size(); ++k)
      kept << k << ' ' << static_cast<Index>(k) * retained[i] << ' ' << shares[i][k] << '\n';
    kept << "\n\n";
    const std::string curve = "'share.dat' index " + std::to_string(i) + " using ",
                      title = ":3 with linespoints pointsize .4 linewidth 2 title 'L = " +
                              std::to_string(retained[i]) + "', ";
    writes += curve + "1" + title;
    by_vectors += curve + "2" + title;
  }
  support::write_file(out / "radius.dat", radius.str());
  support::write_file(out / "share.dat", kept.str());
  support::write_file(
      out / "radius.gp",
      "set terminal pngcairo size 1100,420 font 'sans,11'\nset output 'radius.png'\n"
      "set multiplot layout 1,2\nset logscale x 2\nset grid\nset key below\nset "
      "xlabel 'vectors in a write'\n"
      "set title 'spectral radius of a write'\nset yrange [0:*]\n"
      "plot 'radius.dat' using 1:2 with linespoints linewidth 2 title 'as published', "
      "'' using 1:3 with linespoints linewidth 2 title 'infty', 1 with lines dashtype 2 "
      "linecolor 'black' title 'grows above'\n"
      "set title 'how far a fit exceeds what is fitted'\nset logscale y\nset yrange [1:*]\n"
      "plot 'radius.dat' using 1:4 with linespoints linewidth 2 title 'as published', "
      "'' using 1:5 with linespoints linewidth 2 title 'infty'\n");
  support::write_file(
      out / "share.gp",
      "set terminal pngcairo size 1100,420 font 'sans,11'\nset output 'share.png'\n"
      "set multiplot layout 1,2\nset grid\nset key below\nset logscale y\nset "
      "yrange [1e-6:1]\nset format y "
      "'10^{%T}'\nset title 'share of a write that is left'\nset xlabel 'later writes'\n"
      "set xrange [0:40]\nplot " +
          writes + std::to_string(config.tau) +
          "**x with lines dashtype 2 linecolor 'black' title 'contraction alone'" +
          "\nset xlabel 'later vectors'\nset xrange [0:" + std::to_string(vectors) + "]\nplot " +
          by_vectors + "1/0 notitle\n");
  support::draw_figure(out, "radius");
  support::draw_figure(out, "share");
}

}  // namespace

int main(int argc, char** argv) {
  return support::run_program("stability", [&] {
    std::string preset = "language_model";
    std::filesystem::path out;
    Index longest = 1024, vectors = 1024;
    LongTermConfig given;
    std::vector<Index> retained{1, 8, 64, 512};
    constexpr Index most = 1 << 20;
    using support::add_option, support::from;
    CLI::App app("Says whether a long-term memory is bounded, and what it keeps.", "stability");
    app.add_option("--preset", preset, "constants to begin with")
        ->capture_default_str()
        ->check(CLI::IsMember(&presets()));
    const auto* const basis =
        add_option(app, "--basis", given.basis, "N, basis functions", {1, most});
    const auto* const widths = add_option(app, "--widths", given.widths, "of the basis functions");
    const auto* const samples =
        add_option(app, "--samples", given.samples, "M, of the past at a contraction", {1, most});
    const auto* const tau =
        add_option(app, "--tau", given.tau, "share that the past is contracted to");
    const auto* const ridge = add_option(app, "--ridge", given.ridge, "penalty of the regression");
    add_option(app, "--longest", longest, "the most vectors in a write", {1, most})
        ->capture_default_str();
    add_option(app, "--retained", retained, "lengths of the writes whose share is drawn", {1, most})
        ->capture_default_str();
    add_option(app, "--vectors", vectors, "how many come behind the write whose share is drawn",
               {1, most})
        ->capture_default_str();
    app.add_option("--out", out, "folder for two figures; none are drawn without it");
    if (const auto code = support::parse(app, argc, argv)) return *code;
    LongTermConfig config = presets().at(preset);
    if (*basis) config.basis = given.basis;
    if (*widths) config.widths = given.widths;
    if (*samples) config.samples = given.samples;
    if (*tau) config.tau = given.tau;
    if (*ridge) config.ridge = given.ridge;
    config.validate();
    // A folder that cannot be written to is told of before anything is computed.
    std::optional<support::Lock> lock;
    if (!out.empty()) lock.emplace(support::Lock::folder(out));
    std::vector<Index> lengths;
    for (Index length = 1; length < longest; length *= 2) lengths.push_back(length);
    lengths.push_back(longest);
    std::vector<Row> rows;
    {
      support::ProgressLine line("lengths", std::ssize(lengths), 0);
      for (const Index length : lengths) {
        rows.push_back({length, infty::stability(paper_form(config), length),
                        infty::stability(config, length)});
        line.update(std::ssize(rows), {});
      }
    }
    print(rows, config.ridge);
    if (!out.empty()) write_figures(out, rows, config, retained, vectors);
    return 0;
  });
}
