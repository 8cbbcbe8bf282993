// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <infty/lifelong/episodic_config.hpp>
#include <infty/lifelong/experience_replay.hpp>
#include <infty/lifelong/local_adaptation.hpp>
#include <infty/lifelong/online_ewc.hpp>

#include "../support/products.hpp"
#include "../support/ranges.hpp"
#include "../support/settings.hpp"

namespace lifelong {

using infty::Index;

/// The words that stand for methods, in the order of the table.
inline const std::vector<std::string> method_names{
    "sequential", "ewc",       "a-gem",  "replay",  "mbpa",    "mbpa++-random",
    "mbpa++",     "meta-mbpa", "oml-er", "maml-er", "anml-er", "multitask"};

/// Those that learn as one of them and answer as another, which are compared where they are named.
inline const std::vector<std::string> crossed_names{"mbpa++-once", "meta-mbpa-each"};

/// Everything that decides which numbers come out.
struct Settings {
  std::vector<std::string> methods = method_names;
  std::vector<Index> orders{1, 2};
  std::vector<std::uint64_t> seeds{1, 2, 3};

  std::string texts, dialogues, articles;  ///< empty: made tasks
  std::vector<std::string> kinds{"game", "episode", "album",     "song",
                                 "film", "highway", "hurricane", "species"};
  std::vector<std::string> sets;  ///< folders, a task each; none: the texts
  std::string relations, relation_names;
  Index candidates = 0, spans = 0;
  Index tasks = 4, classes = 3, training = 1000, test = 40, length = 16;
  Index topic_words = 12, class_words = 4, fillers = 40, max_vocabulary = 4000;
  double topic_share = .3, class_share = .2;

  Index pretrain = 0, pretrain_batch = 32;
  double pretrain_rate = 1e-3;

  Index width = 32, layers = 1, heads = 2, feed_forward = 64, batch = 10;
  double rate = 3e-3, clip = 1;
  std::string products = support::products_now();

