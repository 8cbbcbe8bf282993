// SPDX-License-Identifier: MIT
// The time of a training step on many ranks. `measure` takes it apart on the ranks that mpirun has
// started, of one thread each: a token, the copies and sums of gradients, messages, the optimiser;
// and takes it as a whole. `overlap` holds a thread that sends gradients in buckets against test
// calls of the one that computes. `predict` puts the parts together for 1 to 4,096 ranks and links
// of any speed, and holds them against what was measured as a whole (docs/scaling.md).
//
// What is predicted is a sum of measured parts: neither the links between real machines, nor ranks
// that are slower than others, nor what shares a link.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../../examples/support/files.hpp"
#include "../../examples/support/json.hpp"
#include "../../examples/support/lock.hpp"
#include "../../examples/support/need.hpp"
#include "../../examples/support/options.hpp"
#include "../../examples/support/program.hpp"
#include "../../examples/support/ranks.hpp"
#include "measure_step.hpp"
#if defined(INFTY_MPI)
#include "measure_overlap.hpp"
#endif
#include "table.hpp"

namespace infty::bench {

/// Calls see(group, name, field) for what may need memory.
template <class See>
void each_setting(StepOptions& o, See&& see) {
  each_field(o, [&](const char* name, Index& field) { see("", name, field); });
}

}  // namespace infty::bench

