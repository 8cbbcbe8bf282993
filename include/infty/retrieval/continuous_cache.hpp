// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/for_each.hpp>
#include <infty/core/number.hpp>
#include <infty/core/state.hpp>
#include <infty/retrieval/retrieved.hpp>

namespace infty {

/// How a cache's tokens and a model's become one distribution [Grave et al. 2017, §3].
enum class CacheForm {
  linear,  ///< two softmaxes, interpolated by lambda
  global   ///< one softmax over the vocabulary and the cache
};

/// The names of the forms of a cache, as the paper has them.
constexpr std::array<std::string_view, 2> names_of(CacheForm) { return {"linear", "global"}; }

/// Constants of a `ContinuousCache`. The paper tunes them on validation text.
struct ContinuousCacheConfig {
  CacheForm form = CacheForm::linear;  ///< the paper tries both
  Index window = 2000;                 ///< pairs that are remembered, 100 and 2,000 in the paper
  double theta = 0.3;                  ///< that products of hidden vectors are multiplied by
  double lambda = 0.1;                 ///< share of the cache, of the linear form
  double alpha = 0;                    ///< added to the cache's scores, of the global form
  /// Whether a row uses its cache only when it has seen more than `window` pairs, as the most used
  /// program does (awd-lstm-lm); the paper does not say so.
  bool wait_until_full = false;

  /// Checks all constants. @throws infty::ValueError that names the first one out of its range
  void validate() const {
    const char* const op = "ContinuousCacheConfig";
    require_at_least(op, "window", window, 1);
    require_sizes(op, {{"window", window}});
    require(math::is_finite(theta) && theta >= 0, op, "theta is ", theta,
            ": it must be finite and at least 0");
    require(lambda >= 0 && lambda < 1, op, "lambda is ", lambda, ": it must lie in [0, 1)");
    require_within(op, "alpha", alpha, -largest_constant, largest_constant);
  }
};

/// The settings of a continuous cache.
template <class See>
void describe(ContinuousCacheConfig& c, See&& see) {
  see("form", c.form, "how the cache's tokens and the model's become one distribution");
  see("window", c.window, "pairs that are remembered");
  see("theta", c.theta, "that products of hidden vectors are multiplied by");
  see("lambda", c.lambda, "share of the cache, of the linear form");
  see("alpha", c.alpha, "added to the cache's scores, of the global form");
  see("wait_until_full", c.wait_until_full,
      "a row's cache is used only behind more than window pairs");
}

/// What a cache remembers of each row.
template <class T, class Backend>
struct ContinuousCacheState {
  Tensor<T, Backend> hidden;      ///< [batch, window, d], the last vectors, the newest last
  Tensor<Index, Backend> tokens;  ///< [batch, window], 1 + what came behind each; 0 for nothing
  RowCounts seen;                 ///< [batch], pairs until now

  template <class Visitor>
  void visit(Visitor&& see) {
    see("hidden", hidden);
    see("tokens", tokens);
    see("seen", seen);
  }
};

namespace detail {

/// 1 + token, or 0 for none.
template <class B>
Tensor<Index, B> one_more(const Tensor<Index, B>& tokens) {
  Tensor<Index, B> out(tokens.shape());
  const Index* const from = tokens.data();
  Index* const to = out.data();
  B::for_each(tokens.size(),
              [=] INFTY_HOST_DEVICE(Index i) { to[i] = from[i] >= 0 ? from[i] + 1 : 0; });
  return out;
}

/// Of the products of every place with all keys those of the window in front of it.
/// @param products  [batch, L, window + L]
/// @param tokens    [batch, window + L], 1 + token; 0 for none
/// @param seen      [batch], pairs of a row in front of the segment
/// @param wait      nothing is found in front of a row's `window` + 1st pair
/// @return          [batch L, window]
template <class T, class B>
Retrieved<T, B> cached_before(const Tensor<T, B>& products, const Tensor<Index, B>& tokens,
                              const Tensor<Index, B>& seen, bool wait) {
  const Index batch = products.dim(0), length = products.dim(1), all = products.dim(2);
  const Index window = all - length;
  Retrieved<T, B> found{Tensor<T, B>(Shape{batch * length, window}),
                        Tensor<Index, B>(Shape{batch * length, window})};
  const T* const product = products.data();
  const Index *const token = tokens.data(), *const count = seen.data();
  T* const score = found.scores.data();
  Index* const to = found.tokens.data();
  for_each_element<B>(batch * length, window, [=] INFTY_HOST_DEVICE(Index place, Index i) {
    const Index row = place / length, t = place % length;
    const bool used = !wait || count[row] + t > window;
    score[place * window + i] = product[place * all + t + i];
    to[place * window + i] = used ? token[row * all + t + i] - 1 : -1;
  });
  return found;
}

}  // namespace detail

/// The continuous cache of Grave et al. [2017]: the pairs of a model's hidden vector and the token
/// that came behind it, of the last `window` places, are looked up by the next hidden vectors. It
/// learns nothing, and goes with any model whose hidden vectors one can have. No gradient flows
/// through it.
template <class T, class Backend>
class ContinuousCache {
 public:
  using State = ContinuousCacheState<T, Backend>;

