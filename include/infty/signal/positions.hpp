// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>

namespace infty {

/// Where the ridge regression sees vectors (`inside`, in their order), and where it sees zeros so
/// that the signal falls to zero outside of [0, 1] (`before` and `after`).
struct Positions {
  std::vector<double> inside, before, after;  ///< rising, in units of the signal's length [0, 1]
};

/// Places a memory's first `length` vectors: of the midpoints of 2 length cells on [-1/2, 3/2], all
/// but length / 2 (rounded down) at the front are theirs, for as many as they are. The paper leaves
/// places open [Martins et al. 2022, §2.2]; these are the authors' programs'.
/// For an odd length these stand half a cell before the midpoints of as many cells of [0, 1]; at
/// the midpoints with `midpoints`, and with length / 2 of 2 length - 1 places on either side then,
/// as in the authors' dialogue program.
/// @throws infty::ValueError if length is not in [1, `largest_size`]
inline Positions first_positions(Index length, bool midpoints = false) {
  require_at_least("first_positions", "length", length, 1);
  require_sizes("first_positions", {{"length", length}});
  Positions p;
  const Index front = length / 2, odd = midpoints ? length % 2 : 0;
  for (Index i = 0; i < 2 * length - odd; ++i) {
    const double at = static_cast<double>(i) + (odd == 1 ? 1 : 0.5);
    const double t = at / static_cast<double>(length) - 0.5;
    (i < front ? p.before : i < front + length ? p.inside : p.after).push_back(t);
  }
  return p;
}

/// Places every later write: `samples` of the contracted past at tau m / samples, then the `length`
/// new vectors at tau + (1 - tau) i / length, m and i from 1; zeros at the points outside of [0, 1]
/// of an even grid on [-1/2, 3/2] of twice as many   [Martins et al. 2022, Eq. 13-15].
/// @throws infty::ValueError if length or samples is not in [1, `largest_size`], or tau in (0, 1)
inline Positions next_positions(Index length, Index samples, double tau) {
  require_at_least("next_positions", "length", length, 1);
  require_at_least("next_positions", "samples", samples, 1);
  require_sizes("next_positions", {{"length", length}});
  require_sizes("next_positions", {{"samples", samples}});
  require(math::is_finite(tau) && tau > 0 && tau < 1, "next_positions", "tau is ", tau,
          ": it must be in (0, 1)");
  const auto n = static_cast<double>(length), m = static_cast<double>(samples);
  Positions p;
  p.inside.reserve(static_cast<std::size_t>(samples + length));
  for (Index i = 1; i <= samples; ++i) p.inside.push_back(tau * static_cast<double>(i) / m);
  for (Index i = 1; i <= length; ++i)
    p.inside.push_back(tau + (1 - tau) * static_cast<double>(i) / n);
  const double shift = 1 / (2 * n + m), begin = -0.5 + shift, end = 1.5 - shift;
  const Index points = 2 * (length + samples);
  for (Index i = 0; i < points; ++i) {
    const double step = (end - begin) / static_cast<double>(points - 1);
    const double t = i + 1 == points ? end : static_cast<double>(i) * step + begin;
    if (t < 0) p.before.push_back(t);
    if (t > 1) p.after.push_back(t);
  }
  return p;
}

/// Counts the places that a write of `length` vectors needs so that its part of the signal, (tau,
/// 1], is as densely covered as the contracted past: at least samples (1 - tau) / tau of them,
/// which is not asked beyond eight times the samples. Fewer vectors are held, each over several
/// places; with nothing in most of (tau, 1] the regression would extrapolate there.
/// @return  >= length
/// @throws infty::ValueError if length is below 1, samples not in [1, `largest_size`], or tau not
/// in (0, 1)
inline Index held_points(Index length, Index samples, double tau) {
  require_at_least("held_points", "length", length, 1);
  require_at_least("held_points", "samples", samples, 1);
  require_sizes("held_points", {{"samples", samples}});
  require(math::is_finite(tau) && tau > 0 && tau < 1, "held_points", "tau is ", tau,
          ": it must be in (0, 1)");
  const double dense = (std::min)((1 - tau) / tau, 8.0) * static_cast<double>(samples);
  return (std::max)(length, static_cast<Index>(std::ceil(dense)));
}

}  // namespace infty