namespace {

using namespace infty::bench;
using infty::Index;

/// Bytes of the parameters, their gradients and moments, of three vectors of gradients, and of a
/// shard's activations.
double bytes_of(const StepOptions& o) {
  const auto d = static_cast<double>(o.dim), layers = static_cast<double>(o.layers),
             L = static_cast<double>(o.segment), V = static_cast<double>(o.vocabulary);
  const double parameters = V * d + layers * (17 * d * d + 2 * static_cast<double>(o.basis) * d);
  const double tokens = std::ceil(double(o.rows) / double(o.shards)) * L;
  const double activations =
      tokens * (3 * V + layers * (30 * d + 6 * L * static_cast<double>(o.heads)));
  return sizeof(float) * (7 * parameters + activations) +
         support::write_bytes(static_cast<double>(o.basis), 512, L);
}

/// Throws infty::ValueError that names the option if the sizes do not fit.
void validate(const StepOptions& o) {
  infty::require(o.dim % 2 == 0 && o.dim % o.heads == 0, "ranks_scaling", "--dim is ", o.dim,
                 ": it must be even and a multiple of --heads = ", o.heads);
  infty::require(o.basis % 2 == 0, "ranks_scaling", "--basis is ", o.basis, ": it must be even");
  infty::require(o.shards <= o.rows, "ranks_scaling", "--shards is ", o.shards,
                 ": it must be at most --rows = ", o.rows);
  support::require_memory("ranks_scaling", o, bytes_of);
}

/// What is asked of the measured parts.
struct Predict {
  std::string costs, out = "build/scaling";
  std::vector<std::string> against;
  Index most = 4096, shards = 4096, own_shards = 8;
  Index tokens = 1 << 19, own_tokens = 1024;
  std::vector<double> gigabits{1, 10, 100};
  double microseconds = 50, speed = 1;
  bool only_check = false;
};

MeasuredStep read(const std::string& path) {
  return support::parse<MeasuredStep>(infty::MappedFile(path).text(), path);
}

/// Throws infty::ValueError unless a file is of the same step as the costs.
void require_alike(const Predict& asked, const MeasuredStep& parts, const std::string& path,
                   const MeasuredStep& whole) {
  const auto ours = support::json_of(parts.settings), theirs = support::json_of(whole.settings);
  for (const auto& [name, value] : ours.items())
    infty::require(theirs.at(name) == value, "ranks_scaling", path, " was measured with --", name,
                   " ", theirs.at(name).dump(), ", and ", asked.costs, " with ", value.dump(),
                   ": --against must be of the same step as --costs");
}

/// Says what the parts make of the runs that were measured as a whole.
void check(const Predict& asked, const MeasuredStep& parts) {
  std::vector<MeasuredStep> runs;
  for (const std::string& path : asked.against) {
    runs.push_back(read(path));
    require_alike(asked, parts, path, runs.back());
  }
  std::printf(
      "                        milliseconds of processors  |  of the wall's clock\n"
      "ranks  shards  tokens   predicted  measured  ratio  |  predicted  fastest   median\n");
  for (const MeasuredStep& whole : runs) {
    const auto predicted = [&](const Link& link) {
      const Plan plan{.ranks = whole.ranks,
                      .shards = whole.settings.sizes.shards,
                      .tokens = whole.tokens,
                      .link = link,
                      .zero = whole.settings.sharing.zero,
                      .overlap = whole.settings.sharing.bucket > 0};
      return 1e3 * step_seconds(parts.costs, plan).total();
    };
    const double processor = 1e3 * whole.step_processor;
    std::printf("%5d  %6lld  %6.0f  %10.1f  %8.1f  %5.2f  |  %9.1f  %7.1f  %7.1f\n", whole.ranks,
                static_cast<long long>(whole.settings.sizes.shards), whole.tokens,
                predicted(whole.processor), processor, processor / predicted(whole.processor),
                predicted(whole.wall), 1e3 * whole.step_fastest, 1e3 * whole.step_wall);
  }
}

/// One way to train, on any number of ranks.
struct Way {
  const char* name;
  bool grows, zero, overlap;
};

Plan plan_of(const Predict& asked, const Way& way, double gigabits, int ranks) {
  return {.ranks = ranks,
          .shards = way.grows ? asked.own_shards * ranks : asked.shards,
          .tokens = static_cast<double>(way.grows ? asked.own_tokens * ranks : asked.tokens),
          .link = {asked.microseconds * 1e-6, 8e-9 / gigabits},
          .speed = asked.speed,
          .zero = way.zero,
          .overlap = way.overlap};
}

/// Writes a row for every way, link and power of two of ranks, and says where each way bends.
void predict(const Predict& asked, const StepCosts& costs) {
  const auto lock = support::Lock::folder(asked.out);
  Csv table("ranks_scaling", std::filesystem::path(asked.out) / "ranks.csv",
            "way,gigabits,microseconds,ranks,shards,tokens,compute,sums,sending,update,step,"
            "tokens_per_second,efficiency");
  constexpr Way ways[] = {{"fixed batch", false, false, false},
                          {"fixed batch with ZeRO", false, true, false},
                          {"fixed batch with overlap", false, false, true},
                          {"growing batch", true, false, false},
                          {"growing batch with ZeRO", true, true, false},
                          {"growing batch with overlap", true, false, true}};
  for (const Way& way : ways)
    for (const double gigabits : asked.gigabits) {
      double alone = 0;
      int bend = 1;
      for (int ranks = 1; ranks <= asked.most; ranks *= 2) {
        const Plan plan = plan_of(asked, way, gigabits, ranks);
        const StepSeconds step = step_seconds(costs, plan);
        const double speed = plan.tokens / step.total();
        if (ranks == 1) alone = speed;
        const double efficiency = speed / (alone * ranks);
        if (efficiency >= .5) bend = ranks;
        table.line(way.name +
                   numbers({gigabits, asked.microseconds, double(ranks), double(plan.shards),
                            plan.tokens, step.compute, step.sums, step.sending, step.update,
                            step.total(), speed, efficiency}));
      }
      const Plan last = plan_of(asked, way, gigabits, bend);
      std::printf(
          "%-27s %5g Gbit/s: %7.0f tokens/s alone; half as efficient behind %4d ranks, "
          "%.3g tokens/s\n",
          way.name, gigabits, alone, bend, last.tokens / step_seconds(costs, last).total());
    }
}

/// Measures `overlap` on the ranks. @throws infty::ValueError unless there are several
void overlap(const StepOptions& options, const support::Sharing& sharing,
             infty::AnyCommunicator& ranks) {
  infty::require(ranks.size() > 1, "ranks_scaling",
                 "overlap wants several ranks of MPI, and there is one: mpirun -n 2 ranks_scaling "
                 "overlap");
#if defined(INFTY_MPI)
  OverlapMeasurement(options, ranks, sharing.bucket_bytes()).measure();
#else
  static_cast<void>(options);
  static_cast<void>(sharing);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  using support::add_option, support::from;
  CLI::App app("The time of a training step on many ranks.", "ranks_scaling");
  app.require_subcommand(1);
  CLI::App* const measuring = app.add_subcommand("measure", "what a step and its parts cost here");
  StepOptions options;
  std::string out = "step.json";
  support::Sharing sharing;
  int threads = 1;
  bool whole = false;
  const auto size = [](CLI::App& of, const char* name, Index& field, const char* help) {
    add_option(of, name, field, help, from(1))->capture_default_str();
  };
  const auto sizes = [&](CLI::App& of) {
    size(of, "--dim", options.dim, "numbers of a vector, a multiple of --heads");
    size(of, "--layers", options.layers, "of the model");
    size(of, "--heads", options.heads, "of attention");
    size(of, "--basis", options.basis, "basis functions N of its memory, even");
    size(of, "--vocabulary", options.vocabulary, "tokens to choose from");
    size(of, "--rows", options.rows, "of the batch, on all ranks together");
    size(of, "--segment", options.segment, "tokens of a row");
    size(of, "--shards", options.shards, "that the rows are cut into");
    size(of, "--steps", options.steps, "that are measured, behind one");
  };
  sizes(*measuring);
  add_option(*measuring, "--threads", threads, "of each rank", {1, 1 << 10})->capture_default_str();
  measuring->add_flag("--whole", whole, "the step as a whole alone, without its parts");
  support::add_ranks(*measuring, sharing);
  measuring->add_option("--out", out, "JSON file to write")->capture_default_str();
  CLI::App* const overlapping =
      app.add_subcommand("overlap", "what is hidden of sending, by a thread and by test calls");
  sizes(*overlapping);
  support::add_silence(*overlapping, sharing);
  add_option(*overlapping, "--bucket", sharing.bucket,
             "MiB of gradients that are sent while others are computed", {0, 1e6, true})
      ->required();
  CLI::App* const predicting = app.add_subcommand("predict", "steps on up to so many ranks");
  Predict asked;
  predicting->add_option("--costs", asked.costs, "file of `measure`, on one rank")
      ->required()
      ->check(CLI::ExistingFile);
  predicting->add_option("--against", asked.against, "files of `measure` to be held against it")
      ->check(CLI::ExistingFile);
  add_option(*predicting, "--most", asked.most, "ranks", {1, 1 << 20})->capture_default_str();
  size(*predicting, "--tokens", asked.tokens, "of a batch that is the same for all ranks");
  size(*predicting, "--shards", asked.shards, "of that batch, at least --most");
  size(*predicting, "--own-tokens", asked.own_tokens, "of each rank, of a batch that grows");
  size(*predicting, "--own-shards", asked.own_shards, "of each rank, of a batch that grows");
  add_option(*predicting, "--gigabits", asked.gigabits, "a second of links, one way",
             {0, 1e6, true})
      ->capture_default_str();
  add_option(*predicting, "--microseconds", asked.microseconds, "of a message on these", {0, 1e9})
      ->capture_default_str();
  add_option(*predicting, "--speed", asked.speed, "of a rank, in times of the measured thread",
             {0, 1e9, true})
      ->capture_default_str();
  predicting->add_option("--out", asked.out, "folder for ranks.csv")->capture_default_str();
  predicting->add_flag("--check", asked.only_check, "look at options and --out, and end");
  if (const auto code = support::parse(app, argc, argv)) return *code;
  return support::run_program("ranks_scaling", [&] {
    if (*predicting) {
      infty::require(asked.shards >= asked.most, "ranks_scaling", "--shards is ", asked.shards,
                     ": it must be at least --most = ", asked.most);
      if (asked.only_check) {
        const auto lock = support::Lock::folder(asked.out);
        return 0;
      }
      const MeasuredStep parts = read(asked.costs);
      infty::require(parts.ranks == 1, "ranks_scaling", asked.costs, " is of ", parts.ranks,
                     " ranks: --costs must be of one");
      infty::require(parts.costs.token > 0, "ranks_scaling", asked.costs,
                     " is of `measure --whole`: --costs must have the parts");
      if (!asked.against.empty()) check(asked, parts);
      predict(asked, parts.costs);
      return 0;
    }
    validate(options);
    infty::set_num_threads(threads);
    return support::on_ranks(
        "ranks_scaling", sharing.silence, threads, [&](infty::AnyCommunicator& ranks) {
          support::require_shards("ranks_scaling", ranks, options.shards);
          if (*overlapping) {
            overlap(options, sharing, ranks);
            return 0;
          }
          std::optional<support::Lock> lock;  // taken before what takes long
          if (ranks.rank() == 0) lock.emplace(support::Lock::file(out));
          const MeasuredStep found = StepMeasurement(options, ranks, sharing).measure(!whole);
          if (ranks.rank() == 0) support::write_file(out, support::json_of(found).dump(2) + '\n');
          return 0;
        });
  });
}