  /// A cache of hidden vectors of width d.
  /// @throws infty::ValueError unless d >= 1 and the configuration is valid
  explicit ContinuousCache(Index d, ContinuousCacheConfig config = {}) : d_(d), config_(config) {
    config.validate();
    require_at_least("ContinuousCache", "d", d, 1);
    require_sizes("ContinuousCache", {{"window", config.window}, {"d", d}});
  }

  /// The constants as given.
  const ContinuousCacheConfig& config() const { return config_; }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch) const {
    require_rows("ContinuousCache::make_state", batch);
    return {Tensor<T, Backend>::zeros(Shape{batch, config_.window, d_}),
            Tensor<Index, Backend>::zeros(Shape{batch, config_.window}),
            RowCounts(static_cast<std::size_t>(batch), 0)};
  }

  /// Looks each place up among the pairs strictly before it, and then remembers the pairs of the
  /// segment. A place whose target is below 0 (`ignore_index`) takes a place of the window and is
  /// never found.
  /// @param hidden   [B, L, d]
  /// @param targets  [B, L], the tokens behind these places
  /// @return         scores θ h·h_i and tokens, [B L, window], the oldest pair first
  /// @throws infty::ShapeError; infty::NonFiniteError for a vector that is not finite, or whose
  /// products are not; then the state is as it was
  Retrieved<T, Backend> read(State& state, const Tensor<T, Backend>& hidden,
                             const Tensor<Index, Backend>& targets) const {
    const Index batch = std::ssize(state.seen), window = config_.window, d = d_;
    const Index length = hidden.rank() == 3 ? hidden.dim(1) : 0;
    require<ShapeError>(state.hidden.shape() == Shape{batch, window, d} &&
                            state.tokens.shape() == Shape{batch, window},
                        "ContinuousCache", "the state holds ", state.hidden.shape(), " and ",
                        state.tokens.shape(), ": another cache made it");
    require<ShapeError>(hidden.shape() == Shape{batch, length, d} &&
                            targets.shape() == Shape{batch, length} && batch >= 1,
                        "ContinuousCache", "hidden vectors are ", hidden.shape(), ", targets ",
                        targets.shape(), ": they must be [", batch, ", L, ", d, "] and [", batch,
                        ", L]");
    const Index all = window + length;
    Tensor<T, Backend> keys(Shape{batch, all, d});
    Tensor<Index, Backend> tokens(Shape{batch, all});
    join(state.hidden, hidden, keys, d);
    join(state.tokens, detail::one_more(targets), tokens, 1);
    const Tensor<T, Backend> scores = products(hidden, keys);
    detail::require_finite(scores, [hidden] {
      raise<NonFiniteError>("ContinuousCache", detail::all_finite(hidden)
                                                   ? "a product of hidden vectors is not finite"
                                                   : "a hidden vector is not finite");
    });
    const auto found = detail::cached_before(
        scores, tokens, Tensor<Index, Backend>::from(Shape{batch}, state.seen.data()),
        config_.wait_until_full);
    State next{Tensor<T, Backend>(state.hidden.shape()),
               Tensor<Index, Backend>(state.tokens.shape()), state.seen};
    detail::copy_rows<Backend>(batch, window * d, keys.data() + length * d, all * d,
                               next.hidden.data(), window * d);
    detail::copy_rows<Backend>(batch, window, tokens.data() + length, all, next.tokens.data(),
                               window);
    for (Index& count : next.seen) count += length;
    state = std::move(next);
    return found;
  }

 private:
  /// [B, n + L, ...] of [B, n, ...] and [B, L, ...], whose rows have numbers of `inner`.
  template <class N>
  static void join(const Tensor<N, Backend>& held, const Tensor<N, Backend>& added,
                   Tensor<N, Backend>& to, Index inner) {
    const Index rows = to.dim(0), n = held.dim(1) * inner, more = added.dim(1) * inner;
    detail::copy_rows<Backend>(rows, n, held.data(), n, to.data(), n + more);
    detail::copy_rows<Backend>(rows, more, added.data(), more, to.data() + n, n + more);
  }

  /// The products of every place with all keys.
  Tensor<T, Backend> products(const Tensor<T, Backend>& hidden,
                              const Tensor<T, Backend>& keys) const {
    const Index batch = keys.dim(0), all = keys.dim(1), length = hidden.dim(1), d = d_;
    Tensor<T, Backend> out(Shape{batch, length, all});
    Backend::matmul({.m = length,
                     .n = all,
                     .k = d,
                     .a = {.leading = d, .outer = length * d},
                     .b = {.leading = d, .outer = all * d, .transposed = true},
                     .c = {.leading = all, .outer = length * all},
                     .outer = batch},
                    static_cast<T>(config_.theta), hidden.data(), keys.data(), T(0), out.data());
    return out;
  }

  Index d_;
  ContinuousCacheConfig config_;
};

}  // namespace infty
