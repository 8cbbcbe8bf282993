// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/math.hpp>
#include <infty/core/tanh.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

namespace detail {

/// The gates of one element of a GRU: what a, of the input, and b, of the state, hold of reset,
/// update and candidate, `step` elements apart.
template <class T>
struct GruGates {
  T reset, update, candidate, from_state;  ///< r, z, n, and what r multiplies

  INFTY_HOST_DEVICE GruGates(const T* a, const T* b, Index step)
      : reset(math::sigmoid(a[0] + b[0])),
        update(math::sigmoid(a[step] + b[step])),
        candidate(math::tanh(a[2 * step] + reset * b[2 * step])),
        from_state(b[2 * step]) {}
};

}  // namespace detail

/// The update of a gated recurrent unit [Cho et al. 2014], as torch.nn.GRUCell: with the parts
/// r, z, n of the last dimension of a and b, r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z),
/// n = tanh(a_n + r b_n), and (1 - z) n + z h.
/// @param a  [..., 3 d], of the input   @param b  [..., 3 d], of the state
/// @param h  [..., d], the state        @return   [..., d]
/// @throws infty::ShapeError if the shapes do not fit
template <class T, class B>
Variable<T, B> gru(const Variable<T, B>& a, const Variable<T, B>& b, const Variable<T, B>& h) {
  require<ShapeError>(h.shape().rank() >= 1 && a.shape() == h.shape().with(-1, 3 * h.dim(-1)) &&
                          b.shape() == a.shape(),
                      "gru", "a is ", a.shape(), ", b ", b.shape(), ", h ", h.shape(),
                      ": they must be [..., 3 d] twice and [..., d]");
  const Index d = h.dim(-1), rows = d > 0 ? h.size() / d : 0;
  Variable<T, B> y(Tensor<T, B>(h.shape()));
  const T *const pa = a.value().data(), *const pb = b.value().data(), *const ph = h.value().data();
  T* const to = y.value().data();
  detail::for_each_element<B>(rows, d, [=] INFTY_HOST_DEVICE(Index i, Index j) {
    const Index at = 3 * i * d + j;
    const detail::GruGates<T> g(pa + at, pb + at, d);
    to[i * d + j] = (T(1) - g.update) * g.candidate + g.update * ph[i * d + j];
  });
  return record(
      y,
      [a, b, h, d, rows](const Tensor<T, B>& dy) {
        const auto grad = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        const T *const in_a = a.value().data(), *const in_b = b.value().data();
        const T *const in_h = h.value().data(), *const pd = dy.data();
        T *const da = grad(a), *const db = grad(b), *const dh = grad(h);
        const Index width = d;
        detail::for_each_element<B>(rows, width, [=] INFTY_HOST_DEVICE(Index i, Index j) {
          const Index at = 3 * i * width + j, k = i * width + j;
          const detail::GruGates<T> g(in_a + at, in_b + at, width);
          const T out = pd[k], n = g.candidate, r = g.reset, z = g.update;
          const T d_n = out * (T(1) - z) * (T(1) - n * n);
          const T d_z = out * (in_h[k] - n) * z * (T(1) - z);
          const T d_r = d_n * g.from_state * r * (T(1) - r);
          if (dh) dh[k] += out * z;
          if (da) {
            da[at] += d_r;
            da[at + width] += d_z;
            da[at + 2 * width] += d_n;
          }
          if (db) {
            db[at] += d_r;
            db[at + width] += d_z;
            db[at + 2 * width] += d_n * r;
          }
        });
      },
      a, b, h);
}

/// A gated recurrent unit, as torch.nn.GRUCell.
template <class T, class Backend = EigenBackend>
struct GruCell {
  Linear<T, Backend> input;  ///< in -> 3 d: reset, update and candidate, in this order
  Linear<T, Backend> state;  ///< d -> 3 d, the same of the state

  GruCell() = default;

  /// Makes both maps, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless in, d >= 1
  GruCell(Index in, Index d, Random random)
      : input((require_sizes(in, d), in), 3 * d, random.split(0)),
        state(d, 3 * d, random.split(1)) {}

  template <class Visitor>
  void visit(Visitor&& see) {
    see("input", input);
    see("state", state);
  }

  /// The next state of inputs x [..., in] and states h [..., d] -> [..., d].
  /// @throws infty::ShapeError
  Variable<T, Backend> forward(const Variable<T, Backend>& x, const Variable<T, Backend>& h) const {
    return gru(input.forward(x), state.forward(h), h);
  }

 private:
  /// Before anything is made, which may be large; what is below 1 the maps refuse.
  static void require_sizes(Index in, Index d) {
    if (in < 1 || d < 1) return;
    infty::require_sizes("GruCell", {{"gates", 3}, {"d", d}, {"in", in}});
    infty::require_sizes("GruCell", {{"gates", 3}, {"d", d}, {"d of the state", d}});
  }
};

}  // namespace infty
