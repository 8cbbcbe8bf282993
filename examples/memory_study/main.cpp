// SPDX-License-Identifier: MIT

// What a trained model does with its long-term memory, as the analyses of the ∞-former's papers:
//
// - attention.png: where queries of the first, the middle and the last layer look in it;
// - space.png: how much of it each word of a text has, with and without sticky memories, and the
//   phrases that have most;
// - page.html: a text shaded by the attention to it while one word was predicted;
// - basis.png: accuracy and regression error against the number of basis functions, on the sorting
//   task [Martins et al. 2022, Fig. 3, right];
// - retrieved.png, in the place of the first three for a memory of single vectors (memorizing): how
//   far back the entries stand that are retrieved;
// - looked.png and answers.html, of a GPT-2 that was trained on dialogues: what each layer looks at
//   in the document and in what was said, and the excerpts that each turn attends to
//   [Martins et al. 2022, Fig. 4 and 12];
// - NAME.png and NAME_words.png, of every memory: what its layers show a traced pass under a name
//   (infty/nn/pass.hpp), weights of slots and tokens and gates, in the mean and word by word.
//
// - spalm_gate_histogram.png, of a model that was trained with --spalm: how much it takes of what
// was
//   looked up [Yogatama et al. 2021].
//
// It takes a model that examples/language_model has trained (--model), or a GPT-2 with a memory
// beside its attention, or trains a small one, on a text of the user's (--data) or on tales that it
// makes. The numbers behind the figures are in CSV
// files beside them.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/eigen/parallel.hpp>

#include "../support/command.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/spalm.hpp"
#include "../support/language_model/training.hpp"
#include "../support/lock.hpp"
#include "../support/options.hpp"
#include "../support/program.hpp"
#include "../support/saving.hpp"
#include "basis.hpp"
#include "gpt2_study.hpp"
#include "study.hpp"

namespace memory_study {

/// Calls see(group, name, field) for what may need memory.
template <class See>
void each_setting(Options& o, See&& see) {
  see("", "bins", o.bins);
  see("", "basis", o.basis.basis);
  see("", "sorting-length", o.basis.task.length);
}

/// Bytes that the figures need beside the text and its model.
inline double bytes_of(const Options& o) {
  const double histograms =
      3 * (sizeof(double) + 60) * static_cast<double>(o.bins);  // and their text
  return std::max(o.text ? histograms : 0, o.sorting ? bytes_of(o.basis) : 0);
}

/// The model that is trained if none is given.
lm::Settings small_settings(const Options& options) {
  lm::Settings s;
  support::choose_model(s, options.memory);
  s.data = options.data;
  s.documents = true;
  s.model = {.model_dim = 64,
             .layers = 3,
             .heads = 4,
             .feed_forward = 128,
             .pre_norm = true,
             .dropout = .05};
  s.memory_length = options.memory == "memorizing" ? 512 : options.memory == "memsizer" ? 32 : 96;
  s.compressed = std::min<Index>(64, s.memory_length);
  s.segment = 32;
  s.long_term.widths = {.01, .05};
  s.long_term.samples = 256;
  s.long_term.sigma0 = .1;
  s.kl_weight = 3e-3;
  s.max_vocabulary = 5000;
  s.cutoffs = {0};
  s.steps = options.steps;
  s.warmup = std::min<Index>(50, options.steps / 2);
  s.evaluate_every = std::max<Index>(1, options.steps / 2);
  s.adam.learning_rate = 2e-3;
  return s;
}

/// Throws infty::ValueError for what is known to be impossible before a model is trained.
void require_possible(const Options& options) {
  const lm::Settings s = small_settings(options);
  if (!support::is_infty(s.memory)) return;
  // What leaves the short-term memory with one segment is there for the next one.
  require_remembered(options, s.memory_length - lm::compressed_length(s) + s.segment);
}

/// The folder with the trained model: the one that is given, or a new one.
std::filesystem::path train_if_none(const Options& options) {
  if (!options.model.empty()) return options.model;
  const auto folder = options.out / "model";
  const lm::Settings s = small_settings(options);
  lm::validate(s);
  const auto lock = support::Lock::folder(folder);
  lm::Texts texts = lm::open_texts(s);
  shorten(texts.valid);
  shorten(texts.test);
  const lm::Corpus corpus = lm::make_corpus(s, texts);
  lm::train(
      s, corpus,
      {.out = folder, .saving = options.saving, .fresh = options.fresh, .again = options.again},
      lock);
  return folder;
}

/// Up to `most` documents of the test text, the longest first, each cut to so many words, with what
/// was looked up for them.
std::vector<Passage> documents_of(const lm::Split& split, const Options& options, TokenId start,
                                  Index segment) {
  const infty::TokenStream& stream = split.stream;
  std::vector<std::span<const TokenId>> all;
  for (std::size_t i = 0; i < stream.documents.size(); ++i) {
    const auto begin = static_cast<std::size_t>(stream.documents[i]);
    const auto end = i + 1 < stream.documents.size()
                         ? static_cast<std::size_t>(stream.documents[i + 1])
                         : stream.tokens.size();
    const auto words = std::min(end - begin, static_cast<std::size_t>(options.words));
    all.push_back(std::span(stream.tokens).subspan(begin, words));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.data() < b.data();
  });
  if (std::ssize(all) > options.documents) all.resize(static_cast<std::size_t>(options.documents));
  std::vector<Passage> out;
  for (const auto& document : all) {
    Passage& passage = out.emplace_back(passage_of(start, document, segment));
    const auto each = static_cast<std::size_t>(split.retrieved.each);
    const auto begin = static_cast<std::size_t>(document.data() - stream.tokens.data()) * each;
    for (std::size_t i = begin; i < begin + document.size() * each; ++i)
      passage.retrieved.push_back(static_cast<Index>(split.retrieved.tokens[i]));
  }
  return out;
}

