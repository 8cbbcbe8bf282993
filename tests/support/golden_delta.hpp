// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/gated_delta_net.hpp>
#include <infty/memory/ops/normalized_linear_attention.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// What cases of the delta rule and of its layer have in common: segments one behind the other on
/// one tape, a loss over all of them, and the gradients that come back to inputs and states.
template <class T, class B>
class DeltaReplay {
 public:
  using V = Variable<T, B>;

  DeltaReplay(GoldenCase& file, Index chunk) : file_(file), chunk_(chunk) {}

  /// How many segments there are. @throws infty::IoError unless the metadata says the same
  Index segments() const {
    Index present = 0;
    while (!file_.names("segment" + std::to_string(present) + '.').empty()) ++present;
    if (present == 0) file_.fail("has no segments");
    file_.require_agrees("segments", present);
    return present;
  }

  /// A recorded tensor, for whose gradient `gradient` is the recorded name.
  V take(const std::string& name, const std::string& gradient) {
    V x(file_.read(name).template tensor<T, B>(), true);
    watch(gradient, x);
    return x;
  }
  /// The gradient of x is compared at the end; dimensions 1 and 2 are recorded the other way round
  /// if `swapped`.
  void watch(const std::string& gradient, const V& x, bool swapped = false) {
    watched_.push_back({gradient, x, swapped});
  }

  void see(const std::string& name, const Tensor<T, B>& ours, bool swapped = false) {
    if (!file_.has(name)) return;
    auto mine = record_of(ours);
    if (swapped) mine = mine.swapped(1);
    result_.see(file_, name, mine, file_.read(name));
  }
  /// A state behind a segment, and what comes back to it from the segments behind that.
  void see_state(const std::string& name, const V& ours, bool swapped = false) {
    see(name, ours.value(), swapped);
    watch(name + ".grad", ours, swapped);
  }

  /// The part of the loss that x has.
  void weigh(const std::string& weight, const V& x) {
    if (!file_.has(weight)) return;
    const auto by = file_.read(weight);
    if (by.shape.size() != x.size())
      file_.fail(weight, " is ", by.shape, ", but ", x.shape(), " fits the rest of the case");
    const V part = sum(x * V(by.template tensor<T, B>().reshape(x.shape())));
    loss_ = loss_.size() == 1 ? loss_ + part : part;
  }

  Comparison finish(Tape& tape) {
    if (loss_.size() != 1) file_.fail("is not whole: there are no weights of a loss");
    see("loss", loss_.value());
    tape.backward(loss_);
    for (const Watched& one : watched_)
      if (file_.has(one.name)) see(one.name, one.x.grad(), one.swapped);
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

 protected:
  double scale() const {
    const std::string text = file_.text("scale", "none");
    return text == "none" || text == "None" ? 0 : file_.number("scale");
  }

  GoldenCase& file_;
  Index chunk_;

 private:
  struct Watched {
    std::string name;
    V x;
    bool swapped;
  };
  std::vector<Watched> watched_;
  V loss_;
  Comparison result_;
};

/// Replays a case of kind `delta_op`: the update of the memory alone.
template <class T, class B>
class DeltaOpReplay : DeltaReplay<T, B> {
  using Base = DeltaReplay<T, B>;
  using Base::file_;
  using V = typename Base::V;

 public:
  using Base::Base;

  Comparison run() {
    const DeltaRuleOptions options{this->scale(), this->chunk_};
    const bool normalized = file_.flag("normalize", false);
    Tape tape;
    V state = this->take("memory.initial", "memory.initial.grad"), norm;
    if (normalized) norm = this->take("memory.norm.initial", "memory.norm.initial.grad");
    const Index segments = this->segments();
    for (Index s = 0; s < segments; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      const auto input = [&](const std::string& name) {
        return file_.has(prefix + name) ? this->take(prefix + name, prefix + "grad." + name) : V();
      };
      const DeltaRuleInputs<T, B> in{input("query"), input("key"), input("value"), input("beta"),
                                     input("decay")};
      V output;
      if (normalized) {
        if (norm.shape().rank() != 4 || in.query.shape().rank() != 4)
          file_.fail("memory.norm is ", norm.shape(), ", ", prefix, "query ", in.query.shape());
        const Shape shape = norm.shape();  // [batch, 1, heads, key_dim]
        const auto got =
            normalized_linear_attention(in, state, reshape(norm, {shape[0], shape[2], shape[3]}),
                                        file_.number("norm_eps"), options);
        output = got.output;
        state = got.state;
        norm = reshape(got.norm, shape);
        this->see_state(prefix + "memory.norm", norm);
      } else {
        const auto got = delta_rule(in, state, options);
        output = got.output;
        state = got.state;
      }
      this->see_state(prefix + "memory", state);
      this->see(prefix + "output", output.value());
      this->weigh(prefix + "loss_weight", output);
    }
    this->weigh("memory.loss_weight", state);
    if (normalized) this->weigh("memory.norm.loss_weight", norm);
    return this->finish(tape);
  }
};

/// Replays a case of kind `delta_layer`: a Gated DeltaNet.
template <class T, class B>
class DeltaLayerReplay : DeltaReplay<T, B> {
  using Base = DeltaReplay<T, B>;
  using Base::file_;
  using V = typename Base::V;

