// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include <infty/autograd/variable.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

namespace detail {

/// The encoding of one place or distance -> [d]: the sines of all frequencies, then the cosines.
template <class T>
INFTY_HOST_DEVICE void encode_place(double at, T* to, Index d) {
  const Index half = d / 2;
  for (Index i = 0; i < half; ++i) {
    const double frequency =
        std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(d));
    to[i] = static_cast<T>(std::sin(at * frequency));
    to[half + i] = static_cast<T>(std::cos(at * frequency));
  }
}

}  // namespace detail

/// Sinusoidal encodings of the distances last + length - 1, ..., last -> [length, d]: the sines of
/// all frequencies 10000^(-2i/d), then the cosines [Dai et al. 2019; Vaswani et al. 2017, §3.5].
/// @param last  the shortest distance; those of keys ahead are negative
/// @throws infty::ValueError unless length >= 0, and d is even and >= 2
template <class T, class B = EigenBackend>
Tensor<T, B> distance_encoding(Index length, Index d, Index last = 0) {
  require_at_least("distance_encoding", "length", length, 0);
  require(d >= 2 && d % 2 == 0, "distance_encoding", "d is ", d, ": it must be even, >= 2");
  Tensor<T, B> out(Shape{length, d});
  T* const to = out.data();
  B::for_each_row(length, 32 * d, [=] INFTY_HOST_DEVICE(Index row) {
    const double distance = static_cast<double>(last) + static_cast<double>(length - 1 - row);
    detail::encode_place(distance, to + row * d, d);
  });
  return out;
}

/// From encodings of distances [length, d] those of the distances negated -> [length, d]: the sines
/// change their sign.
template <class T, class B>
Tensor<T, B> negated_distances(const Tensor<T, B>& encoding) {
  Tensor<T, B> out(encoding.shape());
  const T* const from = encoding.data();
  T* const to = out.data();
  const Index d = encoding.dim(1), half = d / 2;
  B::for_each(out.size(),
              [=] INFTY_HOST_DEVICE(Index i) { to[i] = i % d < half ? -from[i] : from[i]; });
  return out;
}

/// Encodings of distances of one width, which grow as they are asked for. Copies share them, so
/// that the layers of a model have one table; any number of threads may ask.
template <class T, class Backend = EigenBackend>
class DistanceTable {
 public:
  /// Those of the distances R - 1, ..., 0 for some R >= `longest` -> [R, d], the last row that of
  /// distance 0. @throws infty::ValueError as `distance_encoding`
  Tensor<T, Backend> reaching(Index longest, Index d) const {
    require(shared_ != nullptr, "DistanceTable", "it was moved from");
    require_at_least("DistanceTable", "longest", longest, 0);
    const std::lock_guard lock(shared_->mutex);
    const Index held = shared_->table.dim(1) == d ? shared_->table.dim(0) : 0;
    // Twice as many, so that who asks for one more each time does not have all made anew each time.
    if (held < longest || shared_->table.dim(1) != d)
      shared_->table = distance_encoding<T, Backend>((std::max)(longest, 2 * held), d);
    return shared_->table;
  }

 private:
  struct Shared {
    std::mutex mutex;
    Tensor<T, Backend> table{Shape{0, 0}};
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace infty
