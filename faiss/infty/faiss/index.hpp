// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/impl/FaissException.h>
#include <faiss/index_io.h>

#include <infty/core/random.hpp>
#include <infty/eigen/backend.hpp>
#include <infty/faiss/file.hpp>
#include <infty/retrieval/datastore.hpp>
#include <infty/retrieval/index_config.hpp>
#include <infty/retrieval/rank.hpp>

namespace infty {

namespace detail {

/// f(), with what FAISS throws as an infty::ValueError.
template <class F>
decltype(auto) of_faiss(std::string_view op, F&& f) {
  try {
    return f();
  } catch (const ::faiss::FaissException& error) {
    raise<ValueError>(op, "FAISS says: ", error.what());
  }
}

}  // namespace detail

/// An index of FAISS (Johnson et al. 2019) over a datastore: flat, IVF or IVF-PQ. It learns from a
/// sample, takes keys in a block at a time, is saved and loaded, and is searched on the host,
/// whatever the backend.
class FaissIndex {
 public:
  /// Is told how many keys are in, of how many: none, when the index has learned, and after each
  /// block.
  using Progress = std::function<void(Index done, Index all)>;

  /// Learns from a sample of the datastore's keys and takes all of them in. Beside the index itself
  /// that takes the memory of the sample.
  /// @param store  must outlive the index
  /// @throws infty::ValueError for constants that do not fit, kind `exact` among them, and where
  ///         there are too few keys to learn from
  explicit FaissIndex(const Datastore<float>& store, const IndexConfig& config,
                      const Progress& progress = {})
      : store_(&store), config_(config) {
    config.validate(store.dim());
    detail::of_faiss("FaissIndex", [&] {
      make();
      if (!index_->is_trained) learn();
    });
    if (progress) progress(0, store.size());
    update(progress);
  }

  /// Takes in what was appended to the datastore since. No search may be under way.
  void update(const Progress& progress = {}) {
    for (Index at = size(), n; at < store_->size(); at += n) {
      n = (std::min)(store_->block() - at % store_->block(), store_->size() - at);
      detail::of_faiss("FaissIndex::update", [&] { index_->add(n, store_->key(at)); });
      if (progress) progress(at + n, store_->size());
    }
  }

  /// Writes the index into a file, which takes its name only when it is whole. The keys are read
  /// for their fingerprint, unless they are all that is finished in a folder.
  /// @throws infty::IoError
  void save(const std::filesystem::path& path) const {
    detail::ReplacingFile file(path);
    detail::FaissWriter writer(file);
    detail::FaissFileHeader header;
    header.kind = static_cast<std::uint64_t>(config_.kind);
    header.metric = static_cast<std::uint64_t>(config_.metric);
    header.dim = static_cast<std::uint64_t>(dim());
    header.size = static_cast<std::uint64_t>(size());
    header.keys = store_->keys_checksum(size());
    header.probes = static_cast<std::uint64_t>(config_.probes);
    header.recompute = config_.recompute ? 1 : 0;
    writer(&header, sizeof header, 1);
    detail::of_faiss("FaissIndex::save", [&] { ::faiss::write_index(index_.get(), &writer); });
    const std::uint64_t seen = writer.fingerprint();
    file.write(&seen, sizeof seen);
    file.commit();
  }

