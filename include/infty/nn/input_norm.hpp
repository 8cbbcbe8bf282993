// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/core/pool.hpp>

namespace infty {

/// The norm in front of a mixer, for one that holds its inputs as they were and norms them where it
/// uses them; by default there is none. Refers to the norm and owns nothing.
template <class T, class Backend = EigenBackend>
class InputNorm {
 public:
  using V = Variable<T, Backend>;
  using Parameters = PoolVector<V>;  ///< of the norm, in its own order

  InputNorm() = default;

  /// Refers to a norm with `forward(x)`, which must outlive this.
  template <Layer Norm>
  explicit InputNorm(const Norm& norm) : norm_(&norm), functions_(&functions_of<Norm>) {}

  /// Whether there is one.
  explicit operator bool() const { return norm_ != nullptr; }

  /// Vectors [..., d] normed; without a norm as they are.
  V operator()(const V& x) const { return norm_ ? functions_->forward(norm_, x) : x; }

  /// Norms vectors [..., d] without a gradient to the norm's parameters.
  V with_constants(const V& x) const { return norm_ ? functions_->with_constants(norm_, x) : x; }

  /// The norm's parameters, none without one.
  Parameters parameters() const { return norm_ ? functions_->parameters(norm_) : Parameters(); }

 private:
  struct Functions {
    V (*forward)(const void*, const V&);
    V (*with_constants)(const void*, const V&);
    Parameters (*parameters)(const void*);
  };

  template <class Norm>
  static constexpr Functions functions_of{
      [](const void* norm, const V& x) { return static_cast<const Norm*>(norm)->forward(x); },
      [](const void* norm, const V& x) {
        Norm constant = *static_cast<const Norm*>(norm);
        for_each_parameter(constant, [](const std::string&, V& p) { p = p.detach(); });
        return constant.forward(x);
      },
      [](const void* norm) {
        Parameters all;
        const auto collect = [&](const std::string&, const V& p) { all.push_back(p); };
        detail::for_each_place(*static_cast<const Norm*>(norm), collect);
        return all;
      }};

  const void* norm_ = nullptr;
  const Functions* functions_ = nullptr;
};

}  // namespace infty
