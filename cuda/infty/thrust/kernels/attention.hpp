// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include <infty/autograd/linear.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/tensor.hpp>
#include <infty/nn/attention.hpp>
#include <infty/thrust/kernels/attention_backward.hpp>
#include <infty/thrust/kernels/attention_distance_gradient.hpp>
#include <infty/thrust/kernels/attention_forward.hpp>
#include <infty/thrust/kernels/attention_forward_tensor.hpp>
#include <infty/thrust/kernels/attention_tiles.hpp>
#include <infty/thrust/tensor_cores.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty {

template <class System>
struct ThrustBackend;

namespace detail {

/// to[i] = x_i · (y_m - z_m), m = i mod period, for vectors of n; z may be null.
template <class T>
struct RowProducts {
  static constexpr int threads = 256, rows = 64;
  const T *x, *y, *z;
  Index count, period;
  int n;
  T* to;

  Index blocks() const { return (count + rows - 1) / rows; }
  std::size_t shared_bytes() const { return 0; }
  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const Index first = block.index() * rows;
    const int here = static_cast<int>(count - first < rows ? count - first : rows);
    block.template reduce_rows<T>(
        here, n, Plus{},
        [&](int i, int d) {
          const Index at = (first + i) % period * n + d;
          return x[(first + i) * n + d] * (z ? y[at] - z[at] : y[at]);
        },
        [&](int i, T sum) { to[first + i] = sum; });
  }
};

/// `relative_attention` by tiles of queries and keys in shared memory: no score is ever written to
/// global memory, and the backward pass computes them once more from `log_sum`. Its sums run in an
/// order that the sizes alone determine.
template <class System>
struct TiledAttention {
  using B = ThrustBackend<System>;
  static constexpr bool keeps_result = true;

  /// As `ComposedAttention::forward`.
  template <class T>
  static void forward(const AttentionSize& s, const AttentionInputs<T>& in, T* y, T* log_sum) {
    if (!fits<T>(s)) {
      ComposedAttention<B>::forward(s, in, y, log_sum);
      return;
    }
    if (s.batch * s.queries == 0) return;
    Tensor<T, B> bias(Shape{s.distances(), s.heads});
    const AttentionTiles<T> shared = tiles(s, in, bias.data());
    if constexpr (std::is_same_v<T, float>) {
      if (gpu::tensor_attention() && tensor_attention_fits(s))
        return tensor_attention<System>(shared, y, log_sum);
    }
    run(AttentionForward<T>{shared, y, log_sum});
  }

  /// As `ComposedAttention::backward`.
  template <class T>
  static void backward(const AttentionSize& s, const AttentionInputs<T>& in, const T* y,
                       const T* log_sum, const T* dy, const AttentionGradients<T>& to,
                       const T* d_log_sum = nullptr) {
    if (!fits<T>(s)) {
      ComposedAttention<B>::backward(s, in, y, log_sum, dy, to, d_log_sum);
      return;
    }
    if (s.batch * s.queries == 0) return;
    Tensor<T, B> bias(Shape{s.distances(), s.heads}), delta(Shape{s.batch, s.queries, s.heads});
    const Index rows = delta.size();
    row_products(dy, y, static_cast<const T*>(nullptr), rows, rows, s.head_dim, delta.data());
    if (d_log_sum) {
      T* const x = delta.data();
      B::for_each(rows, [=] INFTY_HOST_DEVICE(Index i) { x[i] -= d_log_sum[i]; });
    }
    AttentionBackward<T> shared{tiles(s, in, bias.data()), log_sum, delta.data(), dy, to};
    shared.wide = shared.wide && aligned_for_four(dy, s.head_dim);
    if constexpr (std::is_same_v<T, float>) {
      if (gpu::tensor_attention() && tensor_attention_fits(s))
        return in_tensor_precision([&]<class In>(In) { gradients<ByTensorCores<In>>(shared); });
    }
    gradients<ByThreads<T>>(shared);
  }

  /// Whether such a call is computed by tiles: heads must not be too wide for shared memory, and
  /// places are counted in 32 bits. Others are left to the composition.
  template <class T>
  static bool fits(const AttentionSize& s) {
    constexpr Index most = Index{1} << 30;
    return s.batch < most && s.heads < most && s.distances() < most && s.model() < most &&
           has_room<AttentionForward<T>>(s) && has_room<AttentionQueryGradient<T>>(s) &&
           has_room<AttentionKeyGradient<T>>(s) && has_room<AttentionDistanceGradient<T>>(s);
  }

