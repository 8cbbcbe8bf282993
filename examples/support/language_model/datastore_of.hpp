// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <infty/io/settings.hpp>

#include "../fingerprint.hpp"
#include "../json.hpp"
#include "model.hpp"
#include "store_index.hpp"

namespace language_model {

using infty::TextBatch;

/// What a datastore was made of, so that whoever looks things up in it can make queries alike.
struct StoreOrigin {
  std::string model;             ///< folder of the run whose model made the keys
  std::uint64_t weights = 0;     ///< fingerprint of its parameters
  std::uint64_t vocabulary = 0;  ///< of its tokens
  std::string text;              ///< the name of what was read
  std::uint64_t stream = 0;      ///< fingerprint of its tokens
  Index tokens = 0;              ///< how many
  std::string key = "normed";    ///< which input of the last feed-forward layer
  /// How it was read, and with what memory.
  Index segment = 0, batch = 0, memory_length = 0, compressed = 0, group = 1;
  bool documents = false;
};

template <class See>
void each_field(StoreOrigin& origin, See&& see) {
  see("model", origin.model);
  see("weights", origin.weights);
  see("vocabulary", origin.vocabulary);
  see("text", origin.text);
  see("stream", origin.stream);
  see("tokens", origin.tokens);
  see("key", origin.key);
  see("segment", origin.segment);
  see("batch", origin.batch);
  see("memory_length", origin.memory_length);
  see("compressed", origin.compressed);
  see("group", origin.group);
  see("documents", origin.documents);
}

/// The inputs of the last feed-forward layer that may be keys, by name.
inline const std::vector<std::string> key_names{"normed", "plain"};

inline infty::FeedInput feed_input(const std::string& name) {
  infty::require<infty::IoError>(name == "plain" || name == "normed", "language_model",
                                 "the datastore's key is ", name, ": it must be normed or plain");
  return name == "plain" ? infty::FeedInput::plain : infty::FeedInput::normed;
}

/// What tells a model's parameters from others'.
inline std::uint64_t fingerprint_of(support::Model& model) {
  support::Fingerprint fingerprint;
  for (const auto& parameter : model.named_parameters()) {
    fingerprint.add_text(parameter.name);
    for (const float x : parameter.variable.value().to_vector())
      fingerprint.add(std::bit_cast<std::uint32_t>(x));
  }
  return fingerprint.bits();
}

inline std::uint64_t fingerprint_of(const infty::TokenStream& stream) {
  support::Fingerprint fingerprint;
  for (const TokenId id : stream.tokens) fingerprint.add(static_cast<std::uint64_t>(id));
  for (const Index begin : stream.documents) fingerprint.add(static_cast<std::uint64_t>(begin));
  return fingerprint.bits();
}

/// A datastore in a folder, its search, and the model that makes its keys and queries.
class Retriever {
 public:
  /// Opens the folder. The keys are those of `own`, if that is the model that made them, or else of
  /// the model that did, which is loaded and reads along.
  /// @param own  null: another model always reads along
  /// Throws infty::IoError for a datastore of another vocabulary, or whose model is not there or
  /// was trained on, and as the index.
  Retriever(const std::filesystem::path& folder, infty::SearchMetric metric,
            const IndexOptions& index, const Tokenizer& tokenizer, support::Model* own)
      : store_(std::make_unique<Store>(Store::open(folder))),
        origin_(support::parse<StoreOrigin>(store_->about(), folder.string() + ": about")) {
    infty::require<infty::IoError>(origin_.vocabulary == tokenizer.fingerprint(), "knn",
                                   folder.string(),
                                   " is a datastore of other tokens: it was made "
                                   "by the model in ",
                                   origin_.model);
    infty::require(store_->size() > 0, "knn", folder.string(), " is empty");
    own_ = own && fingerprint_of(*own) == origin_.weights;
    if (!own_) load(tokenizer, folder);
    index_.emplace(*store_, folder, metric, index);
  }

  const Store& store() const { return *store_; }
  const StoreOrigin& origin() const { return origin_; }
  /// The model that reads along; null where the keys are the own model's.
  const support::Model* keys_by() const { return keys_by_.get(); }
  /// What the own model is to keep.
  infty::FeedInput wanted() const {
    return own_ ? feed_input(origin_.key) : infty::FeedInput::none;
  }

  /// The queries of a batch, [places, D]; a model that reads along reads it.
  /// @param reading  the own model's; not looked at where another model reads along
  infty::Tensor<float> queries(const TextBatch& batch, const support::Reading& reading) {
    if (own_) return reading.keys;
    const infty::ProductsScope as_trained(products_);
    keys_by_->reset_rows(state_, batch);
    TextBatch plain = batch;
    plain.retrieved.clear();
    return keys_by_->read(state_, plain, {.keys = feed_input(origin_.key)}).keys;
  }

  infty::Neighbours<float> search(const infty::Tensor<float>& queries, Index k) const {
    return index_->search(queries, k);
  }
  /// The same where there is no place for none: for each query k neighbours.
  /// @throws infty::ValueError if the index does not find that many
  infty::Neighbours<float> find(const infty::Tensor<float>& queries, Index k) const {
    auto found = search(queries, k);
    for (const Index at : found.indices.to_vector())
      infty::require(at >= 0, "language_model", index_->said(), " finds fewer than ", k,
                     " neighbours of a token: take exact, or fewer neighbours");
    return found;
  }
  StoreIndex& index() { return *index_; }
  const StoreIndex& index() const { return *index_; }

 private:
  /// Loads the model that made the keys.
  void load(const Tokenizer& tokenizer, const std::filesystem::path& folder) {
    Settings s = settings_of(std::filesystem::path(origin_.model));
    s.memory_length = origin_.memory_length;
    s.compressed = origin_.compressed;
    infty::require(s.spalm.empty(), "knn", folder.string(), " was made by a model with --spalm");
    keys_by_ = load_model(s, tokenizer, origin_.model, origin_.group);
    products_ = infty::value_of<infty::Products>(s.products);
    infty::require<infty::IoError>(
        fingerprint_of(*keys_by_) == origin_.weights, "knn", origin_.model,
        " holds another model than the one that made the keys of ", folder.string());
  }

  std::unique_ptr<Store> store_;
  StoreOrigin origin_;
  std::optional<StoreIndex> index_;
  bool own_ = false;
  std::unique_ptr<support::Model> keys_by_;
  support::Model::State state_;                       ///< of the model that reads along
  infty::Products products_ = infty::Products::full;  ///< how it was trained
};

}  // namespace language_model
