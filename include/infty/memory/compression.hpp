// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/state.hpp>
#include <infty/memory/flops.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

/// How c vectors become one [Rae et al. 2020, §3.2].
enum class Compression {
  mean,         ///< their mean
  max,          ///< the largest of each element
  convolution,  ///< a convolution over time, kernel and stride c
  /// A stack of causal convolutions of width 2 and dilations 1, 2, 4, ..., as many as it takes to
  /// see all c, with max(x, 0) between two, of whose outputs the last is kept. The paper does not
  /// say how its own are made.
  dilated,
  most_used,  ///< of all that leave at once, those with the highest average attention
};

namespace detail {

/// Adds f(row, column) to the gradient of x, taken as rows of its last dimension.
template <class Handle, class T, class B, class F>
void add_rows_to_grad(const GradientHandle<Handle, T, B>& x, F f) {
  const GradTarget<T> target = x.grad_target();
  const Index d = x.dim(-1);
  T* const to = target.data;
  const bool add = target.add;
  for_each_element<B>(x.size() / d, d, [=] INFTY_HOST_DEVICE(Index row, Index column) {
    T& slope = to[row * d + column];
    slope = add ? slope + f(row, column) : f(row, column);
  });
}

/// y (groups, d) of x (groups, c, d): the means of groups.
template <class T, class B>
Variable<T, B> mean_groups(const Variable<T, B>& x, Index c) {
  const Index d = x.dim(-1), groups = x.size() / (c * d);
  Variable<T, B> y(Tensor<T, B>(Shape{groups, d}));
  const T* const in = x.value().data();
  T* const out = y.value().data();
  const T share = T(1) / static_cast<T>(c);
  for_each_element<B>(groups, d, [=] INFTY_HOST_DEVICE(Index group, Index j) {
    T sum = T(0);
    for (Index i = group * c; i < (group + 1) * c; ++i) sum += in[i * d + j];
    out[group * d + j] = share * sum;
  });
  return record(
      y,
      [x = Unread(x), c, d, share](const Tensor<T, B>& dy) {
        const T* const g = dy.data();
        const Index width = d, count = c;
        const T f = share;
        add_rows_to_grad(x, [=] INFTY_HOST_DEVICE(Index row, Index column) {
          return f * g[row / count * width + column];
        });
      },
      Unread(x));
}

/// The same of the largest elements; a gradient goes to the first of equal ones.
template <class T, class B>
Variable<T, B> max_groups(const Variable<T, B>& x, Index c) {
  const Index d = x.dim(-1), groups = x.size() / (c * d);
  Variable<T, B> y(Tensor<T, B>(Shape{groups, d}));
  Tensor<Index, B> largest(Shape{groups, d});  // which row of the group
  const T* const in = x.value().data();
  T* const out = y.value().data();
  Index* const which = largest.data();
  for_each_element<B>(groups, d, [=] INFTY_HOST_DEVICE(Index group, Index j) {
    Index best = group * c;
    for (Index i = best + 1; i < (group + 1) * c; ++i)
      if (in[i * d + j] > in[best * d + j]) best = i;
    out[group * d + j] = in[best * d + j];
    which[group * d + j] = best;
  });
  return record(
      y,
      [x = Unread(x), largest, c, d](const Tensor<T, B>& dy) {
        const T* const g = dy.data();
        const Index* const from = largest.data();
        const Index width = d, count = c;
        add_rows_to_grad(x, [=] INFTY_HOST_DEVICE(Index row, Index column) {
          const Index at = row / count * width + column;
          return from[at] == row ? g[at] : T(0);
        });
      },
      Unread(x));
}

/// Of each row's n vectors the n / c with the largest average, in their order: [batch, E / c, d],
/// right-aligned; of equal averages the later one.
/// @param usage  [batch, E, 2], the sum that the average is of, and how many were summed
template <class T, class B>
Tensor<T, B> most_used(const RowSequences<T, B>& x, const Tensor<T, B>& usage, Index c) {
  const Index batch = x.vectors.dim(0), E = x.vectors.dim(1), d = x.vectors.dim(2), most = E / c;
  auto y = Tensor<T, B>::zeros(Shape{batch, most, d});
  const auto lengths = Tensor<Index, B>::from(Shape{batch}, x.length.data());
  Tensor<T, B> averages(Shape{batch, E});
  Tensor<Index, B> chosen(Shape{batch, E}), places(Shape{batch, E});
  const Index* const length = lengths.data();
  const T *const used = usage.data(), *const from = x.vectors.data();
  T *const average = averages.data(), *const to = y.data();
  Index *const keep = chosen.data(), *const place = places.data();
  B::for_each(batch * E, [=] INFTY_HOST_DEVICE(Index i) {
    average[i] = used[2 * i + 1] > T(0) ? used[2 * i] / used[2 * i + 1] : T(0);
  });
  B::for_each_row(batch * E, E, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / E, i = at % E, n = length[row];
    Index above = 0;  // vectors of the row that are used more
    for (Index j = E - n; j < E; ++j) {
      const T other = average[row * E + j];
      above += other > average[at] || (other == average[at] && j > i) ? 1 : 0;
    }
    keep[at] = i >= E - n && above < n / c ? 1 : 0;
  });
  B::for_each_row(batch * E, E, [=] INFTY_HOST_DEVICE(Index at) {
    const Index row = at / E;
    Index behind = 0;  // that are kept, too
    for (Index j = at + 1; j < (row + 1) * E; ++j) behind += keep[j];
    // Averages that are no numbers may all be kept: no more than there is room for.
    place[at] = keep[at] && behind < length[row] / c ? most - 1 - behind : -1;
  });
  for_each_element<B>(batch * E, d, [=] INFTY_HOST_DEVICE(Index at, Index j) {
    if (place[at] >= 0) to[(at / E * most + place[at]) * d + j] = from[at * d + j];
  });
  return y;
}

