// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/math.hpp>
#include <infty/core/row.hpp>
#include <infty/eigen/parallel.hpp>
#include <infty/eigen/register_tile.hpp>
#include <infty/memory/ops/delta_rule_inputs.hpp>

/// In front of a loop over columns of the memory, which have nothing to do with each other: a host
/// compiler cannot see it.
#if defined(__CUDACC__)
#define INFTY_COLUMNS_ALONE
#else
#define INFTY_COLUMNS_ALONE INFTY_INDEPENDENT_LOOP
#endif

namespace infty::detail {

/// The delta rule place by place: what defines it, and what generation runs. Of a row, columns of
/// the memory S [K, D] have nothing to do with each other, so that each may have a thread.
template <class B>
struct RecurrentDeltaRule {
  /// Nothing is kept for the way back.
  template <class T>
  struct Kept {};

  /// next = stays S and e -= kᵀ next, of so many rows of S and columns [begin, end); k may be null,
  /// then nothing is read. Rows go together so that e is read and written once for all of them.
  template <int rows, class T>
  INFTY_HOST_DEVICE static void fade_and_read(Index D, Index begin, Index end, const T* S, T stays,
                                              const T* k, T* next, T* e) {
    T by[rows];
    for (int r = 0; r < rows; ++r) by[r] = k ? k[r] : T(0);
    INFTY_COLUMNS_ALONE
    for (Index j = begin; j < end; ++j) {
      T left = e[j];
      INFTY_UNROLL(8)
      for (int r = 0; r < rows; ++r) {
        const T stayed = stays * S[r * D + j];
        next[r * D + j] = stayed;
        left -= by[r] * stayed;
      }
      e[j] = left;
    }
  }

  /// next += share k eᵀ and o += scale qᵀ next, of so many rows and columns [begin, end).
  template <int rows, class T>
  INFTY_HOST_DEVICE static void write_and_ask(Index D, Index begin, Index end, T share, const T* k,
                                              const T* e, T scale, const T* q, T* next, T* o) {
    T by[rows], asked[rows];
    for (int r = 0; r < rows; ++r) {
      by[r] = share * k[r];
      asked[r] = scale * q[r];
    }
    INFTY_COLUMNS_ALONE
    for (Index j = begin; j < end; ++j) {
      T sum = o[j];
      const T wrong = e[j];
      INFTY_UNROLL(8)
      for (int r = 0; r < rows; ++r) {
        const T written = next[r * D + j] + by[r] * wrong;
        next[r * D + j] = written;
        sum += asked[r] * written;
      }
      o[j] = sum;
    }
  }

  /// S ← e^g S; e = v - Sᵀk; S ← S + k (β e)ᵀ; o = scale Sᵀq.
  /// @param apart   elements from S behind one place to S behind the next, in `states`: 0 or K D
  /// @param states  [rows, 1 or L + 1, K, D]; the first of each row is what came before
  /// @param wrong   e, or v where nothing is read, [rows, L, D]
  /// @param output  [B, L, H', D]
  template <class T>
  static void run(const DeltaRuleArguments<T>& in, Index apart, T* states, T* wrong, T* output) {
    const Index K = in.key_dim, D = in.value_dim, L = in.length;
    for_each_span<B>(
        in.rows(), D, 4 * L * K * D, [=] INFTY_HOST_DEVICE(Index row, Index begin, Index end) {
          T* S = states + row * (K * D + L * apart);
          for (Index t = 0; t < L; ++t, S += apart) {
            const Index at = in.place(row, t), with = in.shared_place(row, t);
            const T *const k = in.key + with * K, *const q = in.query + with * K;
            const T* const v = in.value + at * D;
            T *const e = wrong + (row * L + t) * D, *const o = output + at * D,
                     *const next = S + apart;
            const T stays = in.decay ? math::exp(in.decay[at]) : T(1);
            const T share = in.beta ? in.beta[at] : T(1);
            for (Index j = begin; j < end; ++j) {
              e[j] = v[j];
              o[j] = T(0);
            }
            Index i = 0;
            for (; i + 8 <= K; i += 8)
              fade_and_read<8>(D, begin, end, S + i * D, stays, in.beta ? k + i : nullptr,
                               next + i * D, e);
            for (; i < K; ++i)
              fade_and_read<1>(D, begin, end, S + i * D, stays, in.beta ? k + i : nullptr,
                               next + i * D, e);
            for (i = 0; i + 8 <= K; i += 8)
              write_and_ask<8>(D, begin, end, share, k + i, e, in.scale, q + i, next + i * D, o);
            for (; i < K; ++i)
              write_and_ask<1>(D, begin, end, share, k + i, e, in.scale, q + i, next + i * D, o);
          }
        });
  }

  /// @param state  [rows, K, D], becomes what is remembered behind the last place
  template <class T>
  static Kept<T> forward(const DeltaRuleArguments<T>& in, Index /*chunk*/, T* output, T* state) {
    B::copy(state, in.state, in.rows() * in.key_dim * in.value_dim);
    Tensor<T, B> wrong(Shape{in.rows(), in.length, in.value_dim});
    run(in, 0, state, wrong.data(), output);
    return {};
  }

