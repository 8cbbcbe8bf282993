// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/lifelong/episodic_config.hpp>
#include <infty/lifelong/episodic_file.hpp>
#include <infty/lifelong/example.hpp>
#include <infty/lifelong/fwd.hpp>
#include <infty/retrieval/exact_index.hpp>

namespace infty {

/// A search that an `EpisodicMemory` is read by: made from a datastore, which may be empty, and
/// taking in what is appended to it.
template <class S, class T, class Backend>
concept GrowingIndex =
    RetrievalIndex<S, T, Backend> && std::constructible_from<S, const Datastore<T>&> &&
    requires(S& index) { index.update(); };

/// The past of a model that learns from a stream: examples under keys of D numbers, which a frozen
/// network makes of them [de Masson d'Autume et al. 2019; Wang et al. 2020]. It chooses what it
/// writes, holds `capacity` examples at most, and is read by random draws, for replay, or by the k
/// nearest keys, for local adaptation.
///
/// What is drawn by writing depends on the seed and on the number of the example in the stream
/// alone: not on threads, nor, under `probability`, on how the stream is cut into batches.
///
/// The nearest keys are those that `Search` finds, a `GrowingIndex`: all of them and exactly by the
/// usual one. Another may be one of FAISS's, which find what they find (docs/retrieval_scale.md).
template <class T, class Backend, class Search>
class EpisodicMemory {
  static_assert(GrowingIndex<Search, T, Backend>,
                "EpisodicMemory: Search must be a RetrievalIndex of squared distances that is made "
                "from a Datastore and takes in what is appended by update()");

 public:
  using SearchType = Search;  ///< what finds the nearest keys

  /// Makes an empty memory of keys of D numbers.
  /// @throws infty::ValueError unless key_dim >= 1 and the configuration is valid
  explicit EpisodicMemory(Index key_dim, EpisodicConfig config = {})
      : config_((config.validate(), config)), found_(std::make_unique<Found>(key_dim)) {}

  const EpisodicConfig& config() const { return config_; }  ///< the constants as given
  /// D, numbers of a key; 0 where it was moved from.
  Index key_dim() const { return found_ ? found_->keys.dim() : Index{0}; }
  Index size() const { return std::ssize(examples_); }  ///< examples that are held
  /// Examples that were offered by `write`, and those of them that its rule has chosen.
  Index offered() const { return offered_; }
  Index chosen() const { return chosen_; }  ///< see `offered`
  /// Bytes of what is held: keys, tokens and labels.
  Index bytes() const {
    Index numbers = 0;
    for (const Example& e : examples_) numbers += std::ssize(e.tokens) + std::ssize(e.labels);
    return size() * key_dim() * Index{sizeof(T)} + numbers * Index{sizeof(Index)};
  }

  /// The example in place i. @throws infty::ShapeError unless 0 <= i < size()
  const Example& example(Index i) const {
    require<ShapeError>(i >= 0 && i < size(), "EpisodicMemory::example", "place is ", i,
                        ": there are ", size());
    return examples_[static_cast<std::size_t>(i)];
  }
  /// Copies of the examples in several places. @throws infty::ShapeError for one that is not there
  std::vector<Example> examples(const std::vector<Index>& places) const {
    std::vector<Example> out;
    for (const Index i : places) out.push_back(example(i));
    return out;
  }

  /// Offers n examples of the stream, and writes those that the rule chooses. Rules other than
  /// `probability` choose among these n, so many that `rate` of the whole stream is chosen.
  /// @param keys    [n, D]
  /// @param scores  n of them for the rule `score`, otherwise none
  /// @return  how many were written
  /// @throws infty::ShapeError if there are not n keys or scores; infty::ValueError for an example
  /// without tokens; infty::NonFiniteError for a score that is no number, and for a key of which
  /// twice the square of its length is none in T; then nothing has changed
  Index write(const Tensor<T, Backend>& keys, std::span<const Example> examples,
              std::span<const double> scores = {});

  /// Draws n different places evenly, all of them in some order if there are no more.
  /// @throws infty::ValueError if n < 0
  std::vector<Index> draw(Index n, Random& random) const {
    require_at_least("EpisodicMemory::draw", "n", n, 0);
    n = (std::min)(n, size());
    std::unordered_map<Index, Index> moved;  // of a shuffle that stops after n
    const auto at = [&](Index i) { return moved.try_emplace(i, i).first->second; };
    std::vector<Index> places;
    for (Index i = 0; i < n; ++i) {
      const Index j = i + random.below(size() - i), drawn = at(j);
      moved[j] = at(i);
      places.push_back(drawn);
    }
    return places;
  }

