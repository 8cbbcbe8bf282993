// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/nn/any_state.hpp>
#include <infty/nn/fwd.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// The one layer whose type is chosen while the program runs: any `SequenceLayer` of vectors of T
/// on a backend. A copy holds the same layer, as a copy of a layer has the same weights.
template <class T, class Backend>
class AnyLayer {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using State = AnyState<T, Backend>;
  using Norm = InputNorm<T, Backend>;

  AnyLayer() = default;

  /// Holds a layer.
  template <class L>
    requires(!std::is_same_v<L, AnyLayer> && SequenceLayer<L, T, Backend>)
  AnyLayer(L layer) : held_(std::make_unique<Held<L>>(std::move(layer))) {}

  /// Copies the handle inside: the same weights.
  AnyLayer(const AnyLayer& other) : held_(other.held_ ? other.held_->copy() : nullptr) {}
  AnyLayer(AnyLayer&&) noexcept = default;  ///< Leaves the other one empty.
  /// Becomes the other one, with its weights.
  AnyLayer& operator=(AnyLayer other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  ~AnyLayer() = default;

  /// Whether there is a layer inside.
  explicit operator bool() const { return held_ != nullptr; }

  /// The layer inside, if it is of this type; null otherwise.
  template <class L>
  L* get() const {
    auto* const held = dynamic_cast<Held<L>*>(held_.get());
    return held ? &held->layer : nullptr;
  }

  template <class Visitor>
  void visit(Visitor&& see) {
    if (!held_) return;
    std::vector<std::pair<std::string, V*>> parameters;
    held_->list(parameters);
    for (auto& [name, parameter] : parameters) see(name, *parameter);
  }

  /// Whether padding changes no answer of the layer inside; no layer does not know.
  bool reads_padded() const { return held_ && held_->reads_padded(); }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`, or if
  /// there is no layer
  State make_state(Index batch, Index first_row = 0) const {
    return held("AnyLayer::make_state").make_state(batch, first_row);
  }

  /// What the layer inside makes of x [B, L, d], with a norm in front or none.
  /// @throws infty::ShapeError for another layer's state, and what the layer throws; then the state
  /// is as it was; infty::ValueError if there is no layer
  V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const {
    return held("AnyLayer::forward").forward(state, x, norm, pass);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual State make_state(Index batch, Index first_row) const = 0;
    virtual V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const = 0;
    virtual void list(std::vector<std::pair<std::string, V*>>& parameters) = 0;
    virtual bool reads_padded() const = 0;
  };

  template <class L>
  struct Held final : Base {
    L layer;
    explicit Held(L inside) : layer(std::move(inside)) {}

    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(layer); }
    bool reads_padded() const override { return infty::reads_padded(layer); }
    State make_state(Index batch, Index first_row) const override {
      return State(infty::make_state(layer, batch, first_row));
    }
    V forward(State& state, const V& x, const Norm& norm, Pass<T, Backend>& pass) const override {
      auto* const own = state.template get<StateOf<L>>();
      require<ShapeError>(
          own, "AnyLayer::forward",
          "the state is another layer's, or none: it must be one that make_state of "
          "this layer has made");
      return run_layer(layer, *own, x, norm, pass);
    }
    void list(std::vector<std::pair<std::string, V*>>& parameters) override {
      const auto list = [&](const std::string& name, V& parameter) {
        parameters.emplace_back(name, &parameter);
      };
      detail::for_each_place(layer, list);
    }
  };

  Base& held(const char* op) const {
    require(held_ != nullptr, op, "there is no layer inside");
    return *held_;
  }

  std::unique_ptr<Base> held_;
};

}  // namespace infty
