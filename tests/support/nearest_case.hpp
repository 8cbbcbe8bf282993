// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/memory/ops/nearest.hpp>

#include "support/tensors.hpp"

namespace infty::tests {

/// A search: the sizes, and what there is to be found.
template <class T, class B = EigenBackend>
struct NearestCase {
  Index queries = 1, heads = 1, key_heads = 1, head_dim = 1, k = 1, block = 512;
  RowCounts counts = {1};  ///< entries of each row
  bool whole = false;      ///< numbers are -2, ..., 2, so that many scores are equal
  T odd = T(0);            ///< unless 0, the first number of every seventh key
  Index hidden = 0;        ///< the oldest entries of each row that are not to be found

  Tensor<T, B> drawn(Shape shape, std::uint64_t which) const {
    Random random(which);
    std::vector<T> numbers(static_cast<std::size_t>(shape.size()));
    for (T& x : numbers) {
      const double u = random.uniform();
      x = static_cast<T>(whole ? std::floor(5 * u) - 2 : 2 * u - 1);
    }
    return Tensor<T, B>::from(shape, numbers);
  }
  Index batch() const { return static_cast<Index>(counts.size()); }
  Tensor<T, B> q() const { return drawn({batch(), queries, heads * head_dim}, 1); }
  Index longest() const { return *std::max_element(counts.begin(), counts.end()); }

  /// Keys and values, [batch, longest, 2 G D], those of shorter rows at the end.
  Tensor<T, B> entries() const {
    const Index width = 2 * key_heads * head_dim;
    const auto all = drawn({batch(), longest(), width}, 2);
    if (odd == T(0)) return all;
    auto numbers = all.to_vector();
    for (Index i = 0; i < batch() * longest(); i += 7)
      numbers[static_cast<std::size_t>(i * width)] = odd;
    return Tensor<T, B>::from(all.shape(), numbers);
  }
  /// The entries, kept as numbers of another type.
  template <class Stored = T>
  KeyValueStore<T, B, Stored> store() const {
    KeyValueStore<T, B, Stored> store(batch(), key_heads, head_dim, block);
    store.append({entries(), counts}, std::max<Index>(1, longest()));
    return store;
  }
  template <class Stored = T>
  StoredEntries<T, B, Stored> stored() const {
    return store<Stored>().latest(std::max<Index>(1, longest() - hidden));
  }
};

/// What a kernel finds in a case, its entries kept as numbers of another type if one is named:
/// scores and entries, k a query.
template <class Kernel, class As = void, class T, class B>
std::pair<std::vector<T>, std::vector<Index>> found_by(const NearestCase<T, B>& c) {
  using Stored = std::conditional_t<std::is_void_v<As>, T, As>;
  const auto stored = c.template stored<Stored>();
  const auto q = c.q();
  const Index each = c.queries * c.heads * c.k;
  Tensor<T, B> scores(Shape{c.batch(), each});
  Tensor<Index, B> indices(Shape{c.batch(), each});
  std::vector<NearestRow<T, Stored>> rows;
  for (Index b = 0; b < c.batch(); ++b)
    rows.push_back({std::as_const(q).data() + b * c.queries * c.heads * c.head_dim,
                    stored.blocks.data() + b * stored.most,
                    stored.first[static_cast<std::size_t>(b)],
                    stored.count[static_cast<std::size_t>(b)], scores.data() + b * each,
                    indices.data() + b * each});
  Kernel::search(NearestSize{c.queries, c.heads, c.key_heads, c.head_dim, c.block, c.k},
                 rows.data(), c.batch());
  return {scores.to_vector(), indices.to_vector()};
}

}  // namespace infty::tests
