// SPDX-License-Identifier: MIT

// Language models with a memory, on words, characters, bytes or GPT-2's tokens: `train` makes one,
// `evaluate` says how well it predicts a text, also with segments and memories of other lengths,
// `generate` lets it write, `compare` trains one of each memory and prints a table, and `bpe`
// learns a byte pair encoding to train with. `build-datastore` keeps what a model makes of a text,
// `tune-datastore` finds how much to trust it, and `--knn`, `--cache` and `--spalm` look things up;
// `datastore-hits` says what an index that does not compare with every key finds, and
// `show-neighbours` makes a page of what was looked up for each word.
//
// It works on a tale of its own out of the box. Real texts: WikiText-2 and -103 [Merity et al.
// 2016] for --level word, enwik8 and text8 [mattmahoney.net/dc/textdata.html] for --level byte and
// char, the books of PG-19 [github.com/google-deepmind/pg19] with --documents;
// docs/language_model.md has the commands.
//
// A run that was interrupted, in whatever way, goes on from its last checkpoint when it is started
// again, and gives the losses of an uninterrupted one, bit for bit.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <infty/eigen/parallel.hpp>
#include <infty/train/checkpoint.hpp>

#include "../support/command.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/training.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/ranks.hpp"
#include "../support/saving.hpp"
#include "byte_pairs.hpp"
#include "compare.hpp"
#include "datastore.hpp"
#include "evaluate.hpp"
#include "generation.hpp"
#include "hits.hpp"
#include "neighbours.hpp"
#include "tuning.hpp"

