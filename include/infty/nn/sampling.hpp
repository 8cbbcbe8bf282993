// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/error.hpp>
#include <infty/core/number.hpp>
#include <infty/core/random.hpp>
#include <infty/core/tensor.hpp>

namespace infty {

/// How a class, such as the next token, is drawn from a model's scores.
struct Sampling {
  double temperature = 1;  ///< that scores are divided by; 0 takes the likeliest
  Index top_k = 0;         ///< only so many likeliest classes, and equals of the last; 0: all
  double top_p = 1;        ///< only the likeliest classes until these have more than this share

  /// Checks all constants.
  /// @throws infty::ValueError that names the first constant out of its range
  void validate() const {
    require(math::is_finite(temperature) && temperature >= 0, "Sampling", "temperature is ",
            temperature, ": it must be finite and at least 0");
    require_at_least("Sampling", "top_k", top_k, 0);
    require(math::is_finite(top_p) && top_p > 0 && top_p <= 1, "Sampling", "top_p is ", top_p,
            ": it must lie in (0, 1]");
  }
};

namespace detail {

/// The shape of scores [..., classes] without the classes.
/// @throws infty::ShapeError for a scalar or no classes
inline Shape rows_of_scores(const char* op, const Shape& logits) {
  require<ShapeError>(logits.rank() >= 1 && logits[-1] >= 1, op, "logits are ", logits,
                      ": they must be [..., classes]");
  return Shape(logits.begin(), logits.end() - 1);
}

}  // namespace detail

/// The likeliest class at every place, the first of equals: logits [..., classes] -> [...]. A NaN
/// is likelier than nothing. @throws infty::ShapeError for logits without a class
template <class T, class B>
Tensor<Index, B> argmax(const Tensor<T, B>& logits) {
  Tensor<Index, B> out(detail::rows_of_scores("argmax", logits.shape()));
  const Index classes = logits.dim(-1);
  const T* const scores = logits.data();
  Index* const to = out.data();
  B::for_each(out.size(), [=] INFTY_HOST_DEVICE(Index row) {
    const T* const score = scores + row * classes;
    Index best = 0;
    for (Index i = 1; i < classes; ++i)
      if (score[i] > score[best] || math::is_nan_at(score + best)) best = i;
    to[row] = best;
  });
  return out;
}

/// Classes that may be drawn, and how much each weighs beside the others.
struct WeighedClasses {
  std::vector<Index> classes;   ///< at least one, the likeliest first where `top_p` is below 1
  std::vector<double> weights;  ///< of each, at most 1; 0 where a score is too far below the
                                ///< likeliest's. They need not add up to 1
};

/// Finds what may be drawn by scores: of the `top_k` likeliest, and of all that equal the last of
/// these, the likeliest up to the first with which they have more than the share `top_p`, with
/// weights exp(score / temperature), up to a factor; the likeliest alone at temperature 0. At least
/// one class is left; where `top_p` or temperature 0 choose among equals, the first is the
/// likelier. A score of -infinity is never drawn.
/// @param logits  scores of all classes, in host memory
/// @throws infty::ValueError for no classes or a setting out of its range, infty::NonFiniteError
/// for NaN, infinity, or no score above -infinity
template <class T>
WeighedClasses weighed_classes(std::span<const T> logits, const Sampling& sampling) {
  sampling.validate();
  require(!logits.empty(), "sample", "there is no class");
  const auto score = [&](Index i) {
    return static_cast<double>(logits[static_cast<std::size_t>(i)]);
  };
  const auto likelier = [&](Index a, Index b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  };
  std::vector<Index> order;
  order.reserve(logits.size());
  for (Index i = 0; i < std::ssize(logits); ++i) {
    require<NonFiniteError>(math::is_finite(score(i)) || score(i) < 0, "sample",
                            "the score of class ", i, " is ", score(i), ": it must be finite");
    if (math::is_finite(score(i))) order.push_back(i);
  }
  require<NonFiniteError>(!order.empty(), "sample", "no class has a score above -infinity");
  const Index top = *std::min_element(order.begin(), order.end(), likelier);
  if (sampling.temperature == 0) return {{top}, {1}};
  auto left = order.end();
  if (sampling.top_k > 0 && sampling.top_k < std::ssize(order)) {
    left = order.begin() + sampling.top_k;
    std::nth_element(order.begin(), left, order.end(), likelier);
    const double least = score(*std::max_element(order.begin(), left, likelier));
    left = std::partition(left, order.end(), [&](Index i) { return score(i) == least; });
  }
  order.erase(left, order.end());
  // What is left of `top_k` in an order that no library chooses.
  if (sampling.top_k > 0 && sampling.top_p < 1) std::sort(order.begin(), order.end(), likelier);
  const auto weight = [&](Index i) {
    return std::exp((score(i) - score(top)) / sampling.temperature);
  };
  std::vector<double> weights;
  weights.reserve(order.size());
  double sum = 0;
  for (const Index i : order) sum += weights.emplace_back(weight(i));
  if (sampling.top_p < 1) {
    // The likeliest come off a heap while they are wanted: the others are never sorted.
    const auto less_likely = [&](Index a, Index b) { return likelier(b, a); };
    std::make_heap(order.begin(), order.end(), less_likely);
    std::vector<Index> best;
    weights.clear();
    double share = 0;
    for (auto end = order.end();
         end != order.begin() && (best.empty() || share <= sampling.top_p * sum);) {
      std::pop_heap(order.begin(), end--, less_likely);
      best.push_back(*end);
      share += weights.emplace_back(weight(*end));
    }
    order = std::move(best);
  }
  return {std::move(order), std::move(weights)};
}

/// Draws one of the `weighed_classes` of these scores. One draw of `random`, none at temperature 0.
/// @throws as they do; then nothing was drawn
template <class T>
Index sample(std::span<const T> logits, const Sampling& sampling, Random& random) {
  const WeighedClasses may = weighed_classes(logits, sampling);
  if (sampling.temperature == 0) return may.classes.front();
  return may.classes[static_cast<std::size_t>(random.categorical(may.weights))];
}

/// The same at every place: logits [..., classes] -> [...]. Rows are drawn in their order, on the
/// host, so that all backends agree. @throws as above; infty::ShapeError for logits without a class
template <class T, class B>
Tensor<Index, B> sample(const Tensor<T, B>& logits, const Sampling& sampling, Random& random) {
  sampling.validate();
  const Shape rows = detail::rows_of_scores("sample", logits.shape());
  const auto classes = static_cast<std::size_t>(logits.dim(-1));
  const auto scores = logits.to_vector();
  Random next = random;
  std::vector<Index> drawn;
  for (std::size_t at = 0; at < scores.size(); at += classes)
    drawn.push_back(sample(std::span<const T>(scores).subspan(at, classes), sampling, next));
  random = next;
  return Tensor<Index, B>::from(rows, drawn);
}

}  // namespace infty
