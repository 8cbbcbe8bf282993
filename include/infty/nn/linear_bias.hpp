// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <infty/autograd/broadcast.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/nn/fwd.hpp>

namespace infty {

/// What the slopes of a `LinearBias` are at first.
enum class SlopeStart {
  zero,   ///< 0, so that a model that was trained without begins as it was
  alibi,  ///< `alibi_slopes`
};

/// The slopes of attention with linear biases [Press et al. 2021, §3]: 2^(-8 h / H) for heads
/// h = 1, ..., H if H is a power of 2; else those of the largest power of 2 below, and then every
/// other one of twice as many heads, as in the authors' program.
/// @throws infty::ValueError unless heads >= 1
inline std::vector<double> alibi_slopes(Index heads) {
  require_at_least("alibi_slopes", "heads", heads, 1);
  const auto power = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<double> slopes;
  const auto slope = [](Index h, Index of) {
    return std::exp2(-8 * static_cast<double>(h) / static_cast<double>(of));
  };
  for (Index h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  for (Index h = 1; std::ssize(slopes) < heads; h += 2) slopes.push_back(slope(h, 2 * power));
  return slopes;
}

/// A bias of attention scores that falls with the distance n, -m n, by a learned slope m a head
/// [Press et al. 2021, §3, whose slopes are constants].
template <class T, class Backend>
struct LinearBias {
  using V = Variable<T, Backend>;

  V slopes;  ///< m, [H]

  LinearBias() = default;

  /// Makes the slopes of so many heads. @throws infty::ValueError unless heads >= 1
  explicit LinearBias(Index heads, SlopeStart start = SlopeStart::alibi) {
    require_at_least("LinearBias", "heads", heads, 1);
    require_sizes("LinearBias", {{"heads", heads}});
    std::vector<T> first(static_cast<std::size_t>(heads), T(0));
    if (start == SlopeStart::alibi) {
      const auto slopes_of = alibi_slopes(heads);
      for (std::size_t h = 0; h < first.size(); ++h) first[h] = static_cast<T>(slopes_of[h]);
    }
    slopes = V(Tensor<T, Backend>::from(Shape{heads}, first), true);
  }

  /// The bias of the distances 0, ..., count - 1 -> [H, count].
  V by_distance(Index count) const {
    Tensor<T, Backend> distances(Shape{1, count});
    T* const to = distances.data();
    Backend::for_each(count, [=] INFTY_HOST_DEVICE(Index n) { to[n] = -static_cast<T>(n); });
    return multiply(reshape(slopes, Shape{slopes.size(), 1}), V(distances));
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("slopes", slopes);
  }
};

}  // namespace infty
