// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/gather.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/retrieval/continuous_cache.hpp>

#include "../support/files.hpp"
#include "../support/language_model/datastore_of.hpp"
#include "../support/options.hpp"

namespace language_model {

/// What a model's predictions are mixed with: neighbours in a datastore, a cache of the last
/// places, or both.
struct LookUpOptions {
  std::string knn;  ///< a datastore's folder; none: none
  std::string metric = "as-tuned", similarity = "as-tuned";
  Index k = 0;  ///< 0, of the share -1: as tuned
  double temperature = 0, knn_lambda = -1;
  IndexOptions index;
  std::string cache = "none";
  infty::ContinuousCacheConfig cached;
};

/// What `tune-datastore` leaves in a datastore's folder.
struct Tuned {
  std::string metric = "squared_l2", similarity = "searched", tuned_on = "";
  Index k = 1024;
  double temperature = 1, lambda = .25, perplexity = 0, without = 0;
};

template <class See>
void each_field(Tuned& tuned, See&& see) {
  see("metric", tuned.metric);
  see("similarity", tuned.similarity);
  see("tuned_on", tuned.tuned_on);
  see("k", tuned.k);
  see("temperature", tuned.temperature);
  see("lambda", tuned.lambda);
  see("perplexity", tuned.perplexity);
  see("without", tuned.without);
}

inline std::filesystem::path tuned_of(const std::filesystem::path& folder) {
  return folder / "tuned.json";
}

inline infty::SearchMetric metric_of(const std::string& name) {
  infty::require<infty::IoError>(name == "inner_product" || name == "squared_l2", "language_model",
                                 "the datastore's metric is ", name,
                                 ": it must be squared_l2 or inner_product");
  return name == "inner_product" ? infty::SearchMetric::inner_product
                                 : infty::SearchMetric::squared_l2;
}

/// The tuned constants of a datastore, or the paper's where it was not tuned, with what the options
/// say instead.
inline Tuned tuned_by(const LookUpOptions& options) {
  Tuned tuned;
  if (const auto path = tuned_of(options.knn); std::filesystem::exists(path))
    support::read(support::read_json(path), tuned, path.string());
  if (options.metric != "as-tuned") tuned.metric = options.metric;
  if (options.similarity != "as-tuned") tuned.similarity = options.similarity;
  if (options.k > 0) tuned.k = options.k;
  if (options.temperature > 0) tuned.temperature = options.temperature;
  if (options.knn_lambda >= 0) tuned.lambda = options.knn_lambda;
  return tuned;
}

/// Predictions of a model with what is looked up. The cache is mixed in first, then the neighbours.
class LookUp {
 public:
  using Numbers = infty::Tensor<float>;
  using V = infty::Variable<float>;

  /// Throws infty::Error for a datastore that is not there or does not fit.
  LookUp(const LookUpOptions& options, const Tokenizer& tokenizer, support::Model& model) {
    if (!options.knn.empty()) {
      const Tuned tuned = tuned_by(options);
      config_ = {.k = tuned.k,
                 .lambda = tuned.lambda,
                 .temperature = tuned.temperature,
                 .similarity = infty::value_of<infty::KnnSimilarity>(tuned.similarity)};
      config_.validate();
      neighbours_.emplace(options.knn, metric_of(tuned.metric), options.index, tokenizer, &model);
      config_.k = std::min(config_.k, neighbours_->store().size());
      said_ = "k " + std::to_string(config_.k) + ", lambda " + shown(config_.lambda) +
              ", temperature " + shown(config_.temperature) + " of " +
              std::to_string(neighbours_->store().size()) + " keys (" + tuned.metric + ", " +
              neighbours_->index().said() + ")";
    }
    if (options.cache == "none") return;
    cached_ = options.cached;
    cached_->form = infty::value_of<infty::CacheForm>(options.cache);
    cached_->validate();
    said_ += (said_.empty() ? "" : "; ") + options.cache + " cache of " +
             std::to_string(cached_->window) + ", theta " + shown(cached_->theta) +
             (cached_->form == infty::CacheForm::linear ? ", lambda " + shown(cached_->lambda)
                                                        : ", alpha " + shown(cached_->alpha));
  }

