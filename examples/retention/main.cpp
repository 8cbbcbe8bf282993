// SPDX-License-Identifier: MIT

// What does a memory keep of a vector that came some time ago? Streams of independent normal
// vectors go through memories of as many numbers a coordinate, and each is asked for vectors of all
// ages, by the best linear read of its state and, where there is one, by a read at the vector's own
// place. Beside it what the formulas of docs/uniform_memory.md say.
//
//     retention                         a table
//     retention --out figures           and a figure
//
// The best read is fitted to the state by the same coordinates as it is judged by, and what chance
// explains is taken off: of what was never written it finds 0 on average, and as often less, of
// what is held as it was 1.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "../support/csv.hpp"
#include "../support/decimal.hpp"
#include "../support/files.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/progress_line.hpp"
#include "../support/ranges.hpp"
#include "measuring.hpp"
#include "memories.hpp"
#include "signals.hpp"

namespace {

using infty::Index;
using infty::Shape;
using infty::Tensor;
using retention::Band;
using retention::Found;
using retention::Memory;
using retention::Settings;
using retention::Statistics;
using retention::Vectors;

double mean_of(const std::function<double(Index)>& formula, const Band& band) {
  double sum = 0;
  for (const Index age : band.ages) sum += formula(age);
  return sum / static_cast<double>(band.ages.size());
}

/// Ages for a line, some of every doubling, and all small ones.
std::vector<Index> ages_of_line(Index vectors) {
  std::vector<Index> ages;
  for (double at = 1; at <= static_cast<double>(vectors); at = std::max(at + 1, at * 1.01))
    ages.push_back(static_cast<Index>(at) - 1);
  return ages;
}

void draw_all(const std::filesystem::path& out, const Settings& s,
              const std::vector<Memory>& memories, const std::vector<Band>& bands,
              const std::vector<std::vector<Found>>& found, const std::vector<double>& floors) {
  support::Csv csv("memory,age + 1,formula,best read,its error,at its place,error there,floor");
  std::string lines;
  for (std::size_t m = 0; m < memories.size(); ++m) {
    for (std::size_t b = 0; b < bands.size(); ++b) {
      csv.line();
      csv.field(memories[m].name);
      csv.field(bands[b].middle);
      csv.field(mean_of(memories[m].formula, bands[b]));
      const auto add = [&](const Statistics& of) {
        csv.field(of.mean);
        if (of.error)
          csv.field(*of.error);
        else
          csv.field("");
      };
      add(over_seeds(found[m], &Found::best, b));
      if (found[m].front().at_place.empty()) {
        csv.field("");
        csv.field("");
      } else {
        add(over_seeds(found[m], &Found::at_place, b));
      }
      csv.field(floors[m]);
    }
    for (const Index age : ages_of_line(s.vectors)) {
      char text[80];
      std::snprintf(text, sizeof text, "%td,%.6g\n", age + 1, memories[m].formula(age));
      lines += text;
    }
    lines += "\n\n";
  }
  support::write_file(out / "retention.csv", csv.text());
  support::write_file(out / "retention.dat", lines);
  const double floor = *std::max_element(floors.begin(), floors.end());
  const auto panel = [&](const std::string& title, const std::vector<std::string>& names) {
    std::string plot = "set title '" + title + "'\nplot ";
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto at = std::find_if(memories.begin(), memories.end(),
                                   [&](const Memory& m) { return m.name == names[i]; });
      const std::string index = std::to_string(at - memories.begin()),
                        color = " linecolor rgb '" + at->color + "'",
                        mine = "(strcol(1) eq '" + names[i] + "' && column(";
      const auto points = [&](const std::string& column, int type, double size) {
        char text[300];
        std::snprintf(text, sizeof text,
                      "'retention.csv' using 2:%s%s) > %g ? column(%s) : 1/0) with points "
                      "pointtype %d pointsize %.2g%s notitle, ",
                      mine.c_str(), column.c_str(), floor, column.c_str(), type, size,
                      color.c_str());
        return std::string(text);
      };
      plot += "'retention.dat' index " + index + " using 1:2 with lines linewidth 1.6" + color +
              " title '" + at->title + "', " + points("4", 7, .75) + points("6", 6, .75);
    }
    char text[80];
    std::snprintf(text, sizeof text, "%g with lines dashtype 3 linecolor 'gray50' notitle\n",
                  floor);
    return plot + text;
  };
  support::write_file(
      out / "retention.gp",
      "set terminal pngcairo size 1300,520 font 'sans,11'\nset output 'retention.png'\n"
      "set datafile separator ','\n"
      "set multiplot layout 1,2\nset logscale xy\nset grid\n"
      "set key inside left bottom samplen 2\n"
      "set format y '10^{%T}'\nset xlabel 'age + 1, vectors'\nset xrange [.9:" +
          std::to_string(s.vectors) +
          "]\nset yrange [1e-4:1.5]\nset ylabel 'share of a vector that is kept'\n" +
          panel("how the past is contracted", {"tau 0.75", "tau 0.95", "power 0.5", "power 1",
                                               "power 2", "tau 0.98 and power 1"}) +
          panel("beside other memories", {"xl", "compressive", "delta", "tau 0.95", "power 1"}));
  support::draw_figure(out, "retention");
}

/// An error with so many digits behind the point, or a dash where there is none.
std::string error_of(const Statistics& s, int digits) {
  return s.error ? support::decimal(*s.error, digits) : "-";
}

