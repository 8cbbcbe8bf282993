// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <infty/memory/engram_config.hpp>

namespace infty {

namespace detail {

/// 128 bits.
struct Wide {
  std::uint64_t high = 0, low = 0;

  friend constexpr Wide operator+(Wide a, Wide b) {
    const std::uint64_t sum = a.low + b.low;
    return {a.high + b.high + (sum < a.low ? 1 : 0), sum};
  }
};

/// The product of two words, all of it.
constexpr Wide wide_product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t half = 0xFFFFFFFFU;
  const std::uint64_t low = (a & half) * (b & half), left = (a >> 32U) * (b & half),
                      right = (a & half) * (b >> 32U);
  const std::uint64_t middle = (low >> 32U) + (left & half) + (right & half);
  return {(a >> 32U) * (b >> 32U) + (left >> 32U) + (right >> 32U) + (middle >> 32U),
          middle << 32U | (low & half)};
}

/// NumPy's default generator, `numpy.random.default_rng(seed)`: PCG64 (XSL RR 128/64)
/// [O'Neill 2014] behind NumPy's SeedSequence. For numbers that programs have drawn by it; the
/// library's own are of `Random`.
class NumpyGenerator {
 public:
  /// Seeds it as NumPy does with this number.
  explicit NumpyGenerator(std::uint64_t seed) {
    const auto word = generated(mixed_pool(seed));
    const Wide start{word[0], word[1]};
    step_ = {word[2] << 1U | word[3] >> 63U, word[3] << 1U | 1U};
    advance();
    state_ = state_ + start;
    advance();
  }

  /// 64 random bits.
  std::uint64_t next() {
    advance();
    const std::uint64_t bits = state_.high ^ state_.low;
    const auto by = static_cast<unsigned>(state_.high >> 58U);
    return bits >> by | bits << ((64U - by) & 63U);
  }

  /// A number of [0, n) as `integers(0, n)` draws it, by Lemire's method; n > 2³².
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t least = (std::uint64_t{0} - n) % n;
    for (;;) {
      const Wide product = wide_product(next(), n);
      if (product.low >= least) return product.high;
    }
  }

 private:
  using Pool = std::array<std::uint32_t, 4>;

  /// NumPy's SeedSequence: what its entropy pool is made of a seed.
  static Pool mixed_pool(std::uint64_t seed) {
    std::uint32_t factor = 0x43b0d7e5U;
    const auto hashed = [&](std::uint32_t value) {
      value ^= factor;
      factor *= 0x931e8875U;
      value *= factor;
      return value ^ value >> 16U;
    };
    Pool pool{};
    for (std::size_t i = 0; i < 4; ++i)
      pool[i] = hashed(i < 2 ? static_cast<std::uint32_t>(seed >> 32U * i) : 0);
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to) {
        if (from == to) continue;
        const std::uint32_t mixed = pool[to] * 0xca01f9ddU - hashed(pool[from]) * 0x4973f715U;
        pool[to] = mixed ^ mixed >> 16U;
      }
    return pool;
  }

  /// The first four words that a SeedSequence gives.
  static std::array<std::uint64_t, 4> generated(const Pool& pool) {
    std::uint32_t factor = 0x8b51f9ddU;
    std::array<std::uint64_t, 4> words{};
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t value = pool[i % 4] ^ factor;
      factor *= 0x58f38dedU;
      value *= factor;
      value ^= value >> 16U;
      words[i / 2] |= std::uint64_t{value} << 32U * (i % 2);
    }
    return words;
  }

  /// state = state * multiplier + step.
  void advance() {
    constexpr Wide multiplier{0x2360ED051FC65DA4U, 0x4385DF649FCCF645U};
    Wide product = wide_product(state_.low, multiplier.low);
    product.high += state_.high * multiplier.low + state_.low * multiplier.high;
    state_ = product + step_;
  }

  Wide state_, step_;
};

inline bool is_prime(Index n) {
  if (n < 2) return false;
  for (Index d = 2; d <= n / d; ++d)
    if (n % d == 0) return false;
  return true;
}

}  // namespace detail

/// How an `Engram` finds rows: the n-gram x_(t-n+1), ..., x_t of compressed ids has row
/// (x_t m₀ xor x_(t-1) m₁ xor ... ) mod prime in each table of n.
struct EngramHash {
  std::vector<Index> multipliers;  ///< m, odd, one for each place of the longest n-gram
  std::vector<Index> primes;       ///< rows of each table: those of 2-grams, head by head, then 3
  std::vector<Index> offsets;      ///< where each table begins, one behind the other
  Index rows = 0;                  ///< of all tables
};

/// Finds multipliers and primes of a layer's tables as the authors' program does: multipliers are
/// 2 r + 1 with r drawn uniformly below ⌊(2⁶³ - 1) / ids⌋ / 2 by NumPy's generator, seeded
/// seed + 10007 layer; a table has the next prime number of rows, from the wished size on, that no
/// other table of any layer has. @throws infty::ValueError unless the configuration is valid
inline EngramHash engram_hash(const EngramConfig& config) {
  config.validate();
  EngramHash hash{.multipliers = config.multipliers, .primes = {}, .offsets = {}};
  if (hash.multipliers.empty()) {
    detail::NumpyGenerator random(static_cast<std::uint64_t>(config.seed + 10007 * config.layer));
    const Index half = (std::numeric_limits<Index>::max)() / config.compressed() / 2;
    for (Index i = 0; i < config.max_ngram; ++i)
      hash.multipliers.push_back(
          2 * static_cast<Index>(random.below(static_cast<std::uint64_t>(half))) + 1);
  }
  std::set<Index> taken;
  for (const Index layer : config.layers.empty() ? std::vector{config.layer} : config.layers) {
    for (Index size : config.table_sizes)
      for (Index head = 0; head < config.heads; ++head) {
        while (taken.contains(size) || !detail::is_prime(size)) ++size;
        taken.insert(size);
        if (layer == config.layer) hash.primes.push_back(size);
      }
    if (layer == config.layer) break;
  }
  for (const Index prime : hash.primes) {
    hash.offsets.push_back(hash.rows);
    hash.rows += prime;
  }
  return hash;
}

}  // namespace infty
