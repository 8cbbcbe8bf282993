// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <infty/retrieval/exact_index.hpp>
#include <infty/retrieval/index_config.hpp>
#ifdef INFTY_FAISS
#include <infty/faiss/index.hpp>
#endif

#include "../interrupt.hpp"
#include "../options.hpp"
#include "../progress_line.hpp"
#include "store.hpp"

namespace language_model {

using infty::Index;

/// How a datastore is searched. 0: as the index was made, or the library's own choice.
struct IndexOptions {
  std::string kind = "exact";
  Index lists = 0, probes = 0, code = 0, sample = 0;
  bool recompute = true;
};

/// The library's constants for these options. @throws infty::ValueError for a kind that needs FAISS
/// where there is none, and for constants that do not fit keys of `dim` numbers
inline infty::IndexConfig config_of(const IndexOptions& options, infty::SearchMetric metric,
                                    Index dim) {
  infty::IndexConfig config;
  config.kind = infty::value_of<infty::IndexKind>(options.kind);
  config.metric = metric;
  config.lists = options.lists;
  if (options.probes > 0) config.probes = options.probes;
  config.code = options.code;
  config.sample = options.sample;
  config.recompute = options.recompute;
#ifndef INFTY_FAISS
  if (config.kind != infty::IndexKind::exact)
    infty::raise_without_faiss("language_model", config.kind);
#endif
  config.validate(dim);
  return config;
}

/// Where an index stands in its datastore's folder.
inline std::filesystem::path index_path(const std::filesystem::path& folder,
                                        const infty::IndexConfig& config) {
  return folder /
         (std::string(name_of(config.kind)) + '-' + std::string(name_of(config.metric)) + ".index");
}

#ifdef INFTY_FAISS
/// The index in a datastore's folder: it is made and left there if there is none, and takes in what
/// the datastore has got since. @throws infty::ValueError for one that was made with other options
inline infty::FaissIndex open_index(const infty::Datastore<float>& store,
                                    const std::filesystem::path& folder,
                                    const infty::IndexConfig& config, const IndexOptions& options) {
  const auto path = index_path(folder, config);
  const bool there = std::filesystem::exists(path);
  support::ProgressLine line("index", store.size(), 0, "key");
  const auto progress = [&](Index done, Index) {
    line.update(done);
    support::stop_if_interrupted([&] { return path.string() + " is not changed"; });
  };
  auto index =
      there ? infty::FaissIndex::load(path, store) : infty::FaissIndex(store, config, progress);
  const auto same = [&](const char* name, Index made, Index asked) {
    infty::require(asked == 0 || made == asked, "language_model", path.string(),
                   " was made with --", name, ' ', made, ", not ", asked,
                   ": remove it to make another");
  };
  infty::require<infty::IoError>(
      index.config().kind == config.kind && index.metric() == config.metric, "language_model",
      path.string(), " holds an index ", name_of(index.config().kind), " of ",
      name_of(index.metric()), ", not ", name_of(config.kind), " of ", name_of(config.metric));
  const Index before = there ? index.size() : 0;
  const bool coded = config.kind == infty::IndexKind::ivfpq;
  // There are no more lists than there were keys.
  if (there && (coded || config.kind == infty::IndexKind::ivf))
    same("lists", index.config().lists, std::min(options.lists, before));
  if (there && coded) same("code", index.config().code, options.code);
  if (there) index.update(progress);
  if (before < store.size()) {
    index.save(path);
    line.clear();
    std::fprintf(stderr, "%s: %lld keys, of which %lld are new, %.1f MB\n", path.c_str(),
                 static_cast<long long>(store.size()),
                 static_cast<long long>(store.size() - before),
                 static_cast<double>(std::filesystem::file_size(path)) / 1e6);
  }
  if (options.probes > 0) index.set_probes(options.probes);
  index.set_recompute(options.recompute);
  return index;
}
#endif

/// The search of a datastore, by an index that is chosen when the program runs.
class StoreIndex {
 public:
  /// @param store  must outlive it   @throws infty::Error as `config_of` and `open_index`
  StoreIndex(const Store& store, const std::filesystem::path& folder, infty::SearchMetric metric,
             const IndexOptions& options)
      : config_(config_of(options, metric, store.dim())) {
    if (config_.kind == infty::IndexKind::exact) {
      store.visit([&]<class Stored>(const infty::Datastore<Stored>& keys) {
        exact_.template emplace<Exact<Stored>>(keys, metric);
      });
      return;
    }
#ifdef INFTY_FAISS
    faiss_.emplace(open_index(store.floats(), folder, config_, options));
    config_ = faiss_->config();
#else
    static_cast<void>(folder);
#endif
  }

