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
    require_as_needed(needed, variable.requires_grad(), k, then.shape(), output.shape());
    reach(variable, pass);
  }

  void note(detail::LastUses& uses, Index place) const { uses.see(variable.identity(), place); }

  Variable<T, B> variable;
  detail::Snapshot<T, B> then;
  bool needed;  // whether it took a gradient
};

template <class T, class B>
struct Tape::Seen<Unread<T, B>> {
  explicit Seen(const Unread<T, B>& x) : input(x), needed(x.requires_grad()) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t pass) const {
    require_unchanged(input.shape() == input.shape_now(), k, input.shape(), output.shape());
    require_as_needed(needed, input.requires_grad_now(), k, input.shape(), output.shape());
    reach(input, pass);
  }

  void note(detail::LastUses& uses, Index place) const { uses.see(input.identity(), place); }

  Unread<T, B> input;
  bool needed;  // whether it took a gradient
};

template <class T, class B>
struct Tape::Seen<ReadIf<T, B>> : Tape::Seen<Unread<T, B>> {
  using Gradient = Seen<Unread<T, B>>;

  explicit Seen(const ReadIf<T, B>& x) : Gradient(Unread(x.variable)), then(x.value) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t pass) const {
    const Tensor<T, B>& value = then.value();
    require_unchanged(value.empty() || (then.holds(value) && Gradient::input.has(value)), k,
                      Gradient::input.shape(), output.shape());
    Gradient::check(k, output, pass);
  }

  detail::Snapshot<T, B> then;
};

/// A value that the backward pass reads and no gradient flows to, such as its output's.
template <class T, class B>
struct Tape::Seen<Tensor<T, B>> {
  explicit Seen(const Tensor<T, B>& x) : then(x) {}

  template <class Output>
  void check(Index k, const Output& output, std::uint64_t) const {
    const bool ok = then.holds(then.value());
    if constexpr (std::is_same_v<Tensor<T, B>, typename Output::TensorType>)
      require(ok || !same(then.value(), output.now().value()), "backward",
              "the output of an operation, ", output.shape(),
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