  /// What is looked up, in a line.
  const std::string& said() const { return said_; }

  /// Reads a segment; -log p of every target, 0 where it is ignored.
  std::vector<float> losses(const support::Model& model, support::Model::State& state,
                            const TextBatch& batch) {
    const auto read = model.read(state, batch, wanted(false));
    std::vector<Index> targets = batch.targets;
    for (Index& target : targets) target = std::max<Index>(0, target);
    const auto behind = infty::Tensor<Index>::from({std::ssize(targets)}, targets);
    std::vector<float> own = read.losses;
    for (float& x : own) x = -x;
    V x(Numbers::from({std::ssize(own)}, own));
    if (cached_) {
      auto& held = cache_of(batch, read);
      const auto found = cache_->first.read(held, shaped(batch, read), target_tokens(batch));
      if (cached_->form == infty::CacheForm::linear)
        x = infty::interpolated(x, found, behind, cached_->lambda);
      else
        x = reshape(gather(V(infty::globally_normalized(read.scores, found, cached_->alpha)),
                           behind.reshape({behind.size(), 1})),
                    {behind.size()});
    }
    if (neighbours_) x = infty::interpolated(x, neighbours(batch, read), behind, config_.lambda);
    std::vector<float> losses = x.value().to_vector();
    for (std::size_t i = 0; i < losses.size(); ++i)
      losses[i] = batch.targets[i] < 0 ? 0.F : -losses[i];
    return losses;
  }

  /// Reads one token of one row; the logarithms of the next one's probabilities. The cache takes it
  /// in when the next one is known: `remember_last`.
  std::vector<float> scores(const support::Model& model, support::Model::State& state,
                            const TextBatch& batch) {
    const auto read = model.read(state, batch, wanted(true));
    V x(infty::log_probabilities(read.scores));
    if (cached_) {
      last_ = read.hidden;
      auto unknown = cache_of(batch, read);  // nobody is to find what nobody knows yet
      const auto found = cache_->first.read(unknown, shaped(batch, read), target_tokens(batch));
      x = cached_->form == infty::CacheForm::linear
              ? infty::interpolated(x, found, cached_->lambda)
              : V(infty::globally_normalized(read.scores, found, cached_->alpha));
    }
    if (neighbours_) x = infty::interpolated(x, neighbours(batch, read), config_.lambda);
    return x.value().to_vector();
  }

  /// What came behind the token of `scores`.
  void remember_last(Index token) {
    if (!cached_) return;
    const Index d = last_.dim(1);
    cache_->first.read(cache_->second, last_.reshape({1, 1, d}),
                       infty::Tensor<Index>::from({1, 1}, {token}));
  }

 private:
  using Cache = infty::ContinuousCache<float>;

  static std::string shown(double x) { return nlohmann::json(x).dump(); }

  support::Wanted wanted(bool scores) const {
    return {.keys = neighbours_ ? neighbours_->wanted() : infty::FeedInput::none,
            .hidden = cached_.has_value(),
            .scores = scores || (cached_ && cached_->form == infty::CacheForm::global)};
  }

  infty::Retrieved<float> neighbours(const TextBatch& batch, const support::Reading& read) {
    const Numbers queries = neighbours_->queries(batch, read);
    return neighbours_->store().retrieved(queries, neighbours_->search(queries, config_.k),
                                          config_);
  }

  static Numbers shaped(const TextBatch& batch, const support::Reading& read) {
    return read.hidden.reshape({batch.batch, batch.length, read.hidden.dim(1)});
  }

  /// The cache's state in front of a batch.
  Cache::State& cache_of(const TextBatch& batch, const support::Reading& read) {
    if (!cache_) cache_.emplace(Cache(read.hidden.dim(1), *cached_), Cache::State{});
    auto& [cache, state] = *cache_;
    if (std::ssize(batch.reset) == batch.batch || std::ssize(state.seen) != batch.batch)
      state = cache.make_state(batch.batch);
    else
      for (const Index row : batch.reset) infty::reset_row(state, row);
    return state;
  }

