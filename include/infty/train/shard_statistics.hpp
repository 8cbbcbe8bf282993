// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <infty/core/tensor.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/shards.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty::detail {

/// What the passes of shards move beside gradients: parameters that take none, such as the running
/// statistics of a `BatchNorm`. Each shard begins with those from before the step, and behind it
/// they are the mean over what the shards have made of them.
template <class T, class B>
class ShardStatistics {
 public:
  explicit ShardStatistics(const std::vector<NamedParameter<T, B>>& parameters) {
    for (const auto& parameter : parameters)
      if (!parameter.variable.requires_grad() && !parameter.variable.stored_in_bfloat16() &&
          parameter.variable.size() > 0)
        own_.push_back({parameter.variable, parameter.variable.value().to_vector(), {}, 0});
  }

  /// Puts back what a shard has moved that threw before it was kept.
  ~ShardStatistics() {
    if (merged_) return;
#if defined(__cpp_exceptions)
    try {
      for (Statistic& one : own_)
        if (!same(one.variable.value().to_vector(), one.before)) put(one, one.before);
    } catch (...) {  // a device that is lost: what is thrown already says so
    }
#endif
  }
  ShardStatistics(const ShardStatistics&) = delete;
  ShardStatistics& operator=(const ShardStatistics&) = delete;

  /// Notes what the shard that has just been computed has moved, and puts back what was there.
  void keep() {
    for (Statistic& one : own_) {
      std::vector<T> now = one.variable.value().to_vector();
      if (same(now, one.before)) {
        one.behind.emplace_back();
        continue;
      }
      one.moved = 1;
      put(one, one.before);
      one.behind.push_back(std::move(now));
    }
  }

  /// Computes the mean over all shards of those that any shard has moved.
  template <Communicator C>
  void merge(const Shards<C>& shards) {
    if (own_.empty()) return;
    std::vector<char> moved(own_.size());
    for (std::size_t i = 0; i < own_.size(); ++i) moved[i] = own_[i].moved;
    const auto all = gather_bytes(shards.ranks(), std::as_bytes(std::span(moved)));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i] != std::byte{0}) own_[i % own_.size()].moved = 1;
    const T share = T(1) / static_cast<T>(shards.count());
    for (Statistic& one : own_) {
      if (one.moved == 0) continue;
      one.mean = shards.template sum<T>(std::ssize(one.before), [&](Index shard, std::span<T> out) {
        const auto& behind = one.behind[static_cast<std::size_t>(shard - shards.own().first)];
        const auto& from = behind.empty() ? one.before : behind;
        std::copy(from.begin(), from.end(), out.begin());
      });
      for (T& value : one.mean) value *= share;
    }
  }

  /// Makes the statistics what `merge` has computed.
  void put_means() {
    merged_ = true;
    for (Statistic& one : own_)
      if (one.moved != 0) put(one, one.mean);
  }

 private:
  struct Statistic {
    Variable<T, B> variable;
    std::vector<T> before;
    std::vector<std::vector<T>> behind;  // of each shard of this rank, empty if it moved nothing
    char moved;
    std::vector<T> mean = {};  // of all shards
  };

  static bool same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
  }
  static void put(Statistic& to, const std::vector<T>& values) {
    B::from_host(to.variable.value().data(), values.data(), std::ssize(values));
  }

  std::vector<Statistic> own_;
  bool merged_ = false;
};

}  // namespace infty::detail