  /// The places of the k keys nearest to each query by Euclidean distance, the nearest first; fewer
  /// where there are not so many, or a search that is not exact does not find them. @param queries
  /// [Q, D]
  /// @throws infty::ShapeError unless queries are [Q, D]; infty::ValueError unless k >= 1; for a
  /// query's length as `write`
  std::vector<std::vector<Index>> nearest(const Tensor<T, Backend>& queries, Index k) const {
    detail::require_lengths("EpisodicMemory::nearest", "query", queries.to_vector(), key_dim());
    std::vector<std::vector<Index>> places;
    for (const auto& row : search(queries, k)) {
      std::vector<Index>& of = places.emplace_back();
      for (const auto& [entry, score] : row) of.push_back(kept().keys.token(entry));
    }
    return places;
  }

  /// Saves all of it in one file, which is what it was or what it is to be whenever the process or
  /// the machine stops. @throws infty::IoError
  void save(const std::filesystem::path& path) const {
    detail::EpisodicFile<T> file{.dim = key_dim(), .offered = offered_, .chosen = chosen_};
    // In the order of writing, in which the nearest keys come where distances are equal.
    for (Index entry = 0; entry < kept().keys.size(); ++entry) {
      if (!lives(entry)) continue;
      const Index place = kept().keys.token(entry);
      file.add(place, kept().keys.key(entry), examples_[static_cast<std::size_t>(place)]);
    }
    file.save(path, settings_json(config_));
  }

  /// Takes what was saved by a memory of the same configuration: examples, keys, places and counts
  /// are those that it had, bit for bit. Keys that were replaced are not among them, so where
  /// distances differ by less than rounding the k-th nearest may be another (`ExactIndex`).
  /// @throws infty::IoError for a missing, foreign or damaged file, or one that contradicts itself;
  /// infty::ValueError for one of another configuration; then nothing has changed
  void load(const std::filesystem::path& path) {
    const auto file =
        detail::EpisodicFile<T>::load(path, settings_json(config_), key_dim(), config_.capacity);
    auto found = std::make_unique<Found>(key_dim());
    found->take(file.keys.data(), file.places.data(), std::ssize(file.places));
    std::vector<Example> examples(file.places.size());
    for (std::size_t i = 0; i < file.places.size(); ++i)
      examples[static_cast<std::size_t>(file.places[i])] = file.examples[i];
    found_ = std::move(found);
    examples_ = std::move(examples);
    offered_ = file.offered;
    chosen_ = file.chosen;
  }

 private:
  static constexpr Index block = 1024;

  /// Keys in the order of writing, the place of the example beside each, and the search for them. A
  /// place that was written again has its last key; the others are dead.
  struct Found {
    explicit Found(Index dim) : keys(dim, block), index(keys) {}
    /// Takes n more keys in. Where memory runs out no place has another key than before.
    void take(const T* from, const Index* places, Index n) {
      const Index last = n > 0 ? *std::max_element(places, places + n) : -1;
      if (last >= std::ssize(entry_of)) entry_of.resize(static_cast<std::size_t>(last) + 1, -1);
      keys.append(from, places, n);
      index.update();
      for (Index i = 0, entry = keys.size() - n; i < n; ++i, ++entry)
        entry_of[static_cast<std::size_t>(places[i])] = entry;
    }

    Datastore<T> keys;
    Search index;
    std::vector<Index> entry_of;  ///< a place
  };
  using Scored = std::vector<std::pair<Index, T>>;  ///< entries and what the search says of them

  bool lives(Index entry) const {
    return kept().entry_of[static_cast<std::size_t>(kept().keys.token(entry))] == entry;
  }

  /// The k living keys nearest to each query.
  std::vector<Scored> search(const Tensor<T, Backend>& queries, Index k) const {
    const Index all = kept().keys.size();
    k = (std::min)(k, (std::max)(size(), Index{1}));
    for (Index asked = k;; asked = (std::min)(2 * asked, all)) {
      const auto hits = kept().index.search(queries, asked);
      const std::vector<Index> entries = hits.indices.to_vector();
      const std::vector<T> scores = hits.scores.to_vector();
      std::vector<Scored> rows(static_cast<std::size_t>(queries.dim(0)));
      bool enough = true;
      for (std::size_t q = 0; q < rows.size(); ++q) {
        for (std::size_t i = q * static_cast<std::size_t>(asked),
                         end = i + static_cast<std::size_t>(asked);
             i < end && std::ssize(rows[q]) < k; ++i)
          if (entries[i] >= 0 && lives(entries[i])) rows[q].emplace_back(entries[i], scores[i]);
        enough = enough && std::ssize(rows[q]) == (std::min)(k, size());
      }
      if (enough || asked >= all) return rows;
    }
  }

  /// What is drawn of example number `i` of the stream.
  Random draws_of(Index i) const {
    return Random(static_cast<std::uint64_t>(config_.seed), static_cast<std::uint64_t>(i));
  }

  /// Which of n examples the rule chooses, in their order; never more than all of them.
  std::vector<Index> choose(const Tensor<T, Backend>& keys, Index n,
                            std::span<const double> scores) const;
  /// Forgets dead keys when they are as many as the living.
  void sweep();

