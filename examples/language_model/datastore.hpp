// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <infty/retrieval/knn_tuning.hpp>

#include "../support/csv.hpp"
#include "evaluate.hpp"

namespace language_model {

/// What a datastore is built of, beside a model and a text.
struct BuildOptions {
  EvaluateOptions of = {.split = "train", .text = "", .look_up = {}};  ///< the model and the text
  std::filesystem::path out = "datastore";
  std::string key = "normed", metric = "squared_l2";
  IndexOptions index;
};

/// What is tried in tuning.
struct TuneOptions {
  EvaluateOptions of = {.split = "valid", .text = "", .look_up = {}};  ///< the model and the text
  std::vector<Index> k{1, 4, 16, 64, 256, 1024};
  std::vector<double> temperatures{1, 3, 10, 30, 100, 300, 1000};
};

/// Reads a text with a model and keeps its keys and the tokens behind them in a folder. The same
/// command goes on with what was interrupted: the text is read again, and what is there is not
/// written again.
inline void build_datastore(const BuildOptions& build) {
  const EvaluateOptions& options = build.of;
  const auto [s, group] = changed_settings(options);
  infty::require(s.spalm.empty(), "build-datastore",
                 "the model was trained with --spalm, and looks things up itself: keys are those "
                 "of a model that does not");
  const Tokenizer tokenizer(s.level, options.model);
  const auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  const auto model = load_model(s, tokenizer, options.model, group);
  const auto& stream = split.stream;
  const StoreOrigin origin{
      .model = std::filesystem::canonical(options.model).string(),
      .weights = fingerprint_of(*model),
      .vocabulary = tokenizer.fingerprint(),
      .text = options.text.empty() ? name : std::filesystem::canonical(options.text).string(),
      .stream = fingerprint_of(stream),
      .tokens = std::ssize(stream.tokens),
      .key = build.key,
      .segment = s.segment,
      .batch = s.evaluation_batch,
      .memory_length = s.memory_length,
      .compressed = compressed_length(s),
      .group = group,
      .documents = s.documents};
  const std::string about = support::json_of(origin).dump();
  const auto metric = metric_of(build.metric);
  config_of(build.index, metric, s.model.model_dim);  // refused before the text is read
  const support::InterruptGuard interrupt;
  const auto make_index = [&](const infty::Datastore<float>& of) {
    if (build.index.kind == "exact") return;
    std::printf("%s\n", StoreIndex(of, build.out, metric, build.index).said().c_str());
  };
  auto store = infty::Datastore<float>::build(build.out, s.model.model_dim, about);
  const Index there = store.size();
  if (there == origin.tokens) {
    std::printf("%s is finished: %lld keys\n", build.out.c_str(), static_cast<long long>(there));
    return make_index(store);
  }
  if (there > 0) std::fprintf(stderr, "goes on behind %lld keys\n", static_cast<long long>(there));
  const auto start = std::chrono::steady_clock::now();
  Index entry = 0;
  const auto keep = [&](support::Model::State& state, const TextBatch& batch) {
    auto read = model->read(state, batch, {.keys = feed_input(build.key)});
    const Index d = read.keys.dim(1);
    for (Index place = 0; place < std::ssize(batch.targets); ++place) {
      const Index target = batch.targets[static_cast<std::size_t>(place)];
      if (target < 0 || entry++ < there) continue;
      store.append(std::as_const(read.keys).data() + place * d, &target, 1);
    }
    return std::move(read.losses);
  };
  const auto score = evaluate_shown(
      "build", *model, s, tokenizer, split,
      [&](Index) {
        support::stop_if_interrupted([&] {
          return std::to_string(store.finished()) + " keys are safe in " + build.out.string() +
                 "; the same command goes on";
        });
      },
      keep);
  store.flush();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("%lld keys of %lld numbers in %s, %.0f tokens/s; perplexity of the text %.3f\n",
              static_cast<long long>(store.size()), static_cast<long long>(store.dim()),
              build.out.c_str(), static_cast<double>(entry) / time.count(), score.perplexity());
  make_index(store);
}

/// Reads a text once, finds the k, temperature and share with which the neighbours help most, and
/// leaves them, and what all others give, in the datastore's folder.
inline void tune_datastore(const TuneOptions& tune) {
  const EvaluateOptions& options = tune.of;
  const auto& o = options.look_up;
  infty::require(!o.knn.empty(), "tune-datastore", "it needs --knn, a datastore's folder");
  const auto [s, group] = changed_settings(options);
  const Tokenizer tokenizer(s.level, options.model);
  auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  const auto model = load_model(s, tokenizer, options.model, group);
  Tuned tuned = tuned_by(o);
  Retriever retriever(o.knn, metric_of(tuned.metric), o.index, tokenizer, model.get());
  infty::require(
      fingerprint_of(split.stream) != retriever.origin().stream, "tune-datastore",
      "the text is the one in the datastore, where everything would find itself: tune on "
      "another");
  std::vector<Index> ks;
  for (const Index k : tune.k) ks.push_back(std::min(k, retriever.store().size()));
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  infty::KnnTuning tuning(ks, tune.temperatures);
  const infty::KnnConfig config{
      .k = tuning.most(), .similarity = infty::value_of<infty::KnnSimilarity>(tuned.similarity)};
  const support::InterruptGuard interrupt;
  const auto stop = [](Index) {
    support::stop_if_interrupted(
        [] { return std::string("stopped tuning; nothing is kept of it"); });
  };
  if (!s.spalm.empty()) split.retrieved = look_up_tokens(s, tokenizer, split, stop);
  const auto score =
      evaluate_shown("tune", *model, s, tokenizer, split, stop,
                     [&](support::Model::State& state, const TextBatch& batch) {
                       auto read = model->read(state, batch, {.keys = retriever.wanted()});
                       const auto queries = retriever.queries(batch, read);
                       const auto found = retriever.search(queries, config.k);
                       tuning.add(infty::retrieved(retriever.store(), queries, found, config),
                                  std::span<const float>(read.losses), batch.targets);
                       return std::move(read.losses);
                     });
  const auto all = tuning.tried();
  support::Csv csv("k,temperature,lambda,perplexity");
  for (const auto& one : all)
    for (Index i = 0; i <= 20; ++i) {
      const double lambda = i < 20 ? .05 * static_cast<double>(i) : one.lambda;
      csv.row(one.k, one.temperature, lambda,
              std::exp(tuning.nats(one.k, one.temperature, lambda)));
    }
  const auto best = tuning.best();
  tuned.tuned_on = options.text.empty() ? name : options.text;
  tuned.k = best.k;
  tuned.temperature = best.temperature;
  tuned.lambda = best.lambda;
  tuned.perplexity = std::exp(best.nats);
  tuned.without = score.perplexity();
  const std::filesystem::path folder = o.knn;
  support::write_file(folder / "tuned.csv", csv.text());
  support::write_file(tuned_of(folder), support::json_of(tuned).dump(2) + '\n');
  std::printf("| k | temperature | best lambda | perplexity |\n|---|---|---|---|\n");
  for (const auto& one : all)
    std::printf("| %lld | %g | %.3f | %.3f |\n", static_cast<long long>(one.k), one.temperature,
                one.lambda, std::exp(one.nats));
  std::printf("%s: perplexity %.3f without, %.3f with k %lld, temperature %g, lambda %.4f\n",
              tuned.tuned_on.c_str(), tuned.without, tuned.perplexity,
              static_cast<long long>(best.k), best.temperature, best.lambda);
}

/// The options of `build-datastore`.
inline void add_build(CLI::App& app, BuildOptions& b) {
  add_model(app, b.of);
  add_text(app, b.of);
  app.add_option("--out", b.out, "folder of the datastore")->capture_default_str();
  app.add_option("--key", b.key,
                 "input of the last feed-forward layer: behind the norm in front of it, or before")
      ->capture_default_str()
      ->check(CLI::IsMember(key_names));
  app.add_option("--metric", b.metric, "by which an index of FAISS's searches")
      ->capture_default_str()
      ->check(CLI::IsMember({"squared_l2", "inner_product"}));
  add_index(app, b.index);
}

/// The options of `tune-datastore`.
inline void add_tune(CLI::App& app, TuneOptions& t) {
  add_model(app, t.of);
  add_text(app, t.of);
  add_look_up(app, t.of.look_up);
  support::add_option(app, "--try-k", t.k, "neighbours that are tried", support::from(1))
      ->capture_default_str();
  support::add_option(app, "--try-temperatures", t.temperatures, "temperatures that are tried",
                      {1e-9, 1e12})
      ->capture_default_str();
}

}  // namespace language_model
