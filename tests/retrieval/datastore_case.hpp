// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <infty/core/random.hpp>
#include <infty/retrieval/datastore.hpp>

namespace infty::tests {

/// Entries that depend on their number alone, whoever appends them.
template <class T>
struct DrawnEntries {
  Index dim;

  T key(Index i, Index d) const {
    Random random(static_cast<std::uint64_t>(i * dim + d));
    return static_cast<T>(random.uniform() - 0.5);
  }
  Index token(Index i) const { return i * 7919 % 100003; }

  /// Appends the entries behind the last one, n of them.
  void append(Datastore<T>& store, Index n) const {
    std::vector<T> keys;
    std::vector<Index> tokens;
    for (Index i = store.size(); i < store.size() + n; ++i) {
      for (Index d = 0; d < dim; ++d) keys.push_back(key(i, d));
      tokens.push_back(token(i));
    }
    store.append(keys.data(), tokens.data(), n);
  }

  /// Whether these are the entries of a store.
  bool are_in(const Datastore<T>& store) const {
    for (Index i = 0; i < store.size(); ++i) {
      if (store.token(i) != token(i)) return false;
      for (Index d = 0; d < dim; ++d)
        if (store.key(i)[d] != key(i, d)) return false;
    }
    return true;
  }
};

}  // namespace infty::tests
