// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/knn_tuning.hpp>

#include "../support/csv.hpp"
#include "evaluate.hpp"

namespace language_model {

/// What is tried in tuning.
struct TuneOptions {
  EvaluateOptions of = {.split = "valid", .text = "", .look_up = {}};  ///< the model and the text
  std::vector<Index> k{1, 4, 16, 64, 256, 1024};
  std::vector<double> temperatures{1, 3, 10, 30, 100, 300, 1000};
  std::vector<Index> sizes;  ///< of the datastore, beside its own
};

namespace detail {

/// What is tried with the first `size` keys of a datastore.
struct SizedTuning {
  Index size;
  infty::KnnTuning tuning;

  /// Those of all sizes that are asked for, and at the end that of the whole datastore.
  static std::vector<SizedTuning> all(const TuneOptions& tune, Index whole) {
    std::vector<Index> sizes{whole};
    for (const Index size : tune.sizes) sizes.push_back(std::min(size, whole));
    std::vector<SizedTuning> out;
    for (const Index size : sorted_once(sizes)) {
      std::vector<Index> ks;
      for (const Index k : tune.k) ks.push_back(std::min(k, size));
      out.push_back({size, infty::KnnTuning(sorted_once(ks), tune.temperatures)});
    }
    return out;
  }

 private:
  static std::vector<Index> sorted_once(std::vector<Index> all) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
};

/// What figures of perplexities have in common.
inline std::string perplexity_figure(const std::string& name, const std::string& title,
                                     const std::string& x, double without) {
  return "set terminal pngcairo size 800,460 font 'sans,11'\nset output '" + name +
         ".png'\nset datafile separator ','\nset border 3\nset tics nomirror out\n"
         "set grid y lc '#e7e5e4'\nset key outside right\nset title '" +
         title + "'\nset xlabel '" + x +
         "'\nset ylabel 'perplexity'\nwithout = " + nlohmann::json(without).dump() + '\n';
}

/// Leaves the best perplexity with so many keys, as numbers and a figure.
inline void write_sizes(const std::filesystem::path& folder, const std::vector<SizedTuning>& sizes,
                        double without) {
  support::Csv csv("keys,k,temperature,lambda,perplexity");
  std::printf("\n| keys | k | temperature | best lambda | perplexity |\n|---|---|---|---|---|\n");
  for (const SizedTuning& one : sizes) {
    const auto best = one.tuning.best();
    csv.row(one.size, best.k, best.temperature, best.lambda, std::exp(best.nats));
    std::printf("| %lld | %lld | %g | %.3f | %.3f |\n", static_cast<long long>(one.size),
                static_cast<long long>(best.k), best.temperature, best.lambda, std::exp(best.nats));
  }
  support::write_file(folder / "sizes.csv", csv.text());
  support::write_file(
      folder / "sizes.gp",
      perplexity_figure("sizes", "The best perplexity with so many keys", "keys", without) +
          "set logscale x\nplot 'sizes.csv' skip 1 using 1:5 with linespoints pt 7 lw 2 lc "
          "'#c2410c' title 'with neighbours', \\\n  '' skip 1 using 1:(without) with lines dt 2 "
          "lw 2 lc '#57534e' title 'without'\n");
  support::draw_figure(folder, "sizes");
}

}  // namespace detail

/// Gnuplot commands that draw tuned.png of tuned.csv: perplexity against the neighbours' share, a
/// line for every k, with the temperature that is best there.
inline std::string tuned_figure(const std::vector<infty::KnnTuning::Choice>& all, double without) {
  std::map<Index, infty::KnnTuning::Choice> best;
  for (const auto& one : all) {
    const auto at = best.emplace(one.k, one).first;
    if (one.nats < at->second.nats) at->second = one;
  }
  std::string out = detail::perplexity_figure("tuned", "Perplexity with neighbours in a datastore",
                                              "share of the neighbours, λ", without);
  out += "set yrange [*:1.5*without]\nplot ";
  for (const auto& [k, choice] : best) {
    const std::string t = nlohmann::json(choice.temperature).dump();
    out += "'tuned.csv' skip 1 using 3:($1 == " + std::to_string(k) + " && $2 == " + t +
           " ? $4 : NaN) with lines lw 2 title 'k " + std::to_string(k) + ", temperature " + t +
           "', \\\n  ";
  }
  return out + "without with lines dt 2 lw 2 lc '#57534e' title 'without'\n";
}

/// Reads a text once, finds the k, temperature and share with which the neighbours help most, and
/// leaves them, and what all others give, in the datastore's folder.
inline void tune_datastore(const TuneOptions& tune) {
  const EvaluateOptions& options = tune.of;
  const auto& o = options.look_up;
  infty::require(!o.knn.empty(), "tune-datastore", "it needs --knn, a datastore's folder");
  const auto [s, group] = changed_settings(options);
  support::use_products(s.products);
  const Tokenizer tokenizer(s.level, options.model);
  auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  const auto model = load_model(s, tokenizer, options.model, group);
  Tuned tuned = tuned_by(o);
  Retriever retriever(o.knn, metric_of(tuned.metric), o.index, tokenizer, model.get());
  infty::require(
      fingerprint_of(split.stream) != retriever.origin().stream, "tune-datastore",
      "the text is the one in the datastore, where everything would find itself: tune on "
      "another");
  const StoreIndex& index = retriever.index();
  infty::require(tune.sizes.empty() || index.exact(), "tune-datastore",
                 "--try-sizes goes with --index exact, which searches a part of the keys");
  auto sizes = detail::SizedTuning::all(tune, retriever.store().size());
  infty::KnnConfig config;
  config.similarity = infty::value_of<infty::KnnSimilarity>(tuned.similarity);
  const support::InterruptGuard interrupt;
  const auto stop = [](Index) {
    support::stop_if_interrupted(
        [] { return std::string("stopped tuning; nothing is kept of it"); });
  };
  if (!s.spalm.empty()) split.retrieved = look_up_tokens(s, tokenizer, split, stop);
  const auto score = evaluate_shown(
      "tune", *model, s, tokenizer, split, stop,
      [&](support::Model::State& state, const TextBatch& batch) {
        auto read = model->read(state, batch, {.keys = retriever.wanted()});
        const auto queries = retriever.queries(batch, read);
        for (detail::SizedTuning& one : sizes) {
          config.k = one.tuning.most();
          const auto found = index.exact() ? index.search(queries, config.k, 0, one.size)
                                           : retriever.search(queries, config.k);
          one.tuning.add(retriever.store().retrieved(queries, found, config),
                         std::span<const float>(read.losses), batch.targets);
        }
        return std::move(read.losses);
      });
  const infty::KnnTuning& tuning = sizes.back().tuning;
  const auto all = tuning.tried();
  support::Csv csv("k,temperature,lambda,perplexity");
  for (const auto& one : all) {
    std::vector<double> lambdas{one.lambda};
    for (Index i = 0; i < 20; ++i) lambdas.push_back(.05 * static_cast<double>(i));
    std::sort(lambdas.begin(), lambdas.end());
    for (const double lambda : lambdas)
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
  support::write_file(folder / "tuned.gp", tuned_figure(all, tuned.without));
  support::draw_figure(folder, "tuned");
  support::write_file(tuned_of(folder), support::json_of(tuned).dump(2) + '\n');
  std::printf("| k | temperature | best lambda | perplexity |\n|---|---|---|---|\n");
  for (const auto& one : all)
    std::printf("| %lld | %g | %.3f | %.3f |\n", static_cast<long long>(one.k), one.temperature,
                one.lambda, std::exp(one.nats));
  std::printf("%s: perplexity %.3f without, %.3f with k %lld, temperature %g, lambda %.4f\n",
              tuned.tuned_on.c_str(), tuned.without, tuned.perplexity,
              static_cast<long long>(best.k), best.temperature, best.lambda);
  if (!tune.sizes.empty()) detail::write_sizes(folder, sizes, tuned.without);
}

/// The options of `tune-datastore`.
inline void add_tune(CLI::App& app, TuneOptions& t) {
  add_model(app, t.of);
  add_text(app, t.of);
  add_search(app, t.of.look_up);
  add_similarity(app, t.of.look_up);
  support::add_option(app, "--try-k", t.k, "neighbours that are tried", support::from(1))
      ->capture_default_str();
  support::add_option(app, "--try-temperatures", t.temperatures, "temperatures that are tried",
                      {1e-9, 1e12})
      ->capture_default_str();
  support::add_option(app, "--try-sizes", t.sizes,
                      "keys of smaller datastores that are tried beside the whole one: so many of "
                      "its first, the beginnings of the rows that it was read in",
                      support::from(1));
}

}  // namespace language_model
