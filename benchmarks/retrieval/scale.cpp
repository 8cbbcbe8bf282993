// SPDX-License-Identifier: MIT
// Builds a datastore of as many keys as wanted in a folder and an index of FAISS over it, and
// searches it: rates, bytes, memory, the share of true neighbours against the probes, and FAISS
// called by its own interface in the same run. The keys are drawn around centres. A datastore that
// is there already is used, or completed.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include <infty/faiss/index.hpp>
#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/recall.hpp>

#include "../../examples/support/options.hpp"
#include "../../examples/support/progress_line.hpp"
#include "../support/blas.hpp"
#include "../support/clock.hpp"

using namespace infty::bench;
using infty::Datastore;
using infty::ExactIndex;
using infty::FaissIndex;
using infty::Index;
using infty::Tensor;

namespace {

struct Options {
  std::filesystem::path folder;
  Index keys = 10'000'000, dim = 64, centres = 10'000, queries = 512, checked = 128, k = 32;
  infty::IndexConfig index{.kind = infty::IndexKind::ivfpq};
};

/// Bytes of this process's memory that no file stands behind.
double own_bytes() {
  std::ifstream status("/proc/self/status");
  double kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "RssAnon:") status >> kilobytes;
  return kilobytes * 1024;
}

/// The most of them that was seen, by a thread that looks twenty times a second: an index that
/// learns says nothing until it has learned.
class Peak {
 public:
  Peak() : looking_([this](const std::stop_token& stop) { look(stop); }) {}
  double megabytes() const { return std::max(most_.load(), own_bytes()) / 1e6; }

 private:
  void look(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      most_ = std::max(most_.load(), own_bytes());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::atomic<double> most_ = 0;
  std::jthread looking_;  // the last, which begins when all else is there
};

/// n keys around centres, those of one block of the datastore or of the queries: the same whoever
/// draws them.
std::vector<float> drawn(const Options& o, std::uint64_t block, Index n) {
  infty::Random random(block + 1);
  std::vector<float> keys(static_cast<std::size_t>(n * o.dim));
  for (Index i = 0; i < n; ++i) {
    infty::Random centre(0, static_cast<std::uint64_t>(random.below(o.centres)));
    for (Index d = 0; d < o.dim; ++d)
      keys[static_cast<std::size_t>(i * o.dim + d)] = static_cast<float>(
          2 * centre.uniform() - 1 + 0.5 * (random.uniform() + random.uniform() - 1));
  }
  return keys;
}

void build(const Options& o) {
  auto store = Datastore<float>::build(o.folder, o.dim,
                                       "drawn around " + std::to_string(o.centres) + " centres");
  const Index before = store.size();
  support::ProgressLine line("store", o.keys, before, "key");
  Peak peak;
  double seconds = 0;
  const std::vector<Index> tokens(static_cast<std::size_t>(store.block()), 1);
  while (store.size() < o.keys) {
    // Blocks are drawn whole: one that was not finished begins anew.
    const Index n = std::min(store.block(), o.keys - store.size());
    const auto keys = drawn(o, static_cast<std::uint64_t>(store.size() / store.block()), n);
    const auto start = Clock::now();
    store.append(keys.data(), tokens.data(), n);
    if (store.size() == o.keys) store.flush();
    seconds += seconds_since(start);
    line.update(store.size());
  }
  double bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(o.folder))
    bytes += static_cast<double>(file.file_size());
  std::printf("datastore: %td keys of %td, %.1f MB on disk", store.size(), o.dim, bytes / 1e6);
  if (seconds > 0)
    std::printf("; %td appended in %.1f s, %.0f keys/s, %.1f MB of memory at most",
                store.size() - before, seconds,
                static_cast<double>(store.size() - before) / seconds, peak.megabytes());
  std::printf("\n");
  std::fflush(stdout);
}