 public:
  using Base::Base;

  Comparison run() {
    const Shape& q = matrix("q_proj.weight");
    const Index heads = file_.count("heads");
    if (heads < 1 || q[0] % heads != 0) file_.fail("heads is ", heads, ", q_proj.weight ", q);
    const AttentionSizes sizes{.model_dim = q[1], .heads = heads, .head_dim = q[0] / heads};
    file_.require_agrees("model_dim", sizes.model_dim);
    file_.require_agrees("key_dim", sizes.head_dim);
    GatedDeltaNet<T, B> layer(config_of(), sizes);
    const auto set = [&](const std::string& name, V& to) {
      auto from = file_.read("param." + name);
      if (from.shape.rank() == 3 && from.shape[1] == 1)  // taps, [channels, 1, kernel]
        from.shape = Shape{from.shape[0], from.shape[2]};
      set_parameter(file_, name, from, to);
      this->watch("grad." + name, to);
    };
    set("q_proj.weight", layer.query.weight);
    set("k_proj.weight", layer.key.weight);
    set("v_proj.weight", layer.value.weight);
    if (layer.config().convolution > 0) {
      set("q_conv1d.weight", layer.query_convolution.weight);
      set("k_conv1d.weight", layer.key_convolution.weight);
      set("v_conv1d.weight", layer.value_convolution.weight);
    }
    if (layer.config().convolution_bias) {
      set("q_conv1d.bias", layer.query_convolution.bias);
      set("k_conv1d.bias", layer.key_convolution.bias);
      set("v_conv1d.bias", layer.value_convolution.bias);
    }
    set("b_proj.weight", layer.beta.weight);
    if (layer.config().decay) {
      set("a_proj.weight", layer.decay.weight);
      set("A_log", layer.decay_rate);
      set("dt_bias", layer.decay_bias);
    }
    if (layer.config().gate) set("g_proj.weight", layer.gate.weight);
    set("o_norm.weight", layer.norm.weight);
    set("o_proj.weight", layer.out.weight);

    Tape tape;
    const Index segments = this->segments();
    auto state = layer.make_state(file_.shape("segment0.input")[0]);
    for (Index s = 0; s < segments; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      const V x = this->take(prefix + "input", prefix + "grad.input");
      Pass<T, B> pass;
      const V y = layer.forward(state, x, pass);
      this->see_state(prefix + "memory", state.memory);
      if (layer.config().convolution > 0) {
        this->see_state(prefix + "memory.conv_query", state.query->past, true);
        this->see_state(prefix + "memory.conv_key", state.key->past, true);
        this->see_state(prefix + "memory.conv_value", state.value->past, true);
      }
      this->see(prefix + "output", y.value());
      this->weigh(prefix + "loss_weight", y);
    }
    this->weigh("memory.loss_weight", state.memory);
    return this->finish(tape);
  }

 private:
  const Shape& matrix(const std::string& name) const {
    const Shape& shape = file_.shape("param." + name);
    if (shape.rank() != 2) file_.fail("param.", name, " is ", shape, ": it must be a matrix");
    return shape;
  }

  GatedDeltaNetConfig config_of() const {
    const Index value_heads = matrix("b_proj.weight")[0], values = matrix("v_proj.weight")[0];
    if (value_heads < 1 || values % value_heads != 0)
      file_.fail("v_proj.weight has ", values, " rows for ", value_heads, " heads");
    GatedDeltaNetConfig config{.value_heads = value_heads, .value_dim = values / value_heads};
    file_.require_agrees("value_heads", config.value_heads);
    file_.require_agrees("value_dim", config.value_dim);
    config.convolution =
        file_.has("param.q_conv1d.weight") ? file_.shape("param.q_conv1d.weight")[-1] : 0;
    config.convolution_bias = file_.has("param.q_conv1d.bias");
    config.decay = file_.has("param.A_log");
    config.gate = file_.has("param.g_proj.weight");
    if (file_.flag("use_gate", config.gate) != config.gate)
      file_.fail("use_gate is ", file_.text("use_gate"), ", by the tensors it is not");
    config.negative_eigenvalues = file_.flag("negative_eigenvalues", false);
    config.scale = this->scale();
    config.norm_epsilon = file_.number("norm_eps", config.norm_epsilon);
    config.length_epsilon = file_.number("l2_eps", config.length_epsilon);
    config.chunk = this->chunk_;
    return config;
  }
};

/// Replays a case of the kinds `delta_op` and `delta_layer` in scalar T on backend B, place by
/// place and in chunks; the worse of both counts. @throws infty::IoError
template <class T, class B>
Comparison replay_delta(GoldenCase& file) {
  const bool layer = file.text("kind") == "delta_layer";
  Comparison worse;
  for (const Index chunk : {0, 3, 64}) {
    auto result =
        layer ? DeltaLayerReplay<T, B>(file, chunk).run() : DeltaOpReplay<T, B>(file, chunk).run();
    if (chunk == 0 || result.worst > worse.worst) worse = std::move(result);
  }
  return worse;
}

}  // namespace infty::tests
