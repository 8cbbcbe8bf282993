// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include <infty/autograd/shape.hpp>
#include <infty/core/math.hpp>
#include <infty/core/number.hpp>
#include <infty/core/row.hpp>
#include <infty/memory/ops/chunk_products.hpp>
#include <infty/memory/ops/delta_rule_inputs.hpp>

namespace infty::detail {

/// The delta rule by chunks of C places [Yang et al. 2024; 2025]. With G the sum of
/// the decays g from the chunk's begin, S₀ the memory there and E = e^G,
///
///     (I + A) U = β (V - E K S₀),   A_ij = β_i e^(G_i - G_j) k_i·k_j  below the diagonal
///     O = scale (E Q S₀ + P U),     P_ij = e^(G_i - G_j) q_i·k_j      on it and below
///     S = e^(G_C) S₀ + (e^(G_C - G) K)ᵀ U
///
/// where U is what is written. With T = (I + A)⁻¹ and W = T (β E K), U = T β V - W S₀: all but
/// S₀ is computed of all chunks at once, and what goes from chunk to chunk is two products.
template <class B>
struct ChunkedDeltaRule {
  /// What the way back takes from the forward pass.
  template <class T>
  struct Kept {
    Tensor<T, B> inverse;  ///< T, [rows, chunks, C, C]; empty without β
    Tensor<T, B> written;  ///< U, [rows, chunks, C, D]
    Tensor<T, B> states;   ///< S before each chunk and behind the last, [rows, chunks + 1, K, D]
  };

  /// The inputs in chunks, and what the decays make.
  template <class T>
  struct Prepared {
    Index chunks, size;              // size is C
    Tensor<T, B> query, key, value;  // [rows, chunks, C, width], zeros behind the end
    Tensor<T, B> beta;               // [rows, chunks, C], or empty
    // g, e^G and e^(G_C - G), the same, and e^(G_i - G_j) for j <= i, [rows, chunks, C, C]; or all
    // empty. None is made of differences of sums, in which a strong decay would hide those near it.
    Tensor<T, B> decay, opening, closing, between;
    Tensor<T, B> asking, reading, writing;  // E Q, β E K (empty without β), e^(G_C - G) K

    Tensor<T, B> matrices(Index m, Index n) const {
      return Tensor<T, B>(Shape{query.dim(0), chunks, m, n});
    }
  };

  template <class T>
  static Prepared<T> prepare(const DeltaRuleArguments<T>& in, Index chunk) {
    Prepared<T> p;
    p.chunks = (in.length + chunk - 1) / chunk;
    p.size = (in.length + p.chunks - 1) / p.chunks;  // as little behind the end as can be
    const Index rows = in.rows(), places = p.chunks * p.size, C = p.size;
    const auto packed = [&](DeltaRulePart part, const T* from, Shape shape) {
      Tensor<T, B> x(shape);
      pack<B>(in, part, from, places, x.data());
      return x;
    };
    p.query = packed({in.key_dim, true}, in.query, {rows, p.chunks, C, in.key_dim});
    p.key = packed({in.key_dim, true}, in.key, p.query.shape());
    p.value = packed({in.value_dim, false}, in.value, p.query.shape().with(3, in.value_dim));
    if (in.beta) p.beta = packed({1, false}, in.beta, {rows, p.chunks, C});
    if (in.decay) {
      p.decay = packed({1, false}, in.decay, {rows, p.chunks, C});
      p.opening = Tensor<T, B>(p.decay.shape());
      p.closing = Tensor<T, B>(p.decay.shape());
      p.between = p.matrices(C, C);
      const T* const g = std::as_const(p.decay).data();
      T *const open = p.opening.data(), *const close = p.closing.data();
      B::for_each_row(rows * p.chunks, 20 * C, [=] INFTY_HOST_DEVICE(Index n) {
        T before = 0, behind = 0;
        for (Index i = n * C; i < (n + 1) * C; ++i) open[i] = what_stays(before += g[i]);
        for (Index i = (n + 1) * C; i-- > n * C; behind += g[i]) close[i] = what_stays(behind);
      });
      T* const matrix = p.between.data();
      for_each_span<B>(rows * places, C, 10 * C,
                       [=] INFTY_HOST_DEVICE(Index n, Index begin, Index end) {
                         const Index i = n % C, last = i + 1 < end ? i + 1 : end;
                         const T* const from = g + (n - i);
                         T* const row = matrix + n * C;
                         T sum = 0;
                         for (Index j = i; j >= last; --j) sum += from[j];
                         for (Index j = last; j-- > begin; sum += from[j]) row[j] = sum;
                         for (Index j = begin; j < last; ++j) row[j] = what_stays(row[j]);
                       });
    }
    p.asking = weighed(p.query, p.opening);
    p.writing = weighed(p.key, p.closing);
    if (in.beta) p.reading = weighed(weighed(p.key, p.opening), p.beta);
    return p;
  }