  /// Adds to the gradients of all inputs.
  /// @param dy      [B, L, H', D]   @param dstate  of the last state, [rows, K, D], or null
  template <class T>
  static void backward(const DeltaRuleArguments<T>& in, Index /*chunk*/, const Kept<T>&,
                       const DeltaRuleInputs<T, B>& inputs, const Variable<T, B>& state,
                       const T* dy, const T* dstate) {
    const Index K = in.key_dim, D = in.value_dim, L = in.length, rows = in.rows(), each = K * D;
    Tensor<T, B> states(Shape{rows, L + 1, K, D}), slopes(states.shape());
    Tensor<T, B> wrong(Shape{rows, L, D}), back(wrong.shape()), unused(Shape{rows * L * D});
    copy_rows<B>(rows, each, in.state, each, states.data(), (L + 1) * each);
    run(in, each, states.data(), wrong.data(), unused.data());
    if (dstate)
      copy_rows<B>(rows, each, dstate, each, slopes.data() + L * each, (L + 1) * each);
    else
      zero_rows<B>(rows, each, slopes.data() + L * each, (L + 1) * each);
    T *const slope = slopes.data(), *const r = back.data();
    // With G the gradient of S behind a place: d(β e) = Gᵀk, of S before it e^g (G - k (β Gᵀk)ᵀ).
    for_each_span<B>(
        rows, D, 4 * L * each, [=] INFTY_HOST_DEVICE(Index row, Index begin, Index end) {
          for (Index t = L; t-- > 0;) {
            const Index at = in.place(row, t), with = in.shared_place(row, t);
            const T *const k = in.key + with * K, *const q = in.query + with * K;
            const T* const d = dy + at * D;
            T *const u = r + (row * L + t) * D, *const G = slope + (row * (L + 1) + t + 1) * each;
            T* const before = G - each;
            const T stays = in.decay ? math::exp(in.decay[at]) : T(1);
            for (Index j = begin; j < end; ++j) u[j] = T(0);
            for (Index i = 0; i < K; ++i)
              for (Index j = begin; j < end; ++j) {
                G[i * D + j] += in.scale * q[i] * d[j];
                u[j] += k[i] * G[i * D + j];
              }
            for (Index i = 0; i < K; ++i) {
              const T by = in.beta ? in.beta[at] * k[i] : T(0);
              for (Index j = begin; j < end; ++j)
                before[i * D + j] = stays * (G[i * D + j] - by * u[j]);
            }
          }
        });
    Tensor<T, B> dq(Shape{rows, L, K}), dk(dq.shape()), dbeta(Shape{rows, L}),
        ddecay(dbeta.shape());
    {
      const T *const S = states.data(), *const e = wrong.data();
      T *const to_q = dq.data(), *const to_k = dk.data(), *const to_v = back.data();
      T *const to_beta = dbeta.data(), *const to_decay = ddecay.data();
      B::for_each_row(rows * L, 6 * each, [=] INFTY_HOST_DEVICE(Index n) {
        const Index row = n / L, t = n % L, at = in.place(row, t);
        const T* const k = in.key + in.shared_place(row, t) * K;
        const T *const d = dy + at * D, *const error = e + n * D;
        T* const u = to_v + n * D;
        const T *const before = S + (row * (L + 1) + t) * each, *const behind = before + each;
        const T* const G = slope + (row * (L + 1) + t + 1) * each;
        const T share = in.beta ? in.beta[at] : T(1), read = in.beta ? share : T(0);
        const T stays = in.decay ? math::exp(in.decay[at]) : T(1);
        T faded = T(0);
        for (Index i = 0; i < K; ++i) {
          const Index first = i * D;
          const T ki = k[i];
          to_q[n * K + i] =
              in.scale * row_sum<T>(D, [=](Index j) { return behind[first + j] * d[j]; });
          to_k[n * K + i] = row_sum<T>(D, [=](Index j) {
            return share * G[first + j] * error[j] - read * stays * before[first + j] * u[j];
          });
          faded += row_sum<T>(D, [=](Index j) {
            return stays * before[first + j] * (G[first + j] - read * ki * u[j]);
          });
        }
        to_decay[n] = faded;
        to_beta[n] = row_sum<T>(D, [=](Index j) { return u[j] * error[j]; });
        for (Index j = 0; j < D; ++j) u[j] *= share;
      });
    }
    unpack_grad(in, {K, true}, dq, inputs.query);
    unpack_grad(in, {K, true}, dk, inputs.key);
    unpack_grad(in, {D, false}, back, inputs.value);
    unpack_grad(in, {1, false}, dbeta, inputs.beta);
    unpack_grad(in, {1, false}, ddecay, inputs.decay);
    if (state.requires_grad()) {
      const GradTarget<T> to = state.grad_target();
      copy_rows<B>(rows, each, slopes.data(), (L + 1) * each, to.data, each, to.add);
    }
  }
};

}  // namespace infty::detail

#undef INFTY_COLUMNS_ALONE
