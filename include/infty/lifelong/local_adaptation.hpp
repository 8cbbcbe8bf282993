// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/autograd/clone.hpp>
#include <infty/autograd/tape.hpp>
#include <infty/core/checked.hpp>
#include <infty/io/settings.hpp>
#include <infty/lifelong/example.hpp>
#include <infty/lifelong/gradients.hpp>

namespace infty {

/// Constants of local adaptation. K, L and λ are those of [de Masson d'Autume et al. 2019; Wang et
/// al. 2020], whose rates are those of a pretrained encoder, 1e-5.
struct LocalAdaptationConfig {
  Index neighbours = 32;      ///< K, examples of a step
  Index steps = 30;           ///< L
  double learning_rate = .1;  ///< of gradient descent, >= 0
  double lambda = .001;       ///< λ >= 0, how much it costs to go away from the model
  std::string part = {};     ///< in the names of parameters that adapt, such as "head."; empty: all
                             ///< that are not frozen
  std::string without = {};  ///< in the names of those that stay all the same; empty: none

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    const char* const op = "LocalAdaptationConfig";
    require_at_least(op, "neighbours", neighbours, 1);
    require_at_least(op, "steps", steps, 0);
    for (const auto& [name, value] :
         {std::pair{"learning_rate", learning_rate}, std::pair{"lambda", lambda}})
      require_within(op, name, value, 0, largest_constant);
  }
};

/// Names every setting of a `LocalAdaptationConfig`.
template <class See>
void describe(LocalAdaptationConfig& c, See&& see) {
  see("neighbours", c.neighbours, "examples of a step");
  see("steps", c.steps, "steps for a prediction");
  see("learning_rate", c.learning_rate, "of these steps");
  see("lambda", c.lambda, "how much it costs to go away from the model");
  see("part", c.part, "in the names of parameters that adapt; empty: all");
  see("without", c.without, "in the names of those that stay all the same; empty: none");
}

namespace detail {

/// One step down of n parameters `to` with gradients g, drawn to w: in a function of its own, for
/// nvcc has no kernels of private ones.
template <class B, class T>
void step_towards(Index n, T rate, T twice, const T* g, const T* w, T* to) {
  B::for_each(n,
              [=] INFTY_HOST_DEVICE(Index j) { to[j] -= rate * (g[j] + twice * (to[j] - w[j])); });
}

}  // namespace detail

/// A copy of a model that goes a few steps down the loss of examples of the memory, and begins
/// again where the model is: W̃ of argmin λ|W̃ - W|² - Σ α_k log p(y_k | x_k; W̃), α_k = 1 / K
/// [Sprechmann et al. 2018; de Masson d'Autume et al. 2019]. The model stays as it is, bit for bit.
template <class Model>
class LocalAdaptation {
 public:
  using T = typename Model::Scalar;                      ///< of the numbers
  using B = typename Model::BackendType;                 ///< of the parameters
  using Parameters = std::vector<NamedParameter<T, B>>;  ///< of a model, with names

  /// Makes the copy. @param model  whose parameters are shared with this object: it begins again
  /// where these are then
  /// @throws infty::ValueError for a bad configuration, or if no parameter that takes a gradient
  /// has `part` in its name and not `without`
  LocalAdaptation(const Model& model, LocalAdaptationConfig config)
      : config_((config.validate(), std::move(config))),
        model_(model),
        copy_(clone(model)),
        from_(named_parameters<T, B>(model_)),
        to_(named_parameters<T, B>(copy_)) {
    bool any = false;
    for (std::size_t i = 0; i < to_.size(); ++i) {
      any = any || adapts(i);
      if constexpr (requires { Model::reads_by(to_[i].name); })
        reads_once_ = reads_once_ && !(adapts(i) && Model::reads_by(to_[i].name));
    }
    require(any, "LocalAdaptation", "no parameter has '", config_.part,
            "' in its name and takes a gradient",
            config_.without.empty() ? "" : " but those with '", config_.without,
            config_.without.empty() ? "" : "'");
  }

