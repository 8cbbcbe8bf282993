// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <limits>

#include <infty/autograd/linear.hpp>
#include <infty/core/fold.hpp>
#include <infty/core/tensor.hpp>
#include <infty/memory/ops/expected_values.hpp>
#include <infty/thrust/fixed_divisor.hpp>
#include <infty/thrust/kernels/expectation_tiles.hpp>
#include <infty/thrust/tile.hpp>
#include <infty/thrust/tile_product.hpp>

namespace infty {

template <class System>
struct ThrustBackend;

namespace detail {

/// out of a tile of queries.
template <class Density, class T, class Psi>
struct ExpectationForward : ExpectationTiles<Density, T, Psi> {
  T* out;

  Index blocks() const { return this->size.batch * this->size.heads * this->query_tiles(); }
  std::size_t shared_bytes() const {
    return 2 * detail::shared_bytes<T>(this->vectors()) +
           detail::shared_bytes<T>(this->expectations()) + this->table_bytes();
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
    const auto t = this->tables(block);

    this->know_queries(block, b, h, first, t);
    block.each(rows * stride, [&](int i) { sums[i] = T(0); });
    const Span<int> tiles = this->tiles_of(block, this->reached(block, first, t));
    for (int tile = tiles.low; tile <= tiles.high; ++tile) {
      const int basis = tile * rows;
      this->know_functions(block, basis, t);
      copy_tile(block, this->source(this->values, b, h, basis, this->count_basis(), v));
      this->expect(block, first, basis, t, p);
      tile_product<T>(block, rows, this->padded_head_dim(), rows, ByRows<T>{p, tile_leading(rows)},
                      ByColumns<T>{v, stride}, [&](int i, int d, const Four<T>& value) {
                        add_four(sums + i * stride + d, value);
                      });
    }
    T* const to = out + b * this->size.queries * this->model() + h * this->size.head_dim;
    const int columns = this->head_dim();
    block.each(rows * columns, [&](int item) {
      const int i = this->dims.quotient(item), d = item - i * columns;
      if (first + i >= this->count_queries()) return;
      T& read = to[Index{first + i} * this->model() + d];
      read = this->size.adds ? read + sums[i * stride + d] : sums[i * stride + d];
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
           detail::shared_bytes<T>(this->expectations()) + this->table_bytes();
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
    const auto t = this->tables(block);
    const Index n = this->size.batch * this->size.heads * this->size.queries;
    T* const of_density = d_density ? d_density + 2 * n * tile + row * this->size.queries : nullptr;

    copy_tile(block, this->source(this->values, b, h, basis, this->count_basis(), v));
    block.each(rows * stride, [&](int i) { sums[i] = T(0); });
    this->know_functions(block, basis, t);
    const Span<T> centres = this->centres(tile);
    for (int first = 0; first < this->count_queries(); first += rows) {
      this->know_queries(block, b, h, first, t);
      if (!this->may_count(centres, this->reached(block, first, t))) {
        if (d_density)
          block.each(rows, [&](int i) {
            if (first + i < this->count_queries())
              of_density[first + i] = of_density[n + first + i] = T(0);
          });
        continue;
      }
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
              const Expectation<T> at = this->at(t, basis, i, j);
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
        this->expect(block, first, basis, t, p);
      }
      if (d_values)
        tile_product<T>(
            block, rows, width, rows, ByColumns<T>{p, leading_p}, ByColumns<T>{dz, stride},
            [&](int j, int d, const Four<T>& value) { add_four(sums + j * stride + d, value); });
    }
    if (d_values)
      add_tile(block, sums, rows, this->dims, basis, this->count_basis(),
               d_values + b * this->size.basis * this->model() + h * this->size.head_dim,
               this->model());
  }
};

/// `expected_values` by tiles of queries and basis functions: the expectations of a tile stay in
/// shared memory and are never written out. A tile of functions that are all too far from all
/// queries of a tile to count is left out, as `QueryOrder` says, if `skip_tails` is on. Its sums
/// run in an order that sizes and densities determine.
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
    const int d = static_cast<int>(s.head_dim);
    return {s,
            psi,
            density,
            values,
            aligned_for_four(values, s.head_dim),
            0,
            std::numeric_limits<T>::epsilon() / (64 * static_cast<T>(s.basis)),
            FixedDivisor(d),
            FixedDivisor(round_up_4(d) / 4),
            FixedDivisor(1)};
  }
  // The kernel with as many rows as shared memory has room for, with 0 if not even 4 or if places
  // need more than 32 bits.
  template <class Kernel>
  static Kernel fitted(Kernel kernel) {
    constexpr Index most = Index{1} << 30;
    const std::size_t room = shared_for_block<System>();
    const ReadSize& s = kernel.size;
    const bool in_range = s.batch < most && s.heads < most && s.queries < most && s.basis < most;
    for (kernel.tile_rows = in_range ? 64 : 0; kernel.tile_rows >= 4; kernel.tile_rows /= 2) {
      kernel.across_functions = FixedDivisor(kernel.tile_rows);
      if (kernel.shared_bytes() <= room) return kernel;
    }
    kernel.tile_rows = 0;
    return kernel;
  }
};

}  // namespace detail

}  // namespace infty