 private:
  // The kernel with as many rows as shared memory has room for, with 0 if not even 8.
  template <class Kernel>
  static Kernel fitted(Kernel kernel) {
    const std::size_t room = shared_for_block<System>();
    for (kernel.tile_rows = 64; kernel.tile_rows >= 8; kernel.tile_rows /= 2)
      if (kernel.shared_bytes() <= room) return kernel;
    kernel.tile_rows = 0;
    return kernel;
  }
  template <class Kernel>
  static bool has_room(const AttentionSize& s) {
    Kernel kernel{};
    kernel.size = s;
    return fitted(kernel).tile_rows > 0;
  }
  template <class Kernel>
  static void run(const Kernel& kernel) {
    const Kernel runs = fitted(kernel);
    launch<System>(runs.blocks(), runs);
  }

  template <class T>
  static void row_products(const T* x, const T* y, const T* z, Index count, Index period, Index n,
                           T* to) {
    const RowProducts<T> kernel{x, y, z, count, period, static_cast<int>(n), to};
    launch<System>(kernel.blocks(), kernel);
  }

  template <class T>
  static AttentionTiles<T> tiles(const AttentionSize& s, const AttentionInputs<T>& in, T* bias) {
    row_products(in.r, in.w, in.u, s.distances() * s.heads, s.heads, s.head_dim, bias);
    const bool wide = aligned_for_four(in.q, s.head_dim) && aligned_for_four(in.k, s.head_dim) &&
                      aligned_for_four(in.v, s.head_dim) && aligned_for_four(in.r, s.head_dim);
    const int d = static_cast<int>(s.head_dim);
    return {s,
            in,
            bias,
            T(1) / std::sqrt(static_cast<T>(d)),
            wide,
            0,
            FixedDivisor(d),
            FixedDivisor(round_up_4(d) / 4)};
  }

  template <class Products, class T>
  static void gradients(const AttentionBackward<T>& shared) {
    const AttentionGradients<T>& to = shared.to;
    if (to.q) run(AttentionQueryGradient<T, Products>{shared});
    if (to.k || to.v || to.u) key_gradients<Products>(shared);
    if (!to.r && !to.w) return;
    if constexpr (std::is_same_v<Products, ByThreads<T>>)
      if (shared.size.mirrored)
        return distance_gradients<AttentionDistanceGradient<T, Products, true>>(shared);
    distance_gradients<AttentionDistanceGradient<T, Products>>(shared);
  }

  template <class Products, class T>
  static void key_gradients(const AttentionBackward<T>& shared) {
    const AttentionSize& s = shared.size;
    auto kernel = fitted(AttentionKeyGradient<T, Products>{shared, nullptr});
    Tensor<T, B> du;
    if (shared.to.u) {
      du = Tensor<T, B>(Shape{s.batch * kernel.key_tiles(), s.model()});
      kernel.du = du.data();
    }
    launch<System>(kernel.blocks(), kernel);
    if (shared.to.u) add_column_sums<B>(du.dim(0), s.model(), du.data(), shared.to.u);
  }

  template <class Kernel, class T>
  static void distance_gradients(const AttentionBackward<T>& shared) {
    const AttentionSize& s = shared.size;
    auto kernel = fitted(Kernel{shared, 1, nullptr, nullptr});
    // Enough blocks for a GPU, and no more rows to add up than that takes.
    constexpr Index blocks = 512;
    kernel.parts = std::clamp<Index>(blocks / std::max<Index>(1, kernel.blocks()), 1,
                                     std::max<Index>(1, s.batch));
    const Index distances = s.distances();
    Tensor<T, B> dr(Shape{kernel.parts, distances, s.model()}), dw;
    kernel.dr = dr.data();
    if (shared.to.w) {
      dw = Tensor<T, B>(Shape{kernel.parts * kernel.tiles(), s.model()});
      kernel.dw = dw.data();
    }
    launch<System>(kernel.blocks(), kernel);
    if (shared.to.r)
      add_column_sums<B>(kernel.parts, distances * s.model(), dr.data(), shared.to.r);
    if (shared.to.w) add_column_sums<B>(dw.dim(0), s.model(), dw.data(), shared.to.w);
  }
};

}  // namespace detail

}  // namespace infty
