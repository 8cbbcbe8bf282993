// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <infty/core/backend.hpp>
#include <infty/core/checked.hpp>
#include <infty/core/error.hpp>
#include <infty/core/kernel/adam.hpp>
#include <infty/core/kernel/chosen.hpp>
#include <infty/core/needs.hpp>
#include <infty/core/number.hpp>
#include <infty/core/tensor.hpp>
#include <infty/train/adam_config.hpp>
#include <infty/train/adam_steps.hpp>
#include <infty/train/named_parameters.hpp>
#include <infty/train/owners.hpp>

namespace infty {

/// Adam with bias correction, the numbers of torch.optim.Adam, and of torch.optim.AdamW with a
/// weight decay. It holds handles of a layer's parameters and two moments of the same size each.
///
/// A parameter that no gradient has reached is left alone, and its own count of steps, which the
/// bias correction goes by, does not advance: a memory that is first read in step 1,000 starts
/// then. A step allocates nothing, but of tables that step by rows.
///
/// A parameter that takes no gradients when the optimiser is made (`set_requires_grad`), because it
/// is frozen or a statistic, has no moments here, and none in a checkpoint; those that an older
/// checkpoint has of it are passed over.
///
/// A parameter that keeps its gradient by rows (`Variable::grad_by_rows`) when the optimiser is
/// made takes its steps by rows, as a "lazy" Adam does: a row is a parameter of its own. Rows that
/// no gradient has reached are left alone, moments, weight decay and all, and each row counts its
/// own steps (in T: float counts to 2^24, where bias corrections have long been 1). So a step costs
/// what was read of a table and not what it holds; a gradient of the whole table steps all rows.
template <class T, class Backend>
class Adam {
 public:
  /// Makes an optimiser of all parameters of a layer [Kingma and Ba 2015, Algorithm 1].
  /// @throws infty::ValueError for a bad configuration
  template <class L>
  explicit Adam(L& layer, AdamConfig config = {})
      : config_(config), parameters_(named_parameters<T, Backend>(layer)) {
    static_assert(Layer<L>, "Adam: the layer" INFTY_NO_VISIT);
    config.validate();
    moments_.reserve(parameters_.size());
    items_.reserve(parameters_.size());
    for (auto& parameter : parameters_) {
      const Shape& shape = parameter.variable.shape();
      // Gradients made in the first step would hold blocks that its forward pass has given back,
      // and the second step would have to allocate those anew.
      const bool by_rows = parameter.variable.grad_by_rows() && shape.rank() >= 1;
      if (!by_rows && parameter.variable.requires_grad() && !parameter.variable.has_grad()) {
        parameter.variable.grad();
        parameter.variable.zero_grad();
      }
      if (!parameter.variable.requires_grad()) {
        moments_.push_back({.frozen = true});
        continue;
      }
      moments_.push_back(
          {.first = Tensor<T, Backend>::zeros(shape), .second = Tensor<T, Backend>::zeros(shape)});
      if (by_rows) moments_.back().row_steps = Tensor<T, Backend>::zeros(Shape{shape[0]});
    }
  }
  Adam(const Adam&) = delete;
  Adam& operator=(const Adam&) = delete;
  Adam(Adam&&) = default;             ///< Takes handles and moments over.
  Adam& operator=(Adam&&) = default;  ///< Takes handles and moments over.

  /// The constants as given.
  const AdamConfig& config() const { return config_; }

  /// Lists what is optimised, each parameter once.
  const std::vector<NamedParameter<T, Backend>>& parameters() const { return parameters_; }

  /// Counts the calls of `step`.
  Index steps() const { return steps_; }

  /// Forgets the gradients of all parameters.
  void zero_grad() {
    for (auto& parameter : parameters_) parameter.variable.zero_grad();
  }

  /// Has all parameters whose names hold `part`, such as ".values", step with a fixed learning rate
  /// of their own from now on, whatever rate a step is taken with; `train_step` clips their
  /// gradients apart from the others'. A program says so when it makes its optimiser; it is no part
  /// of what is saved. Returns how many parameters these are.
  /// @throws infty::ValueError if there is none, or unless the rate lies in [0, 1e30]
  Index fix_rate(std::string_view part, double learning_rate) {
    check_rate("Adam::fix_rate", learning_rate);
    return each_named("Adam::fix_rate", part,
                      [&](Moments& moments) { moments.rate = learning_rate; });
  }

  /// The same with `times` the rate of a step, not fixed; clipped with the others. @throws likewise
  Index scale_rate(std::string_view part, double times) {
    require_within("Adam::scale_rate", "times", times, 0, largest_constant);
    return each_named("Adam::scale_rate", part, [&](Moments& m) { m.rate = {}, m.times = times; });
  }

  /// Whether parameter i of `parameters()` has a rate of its own: see `fix_rate`.
  bool has_own_rate(std::size_t i) const { return moments_[i].rate.has_value(); }

