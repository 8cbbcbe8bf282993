// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <infty/autograd/broadcast.hpp>
#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/matmul.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/autograd/shape.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/lifelong/class_head.hpp>
#include <infty/lifelong/label_losses.hpp>
#include <infty/lifelong/local_adaptation.hpp>

namespace infty {

namespace detail {

/// A parameter once for each question. @param shape  of all of them
template <class T, class B>
Tensor<T, B> repeated(const Tensor<T, B>& from, Shape shape) {
  Tensor<T, B> out(shape);
  const T* const w = from.data();
  T* const to = out.data();
  const Index n = from.size();
  B::for_each(out.size(), [=] INFTY_HOST_DEVICE(Index j) { to[j] = w[j % n]; });
  return out;
}

/// A step down the loss whose gradient a variable has, and λ|W̃ - W|².
template <class T, class B>
void go_down(Variable<T, B>& variable, const Tensor<T, B>& from, double learning_rate,
             double lambda) {
  const T rate = static_cast<T>(learning_rate), twice = static_cast<T>(2 * lambda);
  const T *const g = std::as_const(variable).grad().data(), *const w = from.data();
  T* const to = variable.value().data();
  B::for_each(variable.size(),
              [=] INFTY_HOST_DEVICE(Index j) { to[j] -= rate * (g[j] + twice * (to[j] - w[j])); });
}

}  // namespace detail

/// A model whose answers are read off by a `ClassHead` from one vector of each text.
template <class Model>
concept HasClassHead =
    std::is_same_v<decltype(Model::head),
                   ClassHead<typename Model::Scalar, typename Model::BackendType>> &&
    requires(const Model& model, std::span<const Example> examples) {
      model.read(examples).hidden;
      model.read(examples).rows;
    };

/// Local adaptation of the heads of many questions side by side, where a `ClassHead` adapts alone:
/// the head of each question is a row of matrices [Q, C, d], which go the L steps together, each
/// down the loss of its own examples. Every example is read once, whoever's neighbour it is. It is
/// `LocalAdaptation::adapt` of one question behind the other but for the order of sums.
template <HasClassHead Model>
class AdaptedHeads {
 public:
  using T = typename Model::Scalar;       ///< of the numbers
  using B = typename Model::BackendType;  ///< of the parameters
  using V = Variable<T, B>;

  /// Reads the examples. @param local  of the model: its constants; must outlive this, as examples
  /// must
  /// @throws infty::ValueError unless `side_by_side(local)`; infty::ShapeError unless each example
  /// has one label; what the model does
  AdaptedHeads(const LocalAdaptation<Model>& local, std::span<const Example> examples)
      : local_(&local), examples_(examples) {
    require(side_by_side(local), "AdaptedHeads",
            "what is read of examples adapts, too, or the head has no bias");
    for (std::size_t i = 0; i < examples.size(); ++i)
      require<ShapeError>(examples[i].labels.size() == 1, "AdaptedHeads", "example ", i, " has ",
                          examples[i].labels.size(), " labels: the head wants 1");
    features_ = features(examples);
  }

  /// Whether a model's head adapts alone, so that many can side by side.
  static bool side_by_side(const LocalAdaptation<Model>& local) {
    return local.reads_once() && local.model().head.map.bias.size() > 0;
  }

  /// Heads of questions.
  struct Heads {
    Tensor<T, B> weight = Tensor<T, B>(Shape{0});  ///< [Q, C, d]
    Tensor<T, B> bias = Tensor<T, B>(Shape{0});    ///< [Q, 1, C]
  };

