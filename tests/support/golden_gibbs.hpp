// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/ops/weighted_coefficients.hpp>
#include <infty/signal/gibbs_density.hpp>
#include <infty/signal/rectangular_basis.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of the long-term memory with a Gibbs density: consecutive writes of frames and
/// reads, and the gradients of each pair.
template <class T, class Psi, class B>
class GibbsReplay {
 public:
  using Memory = LongTermMemory<T, GibbsDensity, Psi, B>;
  using V = Variable<T, B>;

  explicit GibbsReplay(GoldenCase& file)
      : file_(file),
        memory_(config_of(file)),
        state_(memory_.make_state(file.shape("step0.new")[0])) {
    each_parameter([&](const std::string& name, V& parameter) {
      set_parameter(file_, "param." + name, file_.read("param." + name), parameter);
    });
  }

  Comparison run() {
    compare_matrices();
    for (Index step = 0; step < file_.count("steps"); ++step) {
      prefix_ = "step" + std::to_string(step) + '.';
      replay_step();
    }
    file_.require_all_seen();
    return result_;
  }

 private:
  static LongTermConfig config_of(const GoldenCase& file) {
    // As the authors have it.
    LongTermConfig config{.gate = false,
                          .bounded = false,
                          .hold_short_writes = false,
                          .bias = true,
                          .project = false,
                          .last_cell = LastCell::open,
                          .shifted_bins = true,
                          .sort_draws = false};
    const Shape &key = file.shape("param.proj_key.weight"), &x = file.shape("step0.new");
    if (key.rank() != 2 || x.rank() != 3)
      file.fail("param.proj_key.weight is ", key, ", step0.new ", x,
                ": they must be a matrix and [batch, length * tokens, width]");
    config.model_dim = key[1];
    config.heads = file.count("heads");
    if (config.heads < 1 || key[0] % config.heads != 0)
      file.fail("heads is ", config.heads, ", keys have ", key[0], " dimensions");
    config.head_dim = key[0] / config.heads;
    file.require_agrees("head_dim", config.head_dim);
    file.require_agrees("width", config.model_dim);
    file.require_agrees("batch", x[0]);
    file.require_agrees("basis", file.shape("step0.coefficients")[1]);
    config.basis = file.count("basis");
    config.widths = file.numbers("sigmas");
    config.samples = file.count("samples");
    config.tau = file.number("tau");
    config.ridge = file.number("ridge");
    config.points = file.count("points");
    config.bins = file.count("bins");
    if (file.flag("sticky", false)) config.resampling = Resampling::sticky;
    return config;
  }

  template <class F>
  void each_parameter(const F& f) {
    f("proj_key.weight", memory_.key.weight);
    f("proj_key.bias", memory_.key.bias);
    f("proj_value.weight", memory_.value.weight);
    f("proj_value.bias", memory_.value.bias);
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }
  void see(const std::string& name, const Tensor<T, B>& ours) { see(name, record_of(ours)); }

  void compare_matrices() {
    const Index samples = memory_.config().samples, N = memory_.basis().size();
    see("resample.psi", evaluate(memory_.basis(), even_locations<T, B>(samples)));
    if (file_.has("ridge.first"))
      see("ridge.first", memory_.ridge().first(file_.shape("ridge.first")[0]));
    if (file_.has("ridge.next")) {
      const Index rows = file_.shape("ridge.next")[0];
      if (rows <= samples)
        file_.fail("ridge.next has ", rows, " rows: it needs more than samples = ", samples);
      const auto next = memory_.ridge().next(rows - samples);
      auto both = record_of(next.next_old);
      const auto behind = record_of(next.next_new);
      both.values.insert(both.values.end(), behind.values.begin(), behind.values.end());
      both.shape = Shape{rows, N};
      see("ridge.next", both);
    }
  }

  /// A frame is the mean of its tokens: [B, L tokens, d] -> [B, L, d].
  V frames(const V& x) const {
    const Index tokens = file_.count("tokens"), all = x.dim(1);
    if (tokens < 1 || all % tokens != 0) file_.fail("tokens is ", tokens, ", new is ", x.shape());
    std::vector<T> mean(static_cast<std::size_t>(all / tokens * all));
    for (Index i = 0; i < all; ++i)
      mean[static_cast<std::size_t>(i / tokens * all + i)] = T(1) / static_cast<T>(tokens);
    return weighted_coefficients(V(Tensor<T, B>::from(Shape{all / tokens, all}, mean)), x);
  }

  void replay_step() {
    const V x(file_.read(prefix_ + "new").template tensor<T, B>(), true),
        query(file_.read(prefix_ + "query").template tensor<T, B>(), true);
    Tensor<T, B> locations;
    if (file_.has(prefix_ + "sticky.location")) {
      see_probability();
      locations = file_.read(prefix_ + "sticky.location").template tensor<T, B>();
    }
    zero_grad(memory_);
    Tape tape;
    const V written = frames(x);
    memory_.write_at(state_, written, RowCounts(static_cast<std::size_t>(x.dim(0)), written.dim(1)),
                     locations);
    see(prefix_ + "coefficients", state_.coefficients.value());
    see_density(query);
    const V read = memory_.read(state_, query);
    see(prefix_ + "output", read.value());
    file_.require_shape(prefix_ + "loss_weight", file_.shape(prefix_ + "output"));
    const V weight(file_.read(prefix_ + "loss_weight").template tensor<T, B>());
    tape.backward(sum(read * weight));
    see(prefix_ + "grad.new", x.grad());
    see(prefix_ + "grad.query", query.grad());
    each_parameter([&](const std::string& name, const V& parameter) {
      see(prefix_ + "grad." + name, parameter.grad());
    });
  }

  /// What will be drawn from: all bins but the last, which is never drawn.
  void see_probability() {
    const auto all = record_of(state_.attention);
    const Index rows = all.shape[0], bins = all.shape[1];
    Recorded ours{Shape{rows, bins - 1}, {}};
    for (Index row = 0; row < rows; ++row) {
      const auto begin = all.values.begin() + row * bins;
      if (*(begin + bins - 1) != 0) file_.fail("the last bin could be drawn");
      ours.values.insert(ours.values.end(), begin, begin + bins - 1);
    }
    see(prefix_ + "sticky.probability", ours);
  }

  void see_density(const V& query) {
    const auto all = record_of(memory_.density(state_, query));
    const Index stride = file_.count("density_stride"), points = all.shape[3];
    Recorded ours;
    for (Index i = 0; i < all.shape.size(); ++i)
      if (stride > 0 && i % points % stride == 0)
        ours.values.push_back(all.values[static_cast<std::size_t>(i)]);
    see(prefix_ + "density", ours);
  }

  GoldenCase& file_;
  Memory memory_;
  typename Memory::State state_;
  std::string prefix_;
  Comparison result_;
};

/// Replays a case of the kind `ltm_gibbs` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_gibbs(GoldenCase& file) {
  const std::string& basis = file.text("basis_kind");
  if (basis == "rectangular") return GibbsReplay<T, RectangularBasis<T>, B>(file).run();
  if (basis == "gaussian") return GibbsReplay<T, GaussianBasis<T>, B>(file).run();
  file.fail("basis_kind is ", basis, ": it must be rectangular or gaussian");
}

}  // namespace infty::tests
