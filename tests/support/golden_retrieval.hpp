// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/gather.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/nn/beam_search.hpp>
#include <infty/nn/cross_entropy.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/retrieval/continuous_cache.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/knn_lm.hpp>
#include <infty/retrieval/spalm.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays cases of what is looked up: `knnlm`, `spalm` and `cache`.
template <class T, class B>
class RetrievalReplay {
  using V = Variable<T, B>;
  using Numbers = Tensor<T, B>;
  using Tokens = Tensor<Index, B>;

 public:
  explicit RetrievalReplay(GoldenCase& file) : file_(file) {}

  /// A datastore and its search: the queries are [length, batch, d], the distributions [batch,
  /// length, vocabulary].
  Comparison knn_lm() {
    const Datastore<T> store = datastore();
    const bool l2 = file_.text("metric") == "l2";
    if (!l2 && file_.text("metric") != "ip") file_.fail("metric is ", file_.text("metric"));
    const ExactIndex<T, B> index(store,
                                 l2 ? SearchMetric::squared_l2 : SearchMetric::inner_product);
    const KnnConfig config{.k = file_.count("k"),
                           .lambda = file_.number("lambda"),
                           .similarity = file_.text("similarity") == "dot"
                                             ? KnnSimilarity::inner_product
                                             : KnnSimilarity::searched};
    const Shape& asked = shape("query", 3);
    const Recorded query = file_.read("query").swapped(0);  // [batch, length, d]
    const Index places = asked[0] * asked[1], vocabulary = shape("lm_log_prob", 3)[2];
    file_.require_agrees("length", asked[0]);
    file_.require_agrees("batch", asked[1]);
    file_.require_agrees("key_dim", asked[2]);
    file_.require_agrees("entries", store.size());
    file_.require_agrees("vocabulary", vocabulary);
    const auto queries = flat(query, {places, asked[2]});
    const auto neighbours = index.search(queries, config.k);
    const Shape found{asked[1], asked[0], config.k};
    see_tokens("neighbour.index", record_of(neighbours.indices.reshape(found)).swapped(0));
    Recorded scores = record_of(neighbours.scores.reshape(found)).swapped(0);
    if (l2)
      for (double& x : scores.values) x = -x;
    see("neighbour.score", scores);

    const auto kept = retrieved(store, queries, neighbours, config);
    const Numbers p = token_probabilities(retrieved_weights(kept), kept.tokens, vocabulary);
    Recorded logs = record_of(p);
    const double none = -10000;  // as the program writes log 0
    for (double& x : logs.values) x = x > 0 ? std::log(x) : none;
    see("knn_log_prob", logs);
    const V own(flat(file_.read("lm_log_prob"), {places, vocabulary}));
    see("log_prob", record_of(interpolated(own, kept, config.lambda).value()));
    const Tokens targets = tokens("target", {places});
    see("target_log_prob",
        record_of(interpolated(targets_of(own, targets), kept, targets, config.lambda).value()));
    return done();
  }

  /// A search, and what the gate makes of hidden vectors and of the tokens found.
  Comparison spalm() {
    const Datastore<T> store = datastore();
    const bool l2 = file_.text("metric") == "l2";
    if (!l2 && file_.text("metric") != "inner") file_.fail("metric is ", file_.text("metric"));
    const ExactIndex<T, B> index(store,
                                 l2 ? SearchMetric::squared_l2 : SearchMetric::inner_product);
    const Shape& asked = shape("query", 3);
    const Index k = file_.count("k"), batch = asked[0], length = asked[1], places = batch * length;
    const Index d = shape("param.embedding", 2)[1], vocabulary = file_.shape("param.embedding")[0];
    file_.require_agrees("length", length);
    file_.require_agrees("batch", batch);
    file_.require_agrees("model_dim", d);
    file_.require_agrees("key_dim", asked[2]);
    file_.require_agrees("entries", store.size());
    file_.require_agrees("vocabulary", vocabulary);
    const auto neighbours = index.search(flat(file_.read("query"), {places, asked[2]}), k);
    see_tokens("neighbour.index", record_of(neighbours.indices));
    see_tokens("neighbour.token", record_of(store.tokens(neighbours.indices)));

    const Tokens given = tokens("neighbour.token", {batch, length, k});
    SpalmGate<T, B> gate(d, Random(1));
    set_parameter(file_, "param.gate", file_.read("param.gate"), gate.weight);
    const V table(flat(file_.read("param.embedding"), {vocabulary, d}), true);
    const V hidden(flat(file_.read("hidden"), {batch, length, d}), true);
    Tape tape;
    const auto mixture = gate.forward(hidden, embedding(given, table));
    const V logits = linear(mixture.mixed, table, V());
    see("attention", record_of(mixture.attention.value()));
    see("memory", record_of(mixture.memory.value()));
    see("gate", record_of(mixture.gate.value()));
    see("mixed", record_of(mixture.mixed.value()));
    // Every token's loss is a loss of its own: its gradient times its weight is what is recorded.
    const V every = -all_losses(logits);
    see("log_prob", record_of(every.value()));
    const Tokens targets = tokens("target", {batch, length});
    see("nll", record_of(token_losses(logits, targets).value()));
    tape.backward(sum(every * V(flat(file_.read("loss_weight"), logits.shape()))));
    see("grad.hidden", record_of(hidden.grad()));
    see("grad.embedding", record_of(table.grad()));
    see("grad.gate", record_of(gate.weight.grad()));
    return done();
  }

