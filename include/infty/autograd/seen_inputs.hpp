// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include <infty/autograd/last_uses.hpp>
#include <infty/autograd/snapshot.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/autograd/variable.hpp>
#include <infty/core/pool.hpp>

// The inputs of an operation, as `Tape::push` keeps them of each kind.

namespace infty {

template <class T, class B>
struct Tape::Seen<Variable<T, B>> {
  explicit Seen(const Variable<T, B>& x) : variable(x), then(x), needed(x.requires_grad()) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t pass) const {
    require_unchanged(then.holds(variable), k, then.shape(), output.shape());
    require_as_needed(needed, variable, k, output.shape());
    reach(variable, pass);
  }

  void note(detail::LastUses& uses, Index place) const { uses.see(variable.identity(), place); }

  Variable<T, B> variable;
  detail::Snapshot<T, B> then;
  bool needed;  // whether it took a gradient
};

template <class T, class B>
struct Tape::Seen<Unread<T, B>> {
  explicit Seen(const Unread<T, B>& x)
      : variable(x.variable), shape(variable.shape()), needed(variable.requires_grad()) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t pass) const {
    require_unchanged(variable.shape() == shape, k, shape, output.shape());
    require_as_needed(needed, variable, k, output.shape());
    reach(variable, pass);
  }

  void note(detail::LastUses& uses, Index place) const { uses.see(variable.identity(), place); }

  Variable<T, B> variable;
  Shape shape;
  bool needed;  // whether it took a gradient
};

/// A value that the backward pass reads and no gradient flows to, such as its output's.
template <class T, class B>
struct Tape::Seen<Tensor<T, B>> {
  explicit Seen(const Tensor<T, B>& x) : then(x) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t) const {
    const bool ok = then.holds(then.value());
    if constexpr (std::is_same_v<Tensor<T, B>, typename Output::TensorType>)
      require(ok || !same(then.value(), output.value()), "backward", "the output of an operation, ",
              output.shape(),
              ", was written between forward and backward: the gradient needs it as it was");
    require_unchanged(ok, k, then.value().shape(), output.shape());
  }
  void note(detail::LastUses&, Index) const {}

  detail::Snapshot<T, B> then;
};

template <>
struct Tape::Seen<Unlisted> {
  explicit Seen(const Unlisted&) {}

  template <class Output>
  void check(Index, const Output&, std::uint64_t) const {}
  void note(detail::LastUses& uses, Index place) const { uses.see_all(place); }
};

/// Inputs whose number is not known beforehand count as one.
template <class T, class B, class Allocator>
struct Tape::Seen<std::vector<Variable<T, B>, Allocator>> {
  explicit Seen(const std::vector<Variable<T, B>, Allocator>& inputs)
      : all(inputs.begin(), inputs.end()) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t pass) const {
    for (const auto& input : all) input.check(k, output, pass);
  }
  void note(detail::LastUses& uses, Index place) const {
    for (const auto& input : all) input.note(uses, place);
  }

  using One = Seen<Variable<T, B>>;
  PoolVector<One> all;
};

}  // namespace infty