  /// e^g, or 0 where its square would be no normal number: products of these are factors of others.
  template <class T>
  INFTY_HOST_DEVICE static T what_stays(T g) {
    return math::without_tail<T>(math::exp(g));
  }

  /// x_ij [rows, chunks, C, C] times e^(G_i - G_j), and factors_i if there are any, for places j at
  /// least `apart` before i; the others become 0.
  template <class T>
  static void keep_before(const Prepared<T>& p, Index apart, const Tensor<T, B>& factors,
                          Tensor<T, B>& x) {
    const Index C = p.size;
    T* const to = x.data();
    const T* const between = p.between.empty() ? nullptr : p.between.data();
    const T* const by = factors.empty() ? nullptr : factors.data();
    for_each_span<B>(x.size() / C, C, C, [=] INFTY_HOST_DEVICE(Index n, Index begin, Index end) {
      const Index i = n % C, last = i - apart + 1;  // behind the last one that is kept
      const T factor = by ? by[n] : T(1);
      T* const row = to + n * C;
      const Index kept = last < begin ? begin : last < end ? last : end;
      if (between)
        for (Index j = begin; j < kept; ++j) row[j] *= factor * between[n * C + j];
      else
        for (Index j = begin; j < kept; ++j) row[j] *= factor;
      for (Index j = kept; j < end; ++j) row[j] = T(0);
    });
  }

  /// W = T (β E K). It is in proportion to E: where that is 0, what its sums have left is less than
  /// a normal number, and becomes 0.
  template <class T>
  static Tensor<T, B> what_reads(const Prepared<T>& p, const Tensor<T, B>& inverse) {
    auto W = p.matrices(p.size, p.key.dim(3));
    multiply_chunks(p.chunks, T(1), plain(inverse), plain(p.reading), T(0), W);
    if (p.opening.empty()) return W;
    const Index K = W.dim(3);
    const T* const open = p.opening.data();
    T* const to = W.data();
    B::for_each_row(W.size() / K, K, [=] INFTY_HOST_DEVICE(Index n) {
      if (open[n] == T(0))
        for (Index j = n * K; j < (n + 1) * K; ++j) to[j] = T(0);
    });
    return W;
  }

  /// P, but for `scale`.
  template <class T>
  static Tensor<T, B> scores_of(const Prepared<T>& p) {
    auto scores = p.matrices(p.size, p.size);
    multiply_chunks(p.chunks, T(1), plain(p.query), turned(p.key), T(0), scores);
    keep_before(p, 0, Tensor<T, B>(), scores);
    return scores;
  }

  /// x [rows, chunks + 1, K, D]: chunk `to` becomes e^(G_C) x[from], of chunk c, added to what is
  /// there if `add`.
  template <class T>
  static void carry(const Prepared<T>& p, Index c, Index from, Index to, Tensor<T, B>& x,
                    bool add) {
    const Index each = x.dim(2) * x.dim(3), row = x.dim(1) * each, C = p.size;
    const T* const open = p.opening.empty() ? nullptr : p.opening.data();
    T* const data = x.data();
    const Index last = (c + 1) * C - 1, places = p.chunks * C;
    for_each_span<B>(x.dim(0), each, each, [=] INFTY_HOST_DEVICE(Index n, Index begin, Index end) {
      const T stays = open ? open[n * places + last] : T(1);
      const T* const a = data + n * row + from * each;
      T* const b = data + n * row + to * each;
      for (Index j = begin; j < end; ++j) b[j] = (add ? b[j] : T(0)) + stays * a[j];
    });
  }