  /// A cache, read in two segments.
  Comparison cache() {
    const Shape& hidden = shape("hidden", 3);
    const Index batch = hidden[0], length = hidden[1], d = hidden[2];
    const Index vocabulary = shape("lm_logits", 3)[2];
    const bool linear = file_.text("form") == "linear";
    if (!linear && file_.text("form") != "global") file_.fail("form is ", file_.text("form"));
    file_.require_agrees("batch", batch);
    file_.require_agrees("length", length);
    file_.require_agrees("hidden_dim", d);
    file_.require_agrees("vocabulary", vocabulary);
    const ContinuousCacheConfig config{
        .form = linear ? CacheForm::linear : CacheForm::global,
        .window = file_.count("size"),
        .theta = file_.number("theta"),
        .lambda = file_.number("lambda", 0),
        .alpha = file_.number("alpha", 0),
        .wait_until_full = file_.text("start") != "with the first pair"};
    const ContinuousCache<T, B> cache(d, config);
    const V all_hidden(flat(file_.read("hidden"), hidden));
    const V all_logits(flat(file_.read("lm_logits"), {batch, length, vocabulary}));
    const auto targets = file_.read_tokens("target");
    if (file_.shape("target") != Shape{batch, length})
      file_.fail("target is ", file_.shape("target"));
    auto state = cache.make_state(batch);
    V log, mass;
    for (const auto& [begin, end] : {std::pair{Index{0}, length / 2}, {length / 2, length}}) {
      if (begin == end) continue;
      const Index places = batch * (end - begin);
      const V h = narrow(all_hidden, begin, end), x = narrow(all_logits, begin, end);
      std::vector<Index> behind;
      for (Index b = 0; b < batch; ++b)
        for (Index t = begin; t < end; ++t)
          behind.push_back(targets[static_cast<std::size_t>(b * length + t)]);
      const auto target = Tokens::from({batch, end - begin}, behind);
      const auto found = cache.read(state, h.value(), target);
      const Numbers flat_logits = x.value().reshape({places, vocabulary});
      const V model(log_probabilities(flat_logits));
      const V mixed = linear ? interpolated(model, found, config.lambda)
                             : V(globally_normalized(flat_logits, found, config.alpha));
      const V said(token_probabilities(retrieved_weights(found), found.tokens, vocabulary));
      const Shape piece{batch, end - begin, vocabulary};
      log = log.size() == 0 ? reshape(mixed, piece) : concat(log, reshape(mixed, piece));
      mass = mass.size() == 0 ? reshape(said, piece) : concat(mass, reshape(said, piece));
    }
    see("log_prob", record_of(log.value()));
    see("cache_prob", record_of(mass.value()));
    see("target_log_prob", record_of(targets_of(reshape(log, {batch * length, vocabulary}),
                                                tokens("target", {batch * length}))
                                         .value()));
    return done();
  }

 private:
  const Shape& shape(const std::string& name, Index rank) const {
    const Shape& shape = file_.shape(name);
    if (shape.rank() != rank) file_.fail(name, " is ", shape, ": it must have rank ", rank);
    return shape;
  }

  /// Recorded numbers in another shape.
  Numbers flat(Recorded numbers, const Shape& shape) const {
    if (numbers.shape.size() != shape.size())
      file_.fail("a tensor is ", numbers.shape, ", ", shape, " fits the rest of the case");
    numbers.shape = shape;
    return numbers.template tensor<T, B>();
  }

  Tokens tokens(const std::string& name, const Shape& shape) {
    const auto numbers = file_.read_tokens(name);
    if (std::ssize(numbers) != shape.size())
      file_.fail(name, " is ", file_.shape(name), ", ", shape, " fits the rest of the case");
    return Tokens::from(shape, numbers);
  }

  Datastore<T> datastore() {
    const Shape& keys = shape("keys", 2);
    Datastore<T> store(keys[1], 8);
    store.append(flat(file_.read("keys"), keys), file_.read_tokens("values"));
    return store;
  }

  /// The losses of all tokens of logits [..., V], each as if it were the target.
  static V all_losses(const V& logits) {
    const Index n = logits.dim(-1), rows = logits.size() / n;
    const V x = reshape(logits, {rows, n});
    std::vector<Index> all;
    for (Index i = 0; i < rows; ++i)
      for (Index token = 0; token < n; ++token) all.push_back(token);
    std::vector<Index> repeated;
    for (Index i = 0; i < rows; ++i)
      repeated.insert(repeated.end(), static_cast<std::size_t>(n), i);
    const V wide = embedding(Tokens::from({rows, n}, repeated), x);  // [rows, n, n]
    return reshape(token_losses(wide, Tokens::from({rows, n}, all)), logits.shape());
  }

  /// [Q, V] and [Q] -> [Q].
  static V targets_of(const V& x, const Tokens& targets) {
    return reshape(gather(x, targets.reshape({targets.size(), 1})), {targets.size()});
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }

  void see_tokens(const std::string& name, const Recorded& ours) {
    if (!file_.has(name)) return;
    const auto theirs = file_.read_tokens(name);
    result_.see(file_, name, ours,
                {file_.shape(name), std::vector<double>(theirs.begin(), theirs.end())});
  }

  Comparison done() {
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

  GoldenCase& file_;
  Comparison result_;
};

/// Replays a case of the kinds `knnlm`, `spalm` and `cache`. @throws infty::IoError
template <class T, class B>
Comparison replay_retrieval(GoldenCase& file) {
  RetrievalReplay<T, B> replay(file);
  const std::string& kind = file.text("kind");
  return kind == "knnlm" ? replay.knn_lm() : kind == "spalm" ? replay.spalm() : replay.cache();
}

}  // namespace infty::tests
