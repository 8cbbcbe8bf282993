// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <infty/data/batch_stream.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/recall.hpp>

#include "../support/csv.hpp"
#include "evaluate.hpp"

namespace language_model {

/// What an index is tried with.
struct HitsOptions {
  EvaluateOptions of = {.split = "valid", .text = "", .look_up = {}};  ///< the text, and the index
  Index queries = 1024, repeats = 5;
  std::vector<Index> probes{1, 2, 4, 8, 16, 32, 64, 128};
};

namespace detail {

/// The queries of the first `wanted` places of a text, or of all of them: [Q, D], as the
/// datastore's keys were made.
inline infty::Tensor<float> first_queries(Retriever& retriever, const infty::TokenStream& text,
                                          infty::TokenId start, Index wanted) {
  const StoreOrigin& origin = retriever.origin();
  infty::BatchStream stream(text, {.batch = std::min(origin.batch, std::ssize(text.tokens)),
                                   .segment = origin.segment,
                                   .start = start,
                                   .reset_documents = origin.documents});
  const Index D = retriever.store().dim();
  std::vector<float> found;
  for (bool last = false; !last && std::ssize(found) < wanted * D;) {
    const TextBatch batch = stream.next();
    last = batch.last;
    const auto queries = retriever.queries(batch, {});
    for (std::size_t place = 0; place < batch.targets.size(); ++place)
      if (const auto at = std::as_const(queries).data() + static_cast<Index>(place) * D;
          batch.targets[place] >= 0 && std::ssize(found) < wanted * D)
        found.insert(found.end(), at, at + D);
    support::stop_if_interrupted([] { return std::string("stopped making queries"); });
  }
  return infty::Tensor<float>::from({std::ssize(found) / D, D}, found);
}

/// What searches found, and the median of the milliseconds that a query took.
struct TimedSearch {
  infty::Neighbours<float> found;
  double milliseconds;
};

/// Searches for all queries, so many at once, several times over.
template <class Search>
TimedSearch timed(const infty::Tensor<float>& queries, Index k, Index repeats, Search&& search) {
  constexpr Index at_once = 512;
  const Index Q = queries.dim(0);
  TimedSearch out{{infty::Tensor<float>({Q, k}), infty::Tensor<Index>({Q, k})}, 0};
  std::vector<double> times;
  for (Index i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (Index at = 0, n; at < Q; at += n) {
      n = std::min(at_once, Q - at);
      const infty::Neighbours<float> part = search(queries.slice(at, at + n), k);
      std::copy_n(std::as_const(part.indices).data(), n * k, out.found.indices.data() + at * k);
      std::copy_n(std::as_const(part.scores).data(), n * k, out.found.scores.data() + at * k);
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    times.push_back(1e3 * time.count() / static_cast<double>(Q));
    support::stop_if_interrupted([] { return std::string("stopped searching"); });
  }
  std::sort(times.begin(), times.end());
  out.milliseconds = times[times.size() / 2];
  return out;
}

}  // namespace detail

/// Gnuplot commands that draw NAME.png of NAME.csv: the share of true neighbours against the time
/// of a query, with the probes beside each point, and how long the exact search takes.
inline std::string hits_figure(const std::string& name, const infty::IndexConfig& config, Index k,
                               double exact) {
  const std::string at = nlohmann::json(exact).dump();
  return "set terminal pngcairo size 800,460 font 'sans,11'\nset output '" + name +
         ".png'\nset datafile separator ','\nset border 3\nset tics nomirror out\n"
         "set grid y lc '#e7e5e4'\nset logscale x\nset yrange [0:1.05]\nset key bottom right\n"
         "set title 'The " +
         std::to_string(k) + " nearest keys that index " + std::string(name_of(config.kind)) +
         " finds'\nset xlabel 'milliseconds a query'\nset ylabel 'share of the true neighbours'\n"
         "set arrow from " +
         at + ", graph 0 to " + at + ", graph 1 nohead dt 2 lw 2 lc '#57534e'\nplot '" + name +
         ".csv' skip 2 using 4:3 with linespoints pt 7 lw 2 lc '#c2410c' title '" +
         std::string(name_of(config.kind)) +
         ", with the lists that a query looks at', \\\n  ''"
         " skip 2 using 4:3:2 with labels offset 0,.8 notitle, \\\n"
         "  NaN with lines dt 2 lw 2 lc '#57534e' title 'exact search'\n";
}

/// Says what share of the true neighbours an index finds, and how long a query takes, over several
/// numbers of probes, and leaves that as numbers and a figure in the datastore's folder.
inline void datastore_hits(const HitsOptions& hits) {
  const EvaluateOptions& options = hits.of;
  const LookUpOptions& o = options.look_up;
  infty::require(!o.knn.empty(), "datastore-hits", "it needs --knn, a datastore's folder");
  infty::require(o.index.kind != "exact", "datastore-hits",
                 "it needs --index: flat, ivf or ivfpq, which the exact one is compared with");
  const Settings s = settings_of(options.model);
  const Tokenizer tokenizer(s.level, options.model);
  const auto [split, name] = named_split(s, tokenizer, options.split, options.text);
  const Tuned tuned = tuned_by(o);
  const support::InterruptGuard interrupt;
  Retriever retriever(o.knn, metric_of(tuned.metric), o.index, tokenizer, nullptr);
  const Store& store = retriever.store();
  const Index k = std::min(tuned.k, store.size());
  const auto queries =
      detail::first_queries(retriever, split.stream, tokenizer.start(), hits.queries);
  StoreIndex& index = retriever.index();
  const infty::IndexConfig config = index.config();
  const StoreIndex every(store, o.knn, config.metric, {});
  const auto exact =
      detail::timed(queries, k, hits.repeats,
                    [&](const infty::Tensor<float>& q, Index n) { return every.search(q, n); });
  support::Csv csv("index,probes,recall,milliseconds");
  csv.row("exact", 0, 1, exact.milliseconds);
  std::printf(
      "%lld neighbours of %lld queries (%s), among %lld keys of %lld numbers; %s\n"
      "| index | probes | recall | ms a query |\n|---|---|---|---|\n| exact | | 1 | %.4f |\n",
      static_cast<long long>(k), static_cast<long long>(queries.dim(0)),
      options.text.empty() ? name.c_str() : options.text.c_str(),
      static_cast<long long>(store.size()), static_cast<long long>(store.dim()),
      index.said().c_str(), exact.milliseconds);
  const bool lists = config.kind != infty::IndexKind::flat;
  std::vector<Index> probes;
  for (const Index n : hits.probes) probes.push_back(lists ? std::min(n, config.lists) : 0);
  std::sort(probes.begin(), probes.end());
  probes.erase(std::unique(probes.begin(), probes.end()), probes.end());
  const std::string kind(name_of(config.kind));
  for (const Index n : probes) {
    if (lists) index.set_probes(n);
    const auto found =
        detail::timed(queries, k, hits.repeats,
                      [&](const infty::Tensor<float>& q, Index m) { return index.search(q, m); });
    const double recall = infty::neighbour_recall(found.found, exact.found);
    csv.row(kind, n, recall, found.milliseconds);
    std::printf("| %s | %s | %.4f | %.4f |\n", kind.c_str(), lists ? std::to_string(n).c_str() : "",
                recall, found.milliseconds);
  }
  const std::filesystem::path folder = o.knn;
  const std::string file = "hits-" + kind;
  support::write_file(folder / (file + ".csv"), csv.text());
  support::write_file(folder / (file + ".gp"), hits_figure(file, config, k, exact.milliseconds));
  support::draw_figure(folder, file);
}

/// The options of `datastore-hits`.
inline void add_hits(CLI::App& app, HitsOptions& h) {
  add_folder(app, h.of);
  add_split(app, h.of);
  add_search(app, h.of.look_up);
  add_count(app, h.of.look_up);
  support::add_option(app, "--queries", h.queries, "places of the text that are looked up",
                      support::from(1))
      ->capture_default_str();
  support::add_option(app, "--try-probes", h.probes, "lists that a query looks at, one by one",
                      support::from(1))
      ->capture_default_str();
  support::add_option(app, "--repeats", h.repeats, "searches, of which the median time counts",
                      {1, 1000})
      ->capture_default_str();
}

}  // namespace language_model
