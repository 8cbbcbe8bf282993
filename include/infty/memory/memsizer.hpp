// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/core/verify.hpp>
#include <infty/memory/flops.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/ops/rolling_sums.hpp>
#include <infty/memory/ops/slot_weights.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/embedding.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// The constants of a `MemSizer`. Defaults are those of the paper's language model; its translation
/// has 4 slots for the causal form and 32 for the cross form.
struct MemSizerConfig {
  Index slots = 32;  ///< k, of the memory; what is kept of a row: [k, d] [Zhang & Cai 2022, §4]
  /// Whether the three maps have biases, as in the authors' program; the paper prints none.
  bool bias = false;
  /// The weights of queries begin as Xavier's divided by the root of this, which makes the softmax
  /// over the slots even at first (32 in the authors' language model, 8 in their translation).
  double query_scale = 32;
  /// The same of what is written (1 in the authors' language model, 8 in their translation).
  double value_scale = 1;
  /// Whether the keys Φ are trained. The paper also fixes them as they were drawn, with
  /// `query_scale = 1`, and loses little: k vectors of d >> k numbers are nearly orthogonal (from a
  /// survey that repeats it).
  bool train_keys = true;

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("MemSizerConfig", "slots", slots, 1);
    require_sizes("MemSizerConfig", {{"slots", slots}});
    require_within("MemSizerConfig", "query_scale", query_scale, least_divisor, largest_constant);
    require_within("MemSizerConfig", "value_scale", value_scale, least_divisor, largest_constant);
  }
};

/// What a `MemSizer` remembers of each row: a sum, whose size does not depend on how much was read.
template <class T, class Backend>
struct MemSizerState {
  Variable<T, Backend> memory;  ///< V, the sum of l vᵀ, not scaled, [batch, k, d]; with a gradient
  RowCounts seen;               ///< vectors that were added

  template <class Visitor>
  void visit(Visitor&& see) {
    see("memory", memory);
    see("seen", seen);
  }
};

namespace detail {

/// What each vector of a source counts: 0 for padding, 1 / sqrt(number of others) -> [B, S, 1].
template <class T, class Backend>
Tensor<T, Backend> source_factors(Index batch, Index length,
                                  const Tensor<Index, Backend>& padding) {
  require<ShapeError>(padding.empty() || padding.shape() == Shape{batch, length},
                      "MemSizer::encode", "padding is ", padding.shape(), ": it must be [", batch,
                      ", ", length, "]");
  Tensor<T, Backend> out(Shape{batch, length, 1});
  T* const to = out.data();
  const bool padded = !padding.empty();
  const Index* const hidden = padding.data();
  verify<Backend>(
      padding.size(), [=] INFTY_HOST_DEVICE(Index i) { return hidden[i] != 0 && hidden[i] != 1; },
      [](Index i) { raise<ValueError>("MemSizer::encode", "padding ", i, " is neither 0 nor 1"); });
  Backend::for_each_row(batch, 2 * length, [=] INFTY_HOST_DEVICE(Index row) {
    Index seen = length;
    if (padded)
      for (Index i = 0; i < length; ++i) seen -= hidden[row * length + i];
    const T factor = seen > 0 ? T(1) / std::sqrt(static_cast<T>(seen)) : T(0);
    for (Index i = 0; i < length; ++i)
      to[row * length + i] = padded && hidden[row * length + i] != 0 ? T(0) : factor;
  });
  return out;
}

}  // namespace detail

/// MemSizer: attention by a memory of k slots whose keys are learned and whose values are made of
/// what is read [Zhang & Cai 2022]. Every vector x adds LN(W_l x) LN(W_r x)ᵀ to the slots and reads
/// them by the mean over H heads of softmax(Φ x), divided by the root of the number of vectors
/// added. Heads share the values; there is no projection of the answer.
///
/// It is a mixer, causal: over a segment as matrix products, one vector at a time at a constant
/// cost, with the same numbers. `encode` and `attend` are its other form, attention to a source.
///
/// A pass that is traced is shown softmax(Φ x) of the words by head, "slot_weights" [B, L, H, k].
template <class T, class Backend>
class MemSizer {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = MemSizerConfig;
  using State = MemSizerState<T, Backend>;