  /// @param output  [B, L, H', D]   @param state  behind the last place, [rows, K, D]
  template <class T>
  static Kept<T> forward(const DeltaRuleArguments<T>& in, Index chunk, T* output, T* state) {
    const auto p = prepare(in, chunk);
    const Index rows = in.rows(), K = in.key_dim, D = in.value_dim, C = p.size, each = K * D;
    Kept<T> kept{{}, p.value, Tensor<T, B>(Shape{rows, p.chunks + 1, K, D})};
    Tensor<T, B> W;
    if (in.beta) {
      auto below = p.matrices(C, C);
      multiply_chunks(p.chunks, T(1), plain(p.key), turned(p.key), T(0), below);
      keep_before(p, 1, p.beta, below);
      kept.inverse = unit_lower_inverse(below);
      W = what_reads(p, kept.inverse);
      kept.written = p.matrices(C, D);
      multiply_chunks(p.chunks, T(1), plain(kept.inverse), plain(weighed(p.value, p.beta)), T(0),
                      kept.written);
    }
    Tensor<T, B>& S = kept.states;
    copy_rows<B>(rows, each, in.state, each, S.data(), (p.chunks + 1) * each);
    for (Index c = 0; c < p.chunks; ++c) {
      if (in.beta) multiply_chunks(1, T(-1), plain(W, c), plain(S, c), T(1), kept.written, c);
      carry(p, c, c, c + 1, S, false);
      multiply_chunks(1, T(1), turned(p.writing, c), plain(kept.written, c), T(1), S, c + 1);
    }
    auto answers = p.matrices(C, D);
    multiply_chunks(p.chunks, in.scale, plain(p.asking), plain(S), T(0), answers);
    multiply_chunks(p.chunks, in.scale, plain(scores_of(p)), plain(kept.written), T(1), answers);
    unpack<B>(in, {D, false}, std::as_const(answers).data(), p.chunks * C, output, false);
    copy_rows<B>(rows, each, std::as_const(S).data() + p.chunks * each, (p.chunks + 1) * each,
                 state, each);
    return kept;
  }

