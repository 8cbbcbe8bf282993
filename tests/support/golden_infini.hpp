// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/infini_attention.hpp>
#include <infty/nn/unit_vectors.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of the kind `infini`: segments with the memory behind each, a tail that is read
/// within a segment, and the gradients of it all.
template <class T, class B>
class InfiniReplay {
  using Mixer = InfiniAttention<T, B>;
  using V = Variable<T, B>;

 public:
  explicit InfiniReplay(GoldenCase& file)
      : file_(file),
        norm_(variable("param.norm.gamma")),
        sizes_(sizes_of(file)),
        layer_(config(), sizes_) {
    const Recorded qkv = file.read("param.to_qkv.weight");
    const auto band = [&](std::size_t i, V& to) {
      const Shape shape{sizes_.inner(), sizes_.model_dim};
      const auto begin = qkv.values.begin() + static_cast<std::ptrdiff_t>(i) * shape.size();
      set_parameter<T, B>(file, "param.to_qkv.weight", {shape, {begin, begin + shape.size()}}, to);
    };
    band(0, layer_.maps.query.weight);
    band(1, layer_.maps.key.weight);
    band(2, layer_.maps.value.weight);
    set_parameter(file, "param.to_out.weight", file.read("param.to_out.weight"),
                  layer_.maps.out.weight);
    set_parameter(file, "param.fastweight_mem.head_gates",
                  file.read("param.fastweight_mem.head_gates"), layer_.gate);
  }

  Comparison run() {
    if (file_.has("rotary.frequencies")) {
      const auto ours = rotary_frequencies(sizes_.head_dim, base());
      result_.see(file_, "rotary.frequencies", {Shape{static_cast<Index>(ours.size())}, ours},
                  file_.read("rotary.frequencies"));
    }
    auto state = layer_.make_state(file_.shape("segment0.input")[0]);
    Tape tape;
    V loss(Tensor<T, B>::zeros(Shape{}));
    std::vector<std::pair<std::string, V>> watched;
    for (Index s = 0; file_.has(segment(s) + "input"); ++s) {
      const std::string name = segment(s);
      const V x = variable(name + "input");
      watched.emplace_back(name + "grad.input", x);
      const V y = forward(state, x, x.dim(1));
      see(name + "output", y.value());
      see(name + "memory", state.memory.value());
      see(name + "memory.norm", state.mass.value());
      watched.emplace_back(name + "memory.grad", state.memory);
      watched.emplace_back(name + "memory.norm.grad", state.mass);
      loss = loss + weighed(y, name + "loss_weight");
    }
    if (file_.has_key("segments") &&
        static_cast<Index>(watched.size()) != 3 * file_.count("segments"))
      file_.fail("metadata segments is ", file_.text("segments"), ", there are ",
                 watched.size() / 3);
    if (file_.has("tail.input")) {  // within a segment: read, and not written
      const auto guard = no_grad();
      auto branch = state;
      const V x = variable("tail.input");
      see("tail.output", forward(branch, x, x.dim(1) + 1).value());
      if (!same(branch.memory, state.memory)) file_.fail("the tail has written to the memory");
    }
    loss = loss + weighed(state.memory, "memory.loss_weight") +
           weighed(state.mass, "memory.norm.loss_weight");
    see("loss", loss.value());
    tape.backward(loss);
    for (const auto& [name, x] : watched) see(name, x.grad());
    see("grad.norm.gamma", norm_.grad());
    see("grad.to_out.weight", layer_.maps.out.weight.grad());
    see("grad.fastweight_mem.head_gates", layer_.gate.grad());
    Recorded qkv{Shape{3 * sizes_.inner(), sizes_.model_dim}, {}};
    for (const V* map :
         {&layer_.maps.query.weight, &layer_.maps.key.weight, &layer_.maps.value.weight}) {
      const auto part = record_of(map->grad());
      qkv.values.insert(qkv.values.end(), part.values.begin(), part.values.end());
    }
    if (file_.has("grad.to_qkv.weight"))
      result_.see(file_, "grad.to_qkv.weight", qkv, file_.read("grad.to_qkv.weight"));
    file_.require_all_seen();
    return result_;
  }

 private:
  static std::string segment(Index s) { return "segment" + std::to_string(s) + '.'; }

  V variable(const std::string& name) { return V(file_.read(name).template tensor<T, B>(), true); }

  double base() const { return file_.number("rotary_base", 10000); }

  /// The program's form, but for the segment's length, which is that of the input.
  InfiniConfig config(Index segment = 1) const {
    return {.segment = segment,
            .delta = file_.flag("delta_rule", false),
            .rotary_base = base(),
            .floor = file_.number("eps", 1e-10),
            .gate_on_local = true,
            .ungated_first = true};
  }

  static AttentionSizes sizes_of(const GoldenCase& file) {
    const Shape &qkv = file.shape("param.to_qkv.weight"),
                &gates = file.shape("param.fastweight_mem.head_gates");
    if (qkv.rank() != 2 || gates.rank() != 1 || gates[0] < 1 || qkv[0] % (3 * gates[0]) != 0)
      file.fail("to_qkv.weight is ", qkv, ", head_gates are ", gates);
    const AttentionSizes sizes{
        .model_dim = qkv[1], .heads = gates[0], .head_dim = qkv[0] / (3 * gates[0])};
    file.require_agrees("model_dim", sizes.model_dim);
    file.require_agrees("heads", sizes.heads);
    file.require_agrees("head_dim", sizes.head_dim);
    return sizes;
  }

  /// Through the layer with its RMSNorm in front, as one of segments of this length.
  V forward(typename Mixer::State& state, const V& x, Index length) {
    Mixer same_weights(config(length), sizes_);
    same_weights.maps = layer_.maps;
    same_weights.gate = layer_.gate;
    const V normed =
        unit_vectors(x) * (norm_ * static_cast<T>(std::sqrt(static_cast<double>(x.dim(2)))));
    const Index batch = x.dim(0);
    if (state.segment.length != RowCounts(static_cast<std::size_t>(batch), 0))
      file_.fail("a segment is not over");
    state.segment = same_weights.make_state(batch).segment;
    Pass<T, B> pass;
    return same_weights.forward(state, normed, pass);
  }

  V weighed(const V& x, const std::string& name) {
    const Recorded weight = file_.read(name);
    if (!(weight.shape == x.shape())) file_.fail(name, " is ", weight.shape, ", not ", x.shape());
    return sum(x * V(weight.template tensor<T, B>()));
  }

  void see(const std::string& name, const Tensor<T, B>& ours) {
    if (file_.has(name)) result_.see(file_, name, record_of(ours), file_.read(name));
  }

  GoldenCase& file_;
  V norm_;
  AttentionSizes sizes_;
  Mixer layer_;
  Comparison result_;
};

/// Replays a case of the kind `infini` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_infini(GoldenCase& file) {
  return InfiniReplay<T, B>(file).run();
}

}  // namespace infty::tests
