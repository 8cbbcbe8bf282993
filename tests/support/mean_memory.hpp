// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/memory/memory.hpp>
#include <infty/nn/linear.hpp>

namespace infty::tests {

struct MeanConfig {
  Index model_dim = 0, heads = 0, head_dim = 0;
  bool counts_rows = true;  ///< without it, a mistake: all rows are said to have got all vectors
};

template <class T, class B>
struct MeanState {
  Variable<T, B> sum;  ///< [batch, 1, d], of all vectors' maps
  RowCounts count;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("sum", sum);
    see("count", count);
  }
};

/// The smallest memory: every query reads the mean of a map of all vectors.
template <class T, class B = EigenBackend>
class MeanMemory {
 public:
  using Scalar = T;
  using BackendType = B;
  using Config = MeanConfig;
  using State = MeanState<T, B>;
  using V = Variable<T, B>;

  Linear<T, B> map;  ///< d -> d

  explicit MeanMemory(const Config& config, Random random = Random(0))
      : map(config.model_dim, config.model_dim, random, false), config_(config) {}

  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("map", map);
  }

  State make_state(Index batch, Index = 0) const {
    return {V(Tensor<T, B>::zeros({batch, 1, config_.model_dim})),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// Sums all of x, and trusts that there are zeros in front of the shorter rows.
  void write(State& state, const V& x, const RowCounts& counts) const {
    const V ones(Tensor<T, B>::full({x.dim(0), 1, x.dim(1)}, T(1)));
    state.sum = state.sum + matmul(ones, map.forward(x));
    for (std::size_t row = 0; row < counts.size(); ++row)
      state.count[row] += config_.counts_rows ? counts[row] : x.dim(1);
  }

  V read(State& state, const V& queries) const {
    const Index batch = queries.dim(0), Q = queries.dim(1);
    std::vector<T> shares;
    for (const Index n : state.count)
      shares.insert(shares.end(), static_cast<std::size_t>(Q),
                    n > 0 ? T(1) / static_cast<T>(n) : T(0));
    return matmul(V(Tensor<T, B>::from({batch, Q, 1}, shares)), state.sum);
  }

 private:
  Config config_;
};

static_assert(Memory<MeanMemory<float>>);

}  // namespace infty::tests
