// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <infty/io/settings.hpp>
#include <infty/lifelong/gradients.hpp>
#include <infty/lifelong/sequential.hpp>

namespace infty {

/// Constants of `OnlineEwc`.
struct OnlineEwcConfig {
  double lambda = 100;     ///< λ >= 0, weight of the penalty; the paper's λ γ, see `OnlineEwc`
  double gamma = .95;      ///< γ in [0, 1], what is left of importance at the next estimate
  Index interval = 1'000;  ///< examples of the stream from one estimate to the next, at most 2^53
  Index sample = 100;      ///< examples of an estimate: the last that came, all if there are fewer

  /// Checks all constants. @throws infty::ValueError that names the first out of its range
  void validate() const {
    const char* const op = "OnlineEwcConfig";
    require_within(op, "lambda", lambda, 0, largest_constant);
    require(gamma >= 0 && gamma <= 1, op, "gamma is ", gamma, ": it must lie in [0, 1]");
    require_at_least(op, "interval", interval, 1);
    require(interval <= detail::most_counted, op, "interval is ", interval,
            ": it must be at most 2^53");
    require_at_least(op, "sample", sample, 1);
  }
};

/// Names every setting of an `OnlineEwcConfig`.
template <class See>
void describe(OnlineEwcConfig& c, See&& see) {
  see("lambda", c.lambda, "weight of the penalty");
  see("gamma", c.gamma, "what is left of importance at the next estimate");
  see("interval", c.interval, "examples of the stream from one estimate to the next");
  see("sample", c.sample, "examples of an estimate: the last that came");
}

/// Holds parameters where they were by how much they mattered: Online EWC [Schwarz et al. 2018,
/// §4.1], the penalty λ/2 Σ F_i (θ_i - θ*_i)². F is the diagonal of the empirical Fisher
/// information, the mean over examples of the squared gradient of log p(y | x), of which γ is left
/// when the next is added. It is estimated at intervals of the stream, which has no marks of tasks.
/// The paper weighs the penalty by γ F as well: that γ is a part of λ here. Frozen parameters have
/// no penalty.
template <class Model>
class OnlineEwc : public Sequential {
 public:
  using T = typename Model::Scalar;       ///< of the numbers
  using B = typename Model::BackendType;  ///< of the parameters

  /// @throws infty::ValueError for a bad configuration
  explicit OnlineEwc(OnlineEwcConfig config) : config_((config.validate(), std::move(config))) {}

  /// A step on a batch and on the penalty, and the estimate that is due.
  /// @throws as `Learner::train_on`, infty::ShapeError for a learner of other shapes than before
  void learn(Learner<Model>& learner, std::span<const Example> batch) {
    const auto& parameters = learner.adam.parameters();
    require_shapes(parameters);
    learner.differentiate(batch);
    for (std::size_t i = 0; i < importance_.size(); ++i) {
      if (!parameters[i].variable.requires_grad()) continue;
      const T *const f = std::as_const(importance_[i]).data(),
                     *const w = parameters[i].variable.value().data();
      const T* const old = std::as_const(anchor_[i]).data();
      T* const g = parameters[i].variable.grad().data();
      const T lambda = static_cast<T>(config_.lambda);
      B::for_each(parameters[i].variable.size(),
                  [=] INFTY_HOST_DEVICE(Index j) { g[j] += lambda * f[j] * (w[j] - old[j]); });
    }
    learner.step();
    recent_.insert(recent_.end(), batch.begin(), batch.end());
    if (std::ssize(recent_) > config_.sample)
      recent_.erase(recent_.begin(), recent_.end() - config_.sample);
    const Index before = std::exchange(seen_, seen_ + std::ssize(batch));
    if (seen_ / config_.interval > before / config_.interval) estimate(learner, recent_);
  }

  /// Estimates importance from examples, adds it to γ of what there was, and holds parameters where
  /// they are now. @throws as `Learner::differentiate`, infty::ValueError if there are none,
  /// infty::ShapeError as `learn`
  void estimate(Learner<Model>& learner, std::span<const Example> examples) {
    require(!examples.empty(), "OnlineEwc::estimate", "there are no examples");
    const auto& parameters = learner.adam.parameters();
    require_shapes(parameters);
    std::vector<Tensor<T, B>> next, anchor;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      next.push_back(Tensor<T, B>::zeros(parameters[i].variable.shape()));
      if (!importance_.empty()) detail::add_scaled(next[i], importance_[i], config_.gamma);
      anchor.push_back(parameters[i].variable.value().clone());
    }
    for (const Example& example : examples) {
      learner.differentiate({&example, 1});
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!parameters[i].variable.has_grad()) continue;
        const Tensor<T, B> gradient = parameters[i].variable.grad();
        const T* const g = gradient.data();
        T* const f = next[i].data();
        const T share = T(1) / static_cast<T>(examples.size());
        B::for_each(gradient.size(),
                    [=] INFTY_HOST_DEVICE(Index j) { f[j] += share * g[j] * g[j]; });
      }
    }
    learner.adam.zero_grad();
    importance_ = std::move(next);
    anchor_ = std::move(anchor);
  }

  /// F, one tensor a parameter; none before the first estimate.
  const std::vector<Tensor<T, B>>& importance() const { return importance_; }

 private:
  /// Refuses parameters whose importance was not estimated, where any was.
  void require_shapes(const std::vector<NamedParameter<T, B>>& parameters) const {
    if (importance_.empty()) return;
    require<ShapeError>(parameters.size() == importance_.size(), "OnlineEwc", "the learner has ",
                        parameters.size(), " parameters: the one before had ", importance_.size());
    for (std::size_t i = 0; i < parameters.size(); ++i)
      require<ShapeError>(parameters[i].variable.shape() == importance_[i].shape(), "OnlineEwc",
                          parameters[i].name, " is ", parameters[i].variable.shape(),
                          ": that of the learner before was ", importance_[i].shape());
  }

  OnlineEwcConfig config_;
  std::vector<Tensor<T, B>> importance_, anchor_;
  std::vector<Example> recent_;
  Index seen_ = 0;
};

}  // namespace infty
