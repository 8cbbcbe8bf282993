// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/last_uses.hpp>
#include <infty/autograd/no_grad.hpp>
#include <infty/autograd/recording_scope.hpp>
#include <infty/autograd/snapshot.hpp>
#include <infty/autograd/unread.hpp>
#include <infty/autograd/variable.hpp>
#include <infty/core/pool.hpp>

namespace infty {

/// An input of an operation whose backward pass adds to gradients of variables that are none of its
/// inputs, as one does that records on a tape of its own: for `Tape::push`.
struct Unlisted {};

namespace detail {

/// Adds a seed to the gradient of an output of the same shape. (No member of `Tape`: nvcc takes no
/// loop body from a private one.)
template <class T, class B>
void add_seed(const Variable<T, B>& output, const Tensor<T, B>& seed) {
  T* const grad = output.grad().data();
  const T* const from = seed.data();
  B::for_each(seed.size(), [=] INFTY_HOST_DEVICE(Index i) { grad[i] += from[i]; });
}

}  // namespace detail

/// The record of the operations that a backward pass has to undo.
///
/// While a tape lives, operations on variables that need gradients are recorded on it, by the
/// thread that made it. Without one nothing is recorded and nothing is kept. Tapes nest: the
/// innermost records. They may end in any order.
class Tape {
 public:
  Tape() : scope_(this) {}
  ~Tape() { forget(detail::Recording::died); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Adds the gradient of a scalar to every variable that it was computed from, and clears the
  /// tape. Where a variable comes from another tape, the gradient ends in it.
  /// @throws infty::ShapeError unless `loss` has one element; infty::ValueError if no gradient can
  /// flow to it: it needs none, or what was recorded of it is not, or no longer, on this tape; and
  /// if a value that its gradient is computed from was written since. Then nothing has changed.
  template <class T, class B>
  void backward(const Variable<T, B>& loss) {
    require<ShapeError>(loss.size() == 1, "backward", "loss is ", loss.shape(),
                        ": it must have one element");
    backward(loss, Tensor<T, B>::full(loss.shape(), T(1)));
  }

  /// Adds the gradient of an output of any shape, from that with respect to `output`, and clears
  /// the tape. @throws infty::ShapeError unless the shapes are equal; infty::ValueError as for a
  /// scalar
  template <class T, class B>
  void backward(const Variable<T, B>& output, const Tensor<T, B>& seed) {
    begin(output, seed);
    run([](Index) {});
  }

  /// The same of a scalar, and calls done(i) when the gradient of leaves[i] is complete: behind the
  /// last operation that has it as an input, or before all others if none has. No leaf is to come
  /// twice, and one may have no gradient. Until this returns, more that would be added to one that
  /// is complete is refused.
  /// @throws as above, what `done` throws, and infty::ValueError for such an operation
  template <class T, class B, class Done>
  void backward(const Variable<T, B>& loss, std::span<const Variable<T, B>> leaves, Done&& done) {
    require<ShapeError>(loss.size() == 1, "backward", "loss is ", loss.shape(),
                        ": it must have one element");
    begin(loss, Tensor<T, B>::full(loss.shape(), T(1)));
    detail::LastUses uses(leaves);
    Index place = 0;
    for (Node* node = last_; node; node = node->previous) node->note(node, uses, place++);
    struct Open {
      std::span<const Variable<T, B>> leaves;
      ~Open() {
        for (const Variable<T, B>& leaf : leaves) leaf.gradient().complete = false;
      }
    } open{leaves};
    const auto complete = [&](Index at) {
      uses.reached(at, [&](std::size_t i) {
        done(i);
        leaves[i].gradient().complete = true;
      });
    };
    run(complete);
  }

  /// Forgets what was recorded.
  void clear() { forget(detail::Recording::cleared); }

  /// Whether an operation on this tape has made a variable.
  template <class T, class B>
  bool has_recorded(const Variable<T, B>& variable) const {
    const auto* const gradient = variable.gradient_if_any();
    return gradient && gradient->recording && gradient->recording == recording_;
  }

  /// Returns the number of operations recorded.
  Index size() const { return size_; }

  /// Returns the tape that records on this thread, or null.
  static Tape* active() { return detail::RecordingScope::active(); }

  /// Records `backward(dy)`, where dy is the gradient that has arrived at `output`: see `record`.
  template <class T, class B, class Backward, class... Inputs>
  void push(const Variable<T, B>& output, Backward backward, const Inputs&... inputs) {
    struct Operation : Node {
      Operation(const Variable<T, B>& y, Backward b, const Inputs&... x)
          : output(y), backward(std::move(b)), inputs(Seen<Inputs>(x)...) {}
      Unread<T, B> output;
      Backward backward;
      std::tuple<Seen<Inputs>...> inputs;
    };
    if (!recording_)
      recording_ = std::allocate_shared<detail::Recording>(PoolAllocator<detail::Recording>{});
    output.gradient().recording = recording_;  // and there is one, for the operation to hold
    void* const place = HostPool::instance().allocate(sizeof(Operation));
    Operation* const node = ::new (place) Operation(output, std::move(backward), inputs...);
    node->previous = last_;
    node->check = [](Node* self, std::uint64_t pass, bool any) {
      auto* const operation = static_cast<Operation*>(self);
      const Unread<T, B>& y = operation->output;
      if (y.gradient().reached != pass && !y.has_grad() && !any) return any;
      require(y.shape() == y.shape_now(), "backward", "the output of an operation was ", y.shape(),
              " and is ", y.shape_now(), ": it must keep its shape until backward");
      Index place_of_input = 0;
      std::apply([&](const auto&... input) { (input.check(++place_of_input, y, pass), ...); },
                 operation->inputs);
      return any || (std::is_same_v<Inputs, Unlisted> || ...);
    };
    node->note = [](Node* self, detail::LastUses& uses, Index at) {
      std::apply([&](const auto&... input) { (input.note(uses, at), ...); },
                 static_cast<Operation*>(self)->inputs);
    };
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
    bool (*check)(Node*, std::uint64_t, bool) = nullptr;
    void (*note)(Node*, detail::LastUses&, Index place) = nullptr;
    void (*run)(Node*) = nullptr;
    void (*destroy)(Node*) = nullptr;
  };

  /// Checks what is to go backward, and adds the seed to the gradient of the output.
  template <class T, class B>
  void begin(const Variable<T, B>& output, const Tensor<T, B>& seed) {
    require<ShapeError>(seed.shape() == output.shape(), "backward", "seed is ", seed.shape(),
                        ", output is ", output.shape());
    require(output.requires_grad(), "backward", "no gradient flows to the output, of shape ",
            output.shape(),
            ": nothing that it was computed from needs one, or no tape was there to record it");
    check_recorded(output.gradient().recording.get(), output.shape());
    check_values(output);
    detail::add_seed<T, B>(output, seed);
  }

  /// An input as the operation saw it. `check` throws if it is another now, and marks it as reached
  /// by a backward pass.
  template <class Input>
  struct Seen;

  static void require_unchanged(bool ok, Index k, const Shape& was, const Shape& output) {
    require(ok, "backward", "input ", k, ", of shape ", was, ", of an operation whose output is ",
            output, " was written between forward and backward: the gradient needs it as it was");
  }

  /// Operations ask their inputs whether they take a gradient when they go backward.
  static void require_as_needed(bool needed, bool now, Index k, const Shape& input,
                                const Shape& output) {
    require(needed == now, "backward", "input ", k, ", of shape ", input,
            ", of an operation whose output is ", output, needed ? " took a" : " took no",
            " gradient when that was recorded, and takes ", needed ? "none now" : "one now",
            ": it must stay so until backward");
  }

  /// Throws unless an output of `from` is on this tape, or, from none, is a leaf.
  void check_recorded(const detail::Recording* from, const Shape& shape) const {
    if (!from || from == recording_.get()) return;
    const char* why = "another tape has recorded it";
    switch (from->fate.load(std::memory_order_relaxed)) {
      case detail::Recording::open:
        break;
      case detail::Recording::gone_backward:
        why = "it has gone backward already";
        break;
      case detail::Recording::cleared:
        why = "the tape was cleared";
        break;
      case detail::Recording::died:
        why = "the tape that recorded it has ended";
        break;
    }
    raise<ValueError>("backward", "the output, of shape ", shape, ", is not on this tape: ", why);
  }

  /// Throws if a value has changed that the gradient of `output` is computed from, or one that has
  /// arrived already.
  template <class T, class B>
  void check_values(const Variable<T, B>& output) const {
    static std::atomic<std::uint64_t> passes{0};
    const std::uint64_t pass = ++passes;
    reach(output, pass);
    bool any = false;  // a gradient may arrive at all that comes before
    for (Node* node = last_; node; node = node->previous) any = node->check(node, pass, any);
  }

  /// Marks what takes a gradient. Leaves, which threads may share, are not marked.
  template <class Input>
  static void reach(const Input& input, std::uint64_t pass) {
    if (input.requires_grad() && input.gradient().recording) input.gradient().reached = pass;
  }

  /// Runs the operations backward, the last one first, and forgets them; calls behind(place) behind
  /// each.
  template <class Behind>
  void run(Behind&& behind) {
    const detail::RecordingScope none(nullptr);  // the gradients themselves are not recorded
    struct Forget {
      Tape* tape;
      ~Forget() { tape->forget(detail::Recording::gone_backward); }
    } forget{this};
    behind(-1);
    for (Index place = 0; last_; ++place) {
      Node* const node = std::exchange(last_, last_->previous);
      --size_;
      struct Destroy {
        Node* node;
        ~Destroy() { node->destroy(node); }
      } destroy{node};
      node->run(node);
      behind(place);
    }
  }

  void forget(detail::Recording::Fate fate) {
    while (last_) {
      Node* const node = std::exchange(last_, last_->previous);
      node->destroy(node);
    }
    size_ = 0;
    if (recording_) recording_->fate.store(fate, std::memory_order_relaxed);
    recording_ = nullptr;
  }

  detail::RecordingScope scope_;
  std::shared_ptr<detail::Recording> recording_;  // made by the first operation
  Node* last_ = nullptr;
  Index size_ = 0;
};

namespace detail {

template <class Input>
bool needs_gradient(const Input& input) {
  if constexpr (requires { input.requires_grad(); })
    return input.requires_grad();
  else if constexpr (requires { input.begin()->requires_grad(); })
    return std::any_of(input.begin(), input.end(), [](const auto& x) { return x.requires_grad(); });
  else
    return false;  // a tensor
}

}  // namespace detail

/// Ends an operation: if a tape records and an input needs a gradient, so does `output`, and
/// `backward(dy)` will run with the gradient dy of `output`. It adds to the inputs' `grad()`, for
/// those that need one. Captures keep alive what the backward pass needs.
///
/// `Tape::backward` refuses to compute a wrong gradient of inputs that were written in between.
/// An input whose value `backward` does not read is given as `Unread(x)`, and as `ReadIf(x, value)`
/// where that depends; a tensor that it reads though no gradient flows there, such as the value of
/// `output` or indices, is given as it is; a vector of variables is one input.
template <class T, class B, class Backward, class... Inputs>
  requires std::invocable<Backward&, const Tensor<T, B>&>
Variable<T, B> record(Variable<T, B> output, Backward backward, const Inputs&... inputs) {
  if (Tape* const tape = Tape::active(); tape && (detail::needs_gradient(inputs) || ...)) {
    output.set_requires_grad(true);
    tape->push(output, std::move(backward), inputs...);
  }
  return output;
}

}  // namespace infty

#include <infty/autograd/seen_inputs.hpp>  // which a tape holds