void study_text(const Options& options) {
  if (is_gpt2(options.model)) return study_gpt2(options);
  const auto folder = train_if_none(options);
  lm::Settings s = lm::settings_of(folder);
  support::use_products(s.products);
  if (!options.data.empty()) s.data = options.data, s.valid = s.test = "";
  // Of a SPALM what is looked up is shown, not its base.
  const bool base = s.spalm.empty();
  const bool retrieves = base && s.memory == "memorizing";
  const bool long_term = base && support::is_infty(s.memory);
  if (long_term) require_pictured(s, folder);
  const lm::Tokenizer tokenizer(s.level, folder);
  const lm::Texts from = lm::open_texts(s);
  lm::Split test = lm::make_split(tokenizer, from.test);
  infty::require(!test.stream.tokens.empty(), "memory_study", "the text has no token");
  const TokenTexts texts{
      .decode = [&](std::span<const TokenId> ids) { return tokenizer.decode(ids); },
      .name = tokenizer.token_name(),
      .spaced = s.level == "word"};
  const support::InterruptGuard interrupt;
  if (!s.spalm.empty())
    test.retrieved =
        lm::look_up_tokens(s, tokenizer, test, [&](Index) { stop_if_interrupted(options); });
  const Documents documents{documents_of(test, options, tokenizer.start(), s.segment), options};
  const auto model = lm::load_model(s, tokenizer, folder);
  if (retrieves) study_retrieved(options, *model, s.memory_length, s.model.layers, documents);
  if (long_term) study_long_term(options, s, tokenizer, folder, texts, documents);
  const bool shown = study_shown(options, *model, texts, documents);
  infty::require(retrieves || long_term || shown, "memory_study", folder.string(),
                 " holds a model (", support::model_name(s),
                 ") whose layers show nothing of what they read");
}

/// Where the training of a sorting model is saved until all of them are done.
std::filesystem::path basis_checkpoint(const Options& options, Index basis) {
  return options.out / ("basis-" + std::to_string(basis) + ".safetensors");
}

void study_basis(const Options& options) {
  const support::InterruptGuard interrupt;
  const auto checkpoint = [&](Index basis) { return basis_checkpoint(options, basis); };
  if (options.fresh)
    for (const Index basis : options.basis.basis) std::filesystem::remove(checkpoint(basis));
  std::vector<BasisPoint> points;
  for (const Index basis : options.basis.basis)
    points.push_back(try_basis(options.basis, basis, checkpoint(basis), options.saving,
                               [&] { stop_if_interrupted(options); }));
  write_figure(options, "basis", basis_csv(points), basis_figure(options.basis, points));
  for (const Index basis : options.basis.basis) std::filesystem::remove(checkpoint(basis));
  std::printf("\n%6s %9s %17s\n", "N", "accuracy", "regression error");
  for (const BasisPoint& point : points)
    std::printf("%6lld %9.3f %17.3f\n", static_cast<long long>(point.basis), point.accuracy,
                point.error);
}

/// Throws CLI::ParseError for options that would say nothing.
void require_used(const CLI::App& app, const Options& options) {
  if (!options.text && !options.sorting)
    throw CLI::ValidationError("--no-text and --no-sorting leave nothing to do: leave one out");
  if (options.model.empty()) return;
  std::vector<std::string> unused{"--memory", "--steps"};
  if (!options.sorting) unused.insert(unused.end(), {"--fresh", "--save-every", "--save-minutes"});
  for (const std::string& name : unused)
    if (app.get_option(name)->count() > 0)
      throw CLI::ValidationError(name + " is of a training, and with --model" +
                                 (options.sorting ? "" : " and --no-sorting") +
                                 " there is none: leave one out");
}