namespace language_model {

struct Options {
  std::string preset;
  TrainOptions train;
  EvaluateOptions evaluate;
  GenerateOptions generate;
  CompareOptions compare;
  BuildOptions build;
  TuneOptions tune;
  HitsOptions hits;
  ShowOptions show;
  BytePairOptions byte_pairs;
  int threads = 0;
};

void train(Settings s, const Options& options, infty::AnyCommunicator& ranks) {
  const auto& out = options.train.out;
  support::use_products(s.products);
  support::require_shards("language_model", ranks, s.shards);
  infty::require(ranks.size() == 1 || s.spalm.empty(), "language_model",
                 "--spalm goes with one rank");
  for (const auto& [name, path] : {std::pair("from", &s.from), std::pair("data", &s.data),
                                   std::pair("valid", &s.valid), std::pair("test", &s.test)}) {
    std::error_code none_there;
    infty::require(path->empty() || !std::filesystem::equivalent(*path, out, none_there),
                   "language_model", "--out is --", name,
                   ": what is written would take the place of what is read");
  }
  std::optional<support::Lock> lock;  // of the first rank, for it alone writes
  if (ranks.rank() == 0) lock.emplace(support::Lock::folder(out));
  ranks.barrier();
  Corpus corpus = load_corpus(s);
  s = sized(s, corpus);
  nlohmann::json results;
  if (!options.train.fresh) {
    require_same_run(s, corpus, out);
    results = finished_results(out, s);
  }
  if (ranks.size() > 1)
    infty::require_same(ranks, "the results in " + out.string(), results.dump());
  if (results.is_null()) {
    describe(corpus);
    warn_of_memory(s);
    if (!s.spalm.empty()) look_up_tokens(s, corpus, out);
    language_model::train(s, corpus, options.train, ranks, lock ? &*lock : nullptr);
    if (ranks.rank() > 0) return;
    results = finished_results(out, s);
  } else {
    std::fprintf(stderr, "%s is finished\n", out.c_str());
  }
  std::printf("%s, %lld parameters, %lld steps, %lld tokens, %.0f tokens/s\n",
              support::model_name(s).c_str(), results.at("parameters").get<long long>(),
              results.at("steps").get<long long>(), results.at("trained_tokens").get<long long>(),
              results.at("tokens_per_second").get<double>());
  print_score("valid", results.at("valid"), s.level);
  print_score("test", results.at("test"), s.level);
}

void generate(const EvaluateOptions& model, const GenerateOptions& options) {
  const auto [s, group] = changed_settings(model, 1);
  check_weights(model, s);
  support::use_products(s.products);
  const Tokenizer tokenizer(s.level, model.model);
  const auto loaded = load_model(s, tokenizer, model.model, group);
  support::keep_weights(loaded->named_parameters(), model.weights);
  generate(s, *loaded, tokenizer, model.look_up, options);
}

/// Reads the command line; a number if the program is to end with it. Sets `job` to what is asked.
std::optional<int> parse(int argc, char** argv, Options& options, Settings& settings,
                         std::string& job) {
  using support::add_option, support::from, support::most_at_once;
  CLI::App app("Trains, evaluates and runs language models with a memory.", "language_model");
  app.require_subcommand(1);
  CLI::App* const train = app.add_subcommand("train", "train a model; the same command goes on");
  CLI::App* const compare = app.add_subcommand("compare", "train one of each memory; a table");
  CLI::App* const evaluate = app.add_subcommand("evaluate", "how well a model predicts a text");
  CLI::App* const generate = app.add_subcommand("generate", "let a model write");
  CLI::App* const build =
      app.add_subcommand("build-datastore", "keep what a model makes of a text, to look it up");
  CLI::App* const tune =
      app.add_subcommand("tune-datastore", "choose k, temperature and share on a text");
  CLI::App* const hits =
      app.add_subcommand("datastore-hits", "true neighbours that an index finds, and how fast");
  CLI::App* const show =
      app.add_subcommand("show-neighbours", "a page of a text and of what was looked up for it");
  CLI::App* const bpe = app.add_subcommand("bpe", "learn a byte pair encoding of a text");
  for (CLI::App* const command : {train, compare}) {
    for (CLI::Option* const option : support::add_options(*command, settings)) {
      // A comparison says by --memories and --seeds what is of each run.
      const std::vector<std::string> of_each{"--memory", "--mixer", "--feed", "--tokens", "--seed"};
      if (command == compare && std::ranges::count(of_each, option->get_name()) > 0)
        command->remove_option(option);
    }
    command->add_option("--preset", options.preset, "start from the settings of a paper")
        ->check(CLI::IsMember(&presets()));
    support::add_saving(*command, options.train.saving);
  }
  for (CLI::App* const command : {train, evaluate, generate, build, tune, hits, show})
    add_option(*command, "--threads", options.threads, "results do not depend on it",
               {1, most_at_once});

  train->add_option("--out", options.train.out, "folder of the run")->capture_default_str();
  support::add_ranks(*train, options.train.sharing);
  train->add_flag("--fresh", options.train.fresh, "begin anew, whatever is in the folder");
  add_option(*train, "--pause", options.train.pause, "seconds to wait behind every step, for tests",
             {0, 3600})
      ->group("");

  CompareOptions& c = options.compare;
  compare->add_option("--out", c.out, "folder of the runs")->capture_default_str();
  add_option(*compare, "--memories", c.memories, "which", {}, support::compared_names())
      ->capture_default_str();
  add_option(*compare, "--seeds", c.seeds, "seeds 1, 2, ... of each", {1, most_at_once})
      ->capture_default_str();
  add_option(*compare, "--jobs", c.jobs, "trainings at once", {1, most_at_once})
      ->capture_default_str();
  add_option(*compare, "--threads", c.threads, "of each; results do not depend on it",
             {1, most_at_once})
      ->capture_default_str();

  EvaluateOptions& e = options.evaluate;
  add_model(*evaluate, e);
  add_text(*evaluate, e);
  add_sharing(*evaluate, e);
  add_look_up(*evaluate, e.look_up);
  for (CLI::App* const command : {evaluate, generate}) {
    support::add_products(*command, e.products, "as the model was trained");
    support::add_weights(*command, e.weights);
  }
  add_build(*build, options.build);
  add_tune(*tune, options.tune);
  add_hits(*hits, options.hits);
  add_show(*show, options.show);

  GenerateOptions& g = options.generate;
  add_model(*generate, e);
  add_look_up(*generate, e.look_up);
  generate->add_option("--prompt", g.prompt, "what to go on from");
  add_option(*generate, "--tokens", g.tokens, "how many", from(1))->capture_default_str();
  add_option(*generate, "--interval", g.interval,
             "tokens between lines on the speed; 0: at the end", from(0))
      ->capture_default_str();
  support::add_sampling(*generate, g.sampling);
  add_option(*generate, "--seed", g.seed, "of the draws")->capture_default_str();

  BytePairOptions& b = options.byte_pairs;
  bpe->add_option("--data", b.data, "file, or folder of files, to learn it from");
  bpe->add_option("--out", b.out, "folder for vocab.json and merges.txt")->capture_default_str();
  add_option(*bpe, "--tokens", b.config.tokens, "at most, the 256 bytes and the names among them",
             from(256))
      ->capture_default_str();
  add_option(*bpe, "--least", b.config.least, "times that a pair must be there to be merged",
             from(1))
      ->capture_default_str();
  add_option(*bpe, "--names", b.config.names, "of tokens that stand for no bytes", {})
      ->capture_default_str();
  if (const auto code = support::parse(app, argc, argv)) return code;
  job = app.get_subcommands().front()->get_name();
  options.compare.saving = options.train.saving;
  return std::nullopt;
}

}  // namespace language_model

