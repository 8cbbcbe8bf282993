// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>

#include <infty/autograd/tape.hpp>
#include <infty/core/bfloat16.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/number.hpp>
#include <infty/core/random.hpp>
#include <infty/core/verify.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/weighted_rows.hpp>

namespace infty {

namespace detail {

/// @throws infty::ValueError unless every token lies in [0, vocabulary)
template <class B>
void require_tokens(const char* op, const Tensor<Index, B>& tokens, Index vocabulary) {
  const Index* const id = tokens.data();
  verify<B>(
      tokens.size(), [=] INFTY_HOST_DEVICE(Index i) { return id[i] < 0 || id[i] >= vocabulary; },
      [=](Index wrong) {
        raise<ValueError>(op, "token ",
                          tokens.reshape(Shape{tokens.size()}).slice(wrong, wrong + 1).item(),
                          " at place ", wrong, ": tokens must lie in [0, ", vocabulary, ")");
      });
}

/// A shape with one more dimension behind it.
inline Shape with_last(const Shape& shape, Index extent) {
  std::array<Index, Shape::max_rank> extents{};
  std::copy(shape.begin(), shape.end(), extents.begin());
  extents[static_cast<std::size_t>(shape.rank())] = extent;
  return Shape(extents.begin(), extents.begin() + shape.rank() + 1);
}

/// As `embedding`, for tokens that are not checked. A backend that leaves rows out which are not in
/// a table gives zeros for them, and no gradient.
template <class T, class B>
Variable<T, B> embedding_rows(const Tensor<Index, B>& tokens, const Variable<T, B>& table,
                              T factor) {
  const Index n = tokens.size(), d = table.dim(1), vocabulary = table.dim(0);
  Variable<T, B> y(Tensor<T, B>(detail::with_last(tokens.shape(), d)));
  if (const auto* const stored = table.stored_in_bfloat16()) {
    Tensor<BFloat16, B> rows(y.shape());
    B::gather_rows(n, d, stored->data(), tokens.data(), vocabulary, rows.data());
    y.value() = rows.template cast<T>();
  } else {
    B::gather_rows(n, d, table.value().data(), tokens.data(), vocabulary, y.value().data());
  }
  if (factor != T(1)) {
    T* const out = y.value().data();
    B::for_each(n * d, [=] INFTY_HOST_DEVICE(Index i) { out[i] *= factor; });
  }
  return record(
      y,
      [tokens, table, factor, n, d, vocabulary](const Tensor<T, B>& dy) {
        const T* rows = dy.data();
        Tensor<T, B> scaled;
        if (factor != T(1)) {
          scaled = Tensor<T, B>(dy.shape());
          T* const to = scaled.data();
          B::for_each(n * d, [=] INFTY_HOST_DEVICE(Index i) { to[i] = factor * rows[i]; });
          rows = to;
        }
        if (table.grad_by_rows())
          detail::add_rows_to_grad<T>(table, tokens, nullptr, rows, 1);
        else
          B::scatter_add_rows(n, d, rows, tokens.data(), vocabulary, table.grad().data());
      },
      Unread(table), tokens);
}

}  // namespace detail

/// Looks up row tokens[...] of a table, times `factor`: [...] -> [..., d], as
/// torch.nn.functional.embedding. A table that keeps its gradient by rows
/// (`Variable::set_grad_by_rows`) gets that of the rows that were read alone, as with
/// `sparse=True`.
/// @param table  [vocabulary, d]
/// @throws infty::ValueError for a token outside [0, vocabulary)
template <class T, class B>
Variable<T, B> embedding(const Tensor<Index, B>& tokens, const Variable<T, B>& table,
                         T factor = T(1)) {
  require<ShapeError>(table.shape().rank() == 2 && tokens.rank() < Shape::max_rank, "embedding",
                      "table is ", table.shape(), ", tokens are ", tokens.shape(),
                      ": the table must be [vocabulary, d]");
  detail::require_tokens("embedding", tokens, table.dim(0));
  return detail::embedding_rows(tokens, table, factor);
}

/// A table of vectors, one a token, as torch.nn.Embedding.
template <class T, class Backend>
struct Embedding {
  Variable<T, Backend> weight;  ///< [vocabulary, d]

  Embedding() = default;

  /// Draws the table from a normal distribution of the given standard deviation.
  /// @throws infty::ValueError unless vocabulary, d >= 1, and the deviation is finite and >= 0
  Embedding(Index vocabulary, Index d, Random random, double deviation = 1) {
    require(vocabulary >= 1 && d >= 1, "Embedding", "vocabulary is ", vocabulary, ", d is ", d,
            ": both must be >= 1");
    require_within("Embedding", "deviation", deviation, 0, largest_constant);
    Tensor<T, Backend> table(Shape{vocabulary, d});
    fill_normal(table, 0, deviation, random);
    weight = Variable<T, Backend>(std::move(table), true);
  }

  /// Embeds tokens, [...] -> factor * rows [..., d]. @throws infty::ValueError for a token out of
  /// range
  Variable<T, Backend> forward(const Tensor<Index, Backend>& tokens, T factor = T(1)) const {
    return embedding(tokens, weight, factor);
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
  }
};

}  // namespace infty