  /// Adds to the gradients of all inputs.
  /// @param dy      [B, L, H', D]   @param dstate  of the last state, [rows, K, D], or null
  template <class T>
  static void backward(const DeltaRuleArguments<T>& in, Index chunk, const Kept<T>& kept,
                       const DeltaRuleInputs<T, B>& inputs, const Variable<T, B>& state,
                       const T* dy, const T* dstate) {
    const auto p = prepare(in, chunk);
    const Index rows = in.rows(), K = in.key_dim, D = in.value_dim, C = p.size, each = K * D;
    const Index all = p.chunks + 1;
    auto answers = p.matrices(C, D);  // dO
    pack<B>(in, {D, false}, dy, p.chunks * C, answers.data());

    // From the last chunk to the first: dU = scale Pᵀ dO + (e^(G_C - G) K) dS, and of S before it
    // e^(G_C) dS + scale (E Q)ᵀ dO - Wᵀ dU.
    auto written = p.matrices(C, D);  // dU
    multiply_chunks(p.chunks, in.scale, turned(scores_of(p)), plain(answers), T(0), written);
    const auto W = in.beta ? what_reads(p, kept.inverse) : Tensor<T, B>();
    Tensor<T, B> states(kept.states.shape());  // dS
    multiply_chunks(p.chunks, in.scale, turned(p.asking), plain(answers), T(0), states);
    if (dstate)
      copy_rows<B>(rows, each, dstate, each, states.data() + p.chunks * each, all * each);
    else
      zero_rows<B>(rows, each, states.data() + p.chunks * each, all * each);
    for (Index c = p.chunks; c-- > 0;) {
      multiply_chunks(1, T(1), plain(p.writing, c), plain(states, c + 1), T(1), written, c);
      carry(p, c, c + 1, c, states, true);
      if (in.beta) multiply_chunks(1, T(-1), turned(W, c), plain(written, c), T(1), states, c);
    }
    if (state.requires_grad()) {
      const GradTarget<T> to = state.grad_target();
      copy_rows<B>(rows, each, std::as_const(states).data(), all * each, to.data, each, to.add);
    }
    if (in.beta) {  // through U = T Y, Y = β (V - E K S₀)
      auto solved = p.matrices(C, D);
      multiply_chunks(p.chunks, T(1), turned(kept.inverse), plain(written), T(0), solved);
      written = solved;
    }
    unpack_grad(in, {D, false}, weighed(written, p.beta), inputs.value);

    // Of queries, and of keys as those that are written to: with X the gradient of q_i·k_j,
    // dQ = E (scale dO S₀ᵀ) + X K, dK = e^(G_C - G) (U dSᵀ) + Xᵀ Q.
    auto X = p.matrices(C, C), dq = p.matrices(C, K), dk = p.matrices(C, K);
    multiply_chunks(p.chunks, in.scale, plain(answers), turned(kept.written), T(0), X);
    keep_before(p, 0, Tensor<T, B>(), X);
    multiply_chunks(p.chunks, in.scale, plain(answers), turned(kept.states), T(0), dq);
    dq = weighed(dq, p.opening);
    multiply_chunks(p.chunks, T(1), plain(X), plain(p.key), T(1), dq);
    multiply_chunks(p.chunks, T(1), plain(kept.written), turned(states, 1), T(0), dk);
    dk = weighed(dk, p.closing);
    multiply_chunks(p.chunks, T(1), turned(X), plain(p.query), T(1), dk);
    // Of keys as those that are read at: the same with -dY for dO, in F but for the factor β.
    Tensor<T, B> F;
    if (in.beta) {
      F = p.matrices(C, K);
      multiply_chunks(p.chunks, T(-1), plain(written), turned(kept.written), T(0), X);
      keep_before(p, 1, Tensor<T, B>(), X);
      multiply_chunks(p.chunks, T(-1), plain(written), turned(kept.states), T(0), F);
      F = weighed(F, p.opening);
      multiply_chunks(p.chunks, T(1), plain(X), plain(p.key), T(1), F);
      multiply_chunks(p.chunks, T(1), turned(X), plain(weighed(p.key, p.beta)), T(1), dk);
    }
    Tensor<T, B> dbeta(Shape{rows, p.chunks, C}), ddecay(dbeta.shape());
    {
      // dβ_i = dY_i·v_i + k_i·F_i. Of G_i: q_i·dq_i, and k_i times its gradient as it is read at,
      // less that as it is written to; and of the last G what S has of all.
      Tensor<T, B> last(Shape{rows, p.chunks, 1, 1});
      if (in.decay)
        multiply_chunks(p.chunks, T(1), plain(as_rows(kept.states), 1), turned(as_rows(states), 1),
                        T(0), last);
      const T *const q = p.query.data(), *const k = p.key.data(), *const v = p.value.data();
      const T *const y = std::as_const(written).data(), *const of_q = std::as_const(dq).data();
      const T *const f = std::as_const(F).data(), *const whole = std::as_const(last).data();
      const T* const beta = p.beta.data();
      const bool reads = in.beta != nullptr;
      T *const of_k = dk.data(), *const to_beta = dbeta.data(), *const to_decay = ddecay.data();
      B::for_each_row(rows * p.chunks * C, 4 * K + 2 * D, [=] INFTY_HOST_DEVICE(Index n) {
        T slope = row_sum<T>(K, [=](Index j) {
          return q[n * K + j] * of_q[n * K + j] - k[n * K + j] * of_k[n * K + j];
        });
        if (reads) {
          const T error = row_sum<T>(K, [=](Index j) { return k[n * K + j] * f[n * K + j]; });
          to_beta[n] = error + row_sum<T>(D, [=](Index j) { return y[n * D + j] * v[n * D + j]; });
          slope += beta[n] * error;
          for (Index j = n * K; j < (n + 1) * K; ++j) of_k[j] += beta[n] * f[j];
        }
        to_decay[n] = slope;
      });
      // G sums g. Where nothing stays there is no slope, but for what rounding has left.
      if (in.decay) {
        const T* const g = p.decay.data();
        B::for_each_row(rows * p.chunks, C, [=] INFTY_HOST_DEVICE(Index n) {
          T sum = whole[n];
          for (Index i = (n + 1) * C; i-- > n * C;) {
            sum += to_decay[i];
            to_decay[i] = what_stays(g[i]) > T(0) ? sum : T(0);
          }
        });
      }
    }
    unpack_grad(in, {K, true}, dq, inputs.query);
    unpack_grad(in, {K, true}, dk, inputs.key);
    unpack_grad(in, {1, false}, dbeta, inputs.beta);
    unpack_grad(in, {1, false}, ddecay, inputs.decay);
  }
};

}  // namespace infty::detail
