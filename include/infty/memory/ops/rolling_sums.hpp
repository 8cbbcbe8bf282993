// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/tape.hpp>
#include <infty/core/backend.hpp>
#include <infty/core/for_each.hpp>

namespace infty {

namespace detail {

/// The work of `read_rolling_sums`, in chunks of places: what a chunk reads of the sum in front of
/// it is one product, what it reads of itself two, below the diagonal of a small matrix. The cost
/// is linear in the length, and all chunks of all rows are one batch.
template <class T, class B>
struct RollingSums {
  static constexpr Index chunk = 64;
  Index batch, length, slots, d;

  /// Consecutive chunks of one size.
  struct Group {
    Index first, count, size;
  };

  Index chunks() const { return (length + chunk - 1) / chunk; }

  /// Calls f with the group of all whole chunks, and with that of the rest.
  template <class F>
  void for_each_group(const F& f) const {
    const Index whole = length / chunk, rest = length % chunk;
    if (whole > 0) f(Group{0, whole, chunk});
    if (rest > 0) f(Group{whole, 1, rest});
  }

  using Operand = Matmul::Operand;
  /// Where vectors of a width stand, [B, L, width], chunk by chunk.
  Operand vectors(Index width, bool transposed = false) const {
    return {.leading = width,
            .outer = length * width,
            .inner = chunk * width,
            .transposed = transposed};
  }
  /// Where a sum for every chunk stands, [B, chunks, k, d].
  Operand sums(bool transposed = false) const {
    return {
        .leading = d, .outer = chunks() * slots * d, .inner = slots * d, .transposed = transposed};
  }
  /// Where a matrix for every chunk of a group stands, [B, count, size, size].
  static Operand squares(const Group& g, bool transposed = false) {
    return {.leading = g.size,
            .outer = g.count * g.size * g.size,
            .inner = g.size * g.size,
            .transposed = transposed};
  }

  /// C (m, n) = A B + beta C for every chunk of a group, in every row.
  void product(const Group& g, Index m, Index n, Index k, Operand a, const T* from_a, Operand b,
               const T* from_b, T beta, Operand c, T* to) const {
    B::matmul({.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .outer = batch, .inner = g.count},
              T(1), from_a, from_b, beta, to);
  }

  /// a (size, width) bᵀ (width, size) of every chunk of a group, with zeros above the diagonal.
  Tensor<T, B> below_diagonal(const Group& g, Index width, const T* a, const T* b) const {
    const Index n = g.size, at = g.first * chunk * width;
    Tensor<T, B> out(Shape{batch, g.count, n, n});
    T* const to = out.data();
    product(g, n, n, width, vectors(width), a + at, vectors(width, true), b + at, T(0), squares(g),
            to);
    for_each_element<B>(batch * g.count * n, n, [=] INFTY_HOST_DEVICE(Index row, Index column) {
      if (column > row % n) to[row * n + column] = T(0);
    });
    return out;
  }

  /// The sum in front of every chunk, [B, chunks, k, d].
  Tensor<T, B> sums_before(const T* keys, const T* values, const Tensor<T, B>& memory) const {
    const Index n = chunks(), size = slots * d;
    if (n == 1) return memory;
    Tensor<T, B> out(Shape{batch, n, slots, d});
    T* const to = out.data();
    product({0, n - 1, chunk}, slots, d, chunk, vectors(slots, true), keys, vectors(d), values,
            T(0), sums(), to + size);
    const T* const first = memory.data();
    B::for_each(batch * size, [=] INFTY_HOST_DEVICE(Index i) {
      T* const row = to + i / size * n * size + i % size;
      T sum = first[i];
      row[0] = sum;
      for (Index c = 1; c < n; ++c) row[c * size] = sum += row[c * size];
    });
    return out;
  }

  void forward(const T* weights, const T* keys, const T* values, const Tensor<T, B>& memory,
               T* y) const {
    const auto before = sums_before(keys, values, memory);
    for_each_group([&](const Group& g) {
      const Index at = g.first * chunk;
      product(g, g.size, d, slots, vectors(slots), weights + at * slots, sums(),
              before.data() + g.first * slots * d, T(0), vectors(d), y + at * d);
      const auto own = below_diagonal(g, slots, weights, keys);
      product(g, g.size, d, g.size, squares(g), own.data(), vectors(d), values + at * d, T(1),
              vectors(d), y + at * d);
    });
  }