  /// Reads an index that `save` has written. `config()` says how it was made, but for what is only
  /// asked for when one is made: sample, seed.
  /// @param store  the datastore that it was made of; must outlive the index. If it has grown, its
  ///               old keys are read once, and `update` is to take the new ones in before a search
  /// @throws infty::IoError for a file that is missing, foreign or damaged; infty::ValueError for
  ///         one of another datastore, by the keys' number, length and fingerprint
  static FaissIndex load(const std::filesystem::path& path, const Datastore<float>& store) {
    const detail::InputFile file(path);
    const std::string where = path.string();
    detail::FaissFileHeader header;
    std::uint64_t seen = 0;
    require<IoError>(file.size() >= sizeof header + sizeof seen, "FaissIndex", where,
                     ": not an index");
    file.read_at(0, &header, sizeof header);
    require<IoError>(header.begins == detail::FaissFileHeader::magic, "FaissIndex", where,
                     ": not an index");
    const std::uint64_t end = file.size() - sizeof seen;
    file.read_at(end, &seen, sizeof seen);
    require<IoError>(detail::fingerprint_of(file, 0, end) == seen, "FaissIndex", where,
                     ": the checksum does not fit: it was cut short or damaged");
    const auto D = static_cast<Index>(header.dim), n = static_cast<Index>(header.size);
    require<IoError>(header.kind < 4 && header.metric < 2 && n >= 0, "FaissIndex", where,
                     ": not an index of this program");
    require(D == store.dim(), "FaissIndex", where, ": keys have ", D,
            " numbers, those of the datastore ", store.dim());
    require(n <= store.size(), "FaissIndex", where, ": it has ", n, " keys, the datastore ",
            store.size());
    require(header.keys == 0 || header.keys == store.keys_checksum(n), "FaissIndex", where,
            ": it is of another datastore, of ", n, " keys");
    FaissIndex out(store);
    out.config_.kind = static_cast<IndexKind>(header.kind);
    out.config_.metric = static_cast<SearchMetric>(header.metric);
    out.config_.recompute = header.recompute != 0;
    detail::FaissReader reader(file, sizeof header, end);
    out.index_.reset(
        detail::of_faiss("FaissIndex::load", [&] { return ::faiss::read_index(&reader); }));
    require<IoError>(out.index_->d == D && out.index_->ntotal == n, "FaissIndex", where,
                     ": it says ", n, " keys of ", D, " numbers and has ", out.index_->ntotal,
                     " of ", out.index_->d);
    if (const auto* const ivf = out.ivf()) {
      out.config_.lists = static_cast<Index>(ivf->nlist);
      out.config_.code = out.config_.kind == IndexKind::ivfpq ? Index(ivf->code_size) : 0;
    }
    out.set_probes(static_cast<Index>(header.probes));
    return out;
  }

  /// Keys that are searched.
  Index size() const { return static_cast<Index>(faiss().ntotal); }
  /// D, numbers of a key.
  Index dim() const { return store_->dim(); }
  /// What makes a key near.
  SearchMetric metric() const { return config_.metric; }
  /// How it was made and is searched.
  const IndexConfig& config() const { return config_; }
  /// FAISS's own object. @throws infty::ValueError if this one was moved from, as all that needs it
  const ::faiss::Index& faiss() const {
    require(index_ != nullptr, "FaissIndex", "it was moved from");
    return *index_;
  }

  /// Bytes of the index in a file, about those in memory.
  std::uint64_t bytes() const {
    detail::FaissCounter counter;
    ::faiss::write_index(&faiss(), &counter);
    return counter.bytes();
  }

  /// Sets how many lists a query looks at. No search may be under way.
  /// @throws infty::ValueError unless n >= 1
  void set_probes(Index n) {
    require_at_least("FaissIndex", "probes", n, 1);
    config_.probes = n;
    if (auto* const lists = ivf())
      lists->nprobe = (std::min)(static_cast<std::size_t>(n), lists->nlist);
  }
  /// Sets whether scores are those of the stored keys. No search may be under way.
  void set_recompute(bool recompute) { config_.recompute = recompute; }

