// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include <infty/autograd/linear.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/tensor.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty {

template <class System>
struct ThrustBackend;

namespace detail {

/// What the kernels of `expected_values` share: tiles of as many queries as basis functions.
template <class Density, class T, class Psi>
struct ExpectationTiles {
  static constexpr int threads = 256;

  ReadSize size;
  Psi psi;
  const T *density, *values;
  bool wide;  ///< all matrices are aligned for `load_four`
  int tile_rows;

  INFTY_HOST_DEVICE int head_dim() const { return static_cast<int>(size.head_dim); }
  INFTY_HOST_DEVICE int padded_head_dim() const { return round_up_4(size.head_dim); }
  INFTY_HOST_DEVICE int leading() const { return tile_leading(size.head_dim); }
  INFTY_HOST_DEVICE int count_queries() const { return static_cast<int>(size.queries); }
  INFTY_HOST_DEVICE int count_basis() const { return static_cast<int>(size.basis); }
  INFTY_HOST_DEVICE int query_tiles() const {
    return (count_queries() + tile_rows - 1) / tile_rows;
  }
  INFTY_HOST_DEVICE int basis_tiles() const { return (count_basis() + tile_rows - 1) / tile_rows; }
  INFTY_HOST_DEVICE Index model() const { return size.heads * size.head_dim; }

  /// Elements of a tile of vectors, and of expectations.
  INFTY_HOST_DEVICE Index vectors() const { return Index{tile_rows} * leading(); }
  INFTY_HOST_DEVICE Index expectations() const {
    return Index{tile_rows} * tile_leading(tile_rows);
  }

  /// Head h of the rows from `first` on of row b of a matrix [B, count, H D].
  INFTY_HOST_DEVICE TileSource<T> source(const T* from, int b, int h, int first, int count,
                                         T* tile) const {
    return {from + b * count * model() + h * size.head_dim,
            model(),
            head_dim(),
            wide,
            first,
            0,
            count,
            tile_rows,
            tile};
  }
  /// mu and sigma² of the queries from `first` on.
  template <class Block>
  INFTY_HOST_DEVICE void copy_density(Block& block, int b, int h, int first, T* mu, T* var) const {
    const T* const from = density + (b * size.heads + h) * size.queries;
    const Index n = size.batch * size.heads * size.queries;
    block.each(tile_rows, [&](int i) {
      const bool inside = first + i < count_queries();
      mu[i] = inside ? from[first + i] : T(0);
      var[i] = inside ? from[n + first + i] : T(1);
    });
  }
  /// p(i, j) = E[psi_j] of query i, zero where there is no such function or query, and a barrier.
  template <class Block>
  INFTY_HOST_DEVICE void expect(Block& block, int queries, int basis, const T* mu, const T* var,
                                T* p) const {
    const int rows = tile_rows, leading_p = tile_leading(rows);
    block.each(rows * rows, [&](int item) {
      const int i = item / rows, j = item % rows;
      p[i * leading_p + j] =
          queries + i < count_queries() && basis + j < count_basis()
              ? Density::expectation_gradient(psi, Index{basis + j}, mu[i], var[i]).value
              : T(0);
    });
  }
};

/// out of a tile of queries.
template <class Density, class T, class Psi>
struct ExpectationForward : ExpectationTiles<Density, T, Psi> {
  T* out;

  Index blocks() const { return this->size.batch * this->size.heads * this->query_tiles(); }
  std::size_t shared_bytes() const {
    return 2 * detail::shared_bytes<T>(this->vectors()) +
           detail::shared_bytes<T>(this->expectations()) +
           2 * detail::shared_bytes<T>(this->tile_rows);
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const int rows = this->tile_rows, stride = this->leading();
    const Index row = block.index() / this->query_tiles();
    const int first = static_cast<int>(block.index() % this->query_tiles()) * rows;
    const int h = static_cast<int>(row % this->size.heads);
    const int b = static_cast<int>(row / this->size.heads);
    T* const sums = block.template shared<T>(this->vectors());
    T* const v = block.template shared<T>(this->vectors());
    T* const p = block.template shared<T>(this->expectations());
    T* const mu = block.template shared<T>(rows);
    T* const var = block.template shared<T>(rows);

    this->copy_density(block, b, h, first, mu, var);
    block.each(rows * stride, [&](int i) { sums[i] = T(0); });
    for (int basis = 0; basis < this->count_basis(); basis += rows) {
      copy_tile(block, this->source(this->values, b, h, basis, this->count_basis(), v));
      this->expect(block, first, basis, mu, var, p);
      tile_product<T>(block, rows, this->padded_head_dim(), rows, ByRows<T>{p, tile_leading(rows)},
                      ByColumns<T>{v, stride}, [&](int i, int d, const Four<T>& value) {
                        add_four(sums + i * stride + d, value);
                      });
    }
    T* const to = out + b * this->size.queries * this->model() + h * this->size.head_dim;
    const int columns = this->head_dim();
    block.each(rows * columns, [&](int item) {
      const int i = item / columns, d = item % columns;
      if (first + i < this->count_queries())
        to[Index{first + i} * this->model() + d] = sums[i * stride + d];
    });
  }
};

/// d_values of a tile of basis functions, and its share of d_density.
template <class Density, class T, class Psi>
struct ExpectationBackward : ExpectationTiles<Density, T, Psi> {
  const T* d_out;
  T* d_values;   ///< or null
  T* d_density;  ///< [basis_tiles, 2, B, H, Q] or null

  Index blocks() const { return this->size.batch * this->size.heads * this->basis_tiles(); }
  std::size_t shared_bytes() const {
    return 3 * detail::shared_bytes<T>(this->vectors()) +
           detail::shared_bytes<T>(this->expectations()) +
           2 * detail::shared_bytes<T>(this->tile_rows);
  }

