// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/memsizer_layer.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of MemSizer: the causal form at once and token by token, the cross form, or a
/// decoder layer of both.
template <class T, class B>
class MemSizerReplay {
 public:
  using V = Variable<T, B>;

  explicit MemSizerReplay(GoldenCase& file) : file_(file) {
    // The program normalises by `LayerNorm`'s own epsilon.
    if (file.number("norm_eps", 1e-5) != 1e-5)
      file.fail("norm_eps is ", file.text("norm_eps"), ": a LayerNorm has 1e-5");
  }

  Comparison causal() {
    MemSizer<T, B> memory = made("", "slots");
    const V x = vectors("input");
    file_.require_agrees("batch", x.dim(0));
    file_.require_agrees("length", x.dim(1));
    {
      Tape tape;
      auto state = memory.make_state(x.dim(0));
      Pass<T, B> pass;
      const V y = memory.forward(state, x, pass);
      see_vectors("output", y.value());
      tape.backward(loss(y));
    }
    see_vectors("grad.input", x.grad());
    see_gradients("", parts(memory));
    auto state = memory.make_state(x.dim(0));
    for (Index i = 0; i < x.dim(1); ++i) {
      const std::string step = "step" + std::to_string(i) + '.';
      Pass<T, B> pass;
      const V y = memory.forward(state, narrow(V(x.value()), i, i + 1), pass);
      see(step + "memory", record_of(state.memory.value()));
      see(step + "output", record_of(y.value().reshape(Shape{y.dim(0), y.dim(2)})));
    }
    return finished();
  }

  Comparison cross() {
    MemSizer<T, B> memory = made("", "slots");
    const V target = vectors("target"), source = vectors("source");
    {
      Tape tape;
      const V encoded = memory.encode(source, padding());
      see("memory", record_of(encoded.value()));
      const V y = memory.attend(target, encoded);
      see_vectors("output", y.value());
      tape.backward(loss(y));
    }
    see_vectors("grad.target", target.grad());
    see_vectors("grad.source", source.grad());
    see_gradients("", parts(memory));
    return finished();
  }

  Comparison layer() {
    const MemSizer<T, B> self = made("self_attn.", "slots_causal"),
                         cross = made("encoder_attn.", "slots_cross");
    const Index d = self.right.weight.dim(0);
    if (file_.text("activation", "relu") != "relu")
      file_.fail("activation is ", file_.text("activation"), ": a FeedForward has relu");
    const Index hidden = file_.shape("param.fc1.bias").size();
    file_.require_agrees("feed_forward", hidden);
    MemSizerLayer<T, B> layer({.self = self.config(),
                               .cross = cross.config(),
                               .feed_forward = hidden,
                               .norms_in_front = file_.flag("pre_norm", false)},
                              {.model_dim = d, .heads = file_.count("heads"), .head_dim = 1});
    layer.self = self;
    layer.cross = cross;
    const std::vector<Part> rest = {{"self_attn_layer_norm", of(layer.self_norm)},
                                    {"encoder_attn_layer_norm", of(layer.cross_norm)},
                                    {"final_layer_norm", of(layer.feed_norm)},
                                    {"fc1", of(layer.feed.inner)},
                                    {"fc2", of(layer.feed.outer)}};
    set("", rest);
    const V x = vectors("input"), source = vectors("source");
    {
      Tape tape;
      auto state = layer.make_state(x.dim(0));
      layer.set_source(state, source, padding());
      Pass<T, B> pass;
      const V y = layer.forward(state, x, pass);
      see_vectors("output", y.value());
      tape.backward(loss(y));
    }
    see_vectors("grad.input", x.grad());
    see_vectors("grad.source", source.grad());
    see_gradients("self_attn.", parts(layer.self));
    see_gradients("encoder_attn.", parts(layer.cross));
    see_gradients("", rest);
    return finished();
  }

 private:
  /// A memory with the recorded weights.
  MemSizer<T, B> made(const std::string& prefix, const char* slots_key) {
    const std::string param = "param." + prefix;
    const Shape& key = file_.shape(param + "k_proj.weight");
    if (key.rank() != 2) file_.fail(param, "k_proj.weight is ", key, ": it must be [slots, d]");
    file_.require_agrees(slots_key, key[0]);
    file_.require_agrees("model_dim", key[1]);
    MemSizer<T, B> memory({.slots = key[0], .bias = file_.has(param + "k_proj.bias")},
                          {.model_dim = key[1], .heads = file_.count("heads"), .head_dim = 1});
    set(prefix, parts(memory));
    return memory;
  }

  /// A weight and a bias, which may be empty, by their name in the file.
  struct Part {
    std::string name;
    std::pair<V, V> parameters;
  };

  template <class Layer>
  static std::pair<V, V> of(const Layer& layer) {
    return {layer.weight, layer.bias};
  }

  static std::vector<Part> parts(const MemSizer<T, B>& memory) {
    return {{"q_proj", of(memory.query)},
            {"k_proj", of(memory.left)},
            {"v_proj", of(memory.right)},
            {"k_layer_norm", of(memory.left_norm)},
            {"v_layer_norm", of(memory.right_norm)}};
  }

  void set(const std::string& prefix, const std::vector<Part>& all) {
    for (const Part& part : all) {
      auto [weight, bias] = part.parameters;
      set(prefix + part.name + ".weight", weight);
      if (bias.size() > 0) set(prefix + part.name + ".bias", bias);
    }
  }

  void see_gradients(const std::string& prefix, const std::vector<Part>& all) {
    for (const Part& part : all) {
      const auto& [weight, bias] = part.parameters;
      see("grad." + prefix + part.name + ".weight", record_of(weight.grad()));
      if (bias.size() > 0) see("grad." + prefix + part.name + ".bias", record_of(bias.grad()));
    }
  }

  void set(const std::string& name, V& parameter) {
    set_parameter(file_, "param." + name, file_.read("param." + name), parameter);
  }

  /// [batch, length, d] of what the file holds as [length, batch, d], and back.
  V vectors(const std::string& name) {
    const auto x = file_.read(name);
    if (x.shape.rank() != 3) file_.fail(name, " is ", x.shape, ": it must be [length, batch, d]");
    return V(x.swapped(0).template tensor<T, B>(), true);
  }
  void see_vectors(const std::string& name, const Tensor<T, B>& ours) {
    see(name, record_of(ours).swapped(0));
  }
  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }

  Tensor<Index, B> padding() {
    if (!file_.has("padding")) return {};
    const Shape shape = file_.shape("padding");
    return Tensor<Index, B>::from(shape, file_.read_tokens("padding"));
  }

  V loss(const V& y) {
    const V weight = vectors("loss_weight");
    if (!(weight.shape() == y.shape()))
      file_.fail("loss_weight is ", file_.shape("loss_weight"), ", the output ", y.shape());
    return sum(y * V(weight.value()));
  }

  Comparison finished() {
    file_.require_all_seen();
    return result_;
  }

  GoldenCase& file_;
  Comparison result_;
};

/// Replays a case of the kind `memsizer_*` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_memsizer(GoldenCase& file) {
  const std::string& kind = file.text("kind");
  MemSizerReplay<T, B> replay(file);
  if (kind == "memsizer_causal") return replay.causal();
  if (kind == "memsizer_cross") return replay.cross();
  if (kind == "memsizer_layer") return replay.layer();
  file.fail("kind is ", kind, ": it must be memsizer_causal, memsizer_cross or memsizer_layer");
}

}  // namespace infty::tests
