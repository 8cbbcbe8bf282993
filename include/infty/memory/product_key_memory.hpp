// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>
#include <vector>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/softmax.hpp>
#include <infty/memory/fwd.hpp>
#include <infty/memory/ops/product_key_search.hpp>
#include <infty/memory/product_key_config.hpp>
#include <infty/nn/batch_norm.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/pass.hpp>

namespace infty {

/// What makes queries of vectors: linear maps with a ReLU between them, each with a batch norm
/// behind it, or none [Lample et al. 2019, §3].
template <class T, class Backend = EigenBackend>
struct QueryNetwork {
  std::vector<Linear<T, Backend>> maps;      ///< in the order that a vector goes through them
  std::vector<BatchNorm<T, Backend>> norms;  ///< one behind each map, or none at all

  QueryNetwork() = default;

  /// Makes the network, with weights as `Linear` draws them.
  /// @param in  width of vectors   @param out  of the queries of all heads
  QueryNetwork(const ProductKeyConfig& config, Index in, Index out, Random random) {
    std::vector<Index> widths = config.query_hidden;
    widths.push_back(out);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      maps.emplace_back(i == 0 ? in : widths[i - 1], widths[i], random.split(i));
      if (config.query_batch_norm)
        norms.emplace_back(widths[i], config.batch_norm_momentum, config.batch_norm_epsilon);
    }
  }

  /// [..., in] -> [..., out]. @throws infty::ShapeError; with batch norm, as `BatchNorm::forward`
  Variable<T, Backend> forward(Variable<T, Backend> x, bool training) const {
    for (std::size_t i = 0; i < maps.size(); ++i) {
      x = maps[i].forward(x);
      if (!norms.empty()) x = norms[i].forward(x, training);
      if (i + 1 < maps.size()) x = relu(x);
    }
    return x;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("maps", maps);
    see("norms", norms);
  }
};

/// What a product-key memory has read at every place.
template <class T, class Backend>
struct ProductKeyReading {
  Variable<T, Backend> output;   ///< [..., d], the layer's answer
  Variable<T, Backend> sum;      ///< [..., value_dim], the sum of values, before what is behind it
  Variable<T, Backend> scores;   ///< [..., heads, k], falling; before the softmax
  Variable<T, Backend> weights;  ///< [..., heads, k], the softmax over a head's k
  Tensor<Index, Backend> slots;  ///< [..., heads, k], the rows of `values` that they weigh
};

/// A feed with a large table of values, of which each vector reads a few rows: k of n² slots a
/// head, found by two searches among n keys [Lample et al. 2019]; with
/// `ProductKeyOutput::silu_gated`, the "Memory+" of Berges et al. 2024. It stands in a `Block` in
/// the place of the feed-forward layer, or beside it, and remembers nothing from call to call: what
/// it holds are weights.
///
///     q = batch_norm(W x + b), a query a head, in two halves     (QueryNetwork)
///     the k best of n² slots by q₁ · key₁ᵢ + q₂ · key₂ⱼ            (product_key_search)
///     y = sum over heads and their k slots of softmax(score) value_slot   (weighted_rows)
///
/// With batch norm a vector's answer depends, in training, on all vectors of the batch: it is then
/// neither causal nor the same in pieces as at once. `pass.trains()` says whether it trains. Memory
/// tokens (`pass.before`, `pass.behind`) are vectors like any other.
template <class T, class Backend>
class ProductKeyMemory {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using Config = ProductKeyConfig;
  using V = Variable<T, Backend>;

  QueryNetwork<T, Backend> query;  ///< d -> heads * key_dim
  V keys;                          ///< [heads, 2, n, key_dim / 2]
  V values;                        ///< [n², value_dim], shared by siblings
  Linear<T, Backend> projection;   ///< W₁ and b₁, d -> value_dim, of `silu_gated`; else empty
  Linear<T, Backend> output;       ///< W₂ and b₂, value_dim -> d, unless the sum is the answer
  Linear<T, Backend> gate;         ///< w and b, d -> 1, if there is a gate

  ProductKeyMemory() = default;

  /// Draws keys uniformly within the configuration's bound, values (and W₁, W₂) from a normal
  /// distribution of deviation 1 / √width, as the authors' programs, and the rest as `Linear`.
  /// @param model_dim  d, width of the vectors
  /// @throws infty::ValueError for a bad configuration, or values of another width than d without a
  /// map behind them
  ProductKeyMemory(Config config, Index model_dim, Random random)
      : ProductKeyMemory(std::move(config), model_dim, random, V()) {
    Tensor<T, Backend> table(Shape{config_.slots(), value_dim()});
    Random draws = random.split(2);
    fill_normal(table, 0, deviation(value_dim()), draws);
    values = V(std::move(table), true);
    values.set_grad_by_rows(config_.row_gradients);
  }

  /// A memory with keys and queries of its own and these values, which all siblings train: the one
  /// table of Berges et al. 2024, §3.1, for the layers that have a memory.
  ProductKeyMemory sibling(Random random) const {
    return ProductKeyMemory(config_, model_dim_, random, values);
  }

  /// The constants as given.
  const Config& config() const { return config_; }
  /// What the constructor wants, for `to`; siblings are to be made again of what it returns.
  std::tuple<Config, Index, Random> configs() const { return {config_, model_dim_, Random(0)}; }
  /// Width of the values.
  Index value_dim() const { return config_.value_dim > 0 ? config_.value_dim : model_dim_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("query", query);
    see("keys", keys);
    see("values", values);
    if (projection.weight.size() > 0) see("projection", projection);
    if (output.weight.size() > 0) see("output", output);
    if (gate.weight.size() > 0) see("gate", gate);
  }

