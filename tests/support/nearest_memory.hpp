// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include <infty/core/row_store.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/memory.hpp>
#include <infty/nn/linear.hpp>

namespace infty::tests {

/// The last `capacity` vectors of each row in a search tree, found by their first number.
template <class T, class B = EigenBackend>
class NearestStore {
 public:
  NearestStore() = default;
  NearestStore(Index rows, Index capacity, Index dim)
      : rows_(static_cast<std::size_t>(rows)), capacity_(capacity), dim_(dim) {}

  Index dim() const { return dim_; }

  void add(Index row, std::vector<T> vector) {
    Row& r = rows_[static_cast<std::size_t>(row)];
    const T key = vector[0];
    if (r.tree.contains(key)) std::erase(r.order, key);
    r.order.push_back(key);
    r.tree[key] = std::move(vector);
    if (std::ssize(r.order) <= capacity_) return;
    r.tree.erase(r.order.front());
    r.order.pop_front();
  }

  /// The vector whose first number is nearest to `key`; zeros where a row has none.
  std::vector<T> nearest(Index row, T key) const {
    const auto& tree = rows_[static_cast<std::size_t>(row)].tree;
    if (tree.empty()) return std::vector<T>(static_cast<std::size_t>(dim_));
    const auto above = tree.lower_bound(key);
    if (above == tree.begin()) return above->second;
    const auto below = std::prev(above);
    return above == tree.end() || key - below->first <= above->first - key ? below->second
                                                                           : above->second;
  }

  Index rows() const { return std::ssize(rows_); }
  std::size_t bytes() const {
    std::size_t vectors = 0;
    for (const Row& row : rows_) vectors += row.order.size();
    return vectors * static_cast<std::size_t>(dim_ + 1) * sizeof(T);
  }
  void reset_row(Index row) { rows_[static_cast<std::size_t>(row)] = {}; }
  void keep_rows(Index begin, Index end) {
    rows_ = std::vector<Row>(rows_.begin() + begin, rows_.begin() + end);
  }
  void put_rows(Index at, const NearestStore& other) {
    require_alike(other);
    std::copy(other.rows_.begin(), other.rows_.end(), rows_.begin() + at);
  }
  void append_rows(const NearestStore& other) {
    require_alike(other);
    rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
  }

  template <class Other>
  NearestStore<T, Other> to() const {
    NearestStore<T, Other> out(0, capacity_, dim_);
    const auto all = saved();
    out.restore({all.vectors.template to<Other>(), all.length});
    return out;
  }

  RowSequences<T, B> saved() const {
    RowSequences<T, B> out;
    std::size_t longest = 0;
    for (const Row& row : rows_) {
      longest = std::max(longest, row.order.size());
      out.length.push_back(std::ssize(row.order));
    }
    std::vector<T> numbers;
    for (const Row& row : rows_) {
      numbers.resize(numbers.size() +
                     (longest - row.order.size()) * static_cast<std::size_t>(dim_));
      for (const T key : row.order) {
        const auto& vector = row.tree.at(key);
        numbers.insert(numbers.end(), vector.begin(), vector.end());
      }
    }
    out.vectors = Tensor<T, B>::from({rows(), static_cast<Index>(longest), dim_}, numbers);
    return out;
  }

  void restore(const RowSequences<T, B>& saved) {
    const Index rows = saved.vectors.dim(0), length = saved.vectors.dim(1);
    require<ShapeError>(saved.vectors.dim(2) == dim_, "NearestStore::restore", "vectors are ",
                        saved.vectors.shape(), ", wanted are ", dim_, " numbers each");
    NearestStore out(rows, capacity_, dim_);
    const auto numbers = saved.vectors.to_vector();
    for (Index row = 0; row < rows; ++row)
      for (Index i = length - saved.length[static_cast<std::size_t>(row)]; i < length; ++i) {
        const auto begin = numbers.begin() + (row * length + i) * dim_;
        out.add(row, std::vector<T>(begin, begin + dim_));
      }
    *this = std::move(out);
  }

 private:
  struct Row {
    std::map<T, std::vector<T>> tree;
    std::deque<T> order;  ///< the keys, as they came
  };

  void require_alike(const NearestStore& other) const {
    require<ShapeError>(other.dim_ == dim_, "NearestStore", "vectors of ", other.dim_,
                        " numbers, wanted are ", dim_);
  }

  std::vector<Row> rows_;
  Index capacity_ = 0, dim_ = 0;
};

static_assert(RowStore<NearestStore<float>>);

struct NearestConfig {
  Index model_dim = 0, heads = 0, head_dim = 0;
  Index capacity = 6;
};

template <class T, class B>
struct NearestState {
  NearestStore<T, B> store;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("store", store);
  }
};

/// A memory behind an index: a query reads a map of the vector that is nearest to it in the first
/// number. No gradient flows into what is stored.
template <class T, class B = EigenBackend>
class NearestMemory {
 public:
  using Scalar = T;
  using BackendType = B;
  using Config = NearestConfig;
  using State = NearestState<T, B>;
  using V = Variable<T, B>;

  static constexpr bool state_takes_gradient = false;

  Linear<T, B> map;  ///< d -> d

  explicit NearestMemory(const Config& config, Random random = Random(0))
      : map(config.model_dim, config.model_dim, random, false), config_(config) {}

  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("map", map);
  }

  State make_state(Index batch, Index = 0) const {
    return {NearestStore<T, B>(batch, config_.capacity, config_.model_dim)};
  }

  void write(State& state, const V& x, const RowCounts& counts) const {
    require<ShapeError>(x.dim(2) == state.store.dim(), "NearestMemory::write", "vectors are ",
                        x.shape(), ", the state's have ", state.store.dim(), " numbers");
    const auto numbers = x.value().to_vector();
    const Index length = x.dim(1), d = x.dim(2);
    for (Index row = 0; row < x.dim(0); ++row)
      for (Index i = length - counts[static_cast<std::size_t>(row)]; i < length; ++i) {
        const auto begin = numbers.begin() + (row * length + i) * d;
        state.store.add(row, std::vector<T>(begin, begin + d));
      }
  }

  V read(State& state, const V& queries) const {
    require<ShapeError>(state.store.dim() == config_.model_dim, "NearestMemory::read",
                        "the state's vectors have ", state.store.dim(), " numbers, model_dim is ",
                        config_.model_dim);
    const auto numbers = queries.value().to_vector();
    const auto each = static_cast<std::size_t>(queries.dim(2));
    std::vector<T> found;
    for (std::size_t i = 0; i < numbers.size(); i += each) {
      const auto row = static_cast<Index>(i / each) / queries.dim(1);
      const auto vector = state.store.nearest(row, numbers[i]);
      found.insert(found.end(), vector.begin(), vector.end());
    }
    return map.forward(
        V(Tensor<T, B>::from({queries.dim(0), queries.dim(1), config_.model_dim}, found)));
  }

 private:
  Config config_;
};

static_assert(Memory<NearestMemory<float>>);

}  // namespace infty::tests
