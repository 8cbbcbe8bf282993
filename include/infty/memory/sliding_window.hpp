// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/config.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/select_rows.hpp>
#include <infty/memory/fifo.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// The constants of a `SlidingWindow`.
struct SlidingWindowConfig {
  Index longest = 1024;  ///< places of the window: most vectors that a row may read from its start
  Index kept = 512;      ///< vectors of a full window that are read again, at the first places

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    require_at_least("SlidingWindowConfig", "longest", longest, 1);
    require(kept >= 0 && kept < longest, "SlidingWindowConfig", "kept is ", kept,
            ": it must lie in [0, longest), longest is ", longest);
    require_sizes("SlidingWindowConfig", {{"longest", longest}});
  }
};

/// What a `SlidingWindow` remembers.
template <class T, class Backend, class InnerState>
struct SlidingWindowState {
  InnerState inner;               ///< of the stack
  RowSequences<T, Backend> last;  ///< the last vectors that came in, `kept` of them at most
  RowCounts places;               ///< how many places of its window each row has used

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
    see("last", last);
    see("places", places);
  }
};

/// A decorator around a stack that knows so many places of a row and no more, as GPT-2 does: a row
/// whose window the next segment would not fit into begins again, with the last vectors that came
/// in, `kept` of them or as many as leave room for the segment, read again at the first places.
/// Other rows go on as they are.
///
/// Behind a full window the answers depend on how a text is cut into segments, and a vector is read
/// 1 + kept / (n L) times in all, where segments have L vectors and n of them fit behind those that
/// are kept; `kept` = longest - 1 slides with every vector. No gradient flows from a window to the
/// one before. What is read again are vectors: a stack that looks up tokens, as `Engram` does, has
/// none then and refuses, unless nothing is kept.
template <class Inner>
class SlidingWindow {
  static_assert(Layer<Inner>, "SlidingWindow: the stack" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Inner>, "SlidingWindow: the stack" INFTY_NO_STATE);
  static_assert(detail::makes_state<Inner>, "SlidingWindow: the stack" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Inner>, "SlidingWindow: the stack" INFTY_NO_FORWARD);
  static_assert(remembers<Inner>, "SlidingWindow: the stack has no State");

 public:
  using Scalar = typename Inner::Scalar;
  using BackendType = typename Inner::BackendType;
  using V = Variable<Scalar, BackendType>;
  using Config = SlidingWindowConfig;
  using State = SlidingWindowState<Scalar, BackendType, StateOf<Inner>>;

  Inner inner;  ///< the stack

  /// Takes a stack of vectors of width d.
  /// @throws infty::ValueError if the configuration is not valid, or d < 1
  SlidingWindow(Inner stack, Config config, Index d)
      : inner(std::move(stack)), config_(config), last_((config.validate(), d), config.kept) {}

  /// The constants as given.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("inner", inner);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    return {infty::make_state(inner, batch, first_row), last_.make_state(batch),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on.
  /// @throws infty::ShapeError for a segment of more than `longest` vectors; infty::ValueError for
  /// memory tokens; then the state is as it was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    last_.check("SlidingWindow", state.last);
    const Index batch = detail::checked_rows("SlidingWindow", state);
    require<ShapeError>(x.shape().rank() == 3 && x.dim(0) == batch &&
                            x.dim(2) == last_.model_dim() && x.dim(1) <= config_.longest,
                        "SlidingWindow", "x is ", x.shape(), ": it must be [", batch, ", L, ",
                        last_.model_dim(), "], L at most ", config_.longest);
    require(pass.before + pass.behind == 0, "SlidingWindow", "there are ", pass.before, " and ",
            pass.behind, " memory tokens around the segment: it takes none");
    State next = state;
    make_room(next, x.dim(1));
    V y = run_layer(inner, next.inner, x, pass);
    last_.write(next.last, std::as_const(x).value());
    for (Index& used : next.places) used += x.dim(1);
    state = std::move(next);
    return y;
  }

 private:
  /// Begins the windows of rows anew in which so many vectors have no room.
  void make_room(State& state, Index length) const {
    RowCounts rows;
    for (std::size_t row = 0; row < state.places.size(); ++row)
      if (state.places[row] > config_.longest - length) rows.push_back(static_cast<Index>(row));
    if (rows.empty()) return;
    const Index kept = (std::min)(config_.kept, config_.longest - length);
    auto fresh = select_rows(state.inner, rows);
    for (Index i = 0; i < std::ssize(rows); ++i) reset_row(fresh, i);
    if (kept > 0) {
      const auto guard = no_grad();
      // A row that is full has seen that many.
      const V last(select_rows(state.last, rows).vectors);
      Pass<Scalar, BackendType> pass{.answer = false};
      detail::explained<ShapeError>(
          [&] { run_layer(inner, fresh, narrow(last, last.dim(1) - kept, last.dim(1)), pass); },
          [](const char* what) {
            raise<ShapeError>("SlidingWindow",
                              "vectors are read again, without the tokens: ", what);
          });
    }
    const bool all = rows.size() == state.places.size();
    if (all) state.inner = std::move(fresh);
    for (Index i = 0; i < std::ssize(rows); ++i) {
      const Index row = rows[static_cast<std::size_t>(i)];
      if (!all) put_rows(state.inner, row, take_rows(fresh, i, i + 1));
      state.places[static_cast<std::size_t>(row)] = kept;
    }
  }

  Config config_;
  Fifo<Scalar, BackendType> last_;
};

}  // namespace infty
