// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/titans.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of the kind `titans`: a neural memory by itself over consecutive segments on one
/// tape, weights and momenta behind each, and the gradients of a loss over all of them.
template <class T, class B>
class TitansReplay {
  using V = Variable<T, B>;

 public:
  explicit TitansReplay(GoldenCase& file) : file_(file), layer_(config_of(file), sizes_of(file)) {
    parameters_ = {{"to_queries.weight", layer_.query.weight},
                   {"to_keys.weight", layer_.memory.keys.weight},
                   {"to_values.weight", layer_.memory.values.weight},
                   {"to_adaptive_step.0.weight", layer_.memory.rate.weight},
                   {"to_adaptive_step.0.bias", layer_.memory.rate.bias},
                   {"to_decay_factor.0.weight", layer_.memory.decay.weight},
                   {"to_decay_factor.0.bias", layer_.memory.decay.bias}};
    if (layer_.config().momentum) {
      parameters_.push_back({"to_momentum.0.weight", layer_.memory.inertia.weight});
      parameters_.push_back({"to_momentum.0.bias", layer_.memory.inertia.bias});
    }
    if (layer_.memory.out.weight.size() > 0)
      parameters_.push_back({"combine_heads.weight", layer_.memory.out.weight});
    for (std::size_t i = 0; i < layer_.memory.initial.size(); ++i)
      parameters_.push_back({"memory." + std::to_string(i), layer_.memory.initial[i]});
    for (auto& [name, parameter] : parameters_) {
      Recorded from = file.read("param." + name);
      if (from.shape.size() == parameter.size()) from.shape = parameter.shape();  // of one head
      set_parameter<T, B>(file, "param." + name, from, parameter);
    }
  }

  Comparison run() {
    const Index segments = file_.count("segments");
    auto state = layer_.make_state(file_.shape("segment0.input")[0]);
    std::vector<V> inputs;
    V loss(Tensor<T, B>::zeros(Shape{}));
    Tape tape;
    for (Index s = 0; s < segments; ++s) {
      const std::string prefix = "segment" + std::to_string(s) + '.';
      inputs.emplace_back(file_.read(prefix + "input").template tensor<T, B>(), true);
      Pass<T, B> pass;
      const V output = layer_.forward(state, inputs.back(), pass);
      see(prefix + "output", output.value());
      see_weights(prefix, state);
      file_.require_shape(prefix + "loss_weight", output.shape());
      const auto weight = file_.read(prefix + "loss_weight").template tensor<T, B>();
      loss = loss + sum(multiply(output, V(weight)));
    }
    see("loss", loss.value());
    tape.backward(loss);
    for (Index s = 0; s < segments; ++s)
      see("segment" + std::to_string(s) + ".grad.input",
          inputs[static_cast<std::size_t>(s)].grad());
    for (auto& [name, parameter] : parameters_) see("grad." + name, parameter.grad());
    file_.require_all_seen();
    return result_;
  }

 private:
  struct Part {
    std::string name;
    V variable;
  };

  static AttentionSizes sizes_of(const GoldenCase& file) {
    const Shape &keys = file.shape("param.to_keys.weight"),
                &steps = file.shape("param.to_adaptive_step.0.weight");
    if (keys.rank() != 2 || steps.rank() != 2 || steps[0] < 1 || keys[0] % steps[0] != 0)
      file.fail("param.to_keys.weight is ", keys, ", param.to_adaptive_step.0.weight ", steps,
                ": they must be [heads head_dim, dim] and [heads, dim]");
    file.require_agrees("model_dim", keys[1]);
    return {.model_dim = keys[1], .heads = steps[0], .head_dim = keys[0] / steps[0]};
  }

  static TitansConfig config_of(const GoldenCase& file) {
    const auto depth = static_cast<Index>(file.names("param.memory.").size());
    if (depth < 1) file.fail("there is no param.memory.0");
    file.require_agrees("memory_depth", depth);
    return {.depth = depth,
            .hidden = depth > 1 ? file.shape("param.memory.0")[-1] : 0,
            .chunk = file.count("chunk"),
            .weights_every = file.text("weights_every") == "None" ? 0 : file.count("weights_every"),
            .max_rate = file.number("max_learning_rate"),
            .momentum = file.flag("momentum", true),
            .silu = false,
            .unit = false};
  }

  void see(const std::string& name, const Tensor<T, B>& ours) {
    if (file_.has(name)) result_.see(file_, name, record_of(ours), file_.read(name));
  }

  void see_weights(const std::string& prefix, const TitansState<T, B>& state) {
    for (std::size_t i = 0; i < state.learned.size(); ++i) {
      const std::string number = std::to_string(i);
      see(prefix + "memory." + number, add(layer_.memory.initial[i], state.learned[i]).value());
      if (!state.momentum.empty()) see(prefix + "momentum." + number, state.momentum[i].value());
    }
  }

  GoldenCase& file_;
  Titans<T, B> layer_;
  std::vector<Part> parameters_;
  Comparison result_;
};

/// Replays a case of the kind `titans`. @throws infty::IoError
template <class T, class B>
Comparison replay_titans(GoldenCase& file) {
  return TitansReplay<T, B>(file).run();
}

}  // namespace infty::tests
