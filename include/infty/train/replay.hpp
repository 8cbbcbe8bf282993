// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/number.hpp>
#include <infty/core/pool.hpp>
#include <infty/core/random.hpp>
#include <infty/core/state_members.hpp>

namespace infty {

/// How `replayed_loss` goes through segments.
struct ReplayConfig {
  /// What a segment draws from, for dropout: it is put back before the segment is computed again.
  /// Must live until the backward pass.
  Random* random = nullptr;
  /// Segments that a gradient flows through, counted in groups from the first one; 0: all.
  Index through = 0;
  /// How far a segment's loss may be, when it is computed again, from what it was, relative to
  /// the loss or 1, whichever is larger. More says that the segment is not the same function then,
  /// for want of `random`, say; infinity asks nothing, and saves a wait for the backend.
  double tolerance = 1e-3;

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("ReplayConfig", "through", through, 0);
    require(tolerance >= 0, "ReplayConfig", "tolerance is ", tolerance, ": it must be >= 0");
  }
};

namespace detail {

/// Calls f(variable) for every variable of a state.
template <class State, class F>
void each_variable(State& state, F&& f) {
  each_member(state, [&](auto& member) {
    if constexpr (is_variable<std::remove_cvref_t<decltype(member)>>) f(member);
  });
}

/// Every variable of a state becomes one of its own, of the same elements, to which no gradient
/// flows through.
template <class State>
State without_history(State state, bool leaves) {
  each_variable(state, [&](auto& variable) {
    variable = std::remove_cvref_t<decltype(variable)>(variable.value(), leaves);
  });
  return state;
}

/// Several segments of a stream, as one operation.
template <class State, class Segment, class T, class B>
class Replay {
 public:
  using V = Variable<T, B>;
  using Variables = PoolVector<V>;

  Replay(Segment segment, const ReplayConfig& config)
      : segment_(std::move(segment)), config_(config) {}

  /// The sum of all losses; `state` moves on, and what a backward pass needs is kept if `keep`.
  V forward(State& state, Index segments, bool keep) {
    const auto guard = no_grad();
    each_variable(state, [&](const V& variable) { incoming_.push_back(variable); });
    V total(Tensor<T, B>::zeros(Shape{}));
    if (keep) losses_ = Tensor<T, B>(Shape{segments});
    State next = without_history(state, false);
    for (Index i = 0; i < segments; ++i) {
      std::optional<Random> random;
      if (config_.random) random = *config_.random;
      if (keep) kept_.push_back({next, random});
      const V loss = segment_(i, next);
      require<ShapeError>(loss.size() == 1, "replayed_loss", "the loss of segment ", i, " is ",
                          loss.shape(), ": it must have one element");
      if (keep) B::copy(losses_.data() + i, loss.value().data(), 1);
      total = total + reshaped(loss);
      next = without_history(std::move(next), false);
    }
    state = std::move(next);
    return total;
  }

  /// Variables of the state in front of the first segment, to which a gradient flows.
  const Variables& incoming() const { return incoming_; }

  /// Adds all gradients, the last segment's first, of dy times the sum of losses.
  void backward(const Tensor<T, B>& dy) {
    struct Draws {
      Random* random;
      std::optional<Random> after = random ? std::optional(*random) : std::nullopt;
      ~Draws() {
        if (random) *random = *after;
      }
    } const draws{config_.random};
    Gradients arriving;  // at the state behind the segment; empty where none flows
    while (!kept_.empty()) {
      const Index i = static_cast<Index>(kept_.size()) - 1;
      arriving = segment_backward(i, dy, arriving);
      kept_.pop_back();
      if (config_.through > 0 && i % config_.through == 0 && i > 0) arriving.clear();
    }
    for (std::size_t j = 0; j < arriving.size(); ++j)
      if (incoming_[j].requires_grad() && !arriving[j].empty())
        add_to_grad(incoming_[j], arriving[j]);
  }

 private:
  using Gradients = PoolVector<Tensor<T, B>>;

  struct Kept {
    State state;                   ///< in front of the segment
    std::optional<Random> random;  ///< as it stood there
  };

  static V reshaped(const V& loss) { return loss.shape().rank() == 0 ? loss : sum(loss); }

