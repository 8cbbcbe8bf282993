// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <infty/lifelong/learner.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/nn/embedding.hpp>

namespace infty::tests {

/// An encoder that leaves vectors as they are.
struct Identity {
  using Scalar = double;
  using BackendType = EigenBackend;
  template <class Visitor>
  void visit(Visitor&&) {}
  Variable<double> forward(const Variable<double>& x) const { return x; }
};

/// Vectors of tokens alone.
struct PlainEmbedding {
  Embedding<double> table;
  template <class Visitor>
  void visit(Visitor&& see) {
    table.visit(see);
  }
  Variable<double> forward(const Tensor<Index>& tokens, Pass<double>&) const {
    return table.forward(tokens);
  }
};

/// A classifier of one token, so small that it is computed by hand below.
using TinyModel = Predictor<PlainEmbedding, Identity, ClassHead<double>>;
constexpr Index tiny_tokens = 6, tiny_width = 3, tiny_classes = 4;

inline TinyModel tiny_model(std::uint64_t draws = 1) {
  return {PlainEmbedding{Embedding<double>(tiny_tokens, tiny_width, Random(draws))}, Identity{},
          ClassHead<double>(tiny_width, tiny_classes, Random(draws + 1))};
}

inline std::vector<Example> tiny_examples(Index n, std::uint64_t draws) {
  Random random(draws);
  std::vector<Example> out;
  for (Index i = 0; i < n; ++i)
    out.push_back({{random.below(tiny_tokens)}, {random.below(tiny_classes)}});
  return out;
}

using Numbers = std::vector<double>;

/// All numbers of a model's parameters, or those of its gradients, one behind the other.
template <class L>
Numbers numbers_of(L& layer, bool gradients = false) {
  Numbers out;
  for (const auto& [name, variable] : named_parameters<double>(layer))
    for (const double x : (gradients ? variable.grad() : variable.value()).to_vector())
      out.push_back(x);
  return out;
}

/// The same classifier without the library: its numbers are embedding, map and bias.
struct ByHand {
  Numbers w;

  static constexpr std::size_t d = tiny_width, classes = tiny_classes,
                               map = tiny_tokens * tiny_width, bias = map + classes * d;

  Numbers probabilities(std::size_t token) const {
    Numbers p(classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      double score = w[bias + c];
      for (std::size_t k = 0; k < d; ++k) score += w[map + c * d + k] * w[token * d + k];
      sum += p[c] = std::exp(score);
    }
    for (double& x : p) x /= sum;
    return p;
  }

  /// The gradient of the mean of -log p.
  Numbers gradient(const std::vector<Example>& examples) const {
    Numbers g(w.size(), 0);
    for (const Example& e : examples) {
      const auto token = static_cast<std::size_t>(e.tokens[0]);
      const auto label = static_cast<std::size_t>(e.labels[0]);
      const Numbers p = probabilities(token);
      for (std::size_t c = 0; c < classes; ++c) {
        const double error = (p[c] - (c == label ? 1 : 0)) / static_cast<double>(examples.size());
        g[bias + c] += error;
        for (std::size_t k = 0; k < d; ++k) {
          g[map + c * d + k] += error * w[token * d + k];
          g[token * d + k] += error * w[map + c * d + k];
        }
      }
    }
    return g;
  }

  Index answer(const Example& e) const {
    const Numbers p = probabilities(static_cast<std::size_t>(e.tokens[0]));
    return std::max_element(p.begin(), p.end()) - p.begin();
  }

  /// A step of gradient descent on the mean loss and lambda |w - from|², of what stands from number
  /// `first` on.
  void descend(const std::vector<Example>& examples, const Numbers& from, double rate,
               double lambda, std::size_t first = 0) {
    const Numbers g = gradient(examples);
    for (std::size_t i = first; i < w.size(); ++i)
      w[i] -= rate * (g[i] + 2 * lambda * (w[i] - from[i]));
  }
};

/// Adam of Kingma and Ba, Algorithm 1.
struct AdamByHand {
  double rate = .01;
  Numbers m = {}, v = {};
  int t = 0;

  void step(Numbers& w, const Numbers& g) {
    m.resize(w.size(), 0);
    v.resize(w.size(), 0);
    ++t;
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = .9 * m[i] + .1 * g[i];
      v[i] = .999 * v[i] + .001 * g[i] * g[i];
      w[i] -= rate * (m[i] / (1 - std::pow(.9, t))) /
              (std::sqrt(v[i] / (1 - std::pow(.999, t))) + 1e-8);
    }
  }
};

inline double farthest(const Numbers& a, const Numbers& b) {
  double worst = a.size() == b.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

inline Learner<TinyModel> tiny_learner(Index draws = 5) {
  return {tiny_model(), tiny_width, {.adam = {.learning_rate = .01}, .seed = draws}};
}

inline double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The examples of a memory that a learner of the same seed draws, where all are written.
struct Mirror {
  Learner<TinyModel> learner = tiny_learner();
  std::vector<Example> draw(Index n) {
    return learner.memory.examples(learner.memory.draw(n, learner.random));
  }
};

constexpr Index batches = 8, batch_size = 4;
inline std::vector<Example> batch(Index i) {
  return tiny_examples(batch_size, 100 + static_cast<std::uint64_t>(i));
}

/// The K examples nearest to one under the frozen embedding, by hand.
inline std::vector<Example> nearest(const Numbers& w, const std::vector<Example>& all,
                                    const Example& to, std::size_t k) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) {
    double distance = 0;
    for (std::size_t j = 0; j < ByHand::d; ++j) {
      const double x = w[static_cast<std::size_t>(all[i].tokens[0]) * ByHand::d + j] -
                       w[static_cast<std::size_t>(to.tokens[0]) * ByHand::d + j];
      distance += x * x;
    }
    order.emplace_back(distance, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<Example> out;
  for (std::size_t i = 0; i < std::min(k, order.size()); ++i) out.push_back(all[order[i].second]);
  return out;
}

}  // namespace infty::tests