int main(int argc, char** argv) {
  namespace lm = language_model;
  return support::run_program("language_model", [&] {
    lm::Options options;
    lm::Settings settings;
    std::string job;
    if (const auto code = lm::parse(argc, argv, options, settings, job)) return *code;
    if (!options.preset.empty()) {
      // Once more, so that other options change the paper's settings whatever their order.
      settings = lm::presets().at(options.preset);
      if (const auto code = lm::parse(argc, argv, options, settings, job)) return *code;
    }
    infty::require(
        job == "train" || job == "compare" || job == "evaluate" || support::ranks_started() <= 1,
        "language_model", "several ranks train, compare or evaluate, and do nothing else");
    // A token at a time is too little to share out.
    if (options.threads == 0 && job == "generate") options.threads = 1;
    if (options.threads > 0) infty::set_num_threads(options.threads);
    options.train.again = support::command_on(support::ranks_started(),
                                              support::command_line(argc, argv, {"--fresh"}));
    options.compare.again = options.train.again;
    if (job == "train" || job == "compare") lm::validate(settings);
    if (job == "train") lm::check_model(settings, true);
    infty::require(job != "compare" || settings.spalm.empty(), "language_model",
                   "--spalm goes with train, not with compare");
    if (job == "compare") lm::check_models(settings, options.compare.memories);
    if (job == "train")
      return support::on_ranks("language_model", options.train.sharing.silence, options.threads,
                               [&](infty::AnyCommunicator& ranks) {
                                 lm::train(settings, options, ranks);
                                 return 0;
                               });
    if (job == "compare") {
      options.compare.share = support::RunShare::own();
      lm::compare(settings, options.compare);
    }
    if (job == "evaluate")
      return support::on_ranks("language_model", options.evaluate.sharing.silence, options.threads,
                               [&](infty::AnyCommunicator& ranks) {
                                 lm::evaluate(options.evaluate, ranks);
                                 return 0;
                               });
    if (job == "build-datastore") lm::build_datastore(options.build);
    if (job == "tune-datastore") lm::tune_datastore(options.tune);
    if (job == "datastore-hits") lm::datastore_hits(options.hits);
    if (job == "show-neighbours") lm::show_neighbours(options.show);
    if (job == "bpe") lm::learn_byte_pairs(options.byte_pairs);
    if (job == "generate") lm::generate(options.evaluate, options.generate);
    return 0;
  });
}