  /// The head of each question behind L steps on its neighbours, k of them for each.
  /// @param neighbours  Q of them, by their places among the examples
  /// @throws infty::ShapeError unless all have the same k >= 1, of places that there are; what the
  /// model does
  Heads adapt(std::span<const std::vector<Index>> neighbours) const {
    const auto& head = local_->model().head.map;
    const auto Q = std::ssize(neighbours), d = head.weight.dim(1), C = head.weight.dim(0);
    const auto k = Q > 0 ? std::ssize(neighbours.front()) : Index{1};
    std::vector<T> read;
    std::vector<Index> labels;
    for (const std::vector<Index>& of : neighbours) {
      require<ShapeError>(k >= 1 && std::ssize(of) == k, "AdaptedHeads::adapt", "questions have ",
                          k, " and ", of.size(), " neighbours: all must have the same, 1 or more");
      for (const Index i : of) {
        require<ShapeError>(i >= 0 && i < std::ssize(examples_), "AdaptedHeads::adapt",
                            "a neighbour is ", i, ": there are ", examples_.size(), " examples");
        read.insert(read.end(), features_.begin() + i * d, features_.begin() + (i + 1) * d);
        labels.push_back(examples_[static_cast<std::size_t>(i)].labels.front());
      }
    }
    const V x(Tensor<T, B>::from(Shape{Q, k, d}, read));
    const auto y = Tensor<Index, B>::from(Shape{Q, k}, labels);
    const auto all = [&](const V& of, Shape shape) {
      return detail::repeated<T, B>(of.value(), shape);
    };
    const Tensor<T, B> from = all(head.weight, {Q, C, d}), from_bias = all(head.bias, {Q, 1, C});
    V weight(from.clone(), local_->adapts("head.weight"));
    V bias(from_bias.clone(), local_->adapts("head.bias"));
    const auto go_down = [&](V& variable, const Tensor<T, B>& begun) {
      if (variable.requires_grad())
        detail::go_down(variable, begun, local_->config().learning_rate, local_->config().lambda);
    };
    for (Index step = 0; step < local_->config().steps; ++step) {
      weight.zero_grad();
      bias.zero_grad();
      {
        Tape tape;
        const V scores = matmul(x, transpose(weight, 1, 2)) + bias;
        tape.backward(sum(detail::label_losses(scores, y), T(1) / static_cast<T>(k)));
      }
      go_down(weight, from);
      go_down(bias, from_bias);
    }
    return {weight.value(), bias.value()};
  }

  /// What the heads answer to questions, the first of equally probable classes.
  /// @throws infty::NonFiniteError for a score that is NaN; what the model does
  std::vector<std::vector<Index>> answers(const Heads& heads,
                                          std::span<const Example> questions) const {
    const auto guard = no_grad();
    const auto Q = std::ssize(questions), C = heads.bias.dim(2);
    const V x(Tensor<T, B>::from(Shape{Q, 1, heads.weight.dim(2)}, features(questions)));
    const V scores = matmul(x, transpose(V(heads.weight), 1, 2)) + V(heads.bias);
    const std::vector<T> all = scores.value().to_vector();
    detail::require_no_nan("AdaptedHeads::answers", all);
    std::vector<std::vector<Index>> out;
    for (auto row = all.begin(); row != all.end(); row += C)
      out.push_back({std::max_element(row, row + C) - row});
    return out;
  }

 private:
  static constexpr std::size_t read_at_once = 64;

  /// What the head reads of examples, [n, d], some at a time.
  std::vector<T> features(std::span<const Example> examples) const {
    const auto guard = no_grad();
    const auto d = static_cast<std::size_t>(local_->model().head.map.weight.dim(1));
    std::vector<T> out(examples.size() * d);
    for (std::size_t at = 0; at < examples.size(); at += read_at_once) {
      const auto reading = local_->model().read(
          examples.subspan(at, (std::min)(read_at_once, examples.size() - at)));
      for (std::size_t i = 0; i < reading.rows.size(); ++i) {
        const std::vector<T> some = narrow(reading.hidden[i], 0, 1).value().to_vector();
        for (std::size_t row = 0; row < reading.rows[i].size(); ++row)
          std::copy_n(some.begin() + static_cast<Index>(row * d), d,
                      out.begin() + static_cast<Index>((at + reading.rows[i][row]) * d));
      }
    }
    return out;
  }

  const LocalAdaptation<Model>* local_;
  std::span<const Example> examples_;
  std::vector<T> features_;
};

}  // namespace infty
