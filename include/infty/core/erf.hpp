// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <type_traits>

#include <infty/core/config.hpp>
#include <infty/core/math.hpp>

/// The error function without branches, so that a compiler turns a loop over it into vector code,
/// and the same on host and device.
namespace infty::math {

namespace detail {

/// erf(x) for |x| <= 1, which is x p(x²).
template <class T>
INFTY_HOST_DEVICE inline T erf_within(T x) {
  const T z = x * x;
  if constexpr (std::is_same_v<T, float>)
    return x * polynomial(z, 1.128379165848350946, -0.37612626666720331023, 0.11283594715160217732,
                          -0.026854212010626412443, 0.0051890874234339739861,
                          -0.00080168642871658695293, 0.000078758750626854883411);
  else
    return x * polynomial(
                   z, 1.1283791670955125665, -0.37612638903183540438, 0.11283791670945006266,
                   -0.02686617064323777036, 0.0052239776071164227321, -0.00085483259753896920806,
                   0.00012055294904839707917, -0.000014924736907419660338, 1.644742470331736241e-6,
                   -1.6208483801871705902e-7, 1.3720064546777685604e-8, -7.7958988270021422416e-10);
}

/// erf(x) for x >= 1, which is 1 - e^p(x): what is left of 1 need not be known as exactly as 1 is.
template <class T>
INFTY_HOST_DEVICE inline T erf_beyond(T x) {
  constexpr T top = FloatBits<T>::single ? T(4) : T(6);  // from where on it rounds to 1
  const T a = x > top ? top : x;
  T p;
  if constexpr (FloatBits<T>::single)
    p = polynomial(a, -0.00032061287184153194576, -1.1271714894182219384, -0.63801248696585245254,
                   -0.10321796565782419963, 0.021889528382355213955, -0.0029600856781251670839,
                   0.00018760189901514442392);
  else
    p = polynomial(
        a, -1.7755090618719365427e-7, -1.1283774063628809337, -0.63662781932212064299,
        -0.10275023707974962797, 0.019086604897704851064, 0.0002637411690693867788,
        -0.0017444565519104091524, 0.00061367452077918815575, -0.000020764850334976390825,
        -0.000087024114259503817873, 0.000054235709312699653194, -0.000020577163230488636226,
        5.7611051000242780525e-6, -1.2527077065651485353e-6, 2.1434532296090890328e-7,
        -2.8721767033580482048e-8, 2.9591262628794405165e-9, -2.2653796563204317196e-10,
        1.2140750007812595141e-11, -4.0643552073711468049e-13, 6.3945839339314044424e-15);
  return T(1) - exp_decay(p);
}

/// erfc(x) for x >= 0: e^(-x²) p((x - k) / (x + k)) / (1 + 2 x), where p is flat.
template <class T>
INFTY_HOST_DEVICE inline T erfc_above(T x) {
  INFTY_IN_ORDER
  constexpr bool single = FloatBits<T>::single;
  using Bits = typename FloatBits<T>::Bits;
  constexpr T top = single ? T(10.5) : T(27.5), k = single ? T(3) : T(4);  // erfc(top) is 0
  const T a = x > top ? top : x;
  // x² in two parts, by way of a half of x's digits, whose square is exact.
  constexpr Bits upper = ~((Bits{1} << (single ? 12 : 27)) - 1);
  const T high = std::bit_cast<T>(std::bit_cast<Bits>(a) & upper), square = as_rounded(a * a);
  const T rest = as_rounded(high * high - square) + (a - high) * (a + high);
  const T q = (a - k) / (a + k);
  T p;
  if constexpr (single)
    p = polynomial(q, 1.253008057900132463, -0.13562114482806311247, -0.047562289369309030674,
                   0.12964661242970908265, -0.11927247426820816508, 0.068293367433226208931,
                   -0.023791348031502629353, 0.0025788453605382001177, 0.0019963757395034980057,
                   -0.0007957492333968862457, -0.00027639025557355202528);
  else
    p = polynomial(q, 1.2329951186255525058, -0.13962111684056285821, 0.015379652102621090234,
                   0.068097054254733600271, -0.10103906603637362902, 0.093732834996905353685,
                   -0.066330365811010303437, 0.03716751556105671062, -0.016197734065502875395,
                   0.0050319697650511225047, -0.00075777329637394622859, -0.00019925553476007838233,
                   0.00015062205232305989653, -0.000024403160497192633689,
                   -0.000011224293594679385565, 5.718067004785881077e-6, 3.0060530202709258461e-7,
                   -8.3568860548022444208e-7, 6.3263819360138452731e-8, 1.1597564919712835792e-7,
                   -7.7962109357503944395e-9, -1.3952812123042382787e-8, -1.9073886270079709449e-9);
  return exp(-square) * ((p - p * rest) / (T(1) + T(2) * a));
}

}  // namespace detail

/// Computes the error function of x, to 3 ulp.
template <class T>
INFTY_HOST_DEVICE inline T erf(T x) {
  const T a = x < T(0) ? -x : x, distant = detail::erf_beyond(a);
  return a < T(1) ? detail::erf_within(x) : (x < T(0) ? -distant : distant);
}

/// Computes 1 - erf(x) to 5 ulp over the whole range, denormal results included.
template <class T>
INFTY_HOST_DEVICE inline T erfc(T x) {
  const T a = x < T(0) ? -x : x, above = detail::erfc_above(a);
  return a < T(0.5) ? T(1) - detail::erf_within(x) : (x < T(0) ? T(2) - above : above);
}

}  // namespace infty::math