  infty::KnnConfig config_;
  std::optional<Retriever> neighbours_;
  std::optional<infty::ContinuousCacheConfig> cached_;
  std::optional<std::pair<Cache, Cache::State>> cache_;
  Numbers last_;  ///< the hidden vector of the token read last
  std::string said_;
};

/// Whether anything is to be looked up.
inline bool looks_up(const LookUpOptions& options) {
  return !options.knn.empty() || options.cache != "none";
}

/// Refuses options that do nothing without another one.
inline void needs(CLI::App& app, const char* other, std::initializer_list<const char*> names) {
  for (const char* const name : names) app.get_option(name)->needs(app.get_option(other));
}

inline constexpr const char* look_up_group = "What is looked up";

/// Adds what is searched for neighbours, and how.
inline void add_search(CLI::App& app, LookUpOptions& o) {
  app.add_option("--knn", o.knn, "mix with the neighbours in a datastore, of build-datastore")
      ->check(CLI::ExistingDirectory)
      ->group(look_up_group);
  app.add_option("--metric", o.metric, "by which neighbours are searched")
      ->capture_default_str()
      ->check(CLI::IsMember({"as-tuned", "squared_l2", "inner_product"}))
      ->group(look_up_group);
  add_index(app, o.index);
  needs(app, "--knn",
        {"--metric", "--index", "--lists", "--probes", "--code", "--sample", "--recompute"});
}

/// Adds how many neighbours are searched for.
inline void add_count(CLI::App& app, LookUpOptions& o) {
  support::add_option(app, "--k", o.k, "neighbours; 0: as tuned", support::from(0))
      ->group(look_up_group);
  needs(app, "--knn", {"--k"});
}

/// Adds what neighbours are compared by.
inline void add_similarity(CLI::App& app, LookUpOptions& o) {
  app.add_option("--similarity", o.similarity, "what their softmax is of")
      ->capture_default_str()
      ->check(CLI::IsMember({"as-tuned", "searched", "inner_product"}))
      ->group(look_up_group);
  needs(app, "--knn", {"--similarity"});
}

/// Adds how neighbours are searched and mixed with a model's predictions.
inline void add_neighbours(CLI::App& app, LookUpOptions& o) {
  add_search(app, o);
  add_count(app, o);
  support::add_option(app, "--knn-lambda", o.knn_lambda, "their share; without: as tuned",
                      {0, .9999})
      ->group(look_up_group);
  support::add_option(app, "--knn-temperature", o.temperature, "of their distances; 0: as tuned",
                      {.least = 0})
      ->group(look_up_group);
  add_similarity(app, o);
  needs(app, "--knn", {"--knn-lambda", "--knn-temperature"});
}

/// Adds what `evaluate` and `generate` look up.
inline void add_look_up(CLI::App& app, LookUpOptions& o) {
  using support::add_option, support::from;
  const char* const group = look_up_group;
  add_neighbours(app, o);
  app.add_option("--cache", o.cache, "mix with a continuous cache of the last places")
      ->capture_default_str()
      ->check(CLI::IsMember({"none", "linear", "global"}))
      ->group(group);
  add_option(app, "--cache-window", o.cached.window, "places that it holds", from(1))
      ->capture_default_str()
      ->group(group);
  add_option(app, "--cache-theta", o.cached.theta, "that its scores are multiplied by",
             {.least = 0})
      ->capture_default_str()
      ->group(group);
  add_option(app, "--cache-lambda", o.cached.lambda, "share of a linear one", {0, .9999})
      ->capture_default_str()
      ->group(group);
  add_option(app, "--cache-alpha", o.cached.alpha, "added to the scores of a global one", {})
      ->capture_default_str()
      ->group(group);
  needs(app, "--cache", {"--cache-window", "--cache-theta", "--cache-lambda", "--cache-alpha"});
}

}  // namespace language_model
