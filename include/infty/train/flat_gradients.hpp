// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <infty/autograd/row_gradient.hpp>
#include <infty/core/tensor.hpp>
#include <infty/parallel/level_sums.hpp>
#include <infty/train/named_parameters.hpp>

namespace infty::detail {

/// The gradients of all parameters as one vector in host memory, to be added to those of other
/// shards: the last parameter's first, for a backward pass comes to it first. In front of each
/// gradient stands a 1 if it has arrived, 0 and zeros if not; a parameter that keeps its gradient
/// by rows has such a number for every row, too. So what sums have there says how many gradients
/// they are of.
template <class T, class B>
class FlatGradients {
 public:
  explicit FlatGradients(const std::vector<NamedParameter<T, B>>& parameters)
      : parameters_(&parameters), places_(parameters.size()) {
    for (std::size_t i = parameters.size(); i-- > 0;) {
      places_[i] = {size_, size_ + length_of(parameters[i].variable)};
      size_ = places_[i].last;
    }
  }

  /// How many elements the vector has.
  std::size_t size() const { return size_; }
  /// Where the gradient of each parameter stands, and what belongs to it.
  const std::vector<Slice>& places() const { return places_; }

  /// Writes the gradients that there are to the vector `out`.
  void take(std::span<T> out) const {
    for (std::size_t i = 0; i < places_.size(); ++i) take(i, out);
  }

  /// Writes that of parameter i, if there is one.
  void take(std::size_t i, std::span<T> out) const {
    const Variable<T, B>& variable = (*parameters_)[i].variable;
    const std::span<T> own = places_[i].of(out);
    if (own.empty()) return;
    if (!variable.has_grad()) {
      std::fill(own.begin(), own.end(), T(0));
      return;
    }
    own[0] = T(1);
    const std::size_t rows = row_flags(variable);
    const std::span<T> flags = own.subspan(1, rows), values = own.subspan(1 + rows);
    if (const RowGradient<T, B>* const some = variable.row_grad()) {
      std::fill(own.begin() + 1, own.end(), T(0));
      const std::vector<Index> at = some->rows.to_vector();
      const std::vector<T> from = some->values.to_vector();
      const std::size_t width = rows > 0 ? values.size() / rows : 0;
      for (std::size_t k = 0; k < at.size(); ++k) {
        const auto row = static_cast<std::size_t>(at[k]);
        if (rows > 0) flags[row] = T(1);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(k * width), width,
                    values.begin() + static_cast<std::ptrdiff_t>(row * width));
      }
    } else {
      std::fill(flags.begin(), flags.end(), T(1));
      B::to_host(values.data(), variable.grad().data(), variable.size());
    }
  }

  /// Makes the parameters' gradients, of which there are none, those of a sum; whether there are
  /// any.
  bool put(std::span<const T> sum) const {
    bool any = false;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Variable<T, B>& variable = (*parameters_)[i].variable;
      const std::span<const T> own = places_[i].of(sum);
      if (own.empty() || !(own[0] > T(0))) continue;
      any = true;
      const std::size_t rows = row_flags(variable);
      if (rows > 0)
        put_rows(variable, own.subspan(1, rows), own.subspan(1 + rows));
      else
        B::from_host(variable.grad_target().data, own.data() + 1, variable.size());
    }
    return any;
  }

 private:
  /// Rows that are counted one by one.
  static std::size_t row_flags(const Variable<T, B>& variable) {
    return variable.grad_by_rows() && variable.shape().rank() >= 1
               ? static_cast<std::size_t>(variable.dim(0))
               : 0;
  }

  static std::size_t length_of(const Variable<T, B>& variable) {
    if (!variable.requires_grad()) return 0;
    return 1 + row_flags(variable) + static_cast<std::size_t>(variable.size());
  }

  static void put_rows(const Variable<T, B>& variable, std::span<const T> flags,
                       std::span<const T> table) {
    const std::size_t width = table.size() / flags.size();
    std::vector<Index> rows;
    std::vector<T> values;
    for (std::size_t row = 0; row < flags.size(); ++row) {
      if (!(flags[row] > T(0))) continue;
      rows.push_back(static_cast<Index>(row));
      const auto from = table.begin() + static_cast<std::ptrdiff_t>(row * width);
      values.insert(values.end(), from, from + static_cast<std::ptrdiff_t>(width));
    }
    const Index count = std::ssize(rows);
    variable.add_sound_row_grad({Tensor<Index, B>::from({count}, rows),
                                 Tensor<T, B>::from(variable.shape().with(0, count), values),
                                 variable.dim(0)});
  }

  const std::vector<NamedParameter<T, B>>* parameters_;
  std::vector<Slice> places_;  // in the vector
  std::size_t size_ = 0;
};

}  // namespace infty::detail