/// Number of convolutions of width 2 that see c vectors, at least one.
inline Index dilated_levels(Index c) {
  Index levels = 1;
  while ((Index{1} << levels) < c) ++levels;
  return levels;
}

}  // namespace detail

/// Maps groups of c vectors of width d to one each [Rae et al. 2020, §3.2], a choice of
/// `Compression` other than `most_used`.
template <class T, class Backend = EigenBackend>
class Compressor {
 public:
  using V = Variable<T, Backend>;

  /// `convolution`: one, [d, c d], the first vector of a group first; `dilated`: one a level, [d, 2
  /// d], the earlier vector first; else none.
  std::vector<Linear<T, Backend>> maps;

  Compressor() = default;

  /// Makes a compression of c vectors of width d to one, with weights drawn as `Linear` draws them.
  /// @throws infty::ValueError unless c, d >= 1 and c d² is at most `largest_size`
  Compressor(Compression kind, Index c, Index d, Random random) : kind_(kind), c_(c) {
    require(c >= 1 && d >= 1, "Compressor", "c is ", c, ", d is ", d, ": both must be >= 1");
    require_sizes("Compressor", {{"c", c}, {"d", d}, {"d", d}});
    const Index count = kind == Compression::convolution ? 1
                        : kind == Compression::dilated   ? detail::dilated_levels(c)
                                                         : 0;
    for (Index i = 0; i < count; ++i)
      maps.emplace_back((kind == Compression::convolution ? c : 2) * d, d,
                        random.split(static_cast<std::uint64_t>(i)));
  }

  /// [B, n c, d] -> [B, n, d]. @throws infty::ShapeError unless c divides the number of vectors
  V forward(const V& x) const {
    require<ShapeError>(x.shape().rank() == 3 && x.dim(1) % c_ == 0 && x.dim(2) >= 1, "Compressor",
                        "x is ", x.shape(), ": it must be [B, n ", c_, ", d]");
    require(kind_ != Compression::convolution || !maps.empty(), "Compressor",
            "there is no map: it was made by default, or moved from");
    const Index d = x.dim(2);
    const Shape shape = x.shape().with(1, x.dim(1) / c_);
    const V groups = reshape(x, Shape{shape[0] * shape[1], c_, d});
    const V y = kind_ == Compression::mean  ? detail::mean_groups(groups, c_)
                : kind_ == Compression::max ? detail::max_groups(groups, c_)
                : kind_ == Compression::dilated
                    ? dilated(groups)
                    : maps[0].forward(reshape(groups, Shape{groups.dim(0), c_ * d}));
    return reshape(y, shape);
  }

  /// Multiplications and additions of the products for n groups.
  double flops(Index n) const {
    double count = 0;
    Index vectors = c_;
    for (const auto& map : maps) {
      vectors = kind_ == Compression::dilated ? (vectors + 1) / 2 : 1;
      count += detail::product_flops(n, vectors, map.weight.size());
    }
    return count;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("maps", maps);
  }

 private:
  /// [n, c, d] -> [n, d]. What the last output of the stack depends on is a tree of pairs, each of
  /// whose levels is a convolution at every second place; before the group there are zeros.
  V dilated(V x) const {
    const Index n = x.dim(0), d = x.dim(2);
    for (std::size_t level = 0; level < maps.size(); ++level) {
      if (level > 0) x = relu(x);
      if (x.dim(1) % 2 == 1) x = concat(V(Tensor<T, Backend>::zeros(Shape{n, 1, d})), x);
      const Index pairs = x.dim(1) / 2;
      x = reshape(maps[level].forward(reshape(x, Shape{n * pairs, 2 * d})), Shape{n, pairs, d});
    }
    return x;
  }

  Compression kind_ = Compression::mean;
  Index c_ = 1;
};

}  // namespace infty