  /// The k keys nearest to each query as far as the index finds them; with `recompute` their scores
  /// are those of the stored keys, else of what the index keeps of them.
  /// @param queries  [Q, D]
  /// @throws infty::ShapeError if the shapes do not fit; infty::ValueError unless k >= 1, and where
  ///         the datastore has grown since: `update` takes the rest in
  template <class T, class B>
  Neighbours<T, B> search(const Tensor<T, B>& queries, Index k) const {
    detail::require_search("FaissIndex::search", queries, dim(), k);
    require(size() == store_->size(), "FaissIndex::search", "the index has ", size(),
            " keys, and its datastore has grown to ", store_->size(),
            ": update() takes in the rest");
    const Index Q = queries.dim(0);
    Tensor<float, EigenBackend> asked(Shape{0});
    if constexpr (std::is_same_v<Tensor<T, B>, Tensor<float, EigenBackend>>)
      asked = queries;
    else
      asked = queries.template cast<float>().template to<EigenBackend>();
    Neighbours<float, EigenBackend> out{Tensor<float, EigenBackend>(Shape{Q, k}),
                                        Tensor<Index, EigenBackend>(Shape{Q, k})};
    std::vector<std::int64_t> labels(static_cast<std::size_t>(Q * k), -1);
    float* const scores = out.scores.data();
    detail::of_faiss("FaissIndex::search", [&] {
      // Of no keys FAISS finds what is not there.
      if (size() > 0) index_->search(Q, std::as_const(asked).data(), k, scores, labels.data());
    });
    Index* const indices = out.indices.data();
    const bool distance = metric() == SearchMetric::squared_l2;
    for (Index i = 0; i < Q * k; ++i) {
      const auto label = labels[static_cast<std::size_t>(i)];
      indices[i] = label < 0 ? Index{-1} : static_cast<Index>(label);
      scores[i] = label < 0 ? -math::infinity<float> : (distance ? -scores[i] : scores[i]);
    }
    if (config_.recompute)
      detail::rank_by_keys<EigenBackend>(
          Q, k, dim(), metric(), std::as_const(asked).data(),
          [store = store_](Index entry) { return store->key(entry); }, scores, indices);
    if constexpr (std::is_same_v<Tensor<T, B>, Tensor<float, EigenBackend>>)
      return out;
    else
      return {out.scores.template cast<T>().template to<B>(), out.indices.template to<B>()};
  }

 private:
  explicit FaissIndex(const Datastore<float>& store) : store_(&store) {}

  ::faiss::IndexIVF* ivf() const { return dynamic_cast<::faiss::IndexIVF*>(index_.get()); }

  /// Makes an index that has learned nothing.
  void make() {
    const Index D = dim(), n = store_->size();
    const auto metric = config_.metric == SearchMetric::squared_l2 ? ::faiss::METRIC_L2
                                                                   : ::faiss::METRIC_INNER_PRODUCT;
    require(config_.kind != IndexKind::exact, "FaissIndex",
            "index exact is not one of FAISS's: ", "it is an ExactIndex");
    if (config_.kind == IndexKind::flat) {
      index_ = std::make_unique<::faiss::IndexFlat>(D, metric);
      return;
    }
    const Index least = config_.kind == IndexKind::ivfpq ? 256 : 1;
    require(n >= least, "FaissIndex", "index ", name_of(config_.kind), " learns from at least ",
            least, " keys: the datastore has ", n);
    config_.lists = config_.lists_for(n);
    const auto lists = static_cast<std::size_t>(config_.lists);
    auto centroids = std::make_unique<::faiss::IndexFlat>(D, metric);
    std::unique_ptr<::faiss::IndexIVF> made;
    if (config_.kind == IndexKind::ivf) {
      made = std::make_unique<::faiss::IndexIVFFlat>(centroids.get(), static_cast<std::size_t>(D),
                                                     lists, metric);
    } else {
      config_.code = config_.code_for(D);
      auto compressed =
          std::make_unique<::faiss::IndexIVFPQ>(centroids.get(), static_cast<std::size_t>(D), lists,
                                                static_cast<std::size_t>(config_.code), 8, metric);
      compressed->pq.cp.seed = static_cast<int>(config_.seed);
      compressed->pq.cp.min_points_per_centroid = 1;  // or FAISS prints its doubts
      made = std::move(compressed);
    }
    made->cp.seed = static_cast<int>(config_.seed);
    made->cp.min_points_per_centroid = 1;
    made->own_fields = true;
    centroids.release();
    index_ = std::move(made);
    set_probes(config_.probes);
  }

  /// Learns lists and codes from keys that are drawn, all equally likely, in their order.
  void learn() {
    const Index n = store_->size(), D = dim(), wanted = config_.sample_for(n);
    config_.sample = wanted;
    Random random(static_cast<std::uint64_t>(config_.seed));
    std::vector<float> keys;
    keys.reserve(static_cast<std::size_t>(wanted * D));
    for (Index i = 0, missing = wanted; missing > 0; ++i)
      if (random.uniform() * static_cast<double>(n - i) < static_cast<double>(missing)) {
        keys.insert(keys.end(), store_->key(i), store_->key(i) + D);
        --missing;
      }
    index_->train(wanted, keys.data());
  }

  const Datastore<float>* store_;
  IndexConfig config_;
  std::unique_ptr<::faiss::Index> index_;
};

}  // namespace infty
