// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <infty/core/config.hpp>
#include <infty/core/erf.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/random.hpp>
#include <infty/core/shape.hpp>
#include <infty/core/tensor.hpp>
#include <infty/core/verify.hpp>
#include <infty/signal/density.hpp>
#include <infty/signal/gaussian_density.hpp>
#include <infty/signal/normal_integrals.hpp>

namespace infty {

namespace detail {

/// Edge i of the bins, the outermost ones a little outside.
template <class T>
INFTY_HOST_DEVICE inline T bin_edge(Index i, Index bins) {
  return i == 0 ? T(-1e-6) : (i == bins ? T(1 + 1e-6) : T(i) / T(bins));
}

/// Adds the probability of every bin under N(mu, sigma^2).
template <class T>
INFTY_HOST_DEVICE inline void add_gaussian_bins(T mu, T sigma, Index bins, T* to) {
  const T middle = T(0.5) / T(bins),
          past = T(0.5e-6);  // of a bin, and of what is outside at an end
  const T half = middle / sigma, wide = half + past / sigma;  // in standard deviations
  const T furthest = std::fmax(std::fabs(mu), std::fabs(1 - mu)) / sigma;
  if (wide <= T(1) / 32 && wide * furthest <= T(0.25)) {
    for (Index bin = 1; bin + 1 < bins; ++bin)
      to[bin] += narrow_normal_mass(((T(bin) + T(0.5)) / T(bins) - mu) / sigma, half);
    if (bins == 1) {
      to[0] += narrow_normal_mass((middle - mu) / sigma, wide + past / sigma);
      return;
    }
    to[0] += narrow_normal_mass((middle - past - mu) / sigma, wide);
    to[bins - 1] += narrow_normal_mass((1 - middle + past - mu) / sigma, wide);
    return;
  }
  // The smaller tail beyond each edge; far from mu, they keep their digits. Beyond forty standard
  // deviations nothing is left.
  constexpr T r = T(0.70710678118654752440084436L), beyond = 40;  // r = 1 / sqrt(2)
  const T start = (mu - beyond * sigma) * T(bins);
  Index first = 0;  // for NaN, too
  if (start > 0 && !math::is_nan(start))
    first = start >= T(bins) ? bins : static_cast<Index>(start);
  constexpr Index chunk = 16;  // edges whose tails make vector code
  T z[chunk + 1], tail[chunk + 1];
  for (Index at = first; at < bins; at += chunk) {
    for (Index i = 0; i <= chunk; ++i)
      z[i] = (bin_edge<T>(at + i < bins ? at + i : bins, bins) - mu) / sigma;
    if (z[0] > beyond) return;
    for (Index i = 0; i <= chunk; ++i) tail[i] = T(0.5) * math::erfc(std::fabs(z[i]) * r);
    const Index count = bins - at < chunk ? bins - at : chunk;
    for (Index i = 0; i < count; ++i) {
      const T below = tail[i], above = tail[i + 1];
      to[at + i] += z[i] > 0 ? below - above : (z[i + 1] < 0 ? above - below : 1 - below - above);
    }
  }
}

/// Adds the probability of every bin under the density.
template <class D, class T>
INFTY_HOST_DEVICE inline void add_bins(T mu, T sigma, Index bins, T* to) {
  if constexpr (std::same_as<D, GaussianDensity>) {
    add_gaussian_bins(mu, sigma, bins, to);
  } else {
    const T square = sigma * sigma, least = (std::numeric_limits<T>::min)();
    const T var = square < least ? least : square;  // no 0; fmax would lose a NaN
    for (Index bin = 0; bin < bins; ++bin)
      to[bin] += D::mass(bin_edge<T>(bin, bins), bin_edge<T>(bin + 1, bins), mu, var);
  }
}

/// Seed, stream and counter of each generator, [rows, 3].
template <class B>
Tensor<Index, B> draw_keys(std::span<const Random> random) {
  PoolVector<Index> keys;
  keys.reserve(3 * random.size());
  for (const Random& generator : random)
    for (const std::uint64_t key : {generator.seed(), generator.stream(), generator.counter()})
      keys.push_back(static_cast<Index>(key));
  return Tensor<Index, B>::from({static_cast<Index>(random.size()), 3}, keys.data());
}

}  // namespace detail

/// Computes how much of a row's densities lies in each of `bins` equal parts of [0, 1]: the sum
/// over the densities of their probability of the bin, normalised   [Martins et al. 2022, Eq. 16,
/// 17]. The paper prints erf(b / sqrt 2) for erf((b - mu) / (sigma sqrt 2)); the outermost edges
/// reach 1e-6 past the ends, as in the authors' program. A row all of whose densities are so far
/// away that no probability is left is uniform.
/// @param mu, sigma  [rows, n], sigma > 0
/// @return           [rows, bins]
/// @throws infty::ShapeError if mu and sigma differ; infty::ValueError if bins < 1
/// @post   each row is >= 0 and sums to 1
template <Density D = GaussianDensity, class T, class B>
Tensor<T, B> bin_probability(const Tensor<T, B>& mu, const Tensor<T, B>& sigma, Index bins) {
  require<ShapeError>(mu.rank() == 2 && mu.shape() == sigma.shape(), "bin_probability", "mu is ",
                      mu.shape(), ", sigma is ", sigma.shape(), ": both must be [rows, n]");
  require_at_least("bin_probability", "bins", bins, 1);
  const Index rows = mu.dim(0), n = mu.dim(1);
  // Densities in parts: work for many threads, and sums so short that float keeps its digits.
  constexpr Index part = 64;
  const Index parts = std::max<Index>(1, (n + part - 1) / part);
  auto sums = Tensor<T, B>::zeros({rows, parts, bins});
  T* const partial = sums.data();
  const T *const m = mu.data(), *const s = sigma.data();
  B::for_each_row(rows * parts, part * bins, [=] INFTY_HOST_DEVICE(Index i) {
    const Index begin = i / parts * n + i % parts * part, end = i / parts * n + n;
    for (Index k = begin; k < end && k < begin + part; ++k)
      detail::add_bins<D>(m[k], s[k], bins, partial + i * bins);
  });
  Tensor<T, B> out({rows, bins});
  T* const p = out.data();
  B::for_each_row(rows, parts * bins, [=] INFTY_HOST_DEVICE(Index row) {
    const auto of_bin = [&](Index bin) {
      double sum = 0;
      for (Index i = 0; i < parts; ++i)
        sum += static_cast<double>(partial[(row * parts + i) * bins + bin]);
      return sum;
    };
    double total = 0;
    for (Index bin = 0; bin < bins; ++bin) total += of_bin(bin);
    for (Index bin = 0; bin < bins; ++bin)
      p[row * bins + bin] = total == 0 ? T(1) / T(bins) : static_cast<T>(of_bin(bin) / total);
  });
  return out;
}

namespace detail {

/// Throws infty::NonFiniteError or infty::ValueError that names `op` unless all numbers of
/// probability [rows, bins] are finite and >= 0.
template <class T, class B>
void require_probabilities(const char* op, const Tensor<T, B>& probability) {
  const T* const p = probability.data();
  const Index bins = probability.dim(1);
  verify<B>(
      probability.size(),
      [=] INFTY_HOST_DEVICE(Index i) { return !math::is_finite_at(p + i) || p[i] < T(0); },
      [op, probability, bins](Index i) {
        const auto q = probability.reshape(Shape{probability.size()}).slice(i, i + 1).item();
        require<NonFiniteError>(math::is_finite(q), op, "probability of bin ", i % bins, " of row ",
                                i / bins, " is ", q);
        raise<ValueError>(op, "probability of bin ", i % bins, " of row ", i / bins, " is ", q,
                          ": it must not be negative");
      });
}

/// Whether probabilities of this sum can be drawn from.
INFTY_HOST_DEVICE inline bool is_mass(double sum) {
  return sum > 0 && sum <= (std::numeric_limits<double>::max)();
}

/// Throws that a row has no such sum.
[[noreturn]] inline void refuse_mass(const char* op, Index row, const char* times = "") {
  raise<ValueError>(op, "the probabilities of row ", row, " sum to 0 or to infinity: the sum",
                    times, " must be positive and finite");
}

}  // namespace detail

/// Draws bins with replacement and gives their left edges, sorted   [Martins et al. 2022, §3.3].
/// Each row draws from a generator of its own, so that it does not depend on the others.
/// @param probability  [rows, bins], >= 0, each row with a positive sum (need not be 1)
/// @param samples      >= 1
/// @param random       one generator a row, moved on by `samples` draws
/// @param sorted       whether they rise, or stand in the order drawn
/// @return             [rows, samples], in [0, 1), rising if `sorted`
/// @throws infty::ShapeError, infty::ValueError, infty::NonFiniteError
template <class T, class B>
Tensor<T, B> sample_locations(const Tensor<T, B>& probability, Index samples,
                              std::span<Random> random, bool sorted = true) {
  require<ShapeError>(probability.rank() == 2 && probability.dim(1) >= 1, "sample_locations",
                      "probability is ", probability.shape(), ": it must be [rows, bins]");
  require_at_least("sample_locations", "samples", samples, 1);
  const Index rows = probability.dim(0), bins = probability.dim(1);
  require(static_cast<Index>(random.size()) == rows, "sample_locations", random.size(),
          " generators for ", rows, " rows: there must be one a row");
  const T* const p = probability.data();
  detail::require_probabilities("sample_locations", probability);
  Tensor<double, B> sums({rows, bins});  // up to and with each bin
  Tensor<Index, B> last({rows});         // that can be drawn: u * sum may round up to sum
  double* const below = sums.data();
  Index* const end = last.data();
  B::for_each_row(rows, bins, [=] INFTY_HOST_DEVICE(Index row) {
    double sum = 0;
    Index positive = 0;
    for (Index bin = 0; bin < bins; ++bin) {
      const double before = sum;
      below[row * bins + bin] = sum += static_cast<double>(p[row * bins + bin]);
      if (sum > before) positive = bin;
    }
    end[row] = positive;
  });
  detail::verify<B>(
      rows,
      [=] INFTY_HOST_DEVICE(Index row) { return !detail::is_mass(below[(row + 1) * bins - 1]); },
      [](Index row) { detail::refuse_mass("sample_locations", row); });
  // Draws of all rows in one list, as row * bins + bin: sorted, every row is.
  const auto keys = detail::draw_keys<B>(random);
  Tensor<Index, B> drawn({rows, samples});
  Index* const at = drawn.data();
  const Index* const key = keys.data();
  B::for_each(rows * samples, [=] INFTY_HOST_DEVICE(Index i) {
    const Index row = i / samples;
    const Index* const of_row = key + 3 * row;
    const double* const sum = below + row * bins;
    const double u = detail::uniform_at(static_cast<std::uint64_t>(of_row[0]),
                                        static_cast<std::uint64_t>(of_row[1]),
                                        static_cast<std::uint64_t>(of_row[2] + i % samples)) *
                     sum[bins - 1];
    Index low = 0, high = end[row];  // the first bin whose sum is above u, or the last
    while (low < high) {
      const Index middle = (low + high) / 2;
      if (sum[middle] > u)
        high = middle;
      else
        low = middle + 1;
    }
    at[i] = row * bins + low;
  });
  if (sorted) B::sort(at, rows * samples);
  Tensor<T, B> out({rows, samples});
  T* const to = out.data();
  B::for_each(rows * samples, [=] INFTY_HOST_DEVICE(Index i) {
    const T edge = static_cast<T>(static_cast<double>(at[i] % bins) / static_cast<double>(bins));
    to[i] = edge < T(1) ? edge : T(1) - std::numeric_limits<T>::epsilon() / 2;
  });
  for (Random& generator : random)
    generator.seek(generator.counter() + static_cast<std::uint64_t>(samples));
  return out;
}

/// Draws bins with replacement and gives their left edges, sorted   [Martins et al. 2022, §3.3],
/// with generators split off `random`, which moves on by one draw: row i of a batch draws the same
/// numbers whatever the number of rows.
/// @param probability  [rows, bins], >= 0, each row with a positive sum (need not be 1)
/// @return             [rows, samples], in [0, 1), rising
/// @throws infty::ShapeError, infty::ValueError, infty::NonFiniteError
template <class T, class B>
Tensor<T, B> sample_locations(const Tensor<T, B>& probability, Index samples, Random& random) {
  const Random call = random.split(random.counter());
  std::vector<Random> each;
  for (Index row = 0; row < (probability.rank() > 0 ? probability.dim(0) : 0); ++row)
    each.push_back(call.split(static_cast<std::uint64_t>(row)));
  auto out = sample_locations(probability, samples, std::span<Random>(each));
  random.uniform();
  return out;
}

/// Finds locations without chance: the quantiles m / samples, m = 1, ..., samples, of the density
/// that is even inside each bin. Equal probabilities give `even_locations`, as plain memories have.
/// @param probability  [rows, bins], >= 0, each row with a positive sum, finite times samples
/// @param samples      >= 1
/// @return             [rows, samples], in [0, 1], rising
/// @throws infty::ShapeError, infty::ValueError, infty::NonFiniteError
template <class T, class B>
Tensor<T, B> quantile_locations(const Tensor<T, B>& probability, Index samples) {
  require<ShapeError>(probability.rank() == 2 && probability.dim(1) >= 1, "quantile_locations",
                      "probability is ", probability.shape(), ": it must be [rows, bins]");
  require_at_least("quantile_locations", "samples", samples, 1);
  detail::require_probabilities("quantile_locations", probability);
  const Index rows = probability.dim(0), bins = probability.dim(1);
  Tensor<T, B> out({rows, samples});
  T* const to = out.data();
  const T* const from = probability.data();
  Tensor<double, B> sums({rows});
  double* const mass_of = sums.data();
  const double count = static_cast<double>(samples);
  B::for_each_row(rows, bins, [=] INFTY_HOST_DEVICE(Index row) {
    double sum = 0;
    for (Index bin = 0; bin < bins; ++bin) sum += static_cast<double>(from[row * bins + bin]);
    mass_of[row] = sum;
  });
  detail::verify<B>(
      rows, [=] INFTY_HOST_DEVICE(Index row) { return !detail::is_mass(count * mass_of[row]); },
      [](Index row) { detail::refuse_mass("quantile_locations", row, " times the samples"); });
  B::for_each_row(rows, samples + bins, [=] INFTY_HOST_DEVICE(Index row) {
    const T* const p = from + row * bins;
    Index alike = 1;  // bins from the first on
    while (alike < bins && p[alike] == p[0]) ++alike;
    const double sum = mass_of[row];
    Index bin = 0;
    double before = 0, mass = static_cast<double>(p[0]);
    for (Index m = 0; m < samples; ++m) {
      if (alike == bins) {
        to[row * samples + m] = static_cast<T>(m + 1) / static_cast<T>(samples);
        continue;
      }
      // All of it for the last: what rounds up would be sought behind the last bin that has any.
      const double wanted = m + 1 == samples ? sum : sum * static_cast<double>(m + 1) / count;
      while (before + mass < wanted && bin + 1 < bins) {
        before += mass;
        mass = static_cast<double>(p[++bin]);
      }
      const double share = mass == 0 ? 0 : (wanted - before) / mass;
      to[row * samples + m] = static_cast<T>((static_cast<double>(bin) + (share > 1 ? 1 : share)) /
                                             static_cast<double>(bins));
    }
  });
  return out;
}

}  // namespace infty
