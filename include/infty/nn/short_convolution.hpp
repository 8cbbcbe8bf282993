// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/linear.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/for_each.hpp>
#include <infty/nn/linear.hpp>

namespace infty {

namespace detail {

/// Where a depthwise convolution's inputs stand: place t of the sequence, negative ones in the
/// past.
template <class T>
struct ConvolvedInputs {
  Index length, reach, channels, kernel, dilation;
  const T *x, *past;  // [B, length, channels], [B, reach, channels]

  /// What tap i of place t in a row of the batch reads.
  INFTY_HOST_DEVICE const T* at(Index row, Index t, Index i) const {
    const Index s = t - (kernel - 1 - i) * dilation;
    return s >= 0 ? x + (row * length + s) * channels : past + ((row + 1) * reach + s) * channels;
  }
};

/// A matrix [m, n] with its dimensions exchanged.
template <class T, class B>
Tensor<T, B> exchanged(const Tensor<T, B>& x) {
  Tensor<T, B> y(Shape{x.dim(1), x.dim(0)});
  exchange_dimensions<B>(Exchange(x.shape(), 0, 1), x.data(), y.data());
  return y;
}

/// Adds what flows back to inputs [B, n, channels], the first of which is `first` places from the
/// sequence's, from dy [B, length, channels]: Σ_i taps[i] dy[place + (kernel - 1 - i) dilation].
template <class T, class B>
void add_convolved_back(const Variable<T, B>& input, Index first, Index kernel, Index dilation,
                        const Tensor<T, B>& taps, const Tensor<T, B>& dy) {
  const Index n = input.dim(1), channels = input.dim(2), length = dy.dim(1);
  const T *const w = taps.data(), *const d = dy.data();
  T* const to = input.grad().data();
  for_each_span<B>(input.dim(0) * n, channels, kernel * channels,
                   [=] INFTY_HOST_DEVICE(Index place, Index begin, Index end) {
                     const Index row = place / n, s = place % n + first;
                     for (Index i = 0; i < kernel; ++i) {
                       const Index t = s + (kernel - 1 - i) * dilation;
                       if (t < 0 || t >= length) continue;
                       const T* const from = d + (row * length + t) * channels;
                       for (Index c = begin; c < end; ++c)
                         to[place * channels + c] += w[i * channels + c] * from[c];
                     }
                   });
}

}  // namespace detail

/// A causal convolution of each channel by itself along the sequence:
/// y[t] = bias + Σ_i weight[i] x[t - (kernel - 1 - i) dilation], where places before the sequence
/// are in `past`. As torch.nn.Conv1d of as many groups as channels, padded in front alone.
/// @param x         [B, L, C]
/// @param past      [B, P, C], the inputs before them, the newest last, P >= (kernel - 1) dilation
/// @param weight    [C, kernel], the last tap is the current place's
/// @param bias      [C], or empty for none
/// @param dilation  places from one tap to the next, >= 1
/// @return          [B, L, C]
/// @throws infty::ShapeError; infty::ValueError for a dilation below 1
template <class T, class B>
Variable<T, B> short_convolution(const Variable<T, B>& x, const Variable<T, B>& past,
                                 const Variable<T, B>& weight, const Variable<T, B>& bias = {},
                                 Index dilation = 1) {
  require_at_least("short_convolution", "dilation", dilation, 1);
  const Index channels = x.shape().rank() == 3 ? x.dim(2) : -1;
  require<ShapeError>(
      channels >= 0 && weight.shape().rank() == 2 && weight.dim(0) == channels &&
          weight.dim(1) >= 1 && past.shape().rank() == 3 && past.dim(0) == x.dim(0) &&
          past.dim(2) == channels && past.dim(1) / dilation >= weight.dim(1) - 1 &&
          (bias.size() == 0 || bias.shape() == Shape{channels}),
      "short_convolution", "x is ", x.shape(), ", past ", past.shape(), ", weight ", weight.shape(),
      ", bias ", bias.shape(), ", dilation ", dilation,
      ": they must be [B, L, C], [B, (kernel - 1) dilation or more, C], [C, kernel] and [C] or "
      "empty");
  const Index length = x.dim(1), kernel = weight.dim(1), places = x.dim(0) * length;
  const Tensor<T, B> taps = detail::exchanged(weight.value());  // [kernel, C]
  const detail::ConvolvedInputs<T> in{length,   past.dim(1),      channels,           kernel,
                                      dilation, x.value().data(), past.value().data()};
  Variable<T, B> y(Tensor<T, B>(x.shape()));
  {
    const T *const w = taps.data(), *const b = bias.value().data();
    T* const out = y.value().data();
    const bool biased = bias.size() > 0;
    detail::for_each_span<B>(places, channels, kernel * channels,
                             [=] INFTY_HOST_DEVICE(Index place, Index begin, Index end) {
                               T* const to = out + place * channels;
                               for (Index c = begin; c < end; ++c) to[c] = biased ? b[c] : T(0);
                               for (Index i = 0; i < kernel; ++i) {
                                 const T* const from = in.at(place / length, place % length, i);
                                 for (Index c = begin; c < end; ++c)
                                   to[c] += w[i * channels + c] * from[c];
                               }
                             });
  }
  return record(
      y,
      [x, past, weight, bias, taps, in, kernel, places](const Tensor<T, B>& dy) {
        const detail::ConvolvedInputs<T> from = in;
        const Index wide = in.channels;
        if (bias.requires_grad())
          detail::add_column_sums<B>(places, wide, dy.data(), bias.grad().data());
        if (weight.requires_grad()) {
          auto sums = Tensor<T, B>::zeros(Shape{kernel, wide});
          Tensor<T, B> product(x.shape());
          T* const p = product.data();
          const T* const d = dy.data();
          for (Index i = 0; i < kernel; ++i) {
            detail::for_each_span<B>(
                places, wide, wide, [=] INFTY_HOST_DEVICE(Index place, Index begin, Index end) {
                  const T* const seen = from.at(place / from.length, place % from.length, i);
                  for (Index c = begin; c < end; ++c)
                    p[place * wide + c] = d[place * wide + c] * seen[c];
                });
            detail::add_column_sums<B>(places, wide, p, sums.data() + i * wide);
          }
          detail::add_to_grad(weight, detail::exchanged(sums));
        }
        if (x.requires_grad()) detail::add_convolved_back(x, 0, kernel, in.dilation, taps, dy);
        if (past.requires_grad())
          detail::add_convolved_back(past, -in.reach, kernel, in.dilation, taps, dy);
      },
      x, past, weight, Unread(bias));
}

/// The constants of a short convolution. Defaults are those of DeltaNet and Gated DeltaNet
/// [Yang et al. 2024, 2025].
struct ShortConvolutionConfig {
  Index kernel = 4;    ///< taps, the current place's among them
  Index dilation = 1;  ///< places from one tap to the next
  bool bias = false;   ///< whether a number is added to each channel