  /// How it was made and is searched.
  const infty::IndexConfig& config() const { return config_; }
  /// Whether every key is met, and so any part of them may be searched alone.
  bool exact() const { return config_.kind == infty::IndexKind::exact; }

  /// The k nearest keys to each query [Q, D], as far as the index finds them.
  infty::Neighbours<float> search(const infty::Tensor<float>& queries, Index k) const {
#ifdef INFTY_FAISS
    if (faiss_) return faiss_->search(queries, k);
#endif
    return by_exact([&](const auto& index) { return index.search(queries, k); });
  }
  /// The k nearest of the entries [begin, end). @pre exact()
  infty::Neighbours<float> search(const infty::Tensor<float>& queries, Index k, Index begin,
                                  Index end) const {
    return by_exact([&](const auto& index) { return index.search(queries, k, begin, end); });
  }

  /// Sets how many lists a query looks at, where there are lists.
  void set_probes(Index n) {
#ifdef INFTY_FAISS
    if (faiss_) faiss_->set_probes(n);
#endif
    config_.probes = n;
  }

  /// What it is, in words.
  std::string said() const {
    using infty::IndexKind;
    std::string out = "index " + std::string(name_of(config_.kind));
    if (config_.kind != IndexKind::ivf && config_.kind != IndexKind::ivfpq) return out;
    out += " of " + std::to_string(config_.lists) + " lists";
    if (config_.kind == IndexKind::ivfpq)
      out += ", codes of " + std::to_string(config_.code) + " bytes";
    return out + ", " + std::to_string(config_.probes) + " probes";
  }

 private:
  template <class Stored>
  using Exact = infty::ExactIndex<float, infty::EigenBackend, Stored>;

  template <class F>
  infty::Neighbours<float> by_exact(const F& f) const {
    if (const auto* const floats = std::get_if<Exact<float>>(&exact_)) return f(*floats);
    return f(std::get<Exact<infty::BFloat16>>(exact_));
  }

  infty::IndexConfig config_;
  std::variant<std::monostate, Exact<float>, Exact<infty::BFloat16>> exact_;
#ifdef INFTY_FAISS
  std::optional<infty::FaissIndex> faiss_;
#endif
};

/// Adds how a datastore is searched.
inline void add_index(CLI::App& app, IndexOptions& o) {
  using support::add_option, support::from;
  const char* const group = "How the datastore is searched";
  add_option(app, "--index", o.kind,
             "of the keys: every one, or FAISS's, which is left in the datastore's folder", {},
             {"exact", "flat", "ivf", "ivfpq"})
      ->capture_default_str()
      ->group(group);
  add_option(app, "--lists", o.lists,
             "that ivf and ivfpq divide the keys into; 0: as it was made, or 4 times the root of "
             "their number",
             from(0))
      ->group(group);
  add_option(app, "--probes", o.probes, "lists that a query looks at; 0: as it was made, or 32",
             from(0))
      ->group(group);
  add_option(app, "--code", o.code,
             "bytes of a key in ivfpq, a divisor of its numbers; 0: as it was made, or up to a "
             "quarter of these",
             from(0))
      ->group(group);
  add_option(app, "--sample", o.sample, "keys to learn lists and codes from; 0: 64 a list", from(0))
      ->group(group);
  add_option(app, "--recompute", o.recompute,
             "distances from the stored keys, not from what the index keeps of them")
      ->capture_default_str()
      ->group(group);
}

}  // namespace language_model
