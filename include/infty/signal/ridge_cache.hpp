// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/tensor.hpp>
#include <infty/signal/basis.hpp>
#include <infty/signal/contraction.hpp>
#include <infty/signal/positions.hpp>
#include <infty/signal/ridge.hpp>

namespace infty {

/// What RidgeCache keeps and how much of it.
struct RidgeSettings {
  double penalty = 1;  ///< λ > 0
  Index samples = 0;   ///< of the contracted past, >= 1
  double tau = 0.75;   ///< share of [0, 1] that the past is contracted to, in (0, 1)
  Index entries = 64;  ///< matrices for so many lengths are kept; the least recently used leave
  std::size_t bytes = std::size_t{256} << 20;  ///< and no more than this, but always the last one
};

namespace detail {

/// Values by length, the most recently used in front.
template <class Value>
class RecentlyUsed {
 public:
  /// The value for `length`, from `make()` if it is not there. @param bytes  of a value
  template <class Make, class Bytes>
  Value get(Index length, const RidgeSettings& limits, Make make, Bytes bytes) {
    for (auto it = values_.begin(); it != values_.end(); ++it) {
      if (it->first != length) continue;
      values_.splice(values_.begin(), values_, it);
      return values_.front().second;
    }
    values_.emplace_front(length, make());
    held_ += bytes(values_.front().second);
    while (values_.size() > 1 &&
           (static_cast<Index>(values_.size()) > limits.entries || held_ > limits.bytes)) {
      held_ -= bytes(values_.back().second);
      values_.pop_back();
    }
    return values_.front().second;
  }

  std::size_t size() const { return values_.size(); }
  std::size_t bytes() const { return held_; }

 private:
  std::list<std::pair<Index, Value>> values_;
  std::size_t held_ = 0;
};

}  // namespace detail

/// The ridge matrices of every length that is written, solved once in double and kept in T.
/// Copies share what they keep; several threads may ask at once. One that was moved from throws
/// infty::ValueError when it is asked.
template <class T, class B, Basis Psi>
class RidgeCache {
 public:
  /// @throws infty::ValueError if a setting is out of its range
  RidgeCache(const Psi& psi, const RidgeSettings& settings)
      : psi_(psi), settings_(settings), kept_(std::make_shared<Kept>()) {
    require(std::isfinite(settings.penalty) && settings.penalty > 0, "RidgeCache", "penalty is ",
            settings.penalty, ": it must be positive and finite");
    require_at_least("RidgeCache", "samples", settings.samples, 1);
    require(settings.tau > 0 && settings.tau < 1, "RidgeCache", "tau is ", settings.tau,
            ": it must be in (0, 1)");
    require_at_least("RidgeCache", "entries", settings.entries, 1);
  }

  /// The functions that are fitted.
  const Psi& basis() const { return psi_; }
  /// Penalty, samples, tau and limits as given.
  const RidgeSettings& settings() const { return settings_; }

  /// G [length, N] of a memory's first write. @throws infty::ValueError if length < 1
  Tensor<T, B> first(Index length) const {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    return all.first.get(
        length, settings_,
        [&] {
          const auto G = ridge_matrix<B>(psi_, first_positions(length), settings_.penalty);
          return G.template cast<T>();
        },
        [](const Tensor<T, B>& G) { return G.bytes(); });
  }

  /// The matrices of every later write. @throws infty::ValueError if length < 1
  NextMatrices<T, B> next(Index length) const {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    return all.next.get(
        length, settings_, [&] { return make_next(length); },
        [](const NextMatrices<T, B>& m) {
          return m.next_old.bytes() + m.next_new.bytes() + m.carry.bytes();
        });
  }

  /// Number of matrices, and the bytes, that are kept now.
  std::size_t entries() const {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    return all.first.size() + all.next.size();
  }
  std::size_t bytes() const {
    Kept& all = kept();
    const std::lock_guard lock(all.mutex);
    return all.first.bytes() + all.next.bytes();
  }

 private:
  struct Kept {
    std::mutex mutex;
    detail::RecentlyUsed<Tensor<T, B>> first;
    detail::RecentlyUsed<NextMatrices<T, B>> next;
  };

  Kept& kept() const {
    require(kept_ != nullptr, "RidgeCache", "it was moved from");
    return *kept_;
  }

  NextMatrices<T, B> make_next(Index length) const {
    const Index samples = settings_.samples, N = psi_.size();
    const auto positions = next_positions(length, samples, settings_.tau);
    const auto G = ridge_matrix<B>(psi_, positions, settings_.penalty);  // [samples + length, N]
    const auto even = even_locations<double, B>(samples).to_vector();
    const auto F = detail::design_matrix<B>(psi_, even.data(), samples);  // [N, samples]
    Tensor<double, B> carry({N, N});
    B::matmul(Matmul{.m = N,
                     .n = N,
                     .k = samples,
                     .a = {.leading = N, .transposed = true},
                     .b = {.leading = samples, .transposed = true},
                     .c = {.leading = N}},
              1.0, G.data(), F.data(), 0.0, carry.data());
    return {G.slice(0, samples).template cast<T>(),
            G.slice(samples, samples + length).template cast<T>(), carry.template cast<T>()};
  }

  Psi psi_;
  RidgeSettings settings_;
  std::shared_ptr<Kept> kept_;
};

}  // namespace infty