  /// Leaves the moments and the steps of parameters to other ranks, as ZeRO-1 does [Rajbhandari et
  /// al. 2020, section 5.1]: the largest first, each goes to the rank that has the fewest elements
  /// yet. This one forgets what is not its own, and `step` leaves those parameters as they are: a
  /// `train_step` of shards gets them from their ranks.
  /// @throws infty::ValueError unless 0 <= rank < ranks, or where a step has been taken
  void share_out(int rank, int ranks) {
    require(0 <= rank && rank < ranks, "Adam::share_out", "rank is ", rank, ": it must lie in [0, ",
            ranks, ')');
    require(steps_ == 0 && owners_.empty(), "Adam::share_out",
            "it must come before the first step, and once");
    owners_ = detail::owners_of(parameters_, ranks);
    sharing_ = {rank, ranks};
    for (std::size_t i = 0; i < moments_.size(); ++i)
      if (owners_[i] != rank) {
        moments_[i].elsewhere = moments_[i].first.shape();
        moments_[i].first = moments_[i].second = moments_[i].row_steps = {};
      }
  }

  /// Whether moments are shared out, and this is the optimiser of that rank.
  bool shared_as(int rank, int ranks) const { return sharing_ == std::pair(rank, ranks); }
  /// The rank that has the moments of each parameter; empty unless they are shared out.
  const std::vector<int>& owners() const { return owners_; }

  /// Takes a step along the gradients, with the learning rate of the configuration.
  void step() { step(config_.learning_rate); }

  /// Takes a step along the gradients with a learning rate >= 0.
  /// @throws infty::ValueError unless all rates lie in [0, 1e30], if a restored count of steps
  /// is negative, or if there is a gradient of a parameter that took none when this was made,
  /// whichever rank has its moments; then nothing has changed
  void step(double learning_rate) {
    check_rate("Adam::step", learning_rate);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto& [name, variable] = parameters_[i];
      const Moments& own = moments_[i];
      if (own.frozen) {
        require(!variable.has_grad(), "Adam::step", name,
                " has a gradient, and took none when the optimiser was made: make it anew");
        continue;
      }
      // Memory that may not be written throws here, and not when others have stepped.
      if (variable.has_grad()) variable.value().data();
      const Shape& shape = variable.shape();
      const Shape& moments = own.elsewhere ? *own.elsewhere : own.first.shape();
      require<ShapeError>(shape == moments && (own.elsewhere || shape == own.second.shape()),
                          "Adam::step", name, " is ", shape, ", its moments are ", moments,
                          ": a parameter must keep its shape");
      require<ShapeError>(!own.by_rows() || own.row_steps.size() == shape[0], "Adam::step", name,
                          " is ", shape, " and has ", own.row_steps.size(), " counts of rows");
      require(own.rate_of(learning_rate) <= largest_constant, "Adam::step", "the rate of ", name,
              " is ", own.rate_of(learning_rate), ": it must lie in [0, 1e30]");
      require(own.steps >= 0, "Adam::step", "the count of steps of ", name, " is ", own.steps,
              ": it must be at least 0");
    }
    const std::vector<Rows> tables = rows_of(learning_rate);  // first: it may run out of memory
    items_.clear();
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (steps_whole(i) && !moments_[i].is_apart())
        items_.push_back(item(parameters_[i].variable, moments_[i], learning_rate));
    using Kernel = detail::chosen_t<ComposedAdam<Backend>>;
    Kernel::step(factors(learning_rate), items_.data(), std::ssize(items_));
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (steps_whole(i) && moments_[i].is_apart()) {
        const double rate = moments_[i].rate_of(learning_rate);
        const AdamItem<T> own = item(parameters_[i].variable, moments_[i], rate);
        Kernel::step(factors(rate), &own, 1);
      }
    for (const Rows& table : tables) {
      ++*table.steps;
      AdamRowSteps<Backend>::step(factors(table.item.learning_rate), table.item);
    }
    ++steps_;
  }

  /// Names the state: see("steps", Index&) and, for every parameter NAME, see("first.NAME",
  /// Tensor&), see("second.NAME", Tensor&) and see("steps.NAME", Index&), and where it takes its
  /// steps by rows see("row_steps.NAME", Tensor&). What a checkpoint holds; with the
  /// parameters and the configuration it continues a run as if it had never stopped.
  template <class Visitor>
  void visit(Visitor&& see) {
    see("steps", steps_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (moments_[i].is_empty()) continue;
      see("first." + parameters_[i].name, moments_[i].first);
      see("second." + parameters_[i].name, moments_[i].second);
      see("steps." + parameters_[i].name, moments_[i].steps);
      if (moments_[i].by_rows()) see("row_steps." + parameters_[i].name, moments_[i].row_steps);
    }
  }

