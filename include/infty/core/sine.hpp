// SPDX-License-Identifier: MIT
#pragma once

#include <bit>

#include <infty/core/math.hpp>

/// Sine and cosine without branches, so that a compiler turns a loop over them into vector code,
/// and the same on host and device.
namespace infty::math {

/// Both of an angle.
template <class T>
struct SineAndCosine {
  T sine;    ///< of the angle
  T cosine;  ///< the same
};

/// The angles, from minus this to this, that `sine_and_cosine` takes.
template <class T>
inline constexpr T furthest_angle = detail::FloatBits<T>::single ? T(8192) : T(1e8);

/// Sine and cosine of |x| <= `furthest_angle`, off by 1.2e-7 at most, in double by 2.3e-16: x less
/// the nearest multiple of pi / 2, and polynomials of what is left [Moshier, Cephes].
template <class T>
INFTY_HOST_DEVICE inline SineAndCosine<T> sine_and_cosine(T x) {
  INFTY_IN_ORDER
  using Traits = detail::FloatBits<T>;
  using Bits = typename Traits::Bits;
  constexpr bool single = Traits::single;
  // pi / 2 in three parts, the first two of which so few bits have that their products are exact.
  constexpr T high = single ? T(1.5703125) : T(1.57079625129699707031);
  constexpr T middle = single ? T(4.837512969970703125e-4) : T(7.54978941586159635336e-8);
  constexpr T low = single ? T(7.54978995489188216e-8) : T(5.39030285815811905290e-15);
  const T shifted = detail::as_rounded(x * T(0.636619772367581343076L) + Traits::magic);
  const T n = shifted - Traits::magic;
  const T r = detail::as_rounded(detail::as_rounded(x - n * high) - n * middle) - n * low;
  const T z = r * r;
  T p, q;
  if constexpr (single) {
    p = detail::polynomial(z, -1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4);
    q = detail::polynomial(z, 4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5);
  } else {
    p = detail::polynomial(z, -1.66666666666666307295e-1, 8.33333333332211858878e-3,
                           -1.98412698295895385996e-4, 2.75573136213857245213e-6,
                           -2.50507477628578072866e-8, 1.58962301576546568060e-10);
    q = detail::polynomial(z, 4.16666666666665929218e-2, -1.38888888888730564116e-3,
                           2.48015872888517045348e-5, -2.75573141792967388112e-7,
                           2.08757008419747316778e-9, -1.13585365213876817300e-11);
  }
  const T sine = r + r * z * p, cosine = T(1) - (T(0.5) * z - z * z * q);
  const Bits quarters = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(Traits::magic);
  const bool exchanged = (quarters & 1) != 0;
  const T s = exchanged ? cosine : sine, c = exchanged ? sine : cosine;
  return {(quarters & 2) != 0 ? -s : s, ((quarters + 1) & 2) != 0 ? -c : c};
}

}  // namespace infty::math
