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

/// Adds the gradients of a GRU's step to those that are there, of columns [begin, end) of a row.
template <class T>
struct GruBackward {
  const T *a, *b, *h, *dy;
  Index width;
  T *da, *db, *dh;  ///< null where none is wanted

  INFTY_HOST_DEVICE void operator()(Index row, Index begin, Index end) const {
    // Kept aside for some columns: loops that read and write as many arrays at once are no vector
    // code.
#if defined(__CUDA_ARCH__)
    constexpr Index most = 1;
#else
    constexpr Index most = 64;
#endif
    T of_reset[most], of_update[most], of_candidate[most], from_state[most], of_h[most];
    for (Index first = begin; first < end; first += most) {
      const Index count = end - first < most ? end - first : most;
      const Index at = row * width + first, in_three = 3 * row * width + first;
      for (Index k = 0; k < count; ++k) {
        const GruGates<T> g(a + in_three + k, b + in_three + k, width);
        const T out = dy[at + k], n = g.candidate, r = g.reset, z = g.update;
        const T d_n = out * (T(1) - z) * (T(1) - n * n);
        of_h[k] = out * z;
        of_candidate[k] = d_n;
        from_state[k] = d_n * r;
        of_update[k] = out * (h[at + k] - n) * z * (T(1) - z);
        of_reset[k] = d_n * g.from_state * r * (T(1) - r);
      }
      if (dh) add(count, of_h, dh + at);
      const auto add_three = [&](const T* of_third, T* to) {
        if (!to) return;
        add(count, of_reset, to + in_three);
        add(count, of_update, to + in_three + width);
        add(count, of_third, to + in_three + 2 * width);
      };
      add_three(of_candidate, da);
      add_three(from_state, db);
    }
  }

 private:
  INFTY_HOST_DEVICE static void add(Index count, const T* x, T* to) {
    for (Index k = 0; k < count; ++k) to[k] += x[k];
  }
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
        T *const da = grad(a), *const db = grad(b), *const dh = grad(h);
        detail::for_each_span<B>(
            rows, d, 8 * d,
            detail::GruBackward<T>{a.value().data(), b.value().data(), h.value().data(), dy.data(),
                                   d, da, db, dh});
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
