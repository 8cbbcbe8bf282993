// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/retrieval/knn_lm.hpp>

#include "evaluate.hpp"
#include "neighbours_page.hpp"

namespace language_model {

/// What is shown of a text and its neighbours.
struct ShowOptions {
  EvaluateOptions of;  ///< the model, the text and the datastore
  std::filesystem::path out = "neighbours.html";
  Index first = 0, words = 300, neighbours = 8, context = 12;
};

/// The words [first, first + words) of a text, with those of the neighbours that weigh most.
class ShownText {
 public:
  ShownText(const ShowOptions& show, Retriever& retriever, const Tokenizer& tokenizer,
            const infty::KnnConfig& config)
      : show_(show),
        retriever_(retriever),
        tokenizer_(tokenizer),
        config_(config),
        source_(retriever.origin(), tokenizer, show.of.look_up.knn) {}

  const std::vector<ShownWord>& words() const { return words_; }

  /// Takes in what the model made of a batch of one row. The losses are the model's own.
  void add(const TextBatch& batch, const support::Reading& read) {
    const auto queries = retriever_.queries(batch, read);  // a model that reads along reads all
    const Index begin = std::max<Index>(0, show_.first - batch.first.front());
    if (begin >= batch.length) return;
    const auto asked = queries.slice(begin, batch.length);
    const auto nearest = retriever_.search(asked, config_.k);
    const auto found = retriever_.store().retrieved(asked, nearest, config_);
    const auto weights = infty::retrieved_weights(found);
    std::vector<Index> targets(batch.targets.begin() + begin, batch.targets.end());
    const auto said = infty::target_probabilities(
        weights, found.tokens, infty::Tensor<Index>::from({std::ssize(targets)}, targets));
    const auto shares = infty::retrieved_shares(found, config_.lambda);
    for (Index i = 0; i < std::ssize(targets); ++i) {
      const auto target = static_cast<TokenId>(targets[static_cast<std::size_t>(i)]);
      if (target < 0) continue;
      ShownWord word;
      word.text = tokenizer_.decode(std::span(&target, 1));
      word.model = std::exp(-double{read.losses[static_cast<std::size_t>(begin + i)]});
      word.neighbours = std::as_const(said).data()[i];
      const double share = std::as_const(shares).data()[i];
      word.mixed = share * word.neighbours + (1 - share) * word.model;
      const float* const weight = weights.data() + i * config_.k;
      const Index* const entry = nearest.indices.data() + i * config_.k;
      std::vector<Index> order(static_cast<std::size_t>(config_.k));
      std::iota(order.begin(), order.end(), Index{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](Index a, Index b) { return weight[a] > weight[b]; });
      order.resize(std::min(order.size(), static_cast<std::size_t>(show_.neighbours)));
      for (const Index j : order)
        if (entry[j] >= 0)
          word.nearest.push_back({weight[j], source_.context(entry[j], show_.context)});
      words_.push_back(std::move(word));
    }
  }

 private:
  const ShowOptions& show_;
  Retriever& retriever_;
  const Tokenizer& tokenizer_;
  infty::KnnConfig config_;
  StoreSource source_;
  std::vector<ShownWord> words_;
};

/// Writes a page that shows what was looked up for each word of a part of a text.
inline void show_neighbours(const ShowOptions& show) {
  const EvaluateOptions& options = show.of;
  const LookUpOptions& o = options.look_up;
  infty::require(!o.knn.empty(), "show-neighbours", "it needs --knn, a datastore's folder");
  auto [s, group] = changed_settings(options);
  support::use_products(s.products);
  s.evaluation_batch = 1;  // the text in its order
  const Tokenizer tokenizer(s.level, options.model);
  auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  auto& stream = split.stream;
  infty::require(show.first < std::ssize(stream.tokens), "show-neighbours", "--first is ",
                 show.first, ": the text has ", stream.tokens.size(), " tokens");
  const support::InterruptGuard interrupt;
  const auto stop = [](Index) {
    support::stop_if_interrupted([] { return std::string("stopped; nothing is written"); });
  };
  const auto model = load_model(s, tokenizer, options.model, group);
  const Tuned tuned = tuned_by(o);
  Retriever retriever(o.knn, metric_of(tuned.metric), o.index, tokenizer, model.get());
  infty::KnnConfig config{.k = std::min(tuned.k, retriever.store().size()),
                          .lambda = tuned.lambda,
                          .temperature = tuned.temperature,
                          .similarity = infty::value_of<infty::KnnSimilarity>(tuned.similarity)};
  config.validate();
  const bool itself = fingerprint_of(stream) == retriever.origin().stream;
  if (!s.spalm.empty()) split.retrieved = look_up_tokens(s, tokenizer, split, stop);
  if (show.words < std::ssize(stream.tokens) - show.first) {
    stream.tokens.resize(static_cast<std::size_t>(show.first + show.words));
    const auto end = std::lower_bound(stream.documents.begin(), stream.documents.end(),
                                      std::ssize(stream.tokens));
    stream.documents.erase(end, stream.documents.end());
  }
  ShownText shown(show, retriever, tokenizer, config);
  evaluate_shown("read", *model, s, tokenizer, split, stop,
                 [&](support::Model::State& state, const TextBatch& batch) {
                   auto read = model->read(state, batch, {.keys = retriever.wanted()});
                   shown.add(batch, read);
                   return std::move(read.losses);
                 });
  const std::string text = options.text.empty() ? name : options.text;
  std::vector<std::string> said{"Words " + std::to_string(show.first + 1) + " to " +
                                    std::to_string(show.first + std::ssize(shown.words())) +
                                    " of " + text + ", predicted by the model in " +
                                    options.model.string() + " (" + support::model_name(s) + ")",
                                std::to_string(config.k) + " neighbours in " + o.knn + ", of " +
                                    std::to_string(retriever.store().size()) + " keys, by " +
                                    retriever.index().said() + "; their share " +
                                    nlohmann::json(config.lambda).dump() + ", temperature " +
                                    nlohmann::json(config.temperature).dump()};
  if (itself)
    said.emplace_back("This text is the one in the datastore, where every word finds itself.");
  support::write_file(show.out, neighbours_page(shown.words(), said));
  std::printf("%zu words with their neighbours in %s\n", shown.words().size(), show.out.c_str());
}

/// The options of `show-neighbours`.
inline void add_show(CLI::App& app, ShowOptions& o) {
  using support::add_option, support::from;
  add_model(app, o.of);
  add_split(app, o.of);
  add_neighbours(app, o.of.look_up);
  app.add_option("--out", o.out, "the page")->capture_default_str();
  add_option(app, "--first", o.first, "token of the text that is shown first, from 0", from(0))
      ->capture_default_str();
  add_option(app, "--words", o.words, "tokens that are shown", {1, 100000})->capture_default_str();
  add_option(app, "--neighbours", o.neighbours, "of each that are shown", {1, 1000})
      ->capture_default_str();
  add_option(app, "--context", o.context, "tokens around a neighbour, in front and behind",
             {1, 1000})
      ->capture_default_str();
}

}  // namespace language_model