  /// Calls see(name) for what `visit` would name of the parameters that take no gradients, or that
  /// other ranks have: what a checkpoint may have of a run in which they did, or of these.
  template <class See>
  void each_passed_over(See&& see) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (moments_[i].is_empty())
        for (const char* member : {"first.", "second.", "steps.", "row_steps."})
          see(member + parameters_[i].name);
  }

 private:
  struct Moments {
    Tensor<T, Backend> first = {}, second = {};
    Index steps = 0;
    Tensor<T, Backend> row_steps = {};    // empty unless it steps by rows
    std::optional<double> rate = {};      // of its own
    double times = 1;                     // the rate of a step, where it has none of its own
    bool frozen = false;                  // takes no gradients: the rest is empty
    std::optional<Shape> elsewhere = {};  // theirs, on another rank: here they are empty

    bool is_empty() const { return frozen || elsewhere; }
    bool by_rows() const { return row_steps.size() > 0; }
    bool is_apart() const { return rate || times != 1; }
    double rate_of(double of_step) const { return rate.value_or(times * of_step); }
  };

  /// Calls set(moments) for the parameters whose names hold `part`, and counts them.
  template <class Set>
  Index each_named(const char* op, std::string_view part, Set&& set) {
    Index found = 0;
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (parameters_[i].name.find(part) != std::string::npos) {
        set(moments_[i]);
        ++found;
      }
    require(found > 0, op, "no parameter has '", part, "' in its name");
    return found;
  }

  /// A table's next step by rows, and what its rows' factors are held in.
  struct Rows {
    AdamRows<T> item;
    Index* steps;
    Tensor<T, Backend> scratch;
  };

  /// Whether a parameter steps, and not by rows.
  bool steps_whole(std::size_t i) const {
    return parameters_[i].variable.has_grad() && !moments_[i].by_rows() && !moments_[i].is_empty();
  }

  static void check_rate(const char* op, double rate) {
    require_within(op, "learning_rate", rate, 0, largest_constant);
  }

  AdamFactors<T> factors(double learning_rate) const {
    return {.beta1 = static_cast<T>(config_.beta1),
            .new1 = static_cast<T>(1 - config_.beta1),
            .beta2 = static_cast<T>(config_.beta2),
            .new2 = static_cast<T>(1 - config_.beta2),
            .keep = static_cast<T>(1 - learning_rate * config_.weight_decay),
            .epsilon = static_cast<T>(config_.epsilon_first ? 0 : config_.epsilon),
            .early = static_cast<T>(config_.epsilon_first ? config_.epsilon : 0)};
  }

  /// The next steps of all tables that take theirs by rows.
  std::vector<Rows> rows_of(double learning_rate) {
    std::vector<Rows> tables;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      Variable<T, Backend>& parameter = parameters_[i].variable;
      Moments& moments = moments_[i];
      if (!moments.by_rows() || !parameter.has_grad()) continue;
      const RowGradient<T, Backend>* const some = parameter.row_grad();
      const Index count = parameter.dim(0), n = some ? some->rows.size() : count;
      if (n == 0) continue;
      const Tensor<T, Backend> gradient = some ? some->values : parameter.grad();
      Tensor<T, Backend> scratch(Shape{n, 2});
      tables.push_back({.item = {.p = parameter.value().data(),
                                 .g = gradient.data(),
                                 .m = moments.first.data(),
                                 .v = moments.second.data(),
                                 .rows = some ? some->rows.data() : nullptr,
                                 .steps = moments.row_steps.data(),
                                 .scratch = scratch.data(),
                                 .n = n,
                                 .width = parameter.size() / count,
                                 .learning_rate = moments.rate_of(learning_rate),
                                 .beta1 = config_.beta1,
                                 .beta2 = config_.beta2},
                        .steps = &moments.steps,
                        .scratch = scratch});
    }
    return tables;
  }

  /// A parameter's next step, which its count advances for.
  AdamItem<T> item(Variable<T, Backend>& parameter, Moments& moments, double learning_rate) const {
    const auto t = static_cast<double>(++moments.steps);
    return {.p = parameter.value().data(),
            .g = parameter.grad().data(),
            .m = moments.first.data(),
            .v = moments.second.data(),
            .size = parameter.size(),
            .rate = static_cast<T>(learning_rate / (1 - std::pow(config_.beta1, t))),
            .root = static_cast<T>(1 / std::sqrt(1 - std::pow(config_.beta2, t)))};
  }

  AdamConfig config_;
  std::vector<NamedParameter<T, Backend>> parameters_;
  std::vector<Moments> moments_;
  std::vector<AdamItem<T>> items_;     // of one step; kept for its memory
  std::vector<int> owners_;            // of moments, where ranks share them out
  std::pair<int, int> sharing_{0, 0};  // which rank this is then, and of how many
  Index steps_ = 0;
};

}  // namespace infty
