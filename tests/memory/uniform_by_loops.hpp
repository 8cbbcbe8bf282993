// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <infty/memory/uniform_memory.hpp>

// What a uniform memory reads of the means that wait, if it attends to them, by loops in double.

namespace uniform {

using Vectors = std::vector<std::vector<double>>;

template <class V>
std::vector<double> in_double(const V& x) {
  const auto values = x.value().to_vector();
  return {values.begin(), values.end()};
}

/// The means that wait in a row, [entries][d], each over the vectors that it has.
template <class State>
Vectors waiting_of_row(const State& state, Index row) {
  const auto means = in_double(state.means);
  const Index P = state.means.dim(1), d = state.means.dim(2),
              held = state.held[static_cast<std::size_t>(row)],
              m = (std::max<Index>)(state.rate[static_cast<std::size_t>(row)], 1);
  Vectors out;
  for (Index left = held, at = 0; left > 0; left -= m, ++at) {
    std::vector<double> x;
    for (Index j = 0; j < d; ++j)
      x.push_back(means[static_cast<std::size_t>((row * P + at) * d + j)] * static_cast<double>(m) /
                  static_cast<double>((std::min)(left, m)));
    out.push_back(x);
  }
  return out;
}

/// weight [out, in] times x.
inline std::vector<double> mapped(const std::vector<double>& weight, const std::vector<double>& x) {
  std::vector<double> y(weight.size() / x.size(), 0);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
  return y;
}

/// sigmoid(conv(x)) x, with zeros beyond both ends.
inline Vectors gated(const std::vector<double>& weight, const std::vector<double>& bias,
                     const Vectors& x) {
  Vectors out = x;
  const auto length = static_cast<Index>(x.size());
  const std::size_t d = bias.size();
  for (Index i = 0; i < length; ++i)
    for (std::size_t a = 0; a < d; ++a) {
      double score = bias[a];
      for (Index k = 0; k < 3; ++k) {
        const Index from = i + k - 1;
        if (from < 0 || from >= length) continue;
        for (std::size_t c = 0; c < d; ++c)
          score += weight[(static_cast<std::size_t>(k) * d + a) * d + c] *
                   x[static_cast<std::size_t>(from)][c];
      }
      out[static_cast<std::size_t>(i)][a] /= 1 + std::exp(-score);
    }
  return out;
}

/// What a memory is to read of the means that wait, [batch, Q, d], by loops.
template <class M, class V>
std::vector<double> read_of_waiting(const M& memory, const typename M::State& state,
                                    const V& queries) {
  const auto q = in_double(queries), wk = in_double(memory.signal.key.weight),
             wv = in_double(memory.signal.value.weight);
  const Index batch = queries.dim(0), Q = queries.dim(1), e = queries.dim(2),
              H = memory.config().heads, D = e / H;
  std::vector<double> all;
  for (Index row = 0; row < batch; ++row) {
    Vectors x = waiting_of_row(state, row);
    if (memory.config().gate)
      x = gated(in_double(memory.signal.gate_weight), in_double(memory.signal.gate_bias), x);
    for (Index i = 0; i < Q; ++i) {
      std::vector<double> heads(static_cast<std::size_t>(e), 0);
      for (Index h = 0; h < H; ++h) {
        std::vector<double> weights;
        double total = 0;
        for (const auto& vector : x) {
          const auto key = mapped(wk, vector);
          double score = 0;
          for (Index j = h * D; j < (h + 1) * D; ++j)
            score += q[static_cast<std::size_t>((row * Q + i) * e + j)] *
                     key[static_cast<std::size_t>(j)];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(D))));
          total += weights.back();
        }
        for (std::size_t at = 0; at < x.size(); ++at) {
          const auto value = mapped(wv, x[at]);
          for (Index j = h * D; j < (h + 1) * D; ++j)
            heads[static_cast<std::size_t>(j)] +=
                weights[at] / total * value[static_cast<std::size_t>(j)];
        }
      }
      if (memory.config().project) heads = mapped(in_double(memory.signal.out.weight), heads);
      all.insert(all.end(), heads.begin(), heads.end());
    }
  }
  return all;
}

}  // namespace uniform
