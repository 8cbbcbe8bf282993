// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <memory>
#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/memory/ops/chunked_delta_rule.hpp>
#include <infty/memory/ops/recurrent_delta_rule.hpp>

namespace infty {

/// What a delta rule returns; a gradient flows through both.
template <class T, class Backend = EigenBackend>
struct DeltaRuleResult {
  Variable<T, Backend> output;  ///< o, [B, L, H', D]
  Variable<T, Backend> state;   ///< S behind the last place, [B, H', K, D]
};

namespace detail {

/// The inputs as kernels see them.
/// @throws infty::ShapeError unless they fit
template <class T, class B>
DeltaRuleArguments<T> delta_rule_arguments(const DeltaRuleInputs<T, B>& in,
                                           const Variable<T, B>& state, double scale) {
  const Shape &q = in.query.shape(), &v = in.value.shape();
  const bool whole = q.rank() == 4 && v.rank() == 4 && in.key.shape() == q && q[2] >= 1 &&
                     q[3] >= 1 && v[3] >= 1 && v[0] == q[0] && v[1] == q[1] && v[2] >= 1 &&
                     v[2] % q[2] == 0;
  const auto number_a_place = [&](const Variable<T, B>& x) {
    return x.shape() == Shape{0} || (whole && x.shape() == Shape{v[0], v[1], v[2]});
  };
  require<ShapeError>(whole && number_a_place(in.beta) && number_a_place(in.decay) &&
                          state.shape() == Shape{q[0], v[2], q[3], v[3]},
                      "delta_rule", "query is ", q, ", key ", in.key.shape(), ", value ", v,
                      ", beta ", in.beta.shape(), ", decay ", in.decay.shape(), ", state ",
                      state.shape(),
                      ": they must be [B, L, H, K] twice, [B, L, H', D], [B, L, H'] or empty "
                      "twice, and [B, H', K, D], H' a multiple of H");
  const bool reads = !(in.beta.shape() == Shape{0}), fades = !(in.decay.shape() == Shape{0});
  return {q[0],
          q[1],
          q[2],
          v[2],
          q[3],
          v[3],
          static_cast<T>(scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(q[3]))),
          in.query.value().data(),
          in.key.value().data(),
          in.value.value().data(),
          reads ? in.beta.value().data() : nullptr,
          fades ? in.decay.value().data() : nullptr,
          state.value().data()};
}

/// The chunk to ask for: where no tape records and a head's memory stays in a core's innermost
/// cache, 0. There the recurrence is quicker than products; on the way back, and where memories are
/// larger or threads are many, products are.
template <class T, class B>
Index quickest_chunk(Index chunk, Index key_dim, Index value_dim) {
  constexpr Index most = Index{1} << 16;  // bytes
  const bool fits = key_dim * value_dim * static_cast<Index>(sizeof(T)) <= most;
  return !many_threads<B> && !Tape::active() && fits ? 0 : chunk;
}

/// The longest sequence that goes place by place, whatever the memory's size: of sixteen places the
/// way back by products takes a fifth to three quarters of the time (Intel Xeon, AVX-512).
template <class B>
Index longest_placed(Index chunk) {
  return chunk / (!many_threads<B> && Tape::active() ? 16 : 4);
}

/// `delta_rule` by one of its two forms.
template <class Form, class T, class B>
DeltaRuleResult<T, B> delta_rule_by(const DeltaRuleInputs<T, B>& in, const Variable<T, B>& state,
                                    const DeltaRuleArguments<T>& args, Index chunk) {
  Variable<T, B> output(Tensor<T, B>(in.value.shape())), last(Tensor<T, B>(state.shape()));
  auto kept = Form::forward(args, chunk, output.value().data(), last.value().data());
  // Of two outputs the last one's gradient arrives first, and waits for the other's.
  const auto waiting = std::make_shared<Tensor<T, B>>();
  output = record(
      output,
      [in, state, args, chunk, kept, waiting](const Tensor<T, B>& dy) {
        const Tensor<T, B> dstate = std::exchange(*waiting, Tensor<T, B>());
        Form::backward(args, chunk, kept, in, state, dy.data(),
                       dstate.empty() ? nullptr : dstate.data());
      },
      in.query, in.key, in.value, in.beta, in.decay, state);
  last = record(
      last,
      [output = Unread(output), waiting](const Tensor<T, B>& dstate) {
        *waiting = dstate;
        output.grad();
      },
      Unread(output));
  return {output, last};
}

}  // namespace detail

/// The delta rule [Schlag et al. 2021; Yang et al. 2024], gated by a decay [Yang et al. 2025], or
/// without either linear attention [Katharopoulos et al. 2020]. A memory S [K, D] a head is
/// written to and asked place by place:
///
///     S ← e^g S;   S ← S + k (β (v - Sᵀk))ᵀ;   o = scale Sᵀq
///
/// so that what stood at a key is replaced by the share β; without β it is S ← S + k vᵀ. Queries
/// and keys are taken as they are: in a delta rule keys have length 1, and 0 <= β <= 2. Sequences
/// that are longer than a quarter of `options.chunk`, on a CPU while a tape records than a
/// sixteenth, go chunk by chunk through matrix products, with the same result but for rounding.
/// @param state    S before the first place, [B, H', K, D]
/// @param options  scale and chunk
/// @throws infty::ShapeError; infty::ValueError for options out of their range
template <class T, class B>
DeltaRuleResult<T, B> delta_rule(const DeltaRuleInputs<T, B>& in, const Variable<T, B>& state,
                                 const DeltaRuleOptions& options = {}) {
  options.validate();
  const auto args = detail::delta_rule_arguments(in, state, options.scale);
  if (args.length <= detail::longest_placed<B>(options.chunk) || options.chunk == 0 ||
      args.length == 0)
    return detail::delta_rule_by<detail::RecurrentDeltaRule<B>>(in, state, args, Index(0));
  return detail::delta_rule_by<detail::ChunkedDeltaRule<B>>(in, state, args, options.chunk);
}

}  // namespace infty
