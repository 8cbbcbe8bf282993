// SPDX-License-Identifier: MIT

// GPT-2 [Radford et al. 2019] with a memory beside its attention: `finetune` trains one that comes
// in Hugging Face's files on, with the ∞-former's long-term memory [Martins et al. 2022, §4.2],
// with the paper's compressive baseline, or with none; `evaluate` and `perplexity` say how well it
// predicts a text, `generate` lets it write behind a text of any length, `table` makes the paper's
// Table 1 of finished runs, and `pretrain` makes a small GPT-2 from nothing, for those who have
// none. docs/gpt2_programs.md has the commands.
//
// What comes out are Hugging Face's files again, and beside them the memory's. A run that was
// interrupted, in whatever way, goes on from its last checkpoint when it is started again, and
// gives the losses of an uninterrupted one, bit for bit.

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/kept_weights.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/saving.hpp"
#include "../support/warn_of.hpp"
#include "generation.hpp"
#include "perplexity.hpp"
#include "run.hpp"
#include "table.hpp"

namespace gpt2 {

struct EvaluateOptions {
  std::filesystem::path model;
  std::string weights = "float32";
  TextSettings text;
  Index segment = 0, batch = 8;
};

struct Options {
  Pretraining pretraining;
  Finetuning finetuning;
  RunOptions run;
  EvaluateOptions evaluate;
  PerplexityOptions perplexity;
  GenerateOptions generate;
  std::filesystem::path runs;
  std::string products = support::products_now();
  int threads = 0;
};

/// The text and what else a training needs. @param folder  of the encoding
template <class Job>
Material load_material(const Job& s, const std::filesystem::path& folder, Index vocabulary) {
  const auto encoding = infty::BytePairEncoding::from_folder(folder);
  if (vocabulary > 0) support::gpt2::require_tokens(encoding, vocabulary, folder);
  return {.corpus = load_corpus(encoding, s.text, s.memory.segment),
          .encoding = folder,
          .vocabulary = encoding.size()};
}

/// Bytes of a training on so many rows at once: four copies of the parameters, and what a segment
/// makes; in double, so that no size is too large to be told.
inline double need_of(const infty::Gpt2Config& c, double rows) {
  const auto of = [](Index n) { return static_cast<double>(n); };
  const double d = of(c.model_dim), layers = of(c.layers), places = of(c.places);
  const double parameters = (of(c.vocabulary) + places) * d + 12 * layers * d * d;
  const double tokens = rows * places;
  const double kept = tokens * (layers * 24 * d + 2 * of(c.vocabulary));
  return sizeof(float) * (4 * parameters + kept);
}

void pretrain(const Options& options) {
  Pretraining s = options.pretraining;
  infty::require(!s.encoding.empty(), "gpt2",
                 "--encoding is missing: a folder with vocab.json and merges.txt");
  s.memory.segment = s.model.places;
  s.model.embedding_dropout = -1;
  infty::Gpt2Config sized = s.model;
  sized.vocabulary = infty::BytePairEncoding::from_folder(s.encoding).size();
  validate(s, sized);
  sized.validate();
  support::require_memory("gpt2", s, [&](const Pretraining& of) {
    infty::Gpt2Config config = of.model;
    config.vocabulary = sized.vocabulary;
    return need_of(config, static_cast<double>(of.batch));
  });
  const auto lock = support::Lock::folder(options.run.out);
  if (!options.run.fresh) support::gpt2::require_no_model("gpt2", options.run.out);
  train(s, load_material(s, s.encoding, 0), options.run, lock);
}

void finetune(const Options& options) {
  const Finetuning& s = options.finetuning;
  infty::require(!s.model.empty(), "gpt2", "--model is missing: a folder of Hugging Face's files");
  const std::filesystem::path folder = s.model;
  infty::Gpt2Config config = infty::read_gpt2_config(folder / "config.json");
  validate(s, config);
  require_weights_fit(folder, s.memory.memory);
  infty::require(s.memory.memory == "none" || s.adam.learning_rate > 0, "gpt2",
                 "--rate is 0: the memory's follows it; --freeze trains the memory alone");
  infty::require(!s.freeze || s.memory.memory != "none", "gpt2",
                 "--freeze needs a --memory to train");
  if (support::gpt2::is_long_term(s.memory))
    support::warn_of("gpt2", s.memory.long_term, s.memory.segment);
  const auto lock = support::Lock::folder(options.run.out);
  std::error_code ignored;
  infty::require(!std::filesystem::equivalent(folder, options.run.out, ignored), "gpt2",
                 "--out is --model: the trained model would take the place of the one that it is "
                 "made of");
  if (!options.run.fresh) support::gpt2::require_no_model("gpt2", options.run.out);
  Material material = load_material(s, folder, config.vocabulary);
  material.base = support::gpt2::model_fingerprint(folder);
  train(s, material, options.run, lock);
}

void evaluate(const EvaluateOptions& options) {
  validate(options.text);
  infty::require(!options.text.exact || options.batch == 1, "gpt2", "--batch is ", options.batch,
                 ": --exact reads block behind block, and it must be 1");
  MemorySettings memory = support::gpt2::read_memory(options.model);
  if (options.segment > 0) memory.segment = options.segment;
  validate_blocks(options.text, memory.segment);
  const auto model = support::gpt2::open_model(options.model, memory);
  support::keep_weights(model->named_parameters(), options.weights);
  const auto encoding = infty::BytePairEncoding::from_folder(options.model);
  support::gpt2::require_tokens(encoding, model->config().vocabulary, options.model);
  Texts texts;
  const Part part =
      make_part(encoding, options.text, memory.segment, open_documents(options.text.data, texts));
  describe("text", part);
  const support::InterruptGuard interrupt;
  const Batches batches(part, options.text, options.batch, memory.segment,
                        support::gpt2::start_of(encoding));
  const infty::TextScore score = evaluate("text", *model, part, batches, [&](Index tokens) {
    support::stop_if_interrupted([&] {
      return "stopped evaluating behind " + std::to_string(tokens) + " of " +
             std::to_string(part.stream.tokens.size()) + " tokens; nothing is kept of it";
    });
  });
  std::printf("%s, %td parameters, segments of %td, %zu bytes of memory a row\n",
              memory.memory.c_str(), model->parameters(), memory.segment,
              model->bytes_of(model->make_state(1)));
  print_score("text", score_of(score, part));
}

void add_text(CLI::App& app, TextSettings& text) {
  each_text_setting(text,
                    [&]<class T>(const char* group, const char* name, T& field, const char* help) {
                      if (std::string_view(name) == "valid" || std::string_view(name) == "test")
                        return;
                      support::add_option(app, std::string("--") + name, field, help)
                          ->capture_default_str()
                          ->group(group);
                    });
}

/// Reads the command line; a number if the program is to end with it. Sets `job` to what is asked.
std::optional<int> parse(int argc, char** argv, Options& options, std::string& job) {
  using support::add_option, support::from, support::most_at_once;
  CLI::App app("GPT-2 with a memory: trains, evaluates and runs it.", "gpt2");
  app.require_subcommand(1);
  CLI::App* const pretrain = app.add_subcommand("pretrain", "make a small GPT-2 from nothing");
  CLI::App* const finetune =
      app.add_subcommand("finetune", "train a GPT-2 on, with a memory; the same command goes on");
  CLI::App* const evaluate = app.add_subcommand("evaluate", "how well a model predicts a text");
  CLI::App* const perplexity =
      app.add_subcommand("perplexity", "the same by a window that slides over the text");
  CLI::App* const generate = app.add_subcommand("generate", "let a model write");
  CLI::App* const table = app.add_subcommand("table", "a table of finished fine-tunings");
  support::add_options(*pretrain, options.pretraining);
  support::add_options(*finetune, options.finetuning);
  for (CLI::App* const command : {pretrain, finetune}) {
    RunOptions& r = options.run;
    support::add_saving(*command, r.saving);
    command->add_option("--out", r.out, "folder of the run, and of the model in the end")
        ->capture_default_str();
    command->add_flag("--fresh", r.fresh, "begin anew, whatever is in the folder");
    add_option(*command, "--pause", r.pause, "seconds to wait behind every step, for tests",
               {0, 3600})
        ->group("");
  }
  for (CLI::App* const command : {pretrain, finetune, evaluate, perplexity, generate})
    add_option(*command, "--threads", options.threads, "results do not depend on it",
               {1, most_at_once});
  for (CLI::App* const command : {evaluate, perplexity, generate})
    support::add_products(*command, options.products, "float32");
  const auto add_model = [](CLI::App& command, std::filesystem::path& model) {
    command.add_option("--model", model, "folder of a GPT-2 in Hugging Face's files")
        ->required()
        ->check(CLI::ExistingDirectory);
  };

  EvaluateOptions& e = options.evaluate;
  add_model(*evaluate, e.model);
  support::add_weights(*evaluate, e.weights);
  add_text(*evaluate, e.text);
  add_option(*evaluate, "--segment", e.segment, "tokens that are read at once; 0: as in training",
             from(0))
      ->capture_default_str();
  add_option(*evaluate, "--batch", e.batch, "rows side by side", from(1))->capture_default_str();

  PerplexityOptions& p = options.perplexity;
  add_model(*perplexity, p.model);
  support::add_weights(*perplexity, p.weights);
  add_option(*perplexity, "--text", p.text, "files and folders")->required();
  add_option(*perplexity, "--stride", p.stride, "tokens that a window slides; 0: half of it",
             from(0))
      ->capture_default_str();
  add_option(*perplexity, "--contexts", p.contexts,
             "tokens of the window; none: as many as the model has places", from(2));
  add_option(*perplexity, "--most", p.most, "first tokens of the text that are read; 0: all",
             from(0))
      ->capture_default_str();
  add_option(*perplexity, "--batch", p.batch, "windows side by side", from(1))
      ->capture_default_str();
  perplexity->add_option("--out", p.out, "folder for context.csv and the figure of it");

  GenerateOptions& g = options.generate;
  add_model(*generate, g.model);
  support::add_weights(*generate, g.weights);
  generate
      ->add_option("--memory", g.memory,
                   "another than the folder says; it is fresh unless both are infty or sticky")
      ->check(CLI::IsMember(support::gpt2::memory_names));
  generate->add_option("--prompt", g.prompt, "what to go on from");
  generate->add_option("--prompt-file", g.prompt_file, "a text of any length to read before that")
      ->check(CLI::ExistingFile);
  add_option(*generate, "--tokens", g.writing.tokens, "how many, at most", from(1))
      ->capture_default_str();
  add_option(*generate, "--ignore-eos", g.ignore_eos, "write on behind <|endoftext|>")
      ->capture_default_str();
  add_option(*generate, "--interval", g.writing.interval,
             "tokens between lines on the speed; 0: at the end", from(0))
      ->capture_default_str();
  support::add_sampling(*generate, g.sampling);
  add_option(*generate, "--seed", g.seed, "of the draws")->capture_default_str();

  table->add_option("--runs", options.runs, "folder of the runs' folders")
      ->required()
      ->check(CLI::ExistingDirectory);
  if (const auto code = support::parse(app, argc, argv)) return code;
  const auto check_steps = [](const CLI::App& command, const auto& training) {
    if (command.count("--steps") == 0) return;
    infty::require(training.hours == 0, "gpt2",
                   "--steps and --hours do not go together: each says how many steps there are");
    infty::require(command.count("--epochs") == 0 || training.epochs == 0, "gpt2",
                   "--steps and --epochs do not go together: each says how many steps there are");
  };
  check_steps(*pretrain, options.pretraining);
  check_steps(*finetune, options.finetuning);
  // Who asks for steps or hours wants no epochs.
  if (finetune->count("--steps") + finetune->count("--hours") > 0 &&
      finetune->count("--epochs") == 0)
    options.finetuning.epochs = 0;
  job = app.get_subcommands().front()->get_name();
  return std::nullopt;
}

}  // namespace gpt2

int main(int argc, char** argv) {
  return support::run_program("gpt2", [&] {
    gpt2::Options options;
    std::string job;
    if (const auto code = gpt2::parse(argc, argv, options, job)) return *code;
    if (options.threads > 0) infty::set_num_threads(options.threads);
    options.run.again = support::command_line(argc, argv, {"--fresh"});
    support::use_products(options.products);
    if (job == "pretrain") gpt2::pretrain(options);
    if (job == "finetune") gpt2::finetune(options);
    if (job == "evaluate") gpt2::evaluate(options.evaluate);
    if (job == "perplexity") gpt2::perplexity(options.perplexity);
    if (job == "generate") gpt2::generate(options.generate);
    if (job == "table") gpt2::print_table(options.runs);
    return 0;
  });
}
