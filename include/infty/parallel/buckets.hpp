// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <infty/parallel/level_sums.hpp>

namespace infty::detail {

/// A vector of parts that become complete in any order, cut into buckets of a fixed length but for
/// the last one, which are ready in their own order: a bucket when all parts that lie in it are
/// complete, and the buckets before it are ready.
class Buckets {
 public:
  /// Cuts a vector of `size` elements.
  /// @param length  of a bucket; 0: all is one
  Buckets(std::size_t size, std::size_t length)
      : size_(size),
        length_(length == 0 || length > size ? (std::max)(size, std::size_t{1}) : length),
        waits_((size_ + length_ - 1) / length_) {}

  /// Adds a part of the vector.
  void add(Slice part) {
    each(part, [&](std::size_t bucket) { ++waits_[bucket]; });
  }

  /// Notes that a part is complete, and calls ready(slice) for the buckets that are ready now.
  template <class Ready>
  void complete(Slice part, Ready&& ready) {
    each(part, [&](std::size_t bucket) { --waits_[bucket]; });
    for (; next_ < waits_.size() && waits_[next_] == 0; ++next_)
      ready(Slice{next_ * length_, (std::min)(size_, (next_ + 1) * length_)});
  }

 private:
  template <class See>
  void each(Slice part, See&& see) const {
    if (part.size() == 0) return;
    for (std::size_t k = part.first / length_; k <= (part.last - 1) / length_; ++k) see(k);
  }

  std::size_t size_, length_, next_ = 0;
  std::vector<std::size_t> waits_;  // for so many parts, each bucket
};

}  // namespace infty::detail