FaissIndex indexed(const Options& o, const Datastore<float>& store) {
  support::ProgressLine line("index", store.size(), 0, "key");
  Peak peak;
  const auto start = Clock::now();
  double learned = 0;
  FaissIndex index(store, o.index, [&](Index done, Index) {
    if (done == 0) learned = seconds_since(start);
    line.update(done);
  });
  const double all = seconds_since(start);
  std::printf(
      "index %s: %td lists, %td bytes a key, sample of %td; learned in %.1f s, %.0f keys/s added; "
      "%.1f MB itself, %.1f MB of memory at most, mapped keys apart\n",
      std::string(name_of(o.index.kind)).c_str(), index.config().lists, index.config().code,
      index.config().sample, learned, static_cast<double>(store.size()) / (all - learned),
      static_cast<double>(index.bytes()) / 1e6, peak.megabytes());
  std::fflush(stdout);
  const auto path = o.folder.string() + ".index";
  const auto saving = Clock::now();
  index.save(path);
  const double saved = seconds_since(saving);
  const auto loading = Clock::now();
  FaissIndex loaded = FaissIndex::load(path, store);
  std::printf("index file: %.1f MB, saved in %.1f s, loaded in %.1f s\n",
              static_cast<double>(std::filesystem::file_size(path)) / 1e6, saved,
              seconds_since(loading));
  std::fflush(stdout);
  return loaded;
}

void search(const Options& o, const Datastore<float>& store, FaissIndex& index) {
  const auto numbers = drawn(o, 1U << 30U, o.queries);
  const auto queries = Tensor<float>::from({o.queries, o.dim}, numbers.data());
  const auto few = queries.slice(0, o.checked);
  const ExactIndex<float> exact(store, o.index.metric);
  exact.search(few, o.k);  // which reads all keys into memory, if they fit there
  auto start = Clock::now();
  const auto truth = exact.search(few, o.k);
  std::printf("exact: %.2f queries/s in a batch of %td\n",
              static_cast<double>(o.checked) / seconds_since(start), o.checked);
  std::vector<float> scores(static_cast<std::size_t>(o.queries * o.k));
  std::vector<std::int64_t> labels(scores.size());
  std::printf("%8s %16s %16s %16s %10s %10s\n", "probes", "queries/s", "with recompute",
              "FAISS alone", "recall", "recomputed");
  for (Index probes = 1; probes <= std::min<Index>(256, index.config().lists); probes *= 4) {
    index.set_probes(probes);
    std::vector<double> ours, ranked, theirs;
    double recall = 0, recall_ranked = 0;
    for (int turn = 0; turn < 5; ++turn) {  // one after the other, on a machine that others use too
      for (const bool recompute : {false, true}) {
        index.set_recompute(recompute);
        start = Clock::now();
        const auto found = index.search(queries, o.k);
        (recompute ? ranked : ours).push_back(seconds_since(start));
        (recompute ? recall_ranked : recall) =
            infty::neighbour_recall(infty::Neighbours<float>{found.scores.slice(0, o.checked),
                                                             found.indices.slice(0, o.checked)},
                                    truth);
      }
      start = Clock::now();
      index.faiss().search(o.queries, std::as_const(queries).data(), o.k, scores.data(),
                           labels.data());
      theirs.push_back(seconds_since(start));
    }
    const auto rate = [&](const std::vector<double>& seconds) {
      return static_cast<double>(o.queries) / median(seconds);
    };
    std::printf("%8td %16.0f %16.0f %16.0f %10.4f %10.4f\n", probes, rate(ours), rate(ranked),
                rate(theirs), recall, recall_ranked);
    std::fflush(stdout);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"A datastore of many keys: built, indexed and searched.", "retrieval_scale"};
  Options o;
  const auto add = [&](const char* name, Index& field, const char* help, Index least) {
    support::add_option(app, name, field, help, support::from(least))->capture_default_str();
  };
  app.add_option("folder", o.folder, "of the datastore; the index goes to FOLDER.index")
      ->required();
  add("--keys", o.keys, "keys of the datastore", 1);
  add("--dim", o.dim, "numbers of a key", 1);
  add("--centres", o.centres, "that keys are drawn around", 1);
  add("--lists", o.index.lists, "of the index; 0: 4 sqrt(keys)", 0);
  add("--code", o.index.code, "bytes of a compressed key; 0: a quarter of its numbers", 0);
  add("--queries", o.queries, "in a batch", 1);
  add("--checked", o.checked, "of them compared with the exact search", 1);
  add("--k", o.k, "neighbours of a query", 1);
  CLI11_PARSE(app, argc, argv);
  o.checked = std::min(o.checked, o.queries);
  std::printf("BLAS: %s\n", blas_name().c_str());
  build(o);
  const auto store = Datastore<float>::open(o.folder);
  FaissIndex index = indexed(o, store);
  search(o, store, index);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const infty::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