  /// Adds to the gradients, where they are not null. With W = a lᵀ below the diagonal, S the sum in
  /// front of a chunk, D what arrives at it and R at all behind: da = dy Sᵀ + dW l,
  /// dl = dWᵀ a + v Rᵀ, dv = Wᵀ dy + l R.
  void backward(const T* weights, const T* keys, const T* values, const Tensor<T, B>& memory,
                const T* dy, T* d_weights, T* d_keys, T* d_values, T* d_memory) const {
    const Index n = chunks(), size = slots * d;
    Tensor<T, B> before;
    if (d_weights) before = sums_before(keys, values, memory);
    Tensor<T, B> arriving(Shape{batch, n, slots, d});  // at the sum in front of each, and behind it
    T* const arrived = arriving.data();
    for_each_group([&](const Group& g) {
      const Index at = g.first * chunk;
      product(g, slots, d, g.size, vectors(slots, true), weights + at * slots, vectors(d),
              dy + at * d, T(0), sums(), arrived + g.first * size);
      if (d_weights || d_keys) {
        const auto dw = below_diagonal(g, d, dy, values);
        if (d_weights) {
          product(g, g.size, slots, d, vectors(d), dy + at * d, sums(true),
                  std::as_const(before).data() + g.first * size, T(1), vectors(slots),
                  d_weights + at * slots);
          product(g, g.size, slots, g.size, squares(g), dw.data(), vectors(slots),
                  keys + at * slots, T(1), vectors(slots), d_weights + at * slots);
        }
        if (d_keys)
          product(g, g.size, slots, g.size, squares(g, true), dw.data(), vectors(slots),
                  weights + at * slots, T(1), vectors(slots), d_keys + at * slots);
      }
      if (d_values) {
        const auto own = below_diagonal(g, slots, weights, keys);
        product(g, g.size, d, g.size, squares(g, true), own.data(), vectors(d), dy + at * d, T(1),
                vectors(d), d_values + at * d);
      }
    });
    B::for_each(batch * size, [=] INFTY_HOST_DEVICE(Index i) {
      T* const row = arrived + i / size * n * size + i % size;
      for (Index c = n - 2; c >= 0; --c) row[c * size] += row[(c + 1) * size];
      if (d_memory) d_memory[i] += row[0];
    });
    if (n == 1) return;
    const Group earlier{0, n - 1, chunk};
    if (d_keys)
      product(earlier, chunk, slots, d, vectors(d), values, sums(true), arrived + size, T(1),
              vectors(slots), d_keys);
    if (d_values)
      product(earlier, chunk, d, slots, vectors(slots), keys, sums(), arrived + size, T(1),
              vectors(d), d_values);
  }
};

}  // namespace detail

/// What every place reads of a sum of outer products that it is the last to have been added to,
/// y_i = a_i (M + sum over j <= i of l_j v_jᵀ) [Zhang & Cai 2022, §3]; linear in the length.
/// @param weights  a, [B, L, k]
/// @param keys     l, [B, L, k]
/// @param values   v, [B, L, d]
/// @param memory   M, the sum in front of the first place, [B, k, d]
/// @return         [B, L, d]
/// @throws infty::ShapeError
template <class T, class B>
Variable<T, B> read_rolling_sums(const Variable<T, B>& weights, const Variable<T, B>& keys,
                                 const Variable<T, B>& values, const Variable<T, B>& memory) {
  const bool shaped = weights.shape().rank() == 3 && values.shape().rank() == 3;
  require<ShapeError>(shaped && keys.shape() == weights.shape() &&
                          values.dim(0) == weights.dim(0) && values.dim(1) == weights.dim(1) &&
                          memory.shape() == Shape{weights.dim(0), weights.dim(2), values.dim(2)},
                      "read_rolling_sums", "weights are ", weights.shape(), ", keys ", keys.shape(),
                      ", values ", values.shape(), ", the memory is ", memory.shape(),
                      ": they must be [B, L, k] twice, [B, L, d] and [B, k, d]");
  const detail::RollingSums<T, B> work{weights.dim(0), weights.dim(1), weights.dim(2),
                                       values.dim(2)};
  Variable<T, B> y(Tensor<T, B>(values.shape()));
  if (y.size() == 0) return y;
  work.forward(weights.value().data(), keys.value().data(), values.value().data(), memory.value(),
               y.value().data());
  return record(
      y,
      [weights, keys, values, memory, work](const Tensor<T, B>& dy) {
        const auto to = [](const Variable<T, B>& x) {
          return x.requires_grad() ? x.grad().data() : nullptr;
        };
        work.backward(weights.value().data(), keys.value().data(), values.value().data(),
                      memory.value(), dy.data(), to(weights), to(keys), to(values), to(memory));
      },
      weights, keys, values, memory);
}

}  // namespace infty