  /// The model, as it is.
  const Model& model() const { return model_; }
  /// Whether no parameter that adapts changes what is read of an example: whether the head adapts
  /// alone.
  bool reads_once() const { return reads_once_; }
  /// Whether the parameter of this name adapts.
  bool adapts(std::string_view name) const {
    for (std::size_t i = 0; i < from_.size(); ++i)
      if (from_[i].name == name) return adapts(i);
    return false;
  }

  /// The constants as given.
  const LocalAdaptationConfig& config() const { return config_; }
  /// The copy, as it is adapted now.
  const Model& adapted() const { return copy_; }
  /// Its parameters, in the order of the model's.
  const Parameters& parameters() const { return to_; }

  /// Begins again where the model is.
  void reset() {
    for (std::size_t i = 0; i < to_.size(); ++i)
      to_[i].variable.value().copy_from(std::as_const(from_[i]).variable.value());
  }

  /// One step of gradient descent on the mean loss of examples and λ|W̃ - W|²; what is frozen in the
  /// model stays.
  /// @throws what `Predictor::loss` does
  void step(std::span<const Example> examples) {
    step_down([&] { return copy_.loss(examples); });
  }

  /// Begins again and goes all L steps down the loss of the same examples; without any it stays
  /// where the model is. Returns the copy. Where the head adapts alone the examples are read once.
  /// @throws as `step`
  const Model& adapt(std::span<const Example> examples) {
    reset();
    if (config_.steps == 0 || examples.empty()) return copy_;
    if constexpr (requires { copy_.loss(copy_.read(examples), examples); }) {
      if (reads_once_) {
        const auto reading = [&] {
          const auto guard = no_grad();
          return copy_.read(examples);
        }();
        for (Index i = 0; i < config_.steps; ++i)
          step_down([&] { return copy_.loss(reading, examples); });
        return copy_;
      }
    }
    for (Index i = 0; i < config_.steps; ++i) step(examples);
    return copy_;
  }

  /// Leaves the gradient of the mean loss of examples in the copy's parameters, all that take one
  /// in the model. @throws as `step`
  void differentiate(std::span<const Example> examples) {
    for (std::size_t i = 0; i < to_.size(); ++i) {
      to_[i].variable.zero_grad();
      to_[i].variable.set_requires_grad(from_[i].variable.requires_grad());
    }
    Tape tape;
    tape.backward(copy_.loss(examples));
  }

 private:
  /// One step down a loss of the copy and λ|W̃ - W|².
  template <class Loss>
  void step_down(Loss&& loss) {
    for (std::size_t i = 0; i < to_.size(); ++i) {
      to_[i].variable.zero_grad();
      to_[i].variable.set_requires_grad(adapts(i));
    }
    {
      Tape tape;
      tape.backward(loss());
    }
    const T rate = static_cast<T>(config_.learning_rate);
    const T twice = static_cast<T>(2 * config_.lambda);
    for (std::size_t i = 0; i < to_.size(); ++i) {
      if (!adapts(i)) continue;
      const T *const g = to_[i].variable.grad().data(),
                     *const w = std::as_const(from_[i]).variable.value().data();
      T* const to = to_[i].variable.value().data();
      detail::step_towards<B>(to_[i].variable.size(), rate, twice, g, w, to);
    }
  }

  bool adapts(std::size_t i) const {
    const std::string& name = from_[i].name;
    return from_[i].variable.requires_grad() && name.find(config_.part) != std::string::npos &&
           (config_.without.empty() || name.find(config_.without) == std::string::npos);
  }

  LocalAdaptationConfig config_;
  Model model_;  ///< handles
  Model copy_;
  Parameters from_, to_;
  bool reads_once_ = requires(const Model& m, std::span<const Example> e) { m.loss(m.read(e), e); };
};

}  // namespace infty
