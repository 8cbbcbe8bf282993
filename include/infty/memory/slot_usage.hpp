// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// How a table of slots is used, over all that is added: how many slots are read at all, and how
/// far the slots' shares are from equal [Lample et al. 2019, §4.4]. It lies in host memory, two
/// numbers a slot.
class SlotUsage {
 public:
  /// Of a table of so many slots, none of which was read. @throws infty::ValueError unless slots >=
  /// 1
  explicit SlotUsage(Index slots) {
    require_at_least("SlotUsage", "slots", slots, 1);
    require_sizes("SlotUsage", {{"slots", slots}});
    weight_.resize(static_cast<std::size_t>(slots));
    count_.resize(static_cast<std::size_t>(slots));
  }

  /// Adds what was read, such as a `ProductKeyReading`.
  /// @param slots, weights  of any shape, the same
  /// @throws infty::ShapeError; infty::ValueError for a slot that there is not; then nothing has
  /// changed
  template <class T, class B>
  void add(const Tensor<Index, B>& slots, const Tensor<T, B>& weights) {
    require<ShapeError>(slots.shape() == weights.shape(), "SlotUsage::add", "slots are ",
                        slots.shape(), ", weights are ", weights.shape());
    const std::vector<Index> slot = slots.to_vector();
    const std::vector<T> weight = weights.to_vector();
    const auto count = static_cast<Index>(count_.size());
    for (const Index s : slot)
      require(s >= 0 && s < count, "SlotUsage::add", "slot ", s, " is not in [0, ", count, ")");
    for (std::size_t i = 0; i < slot.size(); ++i) {
      weight_[static_cast<std::size_t>(slot[i])] += static_cast<double>(weight[i]);
      count_[static_cast<std::size_t>(slot[i])] += 1;
    }
  }

  /// Share of the slots that were read with a weight above 0, in [0, 1].
  double fraction() const {
    const auto used = std::count_if(weight_.begin(), weight_.end(), [](double w) { return w > 0; });
    return static_cast<double>(used) / static_cast<double>(weight_.size());
  }

  /// The divergence of the slots' shares by weight from equal ones, in nats: log K + Σ z log z of K
  /// slots, 0 if all are used alike, log K if one is. @throws infty::ValueError if none was read
  double divergence_by_weight() const { return divergence(weight_); }
  /// The same of their shares by how often they were read. @throws as above
  double divergence_by_count() const { return divergence(count_); }

 private:
  static double divergence(const std::vector<double>& use) {
    double total = 0, sum = 0;
    for (const double x : use) total += x;
    require(total > 0, "SlotUsage", "no slot was read yet");
    for (const double x : use)
      if (x > 0) sum += x / total * std::log(x / total);
    return std::log(static_cast<double>(use.size())) + sum;
  }

  std::vector<double> weight_, count_;
};

}  // namespace infty