  /// Reads, [..., d] -> [..., d]. The pass is shown "product_key_weights" and "product_key_slots",
  /// [..., heads, k] each, if it is traced; slots as numbers of T, of which float holds 2^24; and
  /// "product_key_use" [heads, n, n], the share of each slot in a head's weights, slot i n + j in
  /// row i, column j.
  /// @throws infty::ShapeError; infty::ValueError for one vector in a training with batch norm
  V forward(const V& x, Pass<T, Backend>& pass) const {
    const ProductKeyReading<T, Backend> reading = read(x, pass);
    if (pass.traced) {
      pass.show(
          "product_key_weights", reading.weights,
          x.shape().rank() == 3 && pass.before + pass.behind == 0 ? "row word head rank" : "");
      pass.show("product_key_slots", V(reading.slots.template cast<T>()));
      pass.show("product_key_use", V(use(reading)), "head key1 key2");
    }
    return reading.output;
  }

  /// The same with what was found on the way, for `SlotUsage` and the curious. @throws as `forward`
  ProductKeyReading<T, Backend> read(const V& x, Pass<T, Backend>& pass) const {
    require<ShapeError>(x.shape().rank() >= 1 && x.dim(-1) == model_dim_, "ProductKeyMemory",
                        "x is ", x.shape(), ", model_dim is ", model_dim_, ": x must be [..., ",
                        model_dim_, "]");
    ProductKeyReading<T, Backend> reading;
    const V queries = query.forward(dropped(x, config_.input_dropout, pass), pass.trains());
    const auto found =
        product_key_search(dropped(queries, config_.query_dropout, pass), keys, config_.k);
    reading.scores = found.scores;
    reading.slots = found.slots;
    reading.weights = softmax(found.scores);
    // Heads are summed: all of their slots are one list.
    const Shape all = x.shape().with(-1, config_.heads * config_.k);
    V y = weighted_rows(reshape(reading.weights, all), found.slots.reshape(all), values);
    y = dropped(y, config_.value_dropout, pass);
    reading.sum = y;
    if (config_.output == ProductKeyOutput::silu_gated) y = y * silu(projection.forward(x));
    if (config_.output != ProductKeyOutput::sum) y = output.forward(y);
    if (config_.gate) y = y * sigmoid(gate.forward(x));
    reading.output = y;
    return reading;
  }

 private:
  /// The share of each slot in what each head reads, [heads, n, n].
  Tensor<T, Backend> use(const ProductKeyReading<T, Backend>& reading) const {
    const std::vector<Index> slots = reading.slots.to_vector();
    const std::vector<T> weights = reading.weights.value().to_vector();
    const auto heads = static_cast<std::size_t>(config_.heads),
               k = static_cast<std::size_t>(config_.k),
               all = static_cast<std::size_t>(config_.slots());
    const T each = T(1) / static_cast<T>((std::max)(std::size_t{1}, slots.size() / (heads * k)));
    std::vector<T> share(heads * all);
    for (std::size_t i = 0; i < slots.size(); ++i)
      share[i / k % heads * all + static_cast<std::size_t>(slots[i])] += each * weights[i];
    return Tensor<T, Backend>::from(Shape{config_.heads, config_.sub_keys, config_.sub_keys},
                                    share);
  }

  /// All but a table of values of its own.
  ProductKeyMemory(Config config, Index model_dim, Random random, V shared)
      : values(std::move(shared)), config_(std::move(config)), model_dim_(model_dim) {
    config_.validate();
    require_at_least("ProductKeyMemory", "model_dim", model_dim_, 1);
    require(value_dim() == model_dim_ || config_.output != ProductKeyOutput::sum,
            "ProductKeyMemory", "value_dim is ", config_.value_dim, ", model_dim is ", model_dim_,
            ": values of another width need an output, `linear` or `silu_gated`");
    require_sizes("ProductKeyMemory", {{"sub_keys", config_.sub_keys},
                                       {"sub_keys", config_.sub_keys},
                                       {"model_dim", model_dim_}});
    const Index width = config_.heads * config_.key_dim, half = config_.key_dim / 2;
    query = QueryNetwork<T, Backend>(config_, model_dim_, width, random.split(0));
    Tensor<T, Backend> drawn(Shape{config_.heads, 2, config_.sub_keys, half});
    const double bound = config_.key_bound > 0 ? config_.key_bound : deviation(half);
    Random draws = random.split(1);
    fill_uniform(drawn, -bound, bound, draws);
    keys = V(std::move(drawn), true);
    if (config_.output == ProductKeyOutput::silu_gated)
      projection = normal(model_dim_, value_dim(), random.split(3));
    if (config_.output != ProductKeyOutput::sum)
      output = normal(value_dim(), model_dim_, random.split(4));
    if (config_.gate) gate = Linear<T, Backend>(model_dim_, 1, random.split(5));
  }

  static double deviation(Index width) { return 1 / std::sqrt(static_cast<double>(width)); }

  Linear<T, Backend> normal(Index in, Index out, Random random) const {
    Linear<T, Backend> map(in, out, random.split(0));
    Random draws = random.split(1);
    fill_normal(map.weight.value(), 0, deviation(model_dim_), draws);
    return map;
  }

  static V dropped(const V& x, double probability, const Pass<T, Backend>& pass) {
    return pass.random && probability > 0 ? dropout(x, probability, *pass.random) : x;
  }

  Config config_;
  Index model_dim_ = 0;
};

}  // namespace infty
