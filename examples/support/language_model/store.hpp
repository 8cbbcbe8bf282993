// SPDX-License-Identifier: MIT
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <infty/core/bfloat16.hpp>
#include <infty/retrieval/datastore.hpp>
#include <infty/retrieval/knn_lm.hpp>

namespace language_model {

using infty::Index;

/// A datastore in a folder, of keys in `float` or in bfloat16, which its folder says.
class Store {
  using Floats = infty::Datastore<float>;
  using Halves = infty::Datastore<infty::BFloat16>;

 public:
  /// As `Datastore::open`, whatever the keys are.
  static Store open(const std::filesystem::path& folder) {
    if (infty::datastore_type(folder) == infty::DType::BF16) return Store(Halves::open(folder));
    return Store(Floats::open(folder));
  }
  /// As `Datastore::build`. @param stored  what keys are kept as, float32 or bfloat16
  static Store build(const std::filesystem::path& folder, Index dim, const std::string& about,
                     const std::string& stored) {
    if (stored == "bfloat16") return Store(Halves::build(folder, dim, about));
    return Store(Floats::build(folder, dim, about));
  }

  Index size() const {
    return std::visit([](const auto& of) { return of.size(); }, held_);
  }
  Index dim() const {
    return std::visit([](const auto& of) { return of.dim(); }, held_);
  }
  /// Entries that are safe.
  Index finished() const {
    return std::visit([](const auto& of) { return of.finished(); }, held_);
  }
  std::string_view about() const {
    return std::visit([](const auto& of) { return of.about(); }, held_);
  }
  Index token(Index entry) const {
    return std::visit([&](const auto& of) { return of.token(entry); }, held_);
  }
  /// As `Datastore::tokens`.
  infty::Tensor<Index> tokens(const infty::Tensor<Index>& entries) const {
    return std::visit([&](const auto& of) { return of.tokens(entries); }, held_);
  }
  /// Takes n entries in, keys [n, D].
  void append(const float* keys, const Index* tokens, Index n) {
    std::visit([&](auto& of) { of.append(keys, tokens, n); }, held_);
  }
  /// Makes all entries safe.
  void flush() {
    std::visit([](auto& of) { of.flush(); }, held_);
  }
  /// As `infty::retrieved`.
  infty::Retrieved<float> retrieved(const infty::Tensor<float>& queries,
                                    const infty::Neighbours<float>& neighbours,
                                    const infty::KnnConfig& config) const {
    return std::visit(
        [&](const auto& of) { return infty::retrieved(of, queries, neighbours, config); }, held_);
  }

  /// Calls f with the datastore, of the type that it is.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), held_);
  }
  /// The datastore, where its keys are floats. @throws infty::ValueError where they are not
  const Floats& floats() const {
    const auto* const own = std::get_if<Floats>(&held_);
    infty::require(own != nullptr, "language_model",
                   "the datastore's keys are bfloat16, which FAISS's indices do not take: it needs "
                   "--index exact, or to be built with --stored float32");
    return *own;
  }

 private:
  template <class Own>
  explicit Store(Own own) : held_(std::move(own)) {}

  std::variant<Floats, Halves> held_;
};

}  // namespace language_model