  template <class Block>
  INFTY_HOST_DEVICE void operator()(Block& block) const {
    const int rows = this->tile_rows, stride = this->leading(), width = this->padded_head_dim();
    const int leading_p = tile_leading(rows);
    const int tile = static_cast<int>(block.index() % this->basis_tiles()), basis = tile * rows;
    const Index row = block.index() / this->basis_tiles();
    const int h = static_cast<int>(row % this->size.heads);
    const int b = static_cast<int>(row / this->size.heads);
    T* const v = block.template shared<T>(this->vectors());
    T* const sums = block.template shared<T>(this->vectors());
    T* const dz = block.template shared<T>(this->vectors());
    T* const p = block.template shared<T>(this->expectations());
    T* const mu = block.template shared<T>(rows);
    T* const var = block.template shared<T>(rows);
    const Index n = this->size.batch * this->size.heads * this->size.queries;
    T* const of_density = d_density ? d_density + 2 * n * tile + row * this->size.queries : nullptr;

    copy_tile(block, this->source(this->values, b, h, basis, this->count_basis(), v));
    block.each(rows * stride, [&](int i) { sums[i] = T(0); });
    for (int first = 0; first < this->count_queries(); first += rows) {
      this->copy_density(block, b, h, first, mu, var);
      copy_tile(block, this->source(d_out, b, h, first, this->count_queries(), dz));
      if (d_density) {
        tile_product<T>(block, rows, rows, width, ByRows<T>{dz, stride}, ByRows<T>{v, stride},
                        [&](int i, int j, T value) { p[i * leading_p + j] = value; });
        // The expectations take the place of their gradients.
        block.template reduce_rows<SumPair<T>>(
            rows, rows, Plus{},
            [&](int i, int j) {
              T& x = p[i * leading_p + j];
              const T dx = x;
              x = T(0);
              if (first + i >= this->count_queries() || basis + j >= this->count_basis())
                return SumPair<T>{};
              const Expectation<T> at =
                  Density::expectation_gradient(this->psi, Index{basis + j}, mu[i], var[i]);
              x = at.value;
              return SumPair<T>{dx * at.d_mu, dx * at.d_var};
            },
            [&](int i, const SumPair<T>& sum) {
              if (first + i < this->count_queries()) {
                of_density[first + i] = sum.first;
                of_density[n + first + i] = sum.second;
              }
            });
      } else {
        this->expect(block, first, basis, mu, var, p);
      }
      if (d_values)
        tile_product<T>(
            block, rows, width, rows, ByColumns<T>{p, leading_p}, ByColumns<T>{dz, stride},
            [&](int j, int d, const Four<T>& value) { add_four(sums + j * stride + d, value); });
    }
    if (d_values)
      add_tile(block, sums, rows, this->head_dim(), basis, this->count_basis(),
               d_values + b * this->size.basis * this->model() + h * this->size.head_dim,
               this->model());
  }
};

/// `expected_values` by tiles of queries and basis functions: the expectations of a tile stay in
/// shared memory and are never written out. Its sums run in an order that the sizes alone
/// determine.
template <class System, class Density>
struct TiledExpectation {
  using B = ThrustBackend<System>;
  using Composed = ComposedExpectation<Density, B>;

  /// As `ComposedExpectation::forward`.
  template <class T, class Psi>
  static void forward(const ReadSize& s, const Psi& psi, const T* density, const T* values,
                      T* out) {
    const auto kernel =
        fitted(ExpectationForward<Density, T, Psi>{tiles(s, psi, density, values), out});
    if (kernel.tile_rows == 0) return Composed::forward(s, psi, density, values, out);
    launch<System>(kernel.blocks(), kernel);
  }

  /// As `ComposedExpectation::backward`.
  template <class T, class Psi>
  static void backward(const ReadSize& s, const Psi& psi, const T* density, const T* values,
                       const T* d_out, T* d_density, T* d_values) {
    if (!d_density && !d_values) return;
    auto kernel = fitted(ExpectationBackward<Density, T, Psi>{tiles(s, psi, density, values), d_out,
                                                              d_values, nullptr});
    if (kernel.tile_rows == 0)
      return Composed::backward(s, psi, density, values, d_out, d_density, d_values);
    kernel.wide = kernel.wide && aligned_for_four(d_out, s.head_dim);
    Tensor<T, B> shares;
    const Index n = 2 * s.batch * s.heads * s.queries;
    if (d_density) {
      shares = Tensor<T, B>(Shape{kernel.basis_tiles(), n});
      kernel.d_density = shares.data();
    }
    launch<System>(kernel.blocks(), kernel);
    if (d_density) add_column_sums<B>(kernel.basis_tiles(), n, shares.data(), d_density);
  }

 private:
  template <class T, class Psi>
  static ExpectationTiles<Density, T, Psi> tiles(const ReadSize& s, const Psi& psi,
                                                 const T* density, const T* values) {
    return {s, psi, density, values, aligned_for_four(values, s.head_dim), 0};
  }
  // The kernel with as many rows as shared memory has room for, with 0 if not even 4 or if places
  // need more than 32 bits.
  template <class Kernel>
  static Kernel fitted(Kernel kernel) {
    constexpr Index most = Index{1} << 30;
    const ReadSize& s = kernel.size;
    const bool in_range = s.batch < most && s.heads < most && s.queries < most && s.basis < most;
    for (kernel.tile_rows = in_range ? 64 : 0; kernel.tile_rows >= 4; kernel.tile_rows /= 2)
      if (kernel.shared_bytes() <= most_shared) return kernel;
    kernel.tile_rows = 0;
    return kernel;
  }
};

}  // namespace detail

}  // namespace infty