  Linear<T, Backend> query;          ///< Φ, d -> H k: row h k + s is head h's slot s
  Linear<T, Backend> left, right;    ///< W_l, d -> k, and W_r, d -> d
  LayerNorm<T, Backend> left_norm;   ///< over the slots of one vector
  LayerNorm<T, Backend> right_norm;  ///< over the model's width

  MemSizer() = default;

  /// Makes a memory with weights drawn from `random` as the authors' program draws them, Xavier's
  /// with biases of 0. @param sizes  `head_dim` is of no account: a head reads all of d
  /// @throws infty::ValueError if the configuration or the sizes are not valid
  MemSizer(Config config, AttentionSizes sizes, Random random = Random(0))
      : config_((config.validate(), config)), heads_((sizes.validate(), sizes.heads)) {
    const Index d = sizes.model_dim, k = config.slots;
    require_sizes("MemSizer", {{"model_dim", d}, {"heads", heads_}, {"slots", k}});
    require_sizes("MemSizer", {{"model_dim", d}, {"model_dim", d}});
    query = drawn(d, heads_ * k, config.query_scale, random.split(0));
    set_keys_trained();
    left = drawn(d, k, config.value_scale, random.split(1));
    right = drawn(d, d, config.value_scale, random.split(2));
    left_norm = LayerNorm<T, Backend>(k);
    right_norm = LayerNorm<T, Backend>(d);
  }

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("left", left);
    see("right", right);
    see("left_norm", left_norm);
    see("right_norm", right_norm);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("MemSizer::make_state", batch);
    return {V(Tensor<T, Backend>::zeros(Shape{batch, config_.slots, width()})),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// Vectors [B, L, d] -> [B, L, d], each having read all up to itself; the state takes the words
  /// of x in. Memory tokens are read as vectors of this segment, and not taken in.
  /// @throws infty::ShapeError, infty::ValueError for memory tokens with rules of their own; then
  /// the state is as it was
  V forward(State& state, const V& x, Pass<T, Backend>& pass) const {
    check("MemSizer", x);
    const Index batch = x.dim(0), length = x.dim(1), words = length - pass.before - pass.behind;
    require<ShapeError>(state.memory.shape() == Shape{batch, config_.slots, width()} &&
                            static_cast<Index>(state.seen.size()) == batch,
                        "MemSizer", "x is ", x.shape(), ", the state's memory is ",
                        state.memory.shape(), " and counts ", state.seen.size(),
                        " rows: it must be ", Shape{batch, config_.slots, width()});
    require<ShapeError>(words >= 0, "MemSizer", "x is ", x.shape(), ", of which ", pass.before,
                        " and ", pass.behind, " are memory tokens");
    require_causal_tokens("MemSizer", pass);
    if (length == 0) return x;
    const V keys = left_norm.forward(left.forward(x)),
            values = right_norm.forward(right.forward(x));
    const Index end = pass.before + words;
    V y;
    if (pass.answer) {
      const V scores = query.forward(x);
      y = read_rolling_sums(slot_weights(scores, heads_, scales(state.seen, length)), keys, values,
                            state.memory);
      if (pass.traced)
        pass.show("slot_weights",
                  softmax(reshape(narrow(scores, pass.before, end),
                                  Shape{batch, words, heads_, config_.slots})),
                  "row word head slot");
    }
    if (words > 0) {
      state.memory = state.memory + sum_of_products(narrow(keys, pass.before, end),
                                                    narrow(values, pass.before, end));
      for (Index& seen : state.seen) seen += words;
    }
    return y;
  }

  /// The memory of a source, for `attend`: [B, S, d] -> [B, k, d], scaled by one over the root of
  /// the number of vectors. @param padding  [B, S], 1 for vectors that are not to be seen, or
  /// empty; a row of padding alone is a memory of zeros
  /// @throws infty::ShapeError; infty::ValueError where padding is neither 0 nor 1
  V encode(const V& source, const Tensor<Index, Backend>& padding = {}) const {
    check("MemSizer::encode", source);
    const Index batch = source.dim(0), length = source.dim(1);
    const V factor(detail::source_factors<T>(batch, length, padding));
    return sum_of_products(left_norm.forward(left.forward(source)) * factor,
                           right_norm.forward(right.forward(source)));
  }

  /// What vectors read of a source's memory: [B, L, d], and [B, k, d] of `encode` -> [B, L, d].
  /// @throws infty::ShapeError
  V attend(const V& x, const V& memory) const {
    check("MemSizer::attend", x);
    const Shape wanted{x.dim(0), config_.slots, width()};
    require<ShapeError>(memory.shape() == wanted, "MemSizer::attend", "x is ", x.shape(),
                        ", the memory is ", memory.shape(), ": it must be ", wanted);
    return matmul(slot_weights(query.forward(x), heads_), memory);
  }

  /// The memory with another number of slots, and parameters of its own: slot s is slot s modulo k
  /// of this one. With fewer, the first of them stay, and norms and softmax are over these alone;
  /// with a multiple of k, every slot is there so many times, and all answers are the same. A state
  /// belongs to its number of slots. The paper trains a model for each k, 8 to 128; a memory that
  /// was not trained for fewer reads what it was not trained to read.
  /// @throws infty::ValueError unless slots >= 1, and for sizes above `largest_size`
  MemSizer with_slots(Index slots) const {
    Config config = config_;
    config.slots = slots;
    MemSizer out(config, {.model_dim = width(), .heads = heads_, .head_dim = 1});
    const auto guard = no_grad();
    const auto from = [&](const V& x, Index groups) { return slots_of(x, groups, slots); };
    out.query.weight = from(query.weight, heads_);
    out.left.weight = from(left.weight, 1);
    if (config.bias) {
      out.query.bias = from(query.bias, heads_);
      out.left.bias = from(left.bias, 1);
    }
    out.left_norm.weight = from(left_norm.weight, 1);
    out.left_norm.bias = from(left_norm.bias, 1);
    out.right = clone(right);
    out.right_norm = clone(right_norm);
    out.set_keys_trained();
    return out;
  }

  /// Of a `forward` by so many vectors a row, of the recurrent form.
  double flops(Index batch, Index length) const {
    const Index rows = batch * length, d = width(), k = config_.slots;
    return detail::product_flops(rows, heads_ * k + k + d, d) +
           2 * detail::product_flops(rows, d, k);
  }

 private:
  Index width() const { return right.weight.size() > 0 ? right.weight.dim(0) : 0; }

  Linear<T, Backend> drawn(Index in, Index out, double scale, Random random) const {
    Linear<T, Backend> made(in, out, random, config_.bias);
    const double bound = std::sqrt(6 / (scale * static_cast<double>(in + out)));
    fill_uniform(made.weight.value(), -bound, bound, random);
    if (config_.bias) made.bias.value().fill(T(0));
    return made;
  }

  void set_keys_trained() {
    const auto set = [trained = config_.train_keys](V& keys) {
      keys.set_requires_grad(trained);
      keys.set_buffer(!trained);
    };
    set(query.weight);
    if (config_.bias) set(query.bias);
  }

  /// Rows of a parameter [groups k, ...], of every group those of other slots, `slots` of them.
  V slots_of(const V& x, Index groups, Index slots) const {
    const Index k = config_.slots, each = x.size() / (groups * k);
    std::vector<Index> rows;
    for (Index i = 0; i < groups * slots; ++i) rows.push_back(i / slots * k + i % slots % k);
    const auto taken = embedding(Tensor<Index, Backend>::from(Shape{groups * slots}, rows),
                                 reshape(x, Shape{groups * k, each}));
    return V(taken.value().reshape(x.shape().with(0, groups * slots)), true);
  }

  void check(const char* op, const V& x) const {
    require<ShapeError>(x.shape().rank() == 3 && x.dim(2) == width(), op, "x is ", x.shape(),
                        ": it must be [B, L, ", width(), "]");
  }

  /// The sum of l vᵀ over a row: [B, L, k] and [B, L, d] -> [B, k, d].
  static V sum_of_products(const V& keys, const V& values) {
    return matmul(transpose(keys, 1, 2), values);
  }

  /// 1 / sqrt(i), where a place is the i-th vector of its row, from 1: [B, L].
  static Tensor<T, Backend> scales(const RowCounts& seen, Index length) {
    std::vector<T> all;
    all.reserve(seen.size() * static_cast<std::size_t>(length));
    for (const Index before : seen)
      for (Index i = 1; i <= length; ++i)
        all.push_back(static_cast<T>(1 / std::sqrt(static_cast<double>(before + i))));
    return Tensor<T, Backend>::from(Shape{static_cast<Index>(seen.size()), length}, all);
  }

  Config config_;
  Index heads_ = 1;
};

}  // namespace infty
