// SPDX-License-Identifier: MIT

// Dialogues about a document, by GPT-2 with a memory [Martins et al. 2022, §4.3]: `prepare` writes
// the published conversations of CMU-DoG as text, `train` fine-tunes a GPT-2 on them, `evaluate`
// scores it by the paper's five measures, `compare` does so with GPT-2 with the document, without,
// and with each memory, and `chat` talks: the model has read a document and remembers all of the
// conversation.
//
// A GPT-2 is a folder as Hugging Face's library writes it, and so is what comes out. A run that was
// interrupted, in whatever way, goes on from its last checkpoint when it is started again, and
// gives the losses of an uninterrupted one, bit for bit. docs/dialogue.md has the commands.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "chat.hpp"
#include "compare.hpp"
#include "prepare.hpp"
#include "train.hpp"

namespace dialogue {

/// The settings of a comparison, which says which forms and seeds there are.
struct ComparedSettings : Settings {};

template <class See>
void each_setting(ComparedSettings& s, See&& see) {
  each_setting(static_cast<Settings&>(s), [&](const char* group, const char* name, auto& field,
                                              const char* help, const auto&... some) {
    const std::string is = name;
    if (is != "form" && is != "seed") see(group, name, field, help, some...);
  });
}

/// Those of answers that are drawn, of a model that is trained.
struct AnswerSettings : Settings {};

template <class See>
void each_setting(AnswerSettings& s, See&& see) {
  each_answer_setting(s, see);
}

struct EvaluateOptions {
  std::filesystem::path model = "dialogue-model", data = "dialogues", wordnet, answers;
  std::string split = "test";
};

struct Options {
  PrepareOptions prepare;
  TrainOptions train;
  CompareOptions compare;
  EvaluateOptions evaluate;
  ChatOptions chat;
  Settings settings;
  ComparedSettings compared;
  AnswerSettings scored;
  int threads = 0;
};

/// Scores a trained model; the settings say how answers are drawn.
void evaluate(const EvaluateOptions& options, const Settings& asked) {
  Trained trained = open_trained(options.model);
  Settings& s = trained.settings;
  support::use_products(s.products);
  s.scored = asked.scored;
  s.answers = asked.answers;
  s.longest = asked.longest;
  s.sampling = asked.sampling;
  validate(s, trained.model->config().places);
  // Before anything is computed: what cannot be written is not worth it.
  std::optional<support::Lock> lock;
  if (!options.answers.empty()) {
    infty::require<infty::IoError>(!std::filesystem::is_directory(options.answers), "dialogue",
                                   "--write-answers is ", options.answers.string(),
                                   ", a folder: it must be a file");
    lock.emplace(support::Lock::file(options.answers));
  }
  const auto wordnet = open_wordnet(options.wordnet);
  const Split split = read_split(options.data, options.split, trained.tokenizer);
  const support::InterruptGuard interrupt;
  std::vector<Answer> kept;
  const auto whole = support::gpt2::open_model(options.model, trained.model->memory());
  const Score score = score_split(
      options.split.c_str(), false, *whole, trained.model.get(), s, trained.tokenizer, split,
      wordnet ? &*wordnet : nullptr, options.answers.empty() ? nullptr : &kept,
      [] { support::stop_if_interrupted([] { return std::string("stopped scoring"); }); });
  print_score(options.split.c_str(), score);
  if (options.answers.empty()) return;
  auto json = nlohmann::json::array();
  for (const Answer& answer : kept)
    json.push_back({{"said", answer.said}, {"reference", answer.reference}});
  support::write_file(options.answers,
                      json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

/// Reads the command line; a number if the program is to end with it. Sets `job` to what is asked.
std::optional<int> parse(int argc, char** argv, Options& options, std::string& job) {
  using support::add_option, support::from, support::most_at_once;
  CLI::App app("Dialogues about documents, by GPT-2 with a memory.", "dialogue");
  app.require_subcommand(1);
  app.footer(
      "However train and compare are stopped, the same command goes on, to the numbers of an "
      "uninterrupted run.");
  CLI::App* const prepare = app.add_subcommand("prepare", "write CMU-DoG as text");
  CLI::App* const train = app.add_subcommand("train", "train a model; the same command goes on");
  CLI::App* const evaluate = app.add_subcommand("evaluate", "score a model");
  CLI::App* const compare = app.add_subcommand("compare", "train and score all forms; a table");
  CLI::App* const chat = app.add_subcommand("chat", "talk with a model about a document");

  PrepareOptions& p = options.prepare;
  prepare->add_option("--data", p.data, "folder with Conversations and WikiData, as published")
      ->required()
      ->check(CLI::ExistingDirectory);
  prepare->add_option("--out", p.out, "folder for train.txt, valid.txt and test.txt")
      ->capture_default_str();

  TrainOptions& t = options.train;
  for (CLI::App* const command : {train, compare}) {
    command->add_option("--data", t.files.data, "folder that `prepare` wrote")
        ->capture_default_str();
    command
        ->add_option("--base", t.files.base,
                     "GPT-2's folder; with an encoding alone, weights are fresh")
        ->required()
        ->check(CLI::ExistingDirectory);
    support::add_saving(*command, t.saving);
  }
  support::add_options(*train, options.settings);
  train->add_option("--out", t.out, "folder of the run and the model")->capture_default_str();
  train->add_flag("--fresh", t.fresh, "begin anew, whatever is in the folder");
  add_option(*train, "--pause", t.pause, "seconds to wait behind every step, for tests", {0, 3600})
      ->group("");

  CompareOptions& c = options.compare;
  support::add_options(*compare, options.compared);
  support::add_runs(*compare, c.out, c.jobs);
  add_option(*compare, "--forms", c.forms, "which, in this order", {}, form_names)
      ->capture_default_str();
  add_option(*compare, "--seeds", c.seeds, "of weights and orders")->capture_default_str();
  add_option(*compare, "--threads", c.threads, "of each run; results do not depend on it",
             {1, static_cast<int>(most_at_once)})
      ->capture_default_str();
  compare->add_flag("--keep-models", c.keep_models, "keep the trained models, in OUT/models");

  EvaluateOptions& e = options.evaluate;
  for (CLI::App* const command : {evaluate, chat})
    command
        ->add_option("--model", command == chat ? options.chat.model : e.model,
                     "the folder that `train --out` named")
        ->capture_default_str()
        ->check(CLI::ExistingDirectory);
  evaluate->add_option("--data", e.data, "folder that `prepare` wrote")->capture_default_str();
  evaluate->add_option("--split", e.split, "part of it")
      ->capture_default_str()
      ->check(CLI::IsMember(split_names));
  evaluate->add_option("--write-answers", e.answers, "JSON file for the answers");
  support::add_options(*evaluate, options.scored);
  for (CLI::App* const command : {train, evaluate, compare})
    command->add_option("--wordnet", e.wordnet, "folder of WordNet's files, for METEOR's synonyms");

  ChatOptions& h = options.chat;
  chat->add_option("--document", h.document, "text file that the model reads first")
      ->check(CLI::ExistingFile);
  add_option(*chat, "--longest", h.longest, "tokens of an answer, at most", from(1))
      ->capture_default_str();
  add_option(*chat, "--passage", h.passage, "tokens of a passage that /look shows", from(1))
      ->capture_default_str();
  add_option(*chat, "--temperature", h.sampling.temperature, "0: always the likeliest",
             {.least = 0})
      ->capture_default_str();
  add_option(*chat, "--top-p", h.sampling.top_p, "of the likeliest with this share only", {1e-9, 1})
      ->capture_default_str();
  add_option(*chat, "--seed", h.seed, "of the draws")->capture_default_str();
  for (CLI::App* const command : {train, evaluate, chat})
    add_option(*command, "--threads", options.threads, "results do not depend on it",
               {1, static_cast<int>(most_at_once)});

  if (const auto code = support::parse(app, argc, argv)) return code;
  job = app.get_subcommands().front()->get_name();
  t.wordnet = c.wordnet = e.wordnet;
  c.files = t.files;
  c.saving = t.saving;
  t.again = c.again = support::command_line(argc, argv, {"--fresh"});
  return std::nullopt;
}

}  // namespace dialogue

int main(int argc, char** argv) {
  return support::run_program("dialogue", [&] {
    dialogue::Options options;
    std::string job;
    if (const auto code = dialogue::parse(argc, argv, options, job)) return *code;
    if (options.threads > 0) infty::set_num_threads(options.threads);
    if (job == "prepare") dialogue::prepare(options.prepare);
    if (job == "train") dialogue::train(options.settings, options.train);
    if (job == "evaluate") dialogue::evaluate(options.evaluate, options.scored);
    if (job == "compare" && !dialogue::compare(options.compared, options.compare)) return 1;
    if (job == "chat") dialogue::chat(options.chat);
    return 0;
  });
}