  Found& kept() const {
    require(found_ != nullptr, "EpisodicMemory", "it was moved from");
    return *found_;
  }
  EpisodicConfig config_;
  std::unique_ptr<Found> found_;
  std::vector<Example> examples_;  ///< by place
  Index offered_ = 0, chosen_ = 0;
};

template <class T, class Backend, class Search>
std::vector<Index> EpisodicMemory<T, Backend, Search>::choose(
    const Tensor<T, Backend>& keys, Index n, std::span<const double> scores) const {
  std::vector<Index> out;
  if (config_.rule == WriteRule::probability) {
    for (Index i = 0; i < n; ++i)
      if (draws_of(offered_ + i).uniform() < config_.rate) out.push_back(i);
    return out;
  }
  std::vector<std::pair<double, Index>> order;
  const bool diverse = config_.rule == WriteRule::diversity;
  const auto held = diverse && n > 0 ? search(keys, 1) : std::vector<Scored>();
  for (Index i = 0; i < n; ++i) {
    double weight = diverse ? 0 : scores[static_cast<std::size_t>(i)];
    if (diverse) {
      // The largest of log p + Gumbel noise are a draw by p without putting back.
      const Scored& row = held[static_cast<std::size_t>(i)];
      if (!row.empty()) weight = -static_cast<double>(row.front().second) / config_.beta;
      weight -= std::log(-std::log(draws_of(offered_ + i).uniform()));
    }
    order.emplace_back(-weight, i);
  }
  const auto due = [&](Index examples) { return detail::share_of(config_.rate, examples); };
  std::sort(order.begin(), order.end());
  order.resize(static_cast<std::size_t>((std::min)(n, due(offered_ + n) - due(offered_))));
  for (const auto& [weight, i] : order) out.push_back(i);
  std::sort(out.begin(), out.end());
  return out;
}

template <class T, class Backend, class Search>
Index EpisodicMemory<T, Backend, Search>::write(const Tensor<T, Backend>& keys,
                                                std::span<const Example> examples,
                                                std::span<const double> scores) {
  const char* const op = "EpisodicMemory::write";
  const Index n = std::ssize(examples), D = key_dim();
  require<ShapeError>(keys.shape() == Shape{n, D}, op, "keys are ", keys.shape(), " of ", n,
                      " examples: they must be [", n, ", ", D, "]");
  require<ShapeError>(std::ssize(scores) == (config_.rule == WriteRule::score ? n : 0), op,
                      "there are ", scores.size(), " scores of ", n, " examples: the rule ",
                      name_of(config_.rule),
                      config_.rule == WriteRule::score ? " wants one each" : " wants none");
  for (const Example& e : examples)
    require(!e.tokens.empty(), op, "an example has no tokens: it must have one at least");
  for (const double score : scores)
    require<NonFiniteError>(math::is_finite(score), op, "a score is ", score);
  const std::vector<T> numbers = keys.to_vector();
  detail::require_lengths(op, "key", numbers, D);
  std::vector<Index> from, places;  // what is written, and where
  Index size_now = size(), chosen = chosen_;
  for (const Index i : choose(keys, n, scores)) {
    Index place = size_now;
    if (size_now == config_.capacity) {
      Random random = draws_of(offered_ + i);
      random.seek(1);
      if (config_.replacement == Replacement::nothing) place = -1;
      if (config_.replacement == Replacement::oldest) place = chosen % config_.capacity;
      if (config_.replacement == Replacement::reservoir) place = random.below(chosen + 1);
      if (place >= config_.capacity) place = -1;
    }
    ++chosen;
    if (place < 0) continue;
    size_now = (std::max)(size_now, place + 1);
    from.push_back(i);
    places.push_back(place);
  }
  std::vector<T> written;
  for (const Index i : from)
    written.insert(written.end(), numbers.begin() + i * D, numbers.begin() + (i + 1) * D);
  std::vector<Example> copies;
  for (const Index i : from) copies.push_back(examples[static_cast<std::size_t>(i)]);
  const auto room = static_cast<std::size_t>(size_now);
  if (room > examples_.capacity()) examples_.reserve((std::max)(room, 2 * examples_.capacity()));
  kept().take(written.data(), places.data(), std::ssize(places));
  examples_.resize(static_cast<std::size_t>(size_now));
  for (std::size_t i = 0; i < places.size(); ++i)
    examples_[static_cast<std::size_t>(places[i])] = std::move(copies[i]);
  offered_ += n;
  chosen_ = chosen;
  sweep();
  return std::ssize(places);
}

template <class T, class Backend, class Search>
void EpisodicMemory<T, Backend, Search>::sweep() {
  const Datastore<T>& keys = kept().keys;
  if (keys.size() - size() < (std::max)(size(), block)) return;
  auto swept = std::make_unique<Found>(key_dim());
  for (Index entry = 0; entry < keys.size(); ++entry)
    if (const Index place = keys.token(entry); lives(entry))
      swept->take(keys.key(entry), &place, 1);
  found_ = std::move(swept);
}

}  // namespace infty