/// Reads the command line; a number if the program is to end with it.
std::optional<int> parse(int argc, char** argv, Options& options) {
  CLI::App app("Figures of what a model does with its long-term memory.", "memory_study");
  app.footer(
      "However it is stopped, the same command goes on with what was trained; the figures are made "
      "anew.");
  using support::add_option, support::from;
  const auto positive = [&](const char* name, Index& field, const char* help) {
    add_option(app, name, field, help, from(1))->capture_default_str();
  };
  app.add_option("--out", options.out, "folder for the figures")->capture_default_str();
  app.add_option("--model", options.model,
                 "folder of a model with one of these memories that language_model has trained, or "
                 "of a GPT-2 in Hugging Face's files with memory_config.json, as gpt2 and dialogue "
                 "write it; without it a small one is trained")
      ->check(CLI::ExistingDirectory);
  app.add_option("--data", options.data,
                 "a text to train on and to look at, or a folder of them; without it that of the "
                 "model, or tales that are made");
  auto* const dialogues =
      app.add_option("--dialogues", options.dialogues,
                     "what a GPT-2 that was trained on them is looked at with, instead of a text: "
                     "a NAME.txt that dialogue prepare has written")
          ->check(CLI::ExistingFile)
          ->excludes("--data");
  add_option(app, "--dialogue", options.dialogue,
             "the one that pages show, counted from 0; -1: the longest", from(-1))
      ->needs(dialogues)
      ->capture_default_str();
  app.add_option("--memory", options.memory,
                 "of the model, if one is trained, or what it has in the place of attention, of a "
                 "feed-forward layer or around the stack, as language_model names these")
      ->capture_default_str()
      ->check(CLI::IsMember({"infty",        "infty-sticky",    "infty-gibbs", "memorizing",
                             "infini",       "infini-linear",   "titans",      "memformer",
                             "delta-net",    "gated-delta-net", "memsizer",    "titans-layer",
                             "product-keys", "memory-plus",     "engram",      "memory",
                             "recurrent",    "associative",     "xl",          "lamemo",
                             "compressive",  "titans-front"}));
  positive("--steps", options.steps, "of training, if a model is trained");
  support::add_saving(app, options.saving);
  app.add_flag("--fresh", options.fresh, "train anew, whatever is there");
  positive("--documents", options.documents, "of the test text, for the attention");
  positive("--words", options.words, "that are read of each");
  positive("--bins", options.bins, "of the histograms of attention");
  positive("--phrase", options.phrase, "words of a phrase whose space is shown");
  add_option(app, "--predict", options.predict,
             "the word, counted from 0, whose prediction the page shows; -1: the one that has most "
             "of the long-term memory",
             from(-1))
      ->capture_default_str();
  app.add_flag("!--no-text", options.text, "only the sorting task");
  app.add_flag("!--no-sorting", options.sorting, "only the text");
  add_option(app, "--basis", options.basis.basis, "N, the basis functions of each sorting model",
             from(1))
      ->capture_default_str();
  positive("--sorting-steps", options.basis.steps, "of training of each");
  positive("--sorting-length", options.basis.task.length, "symbols in a sequence");
  add_option(app, "--seed", options.basis.seed, "of the sorting models")->capture_default_str();
  add_option(app, "--threads", options.threads, "results do not depend on it",
             {1, support::most_at_once});
  return support::parse(app, argc, argv, [&] { require_used(app, options); });
}

void run(const Options& options) {
  if (options.threads > 0) infty::set_num_threads(options.threads);
  support::require_memory("memory_study", options, [](const Options& o) { return bytes_of(o); });
  if (options.sorting) validate(options.basis);
  infty::require(options.dialogues.empty() || is_gpt2(options.model), "memory_study",
                 "--dialogues goes with a --model that is a GPT-2's folder");
  if (options.text && options.model.empty()) require_possible(options);
  const auto lock = support::Lock::folder(options.out);
  lock.remove_unfinished({"attention.csv", "attention.gp", "space.csv", "space.gp", "basis.csv",
                          "basis.gp", "page.html", "retrieved.csv", "retrieved.gp", "looked.csv",
                          "looked.gp", "answers.html"});
  for (const Index basis : options.basis.basis)
    lock.remove_unfinished({basis_checkpoint(options, basis).filename().string()});
  if (options.text) study_text(options);
  if (options.sorting) study_basis(options);
  std::fprintf(stderr, "wrote the figures to %s\n", options.out.c_str());
}

}  // namespace memory_study

int main(int argc, char** argv) {
  return support::run_program("memory_study", [&] {
    memory_study::Options options;
    if (const auto code = memory_study::parse(argc, argv, options)) return *code;
    options.again = support::command_line(argc, argv, {"--fresh"});
    memory_study::run(options);
    return 0;
  });
}
