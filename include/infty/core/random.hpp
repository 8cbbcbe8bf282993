// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

namespace detail {

struct PhiloxBlock {
  std::uint32_t word[4];
};

/// Computes the block that `counter` and `stream` name under `seed`, by Philox4x32-10 [Salmon et
/// al. 2011].
INFTY_HOST_DEVICE inline PhiloxBlock philox(std::uint64_t seed, std::uint64_t stream,
                                            std::uint64_t counter) {
  auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::uint32_t c0 = low(counter), c1 = high(counter), c2 = low(stream), c3 = high(stream);
  std::uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = high(p1) ^ c1 ^ k0;
    c2 = high(p0) ^ c3 ^ k1;
    c1 = low(p1);
    c3 = low(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Makes a double in [0, 1) of 53 random bits from two words.
INFTY_HOST_DEVICE inline double unit_interval(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32) | low;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// Computes draw number `index` of a stream, uniform in [0, 1).
INFTY_HOST_DEVICE inline double uniform_at(std::uint64_t seed, std::uint64_t stream,
                                           std::uint64_t index) {
  const PhiloxBlock block = philox(seed, stream, index);
  return unit_interval(block.word[0], block.word[1]);
}

}  // namespace detail

/// A counter-based random generator: draw i of stream s under a seed is a function of the three
/// and of nothing else, so the numbers are the same on every machine, backend and thread count.
/// A value of 24 bytes: copy it to replay, `split` it for independent streams.
class Random {
 public:
  /// Begins at draw 0 of a stream; every pair of seed and stream is a sequence of its own.
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  /// Draws uniformly from [0, 1), 53 bits.
  double uniform() { return detail::uniform_at(seed_, stream_, counter_++); }

  /// Draws a standard normal number, by Box and Muller [1958]; one draw of the stream each.
  double normal() {
    const detail::PhiloxBlock block = detail::philox(seed_, stream_, counter_++);
    const double radius = 1 - detail::unit_interval(block.word[0], block.word[1]);  // in (0, 1]
    const double angle = detail::unit_interval(block.word[2], block.word[3]);
    constexpr double two_pi = 6.283185307179586476925;
    return std::sqrt(-2 * std::log(radius)) * std::cos(two_pi * angle);
  }

  /// Draws uniformly from {0, ..., n - 1}, without bias. @throws infty::ValueError if n < 1
  Index below(Index n) {
    require_at_least("Random::below", "n", n, 1);
    const auto range = static_cast<std::uint64_t>(n);
    const std::uint64_t usable = ~std::uint64_t{0} - ~std::uint64_t{0} % range;
    for (;;) {
      const detail::PhiloxBlock block = detail::philox(seed_, stream_, counter_++);
      const std::uint64_t bits = (std::uint64_t{block.word[0]} << 32) | block.word[1];
      if (bits < usable) return static_cast<Index>(bits % range);
    }
  }

  /// Draws index i with probability weights[i] / sum.
  /// @throws infty::ValueError unless the weights are finite, >= 0 and have a positive sum
  Index categorical(std::span<const double> weights) {
    double sum = 0;
    for (const double w : weights) {
      require(math::is_finite(w) && w >= 0, "Random::categorical", "a weight is ", w);
      sum += w;
    }
    require(sum > 0 && math::is_finite(sum), "Random::categorical", "the weights sum to ", sum);
    double left = uniform() * sum;
    Index last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] == 0) continue;
      last = static_cast<Index>(i);
      if (left < weights[i]) return last;
      left -= weights[i];
    }
    return last;  // rounding left a remainder behind the last positive weight
  }

  /// Makes an independent generator, a function of this one's seed and stream and of `stream`
  /// alone.
  Random split(std::uint64_t stream) const {
    const detail::PhiloxBlock block = detail::philox(seed_ ^ 0x5851F42D4C957F2Du, stream_, stream);
    return Random((std::uint64_t{block.word[0]} << 32) | block.word[1],
                  (std::uint64_t{block.word[2]} << 32) | block.word[3]);
  }

  /// Returns the seed given.
  std::uint64_t seed() const { return seed_; }
  /// Returns the stream given.
  std::uint64_t stream() const { return stream_; }
  /// Returns the number of the next draw.
  std::uint64_t counter() const { return counter_; }
  /// Jumps to draw `counter` of the stream.
  void seek(std::uint64_t counter) { counter_ = counter; }

  friend bool operator==(const Random&, const Random&) = default;

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
};

namespace detail {

/// While it lives, `fill_uniform` and `fill_normal` write zeros on this thread and move the
/// generator on as if they had drawn: for parameters that a file is about to give.
class WithoutDraws {
 public:
  WithoutDraws() : before_(active()) { active() = true; }
  ~WithoutDraws() { active() = before_; }
  WithoutDraws(const WithoutDraws&) = delete;
  WithoutDraws& operator=(const WithoutDraws&) = delete;

  /// Whether one lives on this thread.
  static bool& active() {
    static thread_local bool on = false;
    return on;
  }

 private:
  bool before_;
};

/// Whether the elements are zeros now and the generator is where drawing them would leave it.
template <class T, class B>
bool filled_without_draws(Tensor<T, B>& tensor, Random& random) {
  if (!WithoutDraws::active()) return false;
  tensor.fill(T(0));
  random.seek(random.counter() + static_cast<std::uint64_t>(tensor.size()));
  return true;
}

}  // namespace detail

/// Fills with uniform draws from [low, high), element i with draw i: low + (high - low) u, rounded
/// once to double and then to T, which are the same bits on every backend and with every compiler.
/// Rounding to T may give `high`.
template <class T, class B>
void fill_uniform(Tensor<T, B>& tensor, double low, double high, Random& random) {
  if (detail::filled_without_draws(tensor, random)) return;
  T* const to = tensor.data();
  const std::uint64_t seed = random.seed(), stream = random.stream(), first = random.counter();
  B::for_each(tensor.size(), [=] INFTY_HOST_DEVICE(Index i) {
    const double u = detail::uniform_at(seed, stream, first + static_cast<std::uint64_t>(i));
    // In one operation, rounded once: product and sum would be joined by some compilers only.
    to[i] = static_cast<T>(std::fma(high - low, u, low));
  });
  random.seek(first + static_cast<std::uint64_t>(tensor.size()));
}

/// Fills with normal draws, element i with draw i; drawn on the host, where every backend agrees.
template <class T, class B>
void fill_normal(Tensor<T, B>& tensor, double mean, double deviation, Random& random) {
  if (detail::filled_without_draws(tensor, random)) return;
  const Random begin = random;
  const auto draw = [=](Index i) {
    Random at = begin;
    at.seek(begin.counter() + static_cast<std::uint64_t>(i));
    return static_cast<T>(std::fma(deviation, at.normal(), mean));
  };
  if constexpr (std::is_same_v<B, EigenBackend>) {  // whose memory is the host's, and threads
    T* const to = tensor.data();
    B::for_each(tensor.size(), [=](Index i) { to[i] = draw(i); });
  } else {
    std::vector<T> draws;
    draws.reserve(static_cast<std::size_t>(tensor.size()));
    for (Index i = 0; i < tensor.size(); ++i) draws.push_back(draw(i));
    B::from_host(tensor.data(), draws.data(), tensor.size());
  }
  random.seek(begin.counter() + static_cast<std::uint64_t>(tensor.size()));
}

}  // namespace infty
