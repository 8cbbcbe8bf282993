// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/eigen/default.hpp>
#include <infty/signal/contraction_rule.hpp>
#include <infty/signal/overshoot.hpp>

// What memories keep of a vector that came some time ago, by formula; docs/uniform_memory.md
// derives these, and has the figure in which they are measured. What is kept is a share in [0, 1]:
// of the variance of vectors that are independent of each other, the part that the best linear read
// of the state gives back. Of a vector that is held as it was that is 1, of one that only the mean
// of n holds 1 / n. Over all vectors the shares add up to the numbers that a memory holds of each
// coordinate at most, whatever it does: it can only choose where to have them.
//
// The age of a vector is the number of those that came behind it: the newest has age 0.

namespace infty {

/// Finds the share of [0, 1] that each vector has behind writes of these lengths, the oldest first,
/// by the definition of contraction: a write takes 1 - tau and contracts all others by tau.
/// @param lengths  each >= 1; the first write fills [0, 1]
/// @return         one for each vector; they add up to 1
/// @throws infty::ValueError if a length is < 1, or the rule's share is not in (0, 1)
inline std::vector<double> rooms(const ContractionRule& rule, const std::vector<Index>& lengths) {
  std::vector<double> all;
  for (const Index length : lengths) {
    require_at_least("rooms", "length", length, 1);
    const auto written = static_cast<Index>(all.size());
    const double tau = written == 0 ? 0 : rule(written, length);
    require(written == 0 || (tau > 0 && tau < 1), "rooms", "the contraction's tau is ", tau,
            ": it must be in (0, 1)");
    for (double& room : all) room *= tau;
    all.insert(all.end(), static_cast<std::size_t>(length),
               (1 - tau) / static_cast<double>(length));
  }
  return all;
}

/// The share of [0, 1] of the vector of this age behind `written` vectors in writes of `length`:
/// (1 - tau) tau^k / length, k = age / length, rounded down; of the first write tau^k / length, for
/// it had all.
/// @throws infty::ValueError unless 0 <= age < written, and length divides written
inline double room(const FixedContraction& rule, Index length, Index written, Index age) {
  require_at_least("room", "length", length, 1);
  require(age >= 0 && age < written && written % length == 0, "room", "age is ", age,
          ", written is ", written, ", length is ", length,
          ": age must be in [0, written), and written a multiple of length");
  const Index writes = age / length;
  const double first = (writes + 1) * length == written ? 1 : 1 - rule.tau;
  return first * std::pow(rule.tau, static_cast<double>(writes)) / static_cast<double>(length);
}

/// The same of a power contraction, whatever the writes: ((w - age) / w)^p - ((w - age - 1) / w)^p
/// behind w written; exact where writes are single vectors, and for whole writes of any lengths.
/// @throws infty::ValueError unless 0 <= age < written
inline double room(const PowerContraction& rule, Index written, Index age) {
  require(age >= 0 && age < written, "room", "age is ", age, ", written is ", written,
          ": age must be in [0, written)");
  const auto w = static_cast<double>(written), i = static_cast<double>(written - age);
  return std::pow(i / w, rule.power) - std::pow((i - 1) / w, rule.power);
}

/// What a signal of so many independent functions keeps of a vector with this room: cells * room,
/// at most all.
inline double kept_by_signal(double cells, double room) { return (std::min)(1.0, cells * room); }

/// What several states together keep of a vector of which each by itself keeps one of these shares,
/// in [0, 1]: o / (1 + o), o the sum of s / (1 - s). Exact where what else is in them, the noise of
/// a read, is independent from state to state. Where it is shared it may be more, for noise can be
/// taken from noise, or less, where two states say the same. Once a vector is held as it was, all
/// of it is kept.
/// @throws infty::ValueError unless every share is in [0, 1]
inline double kept_by_parts(const std::vector<double>& shares) {
  double odds = 0;
  for (const double share : shares) {
    require(share >= 0 && share <= 1, "kept_by_parts", "a share is ", share,
            ": it must be in [0, 1]");
    if (share == 1) return 1;
    odds += share / (1 - share);
  }
  return odds / (1 + odds);
}

/// What a queue keeps, Transformer-XL's memory: all of the last `capacity` vectors.
inline double kept_by_queue(Index capacity, Index age) { return age < capacity ? 1 : 0; }

/// What the Compressive Transformer's memory keeps: all of the last `capacity` vectors, of each
/// behind these 1 / rate, as far as `compressed` means of `rate` reach.
/// @throws infty::ValueError unless rate >= 1
inline double kept_by_compression(Index capacity, Index compressed, Index rate, Index age) {
  require_at_least("kept_by_compression", "rate", rate, 1);
  if (age < capacity) return 1;
  return (age - capacity) / rate < compressed ? 1 / static_cast<double>(rate) : 0;
}

/// What a delta rule keeps whose keys are independent and uniform on the sphere: of d = `key_dim`,
/// b (2 - b) (1 - b (2 - b) / d)^age, behind many writes. It is the mean over keys, exact for b =
/// 1; for less, fluctuations of W Wᵀ about b / (2 - b) are neglected.
/// @param beta  b in (0, 2), the share of what stands at a key that is replaced
/// @throws infty::ValueError unless key_dim >= 1
inline double kept_by_delta_rule(Index key_dim, double beta, Index age) {
  require_at_least("kept_by_delta_rule", "key_dim", key_dim, 1);
  const double share = beta * (2 - beta);
  return share * std::pow(1 - share / static_cast<double>(key_dim), static_cast<double>(age));
}

/// What a read of that memory at the vector's own key gives back: the squared correlation of Sᵀk
/// and v, of the means over keys. For b = 1 nearly (1 - 2 / d)^age, so that a read has the half of
/// all that is kept. Exact.
/// @throws infty::ValueError unless key_dim >= 1
inline double read_by_delta_rule(Index key_dim, double beta, Index age) {
  require_at_least("read_by_delta_rule", "key_dim", key_dim, 1);
  const auto d = static_cast<double>(key_dim), n = static_cast<double>(age);
  // What later writes leave of w, at first b k: of its squared length, and of (kᵀw)² beside a d-th
  // of that.
  const double length = 1 - beta * (2 - beta) / d,
               along = 1 - 2 * beta / d + 2 * beta * beta / (d * (d + 2)),
               gain = beta * beta * ((1 - 1 / d) * std::pow(along, n) + std::pow(length, n) / d);
  // E (kᵀs)² of a key that was never written, and of one right behind its write.
  const double anywhere = beta / (2 - beta),
               written = (1 - beta) * (1 - beta) * anywhere + beta * beta;
  return gain / (anywhere + (written - anywhere) * std::pow(along, n));
}

/// How a `UniformMemory` has written a stream.
struct PooledWrites {
  Index refits = 0;  ///< blocks that were written
  Index rate = 1;    ///< m, vectors of a mean in the block that waits
  Index held = 0;    ///< vectors in that block
};

/// Finds how a stream is pooled, by the rule: a block of `block` means is written when more comes
/// than it takes, and m is doubled where the next block's share is below `least_share`.
/// @param rule  of the signal, one that changes with what was written; it is taken from the grid
/// here
/// @throws infty::ValueError if block < 1 or taken < 0, or the rule's share is not in (0, 1)
inline PooledWrites pooled_writes(const ContractionRule& rule, Index block, double least_share,
                                  Index taken) {
  require_at_least("pooled_writes", "block", block, 1);
  require_at_least("pooled_writes", "taken", taken, 0);
  PooledWrites s;
  Index means = 0;  // that the signal counts
  const auto share = [&](Index written) {
    return 1 - gridded_share("pooled_writes", rule(written, block));
  };
  for (s.held = taken; s.held > block * s.rate; ++s.refits) {
    s.held -= block * s.rate;
    means += block;
    if (means / block % 2 == 0 && share(means) < least_share && share(means / 2) > share(means)) {
      s.rate *= 2;
      means /= 2;
    }
  }
  return s;
}

/// About how many refits these are for a power contraction: with W = p P / r the means at which a
/// block of P takes r of [0, 1], n / P of the first W vectors, and W / (2 P) for every doubling
/// behind them: p / r (1 + log2(n / W) / 2).
inline double expected_refits(const PowerContraction& rule, Index block, double least_share,
                              Index taken) {
  require_at_least("expected_refits", "block", block, 1);
  require(math::is_finite(least_share) && least_share > 0, "expected_refits", "least_share is ",
          least_share, ": it must be positive and finite");
  const double full = rule.power / least_share, vectors = static_cast<double>(taken),
               blocks = vectors / static_cast<double>(block);
  return blocks <= full ? blocks : full * (1 + std::log2(blocks / full) / 2);
}

/// What the best linear read gives back of each of n inputs that are independent and of variance 1,
/// of a state z = W x with an error of its own: the diagonal of Wᵀ (W Wᵀ + e² v I)⁻¹ W, v the mean
/// square of z.
/// @param map    W [numbers, inputs]
/// @param error  e > 0, of the root mean square of the state
/// @return       one share in [0, 1] for each input; they add up to less than the numbers
/// @throws infty::ShapeError, infty::ValueError
inline std::vector<double> kept_by_map(const Tensor<double>& map, double error = .01) {
  require<ShapeError>(map.rank() == 2 && map.size() > 0, "kept_by_map", "the map is ", map.shape(),
                      ": it must be [numbers, inputs]");
  require(math::is_finite(error) && error > 0, "kept_by_map", "error is ", error,
          ": it must be positive and finite");
  const Index N = map.dim(0), n = map.dim(1);
  auto gram = detail::matrix_product(map, false, map, true);
  double trace = 0;
  for (Index i = 0; i < N; ++i) trace += gram.data()[i * N + i];
  for (Index i = 0; i < N; ++i)
    gram.data()[i * N + i] += error * error * trace / static_cast<double>(N);
  auto solved = map.clone();
  require(EigenBackend::cholesky_solve(N, n, gram.data(), solved.data()), "kept_by_map",
          "the state holds nothing, or numbers that are not finite");
  std::vector<double> kept(static_cast<std::size_t>(n), 0);
  for (Index i = 0; i < map.size(); ++i)
    kept[static_cast<std::size_t>(i % n)] += map.data()[i] * solved.data()[i];
  return kept;
}

}  // namespace infty
