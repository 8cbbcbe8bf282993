// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>

#include <infty/autograd/activations.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/memory/ops/project_heads.hpp>
#include <infty/memory/ops/sines_and_cosines.hpp>
#include <infty/memory/recurrence.hpp>
#include <infty/nn/attention_sizes.hpp>
#include <infty/nn/linear.hpp>
#include <infty/nn/unit_vectors.hpp>

namespace infty {

/// What linear attention makes of queries and keys, φ, so that φ(q)·φ(k) stands for the exp(q·k) of
/// attention.
enum class FeatureMap {
  identity,      ///< x itself
  elu_plus_one,  ///< elu(x) + 1, which is above 0 [Katharopoulos et al. 2020, Eq. 7]
  gaussian,      ///< sines and cosines of random projections of x / |x| [Peng et al. 2021]
  arc_cosine,    ///< relu of random projections of x / |x| [the same]
  learned        ///< relu(W x + b), W and b of the head, learned [Kasai et al. 2021]
};

/// Returns whether a map is made of random projections.
constexpr bool is_random(FeatureMap map) {
  return map == FeatureMap::gaussian || map == FeatureMap::arc_cosine;
}

/// A feature map with its parameters, one for every head, the same for queries and keys.
///
/// A random one projects by w_i = σ ∘ w̃_i, w̃_i drawn from N(0, I) once and σ learned [Peng et al.
/// 2021, §3.1]. w̃ is a variable that needs no gradient: `visit` names it, so it is saved and loaded
/// with the parameters, and no optimiser touches it. With D projections of x and y of length 1 the
/// mean of φ(x)·φ(y) is
///
///     gaussian     exp(-|σ ∘ (x - y)|² / 2), which for one number σ is exp(σ² (x·y - 1))
///     arc_cosine   (sin θ + (π - θ) cos θ) / 2π for σ = 1, θ the angle between x and y
///
/// and what is drawn differs from it by about 1 / sqrt(D).
template <class T, class Backend = EigenBackend>
struct HeadFeatures {
  using V = Variable<T, Backend>;

  V projections;  ///< w̃, [H D, head_dim], row h D + i is head h's w̃_i; empty if not random
  V deviations;   ///< σ, [H, head_dim], ones at first; empty if not random
  V weight;       ///< W, [H D, head_dim], rows as above; empty if not learned
  V bias;         ///< b, [H D]; empty if not learned

  HeadFeatures() = default;

  /// Makes a map of D random projections or learned features, with weights drawn as `Linear` draws
  /// them. D is of no account for others.
  /// @throws infty::ValueError unless all sizes are >= 1, and their product at most `largest_size`
  HeadFeatures(FeatureMap map, Index D, AttentionSizes sizes, Random random)
      : map_(map), heads_(sizes.heads), width_(sizes.head_dim) {
    require_at_least("HeadFeatures", "heads", heads_, 1);
    if (!is_random(map) && map != FeatureMap::learned) return;
    require_at_least("HeadFeatures", "D", D, 1);
    require_sizes("HeadFeatures", {{"heads", heads_}, {"D", D}, {"2 head_dim", 2 * width_}});
    const Shape shape{heads_ * D, width_};
    if (map == FeatureMap::learned) {
      weight = detail::uniform_parameter<T, Backend>(shape, width_, random.split(0));
      bias = detail::uniform_parameter<T, Backend>(Shape{heads_ * D}, width_, random.split(1));
    } else {
      projections = V(Tensor<T, Backend>(shape));
      projections.set_buffer(true);
      deviations = V(Tensor<T, Backend>::full(Shape{heads_, width_}, T(1)), true);
      redraw(random.split(0));
    }
    width_ = map == FeatureMap::gaussian ? 2 * D : D;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (is_random(map_)) {
      see("projections", projections);
      see("deviations", deviations);
    } else if (map_ == FeatureMap::learned) {
      see("weight", weight);
      see("bias", bias);
    }
  }

  /// Features of a head.
  Index width() const { return width_; }

  /// Draws w̃ anew, in place; copies of the map share it. What was written before by the old ones
  /// cannot be read any more.
  /// @throws infty::ValueError unless the map is random
  void redraw(Random random) {
    require(is_random(map_), "HeadFeatures::redraw", "the map has no random projections");
    fill_normal(projections.value(), 0, 1, random);
  }

  /// Features of all heads: [B, L, H head_dim] -> [B, L, H, width()]. @throws infty::ShapeError
  V forward(const V& x) const {
    const V heads = detail::in_heads(x, heads_);
    if (map_ == FeatureMap::elu_plus_one) return elu_plus_one(heads);
    if (map_ == FeatureMap::learned) return relu(projected(heads, weight, bias));
    if (!is_random(map_)) return heads;
    const V products = projected(unit_vectors(heads) * deviations, projections, V());
    const T factor = static_cast<T>(1 / std::sqrt(static_cast<double>(products.dim(3))));
    return map_ == FeatureMap::gaussian ? sines_and_cosines(products, factor)
                                        : scale(relu(products), factor);
  }

  /// Multiplications and additions for so many vectors of all heads: see memory/flops.hpp.
  double flops(Index vectors) const {
    const V& map = is_random(map_) ? projections : weight;
    return 2.0 * static_cast<double>(vectors) * static_cast<double>(map.size());
  }

 private:
  /// Each head's rows of a weight times its vectors: [B, L, H, head_dim] -> [B, L, H, D].
  V projected(const V& heads, const V& by, const V& added) const {
    const V y = project_heads(transpose(heads, 1, 2), by);
    return detail::in_heads(added.size() > 0 ? y + added : y, heads_);
  }

  FeatureMap map_ = FeatureMap::identity;
  Index heads_ = 1, width_ = 1;
};

}  // namespace infty
