// SPDX-License-Identifier: MIT
#pragma once

#include <new>
#include <utility>

#include <infty/autograd/variable.hpp>
#include <infty/core/pool.hpp>

namespace infty {

/// The record of the operations that a backward pass has to undo.
///
/// While a tape lives, operations on variables that need gradients are recorded on it, by the
/// thread that made it. Without one nothing is recorded and nothing is kept. Tapes nest: the
/// innermost records.
class Tape {
 public:
  Tape() : outer_(std::exchange(active(), this)) {}
  ~Tape() {
    clear();
    active() = outer_;
  }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Adds the gradient of a scalar to every variable that it was computed from, and clears the
  /// tape. @throws infty::ShapeError unless `loss` has one element
  template <class T, class B>
  void backward(const Variable<T, B>& loss) {
    require<ShapeError>(loss.size() == 1, "backward", "loss is ", loss.shape(),
                        ": it must have one element");
    backward(loss, Tensor<T, B>::full(loss.shape(), T(1)));
  }

  /// The same for any shape, from the gradient with respect to `output`.
  /// @throws infty::ShapeError unless the shapes are equal
  template <class T, class B>
  void backward(const Variable<T, B>& output, const Tensor<T, B>& seed) {
    require<ShapeError>(seed.shape() == output.shape(), "backward", "seed is ", seed.shape(),
                        ", output is ", output.shape());
    if (output.requires_grad()) {
      T* const grad = output.grad().data();
      const T* const from = seed.data();
      B::for_each(seed.size(), [=] INFTY_HOST_DEVICE(Index i) { grad[i] += from[i]; });
    }
    // The gradients themselves are not recorded.
    Tape* const recording = std::exchange(active(), nullptr);
    try {
      while (last_) {
        Node* const node = std::exchange(last_, last_->previous);
        --size_;
        struct Destroy {
          Node* node;
          ~Destroy() { node->destroy(node); }
        } destroy{node};
        node->run(node);
      }
    } catch (...) {
      active() = recording;
      clear();
      throw;
    }
    active() = recording;
  }

  /// Forgets what was recorded.
  void clear() {
    while (last_) {
      Node* const node = std::exchange(last_, last_->previous);
      node->destroy(node);
    }
    size_ = 0;
  }

  /// Number of operations recorded.
  Index size() const { return size_; }

  /// The tape that records on this thread, or null.
  static Tape*& active() {
    static thread_local Tape* tape = nullptr;
    return tape;
  }

  /// Records `backward(dy)`, where dy is the gradient that has arrived at `output`.
  template <class T, class B, class Backward>
  void push(const Variable<T, B>& output, Backward backward) {
    struct Operation : Node {
      Operation(Variable<T, B> y, Backward b) : output(std::move(y)), backward(std::move(b)) {}
      Variable<T, B> output;
      Backward backward;
    };
    void* const place = HostPool::instance().allocate(sizeof(Operation));
    Operation* const node = ::new (place) Operation(output, std::move(backward));
    node->previous = last_;
    node->run = [](Node* self) {
      auto* const operation = static_cast<Operation*>(self);
      if (operation->output.has_grad()) operation->backward(operation->output.grad());
    };
    node->destroy = [](Node* self) {
      auto* const operation = static_cast<Operation*>(self);
      operation->~Operation();
      HostPool::instance().release(operation, sizeof(Operation));
    };
    last_ = node;
    ++size_;
  }

 private:
  struct Node {
    Node* previous = nullptr;
    void (*run)(Node*) = nullptr;
    void (*destroy)(Node*) = nullptr;
  };

  Node* last_ = nullptr;
  Index size_ = 0;
  Tape* outer_;
};

/// While it lives, nothing is recorded on this thread.
class [[nodiscard]] NoGrad {
 public:
  NoGrad() : tape_(std::exchange(Tape::active(), nullptr)) {}
  ~NoGrad() { Tape::active() = tape_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  Tape* tape_;
};

/// `auto guard = no_grad();` records nothing until the guard's scope ends.
inline NoGrad no_grad() { return NoGrad(); }

/// Ends an operation: if a tape records and an input needs a gradient, so does `output`, and
/// `backward(dy)` will run with the gradient dy of `output`. It adds to the inputs' `grad()`, for
/// those that need one. Captures keep alive what the backward pass needs.
template <class T, class B, class Backward, class... Inputs>
Variable<T, B> record(Variable<T, B> output, Backward backward, const Inputs&... inputs) {
  if (Tape* const tape = Tape::active(); tape && (inputs.requires_grad() || ...)) {
    output.set_requires_grad(true);
    tape->push(output, std::move(backward));
  }
  return output;
}

}  // namespace infty