void print(const std::vector<Memory>& memories, const std::vector<Band>& bands,
           const std::vector<std::vector<Found>>& found, const std::vector<double>& floors) {
  std::printf(
      "memory                age + 1    formula   best read  ± error    at place  ± error\n");
  for (std::size_t m = 0; m < memories.size(); ++m) {
    for (std::size_t b = 0; b < bands.size(); b += 2) {
      const auto best = over_seeds(found[m], &Found::best, b);
      std::printf("%-20s %8.0f   %8.5f    %8.5f  %-7s", memories[m].name.c_str(), bands[b].middle,
                  mean_of(memories[m].formula, bands[b]), best.mean, error_of(best, 5).c_str());
      if (!found[m].front().at_place.empty()) {
        const auto read = over_seeds(found[m], &Found::at_place, b);
        std::printf("    %8.5f  %s", read.mean, error_of(read, 5).c_str());
      }
      std::printf("\n");
    }
    double by_formula = 0;
    std::vector<double> by_seed(found[m].size(), 0);
    for (std::size_t b = 0; b < bands.size(); ++b) {
      by_formula += bands[b].count * mean_of(memories[m].formula, bands[b]);
      for (std::size_t i = 0; i < by_seed.size(); ++i)
        by_seed[i] += bands[b].count * found[m][i].best[b];
    }
    const Statistics all = retention::over_seeds(by_seed);
    std::printf("%-20s vectors in all %.1f, found %.1f%s; floor %.5f\n", memories[m].name.c_str(),
                by_formula, all.mean, all.error ? (" +- " + error_of(all, 1)).c_str() : "",
                floors[m]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return support::run_program("retention", [&] {
    Settings s;
    std::filesystem::path out;
    using support::add_option;
    CLI::App app("Measures what memories keep of vectors of all ages.", "retention");
    add_option(app, "--vectors", s.vectors, "length of the streams, a multiple of the segment",
               {2, 1 << 20})
        ->capture_default_str();
    add_option(app, "--segment", s.segment, "vectors that are written together", {1, 1 << 16})
        ->capture_default_str();
    add_option(app, "--numbers", s.numbers, "that a memory has for each coordinate", {8, 1024})
        ->capture_default_str();
    add_option(app, "--block", s.block, "means among them that a uniform memory writes together",
               {2, 1024})
        ->capture_default_str();
    add_option(app, "--coordinates", s.coordinates, "of a vector, samples of each measurement",
               {4, 1 << 16})
        ->capture_default_str();
    add_option(app, "--ages", s.ages, "the most vectors that are asked for in a band", {1, 1024})
        ->capture_default_str();
    add_option(app, "--widths", s.widths,
               "of a signal's functions, in distances between their centres", {.01, 100})
        ->capture_default_str();
    add_option(app, "--seeds", s.seeds, "of the streams")->capture_default_str();
    app.add_option("--out", out, "folder for the figure; none is drawn without it");
    if (const auto code = support::parse(app, argc, argv)) return *code;
    support::require_some_once("retention", "seeds", s.seeds);
    support::require_some_once("retention", "widths", s.widths);
    infty::require(s.vectors % s.segment == 0, "--vectors", "it is ", s.vectors, ", the segment ",
                   s.segment, ": it must be a multiple of it");
    infty::require(s.block + 2 * std::ssize(s.widths) <= s.numbers, "--block", "it is ", s.block,
                   " of ", s.numbers, " numbers: each width must have two of the others");
    // Of fewer, chance explains so much that little is found behind it.
    infty::require(s.coordinates >= 4 * s.numbers, "--coordinates", "it is ", s.coordinates,
                   ", samples to fit ", s.numbers, " --numbers to: it must be at least four times ",
                   "as many, ", 4 * s.numbers);
    // A folder that cannot be written to is told of before anything is measured.
    std::optional<support::Lock> lock;
    if (!out.empty()) lock.emplace(support::Lock::folder(out));
    const auto guard = infty::no_grad();
    const std::vector<Memory> memories{retention::fixed(s, .75, "#1f77b4"),
                                       retention::fixed(s, .95, "#17a2a2"),
                                       retention::uniform(s, .5, "#2ca02c"),
                                       retention::uniform(s, 1, "#d62728"),
                                       retention::uniform(s, 2, "#ff7f0e"),
                                       retention::fixed_and_uniform(s, .98, "#8c564b"),
                                       retention::queue(s),
                                       retention::compressive(s),
                                       retention::delta_rule(s)};
    const auto bands = retention::bands_of(s);
    std::vector<std::vector<Found>> found(memories.size());
    // Each memory is written to, and then asked for some.
    support::ProgressLine line(
        "vectors",
        std::ssize(s.seeds) * std::ssize(memories) * (s.vectors + retention::asked_for(s, bands)),
        0, "vector");
    Index done = 0;
    for (const Index seed : s.seeds) {
      std::vector<retention::Reader> readers;
      for (const Memory& memory : memories) readers.push_back(memory.begin(seed));
      for (Index at = 0; at < s.vectors; at += s.segment) {
        Tensor<float> x(Shape{1, s.segment, s.coordinates});
        for (Index i = 0; i < s.segment; ++i)
          retention::draw(seed, at + i, s.coordinates, x.data() + i * s.coordinates);
        for (const auto& reader : readers) reader.write(Vectors(x));
        done += s.segment * std::ssize(readers);
        line.update(done, {});
      }
      for (std::size_t m = 0; m < memories.size(); ++m)
        found[m].push_back(
            retention::measure(readers[m], s, bands, seed, [&] { line.update(++done); }));
    }
    line.clear();
    // Two standard errors of the mean of a whole band of vectors that were never written.
    std::vector<double> floors;
    for (const auto& all : found) {
      double square = 0;
      for (const Found& f : all) square += f.nothing / static_cast<double>(all.size());
      floors.push_back(2 * std::sqrt(square / static_cast<double>(s.ages * std::ssize(s.seeds))));
    }
    print(memories, bands, found, floors);
    if (!out.empty()) draw_all(out, s, memories, bands, found, floors);
    return 0;
  });
}
