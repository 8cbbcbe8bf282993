// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/needs.hpp>
#include <infty/nn/feed_forward.hpp>
#include <infty/nn/layer_norm.hpp>
#include <infty/nn/sequence_layer.hpp>

namespace infty {

/// What a `Block` remembers.
template <class MixerState, class FeedState>
struct BlockState {
  MixerState mixer;  ///< of the attention or memory
  FeedState feed;    ///< of the feed; `NoState` where it has none

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mixer", mixer);
    see("feed", feed);
  }
};

/// One layer of a transformer: y = x + mixer(x), then y + feed(y), each with a norm, in front of
/// the mixer and the feed (`norms_in_front`) or behind the sums, and with dropout behind both.
///
/// A mixer that holds its inputs holds them as they are, and norms them where it uses them.
template <class Mixer,
          class Feed = FeedForward<typename Mixer::Scalar, typename Mixer::BackendType>,
          class Norm = LayerNorm<typename Mixer::Scalar, typename Mixer::BackendType>>
struct Block {
  using Scalar = typename Mixer::Scalar;
  using BackendType = typename Mixer::BackendType;
  static_assert(Layer<Mixer>, "Block: the mixer" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Mixer>, "Block: the mixer" INFTY_NO_STATE);
  static_assert(detail::makes_state<Mixer>, "Block: the mixer" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Mixer>, "Block: the mixer" INFTY_NO_FORWARD);
  static_assert(Layer<Feed>, "Block: the feed" INFTY_NO_VISIT);
  static_assert(detail::state_fits<Feed>, "Block: the feed" INFTY_NO_STATE);
  static_assert(detail::makes_state<Feed>, "Block: the feed" INFTY_NO_MAKE_STATE);
  static_assert(detail::runs<Feed, Scalar, BackendType>, "Block: the feed" INFTY_NO_FORWARD);
  using V = Variable<Scalar, BackendType>;
  using State = BlockState<StateOf<Mixer>, StateOf<Feed>>;

  Mixer mixer;                 ///< mixes vectors of a row: an attention, a memory, or what else
  Norm mixer_norm;             ///< of width d
  Feed feed;                   ///< changes each vector by itself, a feed-forward network by default
  Norm feed_norm;              ///< of width d
  bool norms_in_front = true;  ///< x + f(norm(x)); otherwise norm(x + f(x)), as in the ∞-former

  template <class Visitor>
  void visit(Visitor&& see) {
    see("mixer", mixer);
    see("mixer_norm", mixer_norm);
    see("feed", feed);
    see("feed_norm", feed_norm);
  }

  /// Whether it leaves out what `pass.first` does not want: the mixer says so; a feed that
  /// remembers wants all.
  static constexpr bool answers_first = infty::answers_first<Mixer> && !remembers<Feed>;

  /// Whether padding changes no answer: the mixer says so; a feed goes vector by vector unless it
  /// remembers.
  bool reads_padded() const { return infty::reads_padded(mixer) && !remembers<Feed>; }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index first_row = 0) const {
    return {infty::make_state(mixer, batch, first_row), infty::make_state(feed, batch, first_row)};
  }

  /// [B, L, d] -> [B, L, d], moving the state on; without the first vectors if a mixer leaves the
  /// answers out that the pass does not want. @throws infty::ShapeError; then the state is as it
  /// was
  V forward(State& state, const V& x, Pass<Scalar, BackendType>& pass) const {
    State next = state;
    const bool answer = pass.answer;
    pass.answer = answer || remembers<Feed>;
    const V mixed = run_layer(mixer, next.mixer, x, in_front(mixer_norm), pass);
    pass.answer = answer;
    V y;
    if (answer || remembers<Feed>) {
      const Index left_out = x.dim(1) - mixed.dim(1);
      const bool none_in_front = answers_first && pass.first > 0;
      const V input = left_out == 0   ? x
                      : none_in_front ? narrow(x, 0, mixed.dim(1))
                                      : narrow(x, left_out, x.dim(1));
      const V sum = pass.add_dropped(input, mixed);
      y = behind(mixer_norm, sum);
      if (pass.keep != FeedInput::none && answer)
        keep(sum, y, x.dim(1) - pass.before - pass.behind, pass);
      const V fed = run_layer(feed, next.feed, y, in_front(feed_norm), pass);
      y = answer ? behind(feed_norm, pass.add_dropped(y, fed)) : V();
    }
    state = std::move(next);
    return y;
  }

 private:
  /// Keeps what the feed works on of the last `words` vectors in front of the tokens behind.
  /// @param sum  with what the mixer has added
  /// @param y    the same behind the mixer's norm, if that stands there
  void keep(const V& sum, const V& y, Index words, Pass<Scalar, BackendType>& pass) const {
    const auto guard = no_grad();
    const Index end = y.dim(1) - pass.behind;
    const V kept = narrow(pass.keep == FeedInput::plain ? sum : y, end - words, end);
    const bool normed = pass.keep == FeedInput::normed && norms_in_front;
    pass.feed_input = (normed ? feed_norm.forward(kept) : kept).value();
  }

  InputNorm<Scalar, BackendType> in_front(const Norm& norm) const {
    return norms_in_front ? InputNorm<Scalar, BackendType>(norm) : InputNorm<Scalar, BackendType>();
  }

  V behind(const Norm& norm, const V& x) const { return norms_in_front ? x : norm.forward(x); }
};

}  // namespace infty
