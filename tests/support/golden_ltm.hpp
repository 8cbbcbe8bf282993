// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/signal/truncated_parabola.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of the long-term memory: consecutive writes and reads, and the gradients of each
/// pair, under one density.
template <class T, class Density, class B>
class LtmReplay {
 public:
  using Memory = LongTermMemory<T, Density, GaussianBasis<T>, B>;

  explicit LtmReplay(GoldenCase& file)
      : file_(file), memory_(config_of(file)), state_(memory_.make_state(batch_of_case(file))) {
    load_parameters();
  }

  Comparison run() {
    compare_matrices();
    for (Index step = 0; step < steps(); ++step) {
      prefix_ = "step" + std::to_string(step) + '.';
      replay_step();
    }
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

 private:
  /// The two layouts: [length, batch, e], or [batch, length, e] with queries by head.
  static bool batch_first(const GoldenCase& file) {
    return file.has("step0.query") ? file.shape("step0.query").rank() == 4 : file.has_key("sticky");
  }

  static Index batch_of_case(const GoldenCase& file) {
    const Shape& shape = file.shape("step0.new");
    if (shape.rank() != 3) file.fail("step0.new is ", shape, ": it must have three dimensions");
    return shape[batch_first(file) ? 0 : 1];
  }

  static LongTermConfig config_of(const GoldenCase& file) {
    LongTermConfig config{.bounded = false, .hold_short_writes = false};  // as the authors have it
    const Shape& key = file.shape("param.proj_key.weight");
    if (key.rank() != 2) file.fail("param.proj_key.weight is ", key, ": it must be a matrix");
    config.model_dim = key[1];
    config.heads = file.count("heads");
    if (config.heads < 1 || key[0] % config.heads != 0)
      file.fail("heads is ", config.heads, ", keys have ", key[0], " dimensions");
    config.head_dim = key[0] / config.heads;
    file.require_agrees("head_dim", config.head_dim);
    file.require_agrees("batch", batch_of_case(file));
    config.widths = file.numbers("sigmas");
    config.basis = file.has("basis.mu") ? file.shape("basis.mu").size() : file.count("basis");
    config.samples = file.count("samples");
    if (file.has("resample.psi") && file.shape("resample.psi")[0] != config.samples)
      file.fail("samples is ", config.samples, ", resample.psi ", file.shape("resample.psi"));
    config.tau = file.number("tau");
    config.ridge = file.number("ridge");
    config.gate = file.flag("gate", file.has("param.mask_net.weight"));
    config.sigma0 = file.number("sigma_0", config.sigma0);
    // 0 is no floor, which the least positive number is too.
    config.variance_floor = std::max(file.number("sigma_sq_floor", config.variance_floor),
                                     std::numeric_limits<double>::min());
    const std::string parameters = file.text("parameters", "affine");
    if (parameters != "moments" && parameters != "affine")
      file.fail("parameters is ", parameters, ": it must be affine or moments");
    if (parameters == "moments") config.parameters = DensityParameters::moments;
    for (const std::string& name : file.names("step"))
      if (name.find(".sticky.") != std::string::npos) config.resampling = Resampling::sticky;
    if (config.resampling == Resampling::sticky && file.has_key("bins"))
      config.bins = file.count("bins");
    return config;
  }

  Index steps() const {
    Index present = 0;
    while (!file_.names("step" + std::to_string(present) + '.').empty()) ++present;
    return std::max(present, file_.has_key("steps") ? file_.count("steps") : 0);
  }

  void set(const std::string& name, Variable<T, B>& parameter) {
    set_parameter(file_, name, file_.read(name), parameter);
  }

  void load_parameters() {
    set("param.proj_key.weight", memory_.key.weight);
    set("param.proj_value.weight", memory_.value.weight);
    set("param.attn_out.weight", memory_.out.weight);
    if (memory_.config().gate) {
      const auto weight = file_.read("param.mask_net.weight");
      if (weight.shape.rank() != 3)
        file_.fail("param.mask_net.weight is ", weight.shape, ": it must be [out, in, 3]");
      // [out, in, 3] to (3, out, in)
      set_parameter(file_, "param.mask_net.weight", weight.swapped(1).swapped(0),
                    memory_.gate_weight);
      set("param.mask_net.bias", memory_.gate_bias);
    }
    if (memory_.config().parameters == DensityParameters::affine) {
      auto rows = file_.read("param.mu.weight");
      const auto second = file_.read("param.sigma.weight");
      rows.values.insert(rows.values.end(), second.values.begin(), second.values.end());
      if (rows.values.size() != 2 * second.values.size())
        file_.fail("param.mu.weight is ", rows.shape, ", param.sigma.weight ", second.shape);
      rows.shape = Shape{2, second.shape.size()};
      set_parameter(file_, "param.mu.weight", rows, memory_.density_weight);
    }
    // Queries arrive projected; a gate or affine maps that are switched off may still be recorded.
    for (const char* part : {"proj_query.weight", "proj_query.bias", "mask_net.weight",
                             "mask_net.bias", "mu.weight", "sigma.weight"})
      file_.ignore(std::string("param.") + part);
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }
  void see(const std::string& name, const Tensor<T, B>& ours) { see(name, record_of(ours)); }

  void compare_matrices() {
    const auto& psi = memory_.basis();
    const Index N = psi.size(), samples = memory_.config().samples;
    Recorded centres{Shape{N}, {}}, widths{Shape{N}, {}};
    for (Index j = 0; j < N; ++j) {
      centres.values.push_back(static_cast<double>(psi.centre(j)));
      widths.values.push_back(static_cast<double>(psi.width(j)));
    }
    see("basis.mu", centres);
    see("basis.sigma", widths);
    if (file_.has("resample.psi")) {
      Recorded sampled{Shape{samples, N}, {}};
      const auto at = even_locations<T, B>(samples).to_vector();
      for (const T t : at)
        for (Index j = 0; j < N; ++j) sampled.values.push_back(static_cast<double>(psi(j, t)));
      see("resample.psi", sampled);
    }
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

  /// [batch, length, e] of what the file holds in its own layout, and back.
  Recorded vectors_from(const Recorded& x) const {
    if (x.shape.rank() == 4) {
      const auto by_place = x.swapped(1);  // [batch, length, heads, head_dim]
      return {Shape{x.shape[0], x.shape[2], x.shape[1] * x.shape[3]}, by_place.values};
    }
    if (x.shape.rank() != 3) file_.fail("a tensor of ", prefix_, " is ", x.shape);
    return batch_first(file_) ? x : x.swapped(0);
  }
  Recorded as_in_file(const Tensor<T, B>& x, const Shape& like) const {
    const auto ours = record_of(x);
    if (like.rank() == 4) {
      const Index heads = memory_.config().heads;
      return Recorded{Shape{x.dim(0), x.dim(1), heads, x.dim(2) / heads}, ours.values}.swapped(1);
    }
    return batch_first(file_) ? ours : ours.swapped(0);
  }
  void see_vectors(const std::string& name, const Tensor<T, B>& ours) {
    if (file_.has(name)) see(name, as_in_file(ours, file_.shape(name)));
  }

  void replay_step() {
    const auto& config = memory_.config();
    const bool graded = !file_.names(prefix_ + "grad.").empty();
    if (graded && !file_.has(prefix_ + "loss_weight"))
      file_.fail("records gradients of ", prefix_, " but no ", prefix_, "loss_weight");
    const Variable<T, B> x(vectors_from(file_.read(prefix_ + "new")).template tensor<T, B>(),
                           graded);
    Tensor<T, B> locations;
    if (config.resampling == Resampling::sticky) locations = sticky_locations();
    zero_grad(memory_);
    Tape tape;
    memory_.write_at(state_, x, RowCounts(static_cast<std::size_t>(x.dim(0)), x.dim(1)), locations);
    see(prefix_ + "coefficients", state_.coefficients.value());
    if (!file_.has(prefix_ + "query")) {
      if (!file_.has(prefix_ + "coefficients"))
        file_.fail("is not whole: ", prefix_, "query is missing");
      for (const char* part : {"output", "kl", "loss_weight"})
        if (file_.has(prefix_ + part)) file_.fail("records ", prefix_, part, " but no query");
      if (graded) file_.fail("records gradients of ", prefix_, " but no query");
      return;
    }
    if (!file_.has(prefix_ + "output")) file_.fail("is not whole: ", prefix_, "output is missing");
    const Variable<T, B> query(vectors_from(file_.read(prefix_ + "query")).template tensor<T, B>(),
                               graded);
    const auto reading = memory_.attend(state_, query);
    density_ = reading.density.value();
    see_vectors(prefix_ + "output", reading.context.value());
    const auto divergence = kl(reading.density, static_cast<T>(config.sigma0));
    see(prefix_ + "kl", divergence.value());
    if (!graded) {
      file_.ignore(prefix_ + "loss_weight");
      return;
    }
    file_.require_shape(prefix_ + "loss_weight", file_.shape(prefix_ + "output"));
    const Variable<T, B> weight(
        vectors_from(file_.read(prefix_ + "loss_weight")).template tensor<T, B>());
    tape.backward(sum(reading.context * weight) +
                  sum(divergence, static_cast<T>(file_.number("kl_weight", 0))));
    compare_gradients(x, query);
  }

  void compare_gradients(const Variable<T, B>& x, const Variable<T, B>& query) {
    const std::string grad = prefix_ + "grad.", param = grad + "param.";
    see_vectors(grad + "new", x.grad());
    see_vectors(grad + "query", query.grad());
    see(param + "proj_key.weight", memory_.key.weight.grad());
    see(param + "proj_value.weight", memory_.value.weight.grad());
    see(param + "attn_out.weight", memory_.out.weight.grad());
    if (memory_.config().gate) {
      see(param + "mask_net.weight", record_of(memory_.gate_weight.grad()).swapped(0).swapped(1));
      see(param + "mask_net.bias", memory_.gate_bias.grad());
    }
    if (memory_.config().parameters == DensityParameters::affine) {
      see(param + "mu.weight", memory_.density_weight.grad().slice(0, 1));
      see(param + "sigma.weight", memory_.density_weight.grad().slice(1, 2));
    }
    // No gradient reaches what took no part.
    for (const std::string& name : file_.names(param)) {
      const std::string part = name.substr(param.size());
      if (part == "proj_query.weight" || part == "proj_query.bias" ||
          (!memory_.config().gate && part.starts_with("mask_net.")) ||
          (memory_.config().parameters == DensityParameters::moments &&
           (part == "mu.weight" || part == "sigma.weight")))
        see(name, Tensor<T, B>::zeros(file_.shape(name)));
    }
  }

  /// The recorded locations, or evenly spaced ones; compares what is recorded about them with what
  /// our own last read saw.
  Tensor<T, B> sticky_locations() {
    const auto& config = memory_.config();
    const Index rows = state_.coefficients.dim(0);
    const std::string sticky = prefix_ + "sticky.";
    if (density_.size() > 0) {
      const Index each = density_.size() / 2 / rows;
      const auto mu = density_.slice(0, 1).reshape(Shape{rows, each});
      auto sigma = record_of(density_.slice(1, 2).reshape(Shape{rows, each}));
      for (double& x : sigma.values) x = std::sqrt(x);
      see(sticky + "mu", mu);
      see(sticky + "sigma", sigma);
    }
    if (file_.has(sticky + "probability")) {
      if (file_.shape(sticky + "probability") != Shape{rows, config.bins})
        file_.fail(sticky, "probability is ", file_.shape(sticky + "probability"), ", not [", rows,
                   ", ", config.bins, "]");
      if (file_.has(sticky + "mu") && file_.has(sticky + "sigma")) {
        // The recorded probabilities are those of Gaussians (Eq. 17), whatever was read with.
        const auto mu = file_.read(sticky + "mu").template tensor<T, B>();
        const auto sigma = file_.read(sticky + "sigma").template tensor<T, B>();
        see(sticky + "probability", bin_probability(mu, sigma, config.bins));
      }
      if (std::is_same_v<Density, GaussianDensity> && density_.size() > 0) {
        auto own = record_of(state_.attention);
        for (Index row = 0; row < rows; ++row) {
          const auto begin = own.values.begin() + row * config.bins;
          double total = 0;
          for (auto p = begin; p != begin + config.bins; ++p) total += *p;
          for (auto p = begin; p != begin + config.bins; ++p) *p /= total;
        }
        see(sticky + "probability", own);
      }
    }
    if (!file_.has(sticky + "location")) {
      auto even = Tensor<T, B>(Shape{rows, config.samples});
      for (Index row = 0; row < rows; ++row)
        even.slice(row, row + 1)
            .reshape(Shape{config.samples})
            .copy_from(even_locations<T, B>(config.samples));
      return even;
    }
    return file_.read(sticky + "location").template tensor<T, B>();
  }

  GoldenCase& file_;
  Memory memory_;
  typename Memory::State state_;
  Tensor<T, B> density_;  ///< of the last read
  std::string prefix_;
  Comparison result_;
};

/// Replays a case of the kind `ltm_*` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_ltm(GoldenCase& file) {
  const std::string density = file.text("density", "gaussian");
  if (density == "gaussian") return LtmReplay<T, GaussianDensity, B>(file).run();
  if (density == "truncated_parabola") return LtmReplay<T, TruncatedParabola, B>(file).run();
  file.fail("density is ", density, ": it must be gaussian or truncated_parabola");
}

}  // namespace infty::tests