  infty::EpisodicConfig memory{.capacity = 100'000};
  std::string writing = "usual";
  infty::SparseReplayConfig replay{.interval = 20, .rate = .5};
  infty::LocalAdaptationConfig adaptation{
      .neighbours = 16, .steps = 10, .learning_rate = .1, .lambda = .001};
  infty::OnlineEwcConfig ewc{.lambda = 1000, .gamma = .95, .interval = 300, .sample = 100};
  Index agem_sample = 32, together = 10, support = 1;
  double inner_rate = .05;
};

/// Calls see(group, name, field, help, choice...) for every setting.
template <class See>
void each_setting(Settings& s, See&& see) {
  const char* const run = "What to compare";
  see(run, "methods", s.methods, "in this order", [] {
    auto all = method_names;
    all.insert(all.end(), crossed_names.begin(), crossed_names.end());
    return all;
  }());
  see(run, "orders", s.orders, "of the tasks: 1 as they are, others shuffled by this number");
  see(run, "seeds", s.seeds, "of weights, made texts, and what methods draw");

  const char* const stream = "The stream";
  see(stream, "texts", s.texts,
      "a folder with a text a class, of which passages are taken; empty: made texts");
  see(stream, "dialogues", s.dialogues,
      "a file of conversations as `dialogue prepare` writes it: which document one is about");
  see(stream, "articles", s.articles,
      "a file of articles as WikiText has them: which of --kinds one is of");
  see(stream, "kinds", s.kinds,
      "words, a class each: an article whose first sentence has one of them alone is of that kind");
  see(stream, "sets", s.sets,
      "folders with train.csv and test.csv of a published set, a task each: lines of "
      "label,\"title\",\"text\"");
  see(stream, "candidates", s.candidates,
      "other relations that stand behind each sentence with its own, which is to be found: "
      "relation "
      "extraction, of made sentences or of --relations; 0: none");
  see(stream, "relations", s.relations,
      "FewRel's file of sentences by relation, such as train_wiki.json; empty: made sentences");
  see(stream, "relation-names", s.relation_names,
      "their names and descriptions, such as pid2name.json; empty: what the sentences' file calls "
      "them");
  see(stream, "spans", s.spans,
      "questions that a span of a passage answers, made ones with answers of at most so many "
      "words, "
      "or those of --sets: folders of SQuAD, QuAC or TriviaQA; 0: classes");
  see(stream, "tasks", s.tasks, "of made texts, kinds of question, or clusters of relations");
  see(stream, "classes", s.classes, "of a task");
  see(stream, "training", s.training, "examples of a task to learn");
  see(stream, "test", s.test, "others to ask about");
  see(stream, "length", s.length, "words of an example, of question and passage together");
  see(stream, "topic-words", s.topic_words,
      "of made texts, that tell the task, of each task; or that ask");
  see(stream, "class-words", s.class_words,
      "that tell the class within it, in all tasks the same; or that a kind's answers begin with, "
      "and as many that they end with");
  see(stream, "fillers", s.fillers, "that tell nothing");
  see(stream, "topic-share", s.topic_share, "of the words of a text that tell the task");
  see(stream, "class-share", s.class_share, "that tell the class");
  see(stream, "max-vocabulary", s.max_vocabulary, "different words of given texts; 0: all");

  const char* const reading = "Reading beforehand";
  see(reading, "pretrain", s.pretrain,
      "steps in which the encoder learns to guess masked words, before it is asked anything; 0: it "
      "begins from nothing");
  see(reading, "pretrain-batch", s.pretrain_batch, "texts of such a step");
  see(reading, "pretrain-rate", s.pretrain_rate, "of Adam in these steps, at most");

  const char* const model = "The model";
  see(model, "width", s.width, "of vectors");
  see(model, "layers", s.layers, "blocks, one above the other");
  see(model, "heads", s.heads, "of attention");
  see(model, "feed-forward", s.feed_forward, "width of the inner layer");
  see(model, "batch", s.batch, "examples a step");
  see(model, "rate", s.rate, "of Adam");
  see(model, "clip", s.clip, "greatest global norm of the gradients");
  support::each_products_setting(model, s.products, see);

  const char* const memory = "The episodic memory";
  see(memory, "writing", s.writing,
      "which examples are written; usual: diversity for meta-mbpa, probability for others; "
      "forgetting: "
      "those that a model before has known and lost most often",
      "usual", "probability", "diversity", "uncertainty", "forgetting");
  support::each_chosen(memory, s.memory,
                       {{"capacity"}, {"rate", "write-rate"}, {"beta", "diversity-beta"}}, see);
  support::each_chosen(memory, s.replay, {{"interval"}, {"rate", "replay-rate"}}, see);

  const char* const methods = "The methods";
  support::each_chosen(methods, s.adaptation,
                       {{"neighbours"},
                        {"steps", "adaptation-steps"},
                        {"learning_rate", "adaptation-rate"},
                        {"lambda"},
                        {"part", "adaptation-part"}},
                       see);
  support::each_chosen(methods, s.ewc,
                       {{"lambda", "ewc-lambda"},
                        {"gamma", "ewc-gamma"},
                        {"interval", "ewc-interval"},
                        {"sample", "ewc-sample"}},
                       see);
  see(methods, "agem-sample", s.agem_sample, "examples that a step of A-GEM is held against");
  see(methods, "together", s.together, "examples of meta-mbpa that adapt together in training");
  see(methods, "support", s.support, "batches of an episode of oml-er, maml-er and anml-er");
  see(methods, "inner-rate", s.inner_rate, "of their inner loop");
}

/// Throws infty::ValueError that names the first setting out of its range.
inline void validate(const Settings& s) {
  support::validate_ranges("lifelong", s);
  support::require_some_once("lifelong", "methods", s.methods);
  support::require_some_once("lifelong", "orders", s.orders);
  support::require_some_once("lifelong", "seeds", s.seeds);
  s.memory.validate();
  s.replay.validate();
  s.adaptation.validate();
  s.ewc.validate();
  const std::vector<std::pair<const char*, bool>> streams{
      {"--texts", !s.texts.empty()},       {"--dialogues", !s.dialogues.empty()},
      {"--articles", !s.articles.empty()}, {"--sets", !s.sets.empty()},
      {"--candidates", s.candidates > 0},  {"--spans", s.spans > 0 && s.sets.empty()}};
  const char* first = nullptr;
  for (const auto& [name, given] : streams) {
    if (!given) continue;
    infty::require(first == nullptr, "lifelong", first, " and ", name,
                   " are given: they are different streams");
    first = name;
  }
  if (!s.articles.empty()) support::require_some_once("lifelong", "kinds", s.kinds);
  infty::require(s.candidates > 0 || (s.relations.empty() && s.relation_names.empty()), "lifelong",
                 "--relations and --relation-names go with --candidates, 1 or more");
  infty::require(s.relation_names.empty() || !s.relations.empty(), "lifelong",
                 "--relation-names goes with --relations");
  infty::require(s.width % s.heads == 0, "lifelong", "--width is ", s.width,
                 ": it must be a multiple of --heads ", s.heads);
  infty::require(s.topic_share + s.class_share <= 1, "lifelong",
                 "--topic-share and --class-share are ", s.topic_share, " and ", s.class_share,
                 ": together they must be at most 1");
  infty::require(s.clip > 0, "lifelong", "--clip is ", s.clip, ": it must be positive");
}

}  // namespace lifelong
