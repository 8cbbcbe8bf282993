// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/tape.hpp>
#include <infty/core/error.hpp>
#include <infty/core/finite.hpp>
#include <infty/core/number.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/clip.hpp>

namespace infty {

/// What one step of training was.
struct TrainStep {
  double loss = 0;           ///< of the parameters before the step
  double grad_norm = 0;      ///< 2-norm of all gradients together, before clipping
  double learning_rate = 0;  ///< that the step was taken with
};

/// How one step of training is taken.
struct TrainStepConfig {
  double learning_rate = 1e-3;  ///< of this step, >= 0; the default is Adam's
  /// What the 2-norm of all gradients together is clipped to, > 0, those of parameters with a rate
  /// of their own (`Adam::fix_rate`) apart from the rest; by default nothing is clipped.
  double max_norm = math::infinity<double>;
};

namespace detail {

/// Throws where NaN or infinity came up: names the step, the first parameter that is not finite, if
/// there is one, and what was seen, such as "the loss is nan".
template <class T, class B>
[[noreturn]] void raise_non_finite(const std::string& seen, const Adam<T, B>& adam) {
  for (const auto& [name, variable] : adam.parameters())
    if (!all_finite(variable.value()))
      raise<NonFiniteError>("train_step", "step ", adam.steps(), ": parameter ", name,
                            " is not finite, and ", seen);
  raise<NonFiniteError>("train_step", "step ", adam.steps(), ": ", seen,
                        ", and all parameters are finite");
}

/// Clips all gradients to a norm, those of parameters with a rate of their own apart from the rest.
/// @param squares  sums of squares, one a parameter   @param norm  that they make together
template <class T, class B>
void clip_groups(const Adam<T, B>& adam, const double* squares, double norm, double max_norm) {
  const auto& parameters = adam.parameters();
  const std::size_t n = parameters.size();
  std::vector<NamedParameter<T, B>> own, rest;
  for (std::size_t i = 0; i < n; ++i)
    if (adam.has_own_rate(i)) own.push_back(parameters[i]);
  if (own.empty()) return clip_to(parameters, norm, max_norm);
  for (std::size_t i = 0; i < n; ++i)
    if (!adam.has_own_rate(i)) rest.push_back(parameters[i]);
  const auto is_own = [&](std::size_t i) { return adam.has_own_rate(i); };
  clip_to(own, norm_of(squares, n, is_own), max_norm);
  clip_to(rest, norm_of(squares, n, std::not_fn(is_own)), max_norm);
}

/// *to = *from in double, in the backend's memory.
template <class B, class T>
void note_scalar(const T* from, double* to) {
  B::for_each(1, [=] INFTY_HOST_DEVICE(Index) { *to = static_cast<double>(*from); });
}

/// The value of a loss that was computed by `loss()` for training, as a scalar variable.
template <class T, class B, class Loss>
Variable<T, B> checked_loss(const Adam<T, B>& adam, Loss&& loss) {
  Variable<T, B> value =
      explained<NonFiniteError>([&] { return Variable<T, B>(std::forward<Loss>(loss)()); },
                                [&](const char* what) { raise_non_finite(what, adam); });
  require<ShapeError>(value.size() == 1, "train_step", "the loss is ", value.shape(),
                      ": it must have one element");
  return value;
}

/// The end of a step, whose loss is known and whose gradients have arrived: checks them, clips them
/// and steps.
/// @param squares  the gradients' sums of squares, one a parameter
template <class T, class B>
void finish_step(Adam<T, B>& adam, const TrainStepConfig& config, TrainStep& step,
                 const double* squares) {
  if (!math::is_finite(step.loss)) {
    std::ostringstream seen;
    seen << "the loss is " << step.loss;
    raise_non_finite(seen.str(), adam);
  }
  step.grad_norm =
      explained<NonFiniteError>([&] { return joint_norm(adam.parameters(), squares); },
                                [&](const char* what) {
                                  raise<NonFiniteError>("train_step", "step ", adam.steps(),
                                                        ", loss ", step.loss, ": ", what);
                                });
  require<NonFiniteError>(has_square<T>(step.grad_norm, config.max_norm), "train_step", "step ",
                          adam.steps(), ", loss ", step.loss, ": the gradients' norm is ",
                          step.grad_norm, ", whose square is no number in Adam");
  clip_groups(adam, squares, step.grad_norm, config.max_norm);
  adam.step(config.learning_rate);
}

}  // namespace detail

/// One step of training: forgets old gradients, records `loss()`, which returns a scalar variable,
/// goes backward, clips the global norm and takes a step of Adam. Steps count from 0, as
/// `adam.steps()` says. What is read from the backend, the loss and the norms of the gradients, is
/// read at once, behind the backward pass: where work is queued, the host waits once.
/// @throws infty::NonFiniteError that names the step and the first thing that is not finite (a
/// parameter, a layer, the loss, or the gradient of a parameter), or the norm of gradients whose
/// squares are not, infty::ShapeError if the loss is not a scalar, infty::ValueError for a bad
/// configuration or if no gradient flows to the loss, and what `loss` throws; then parameters and
/// moments are as they were before, but for running statistics, as a `BatchNorm`'s, which `loss`
/// itself has moved
template <class T, class B, class Loss>
TrainStep train_step(Adam<T, B>& adam, const TrainStepConfig& config, Loss&& loss) {
  detail::check_max_norm(config.max_norm);
  require(adam.owners().empty(), "train_step",
          "the moments are shared out over ranks: their steps are those of shards");
  const auto& parameters = adam.parameters();
  adam.zero_grad();
  TrainStep step{.learning_rate = config.learning_rate};
  Tensor<double, B> measured(Shape{1 + std::ssize(parameters)});  // the loss, then sums of squares
  {
    Tape tape;
    const Variable<T, B> value = detail::checked_loss(adam, std::forward<Loss>(loss));
    detail::note_scalar<B>(value.value().data(), measured.data());
    tape.backward(value);
  }
  detail::sums_of_squares(parameters, measured.data() + 1);
  detail::Squares read(static_cast<std::size_t>(measured.size()));
  B::to_host(read.data(), measured.data(), measured.size());
  step.loss = read[0];
  detail::finish_step(adam, config, step, read.data() + 1);
  return step;
}

}  // namespace infty

#if defined(INFTY_COMPILED) && !defined(__CUDACC__)
#include <infty/train/compiled.hpp>
#endif