  /// Inputs that a row holds, (kernel - 1) dilation + 1: the last ones, of which the oldest is not
  /// read again, as in the authors' program.
  Index reach() const { return (kernel - 1) * dilation + 1; }

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require_at_least("ShortConvolutionConfig", "kernel", kernel, 1);
    require_at_least("ShortConvolutionConfig", "dilation", dilation, 1);
    require_sizes("ShortConvolutionConfig", {{"kernel", kernel}, {"dilation", dilation}});
  }
};

/// What a short convolution remembers: the last inputs of every row, zeros in a fresh one.
template <class T, class Backend = EigenBackend>
struct ShortConvolutionState {
  /// [batch, (kernel - 1) dilation + 1, channels], the newest last; a gradient flows to them.
  Variable<T, Backend> past;

  template <class Visitor>
  void visit(Visitor&& see) {
    see("past", past);
  }
};

/// A causal convolution of each channel by itself, behind a state of its last inputs. What follows
/// it, such as SiLU, is the caller's.
template <class T, class Backend>
class ShortConvolution {
 public:
  using Scalar = T;
  using BackendType = Backend;
  using V = Variable<T, Backend>;
  using Config = ShortConvolutionConfig;
  using State = ShortConvolutionState<T, Backend>;

  V weight;  ///< [channels, kernel], the last tap is the current place's
  V bias;    ///< [channels], or empty

  ShortConvolution() = default;

  /// Draws the parameters uniformly within 1/sqrt(kernel), as torch.nn.Conv1d.
  /// @throws infty::ValueError if channels < 1 or the configuration is not valid
  ShortConvolution(Config config, Index channels, Random random) : config_(config) {
    config.validate();
    require(channels >= 1, "ShortConvolution", "channels is ", channels, ": it must be >= 1");
    require_sizes("ShortConvolution", {{"channels", channels}, {"kernel", config.reach()}});
    weight = detail::uniform_parameter<T, Backend>(Shape{channels, config.kernel}, config.kernel,
                                                   random.split(0));
    if (config.bias)
      bias = detail::uniform_parameter<T, Backend>(Shape{channels}, config.kernel, random.split(1));
  }

  /// Returns the constants.
  const Config& config() const { return config_; }

  template <class Visitor>
  void visit(Visitor&& see) {
    see("weight", weight);
    if (bias.size() > 0) see("bias", bias);
  }

  /// A state of fresh rows. @throws infty::ValueError unless 1 <= batch <= `largest_size`
  State make_state(Index batch, Index /*first_row*/ = 0) const {
    require_rows("ShortConvolution::make_state", batch);
    return {V(Tensor<T, Backend>::zeros(Shape{batch, config_.reach(), weight.dim(0)}))};
  }

  /// x [B, L, channels] -> [B, L, channels] behind the inputs before them; these go out as x comes
  /// in. @throws infty::ShapeError; then the state is as it was
  V forward(State& state, const V& x) const {
    const Index reach = config_.reach();
    require<ShapeError>(
        x.shape().rank() == 3 && state.past.shape() == Shape{x.dim(0), reach, weight.dim(0)},
        "ShortConvolution", "x is ", x.shape(), ", the state holds ", state.past.shape(),
        ": they must be [B, L, ", weight.dim(0), "] and [B, ", reach, ", ", weight.dim(0), "]");
    const V y = short_convolution(x, state.past, weight, bias, config_.dilation);
    const Index length = x.dim(1);
    // A copy in either case, so that the state's gradient is what later segments send.
    state.past = length > reach ? narrow(x, length - reach, length)
                                : narrow(concat(state.past, x), length, length + reach);
    return y;
  }

 private:
  Config config_;
};

}  // namespace infty