  /// The gradients of the variables in front of segment i, from those behind it.
  Gradients segment_backward(Index i, const Tensor<T, B>& dy, const Gradients& arriving) {
    const Kept& kept = kept_.back();
    if (kept.random) *config_.random = *kept.random;
    State state = without_history(kept.state, true);
    Variables before, behind;
    each_variable(state, [&](const V& variable) { before.push_back(variable); });
    Tape tape;
    const V loss = segment_(i, state);
    check(i, loss.value());
    V total = reshaped(loss) * V(dy.reshape(Shape{}));
    each_variable(state, [&](const V& variable) { behind.push_back(variable); });
    require<ShapeError>(arriving.empty() || arriving.size() == behind.size(), "replayed_loss",
                        "behind segment ", i, " the state has ", behind.size(),
                        " variables, and had ", arriving.size());
    for (std::size_t j = 0; j < arriving.size(); ++j)
      if (!arriving[j].empty() && behind[j].requires_grad())
        total = total + sum(behind[j] * V(arriving[j]));
    if (total.requires_grad()) tape.backward(total);
    Gradients gradients;
    for (const V& variable : before)
      gradients.push_back(variable.has_grad() ? variable.grad() : Tensor<T, B>());
    return gradients;
  }

  void check(Index i, const Tensor<T, B>& now) const {
    if (config_.tolerance == math::infinity<double>) return;
    const double a = static_cast<double>(now.reshape(Shape{}).item());
    const double b = static_cast<double>(losses_.slice(i, i + 1).item());
    const double scale = (std::max)(1., (std::max)(std::abs(a), std::abs(b)));
    // Of two that are not finite whoever reads the loss is to tell.
    const bool finite = math::is_finite(a);
    const bool alike =
        finite == math::is_finite(b) && (!finite || std::abs(a - b) <= config_.tolerance * scale);
    require(alike, "replayed_loss", "the loss of segment ", i, " was ", b, " and is ", a,
            " when it is computed again: a segment must be the same function then (does it draw "
            "from a generator that is not ReplayConfig::random, or have parameters changed?)");
  }

  Segment segment_;
  ReplayConfig config_;
  Variables incoming_;
  std::vector<Kept> kept_;
  Tensor<T, B> losses_;  ///< [segments], as they were
};

}  // namespace detail

/// The sum of the losses of consecutive segments, whose gradient flows through all of them at the
/// memory that one takes: memory replay back-propagation [Wu et al. 2022, §3.4]. Segments are
/// computed without a tape, and the state in front of each is kept. The backward pass computes
/// them again, the last one first, each on a tape of its own: the gradient of its loss, and of the
/// state that it leaves times what has arrived there from the segments behind it, gives what
/// arrives at the state in front of it. The numbers are those of back-propagation through time, for
/// twice the forward work.
///
///     auto loss = replayed_loss(state, segments, [&](Index i, auto& state) {
///       Pass<float> pass{.random = &dropout};
///       const auto hidden = model.forward(state, tokens[i], pass);
///       return mean_loss(model.losses(hidden, targets[i]), targets[i]);
///     }, {.random = &dropout});
///     tape.backward(loss);
///
/// Gradients flow to parameters, and through the variables that the state names by `visit`; its
/// tensors and counters are copied. They flow to the variables that `state` came with; behind the
/// last segment it is a state without history.
/// @param segment  segment(i, state) computes segment i, moves the state on, and returns its loss.
/// It is copied, and called twice a segment, the second time in the backward pass: what it refers
/// to must live until then, and both calls must do the same
/// @return         the loss, a scalar
/// @throws infty::ValueError for a configuration that cannot be, or unless segments >= 1, and what
/// `segment` throws; then the state is as it was. `Tape::backward` throws infty::ValueError where
/// the loss of a segment is another the second time: the gradients of those behind it have been
/// added then
template <Visitable State, class Segment>
auto replayed_loss(State& state, Index segments, Segment segment, ReplayConfig config = {}) {
  using V = std::remove_cvref_t<decltype(segment(Index{}, state))>;
  using T = typename V::Scalar;
  using B = typename V::BackendType;
  config.validate();
  require_at_least("replayed_loss", "segments", segments, 1);
  detail::Replay<State, Segment, T, B> replay(std::move(segment), config);
  Tape* const tape = Tape::active();
  V loss = replay.forward(state, segments, tape != nullptr);
  if (!tape) return loss;
  loss.set_requires_grad(true);
  const auto incoming = replay.incoming();
  tape->push(
      loss, [replay = std::move(replay)](const Tensor<T, B>& dy) mutable { replay.backward(dy); },
      incoming, Unlisted{});
  return loss;
}

}  // namespace infty
