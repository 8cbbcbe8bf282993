// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/elementwise.hpp>
#include <infty/autograd/parameters.hpp>
#include <infty/autograd/reduce.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/memory/slot_usage.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of the kind `product_key`: steps of training and evaluation, the running
/// statistics behind each, and the gradients of each.
template <class T, class B>
class ProductKeyReplay {
 public:
  using Memory = ProductKeyMemory<T, B>;
  using V = Variable<T, B>;

  explicit ProductKeyReplay(GoldenCase& file)
      : file_(file), parts_(parts_of(file)), memory_(config(), inputs(), Random(1)) {
    load();
  }

  Comparison run() {
    const std::vector<bool> training = modes();
    for (std::size_t step = 0; step < training.size(); ++step)
      replay_step("step" + std::to_string(step) + '.', training[step]);
    see("usage", usage_);
    file_.require_all_seen();
    if (result_.compared == 0) file_.fail("records nothing to compare");
    return result_;
  }

 private:
  /// A map of the query network by its name in the file, and the norm behind it, if there is one.
  struct Part {
    std::string map, norm;
  };

  /// "query_proj.0.weight": linear where it is a matrix, batch norm where it is a vector.
  static std::vector<Part> parts_of(const GoldenCase& file) {
    const std::string start = "param.", end = ".weight";
    std::vector<std::pair<Index, std::string>> found;
    for (const std::string& name : file.names("param.query_proj.")) {
      if (!name.ends_with(end)) continue;
      const std::string stem = name.substr(start.size(), name.size() - start.size() - end.size());
      const std::string number = stem.substr(stem.rfind('.') + 1);
      if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos)
        file.fail(name, " has no number of a layer");
      found.push_back({static_cast<Index>(std::stol(number)), stem});
    }
    std::sort(found.begin(), found.end());
    std::vector<Part> parts;
    for (const auto& [number, stem] : found) {
      if (file.shape(start + stem + end).rank() == 2)
        parts.push_back({stem, ""});
      else if (!parts.empty() && parts.back().norm.empty())
        parts.back().norm = stem;
      else
        file.fail(stem, " is a norm behind nothing");
    }
    if (parts.empty()) file.fail("has no query network");
    return parts;
  }

  ProductKeyConfig config() const {
    const Shape& keys = file_.shape("param.keys");
    const Shape& values = file_.shape("param.values.weight");
    if (keys.rank() != 4 || values.rank() != 2)
      file_.fail("param.keys is ", keys, ", param.values.weight ", values);
    ProductKeyConfig c{.sub_keys = keys[2], .heads = keys[0], .k = file_.count("knn")};
    c.key_dim = 2 * keys[3];
    c.value_dim = values[1];
    for (std::size_t i = 0; i + 1 < parts_.size(); ++i)
      c.query_hidden.push_back(file_.shape("param." + parts_[i].map + ".weight")[0]);
    c.query_batch_norm = !parts_.front().norm.empty();
    c.batch_norm_momentum = file_.number("batchnorm_momentum", c.batch_norm_momentum);
    c.batch_norm_epsilon = file_.number("batchnorm_eps", c.batch_norm_epsilon);
    // A layer answers in the width of its input; what is recorded is the sum before that.
    if (values[1] != inputs()) c.output = ProductKeyOutput::linear;
    file_.require_agrees("heads", c.heads);
    file_.require_agrees("sub_keys", c.sub_keys);
    file_.require_agrees("slots", c.slots());
    file_.require_agrees("key_dim", c.key_dim);
    file_.require_agrees("input_dim", inputs());
    file_.require_agrees("output_dim", values[1]);
    return c;
  }

  Index inputs() const { return file_.shape("param." + parts_.front().map + ".weight")[1]; }

  /// The list of "train" and "eval".
  std::vector<bool> modes() const {
    std::vector<bool> training;
    const std::string& text = file_.text("modes");
    for (std::size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 1)) {
      const std::size_t close = text.find('"', at + 1);
      if (close == std::string::npos) file_.fail("modes is ", text);
      const std::string mode = text.substr(at + 1, close - at - 1);
      if (mode != "train" && mode != "eval") file_.fail("a mode is ", mode);
      training.push_back(mode == "train");
      at = close;
    }
    if (training.empty()) file_.fail("modes is ", text, ": it must be a list of some");
    return training;
  }

  /// f(name in the file, parameter) for all parameters, and for all running statistics.
  template <class F, class G>
  void for_each_part(F&& parameter, G&& buffer) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parameter(parts_[i].map + ".weight", memory_.query.maps[i].weight);
      parameter(parts_[i].map + ".bias", memory_.query.maps[i].bias);
      if (memory_.query.norms.empty()) continue;
      auto& norm = memory_.query.norms[i];
      parameter(parts_[i].norm + ".weight", norm.weight);
      parameter(parts_[i].norm + ".bias", norm.bias);
      buffer(parts_[i].norm + ".running_mean", norm.running_mean);
      buffer(parts_[i].norm + ".running_var", norm.running_variance);
    }
    parameter(std::string("keys"), memory_.keys);
    parameter(std::string("values.weight"), memory_.values);
  }

  void load() {
    const auto set = [&](const char* start) {
      return [&, start](const std::string& name, V& to) {
        set_parameter(file_, start + name, file_.read(start + name), to);
      };
    };
    for_each_part(set("param."), set("buffer."));
  }

  /// Compares relatively; absolutely with `offset` 1, which is added to both.
  void see(const std::string& name, Recorded ours, double offset = 0) {
    if (!file_.has(name)) return;
    Recorded theirs = file_.read(name);
    for (double& x : ours.values) x += offset;
    for (double& x : theirs.values) x += offset;
    result_.see(file_, name, ours, theirs);
  }

  /// A bias that a batch norm takes away again, whose gradient in training is 0: what is recorded
  /// is rounding.
  bool is_before_norm(const std::string& name) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
      return !part.norm.empty() && name == part.map + ".bias";
    });
  }

  void replay_step(const std::string& at, bool training) {
    const V x(file_.read(at + "input").template tensor<T, B>(), true);
    zero_grad(memory_);
    Tape tape;
    Pass<T, B> pass{.training = training};
    const auto reading = memory_.read(x, pass);
    see(at + "output", record_of(reading.sum.value()));
    see(at + "scores", record_of(reading.scores.value()));
    if (const std::string name = at + "indices"; file_.has(name)) {
      const std::vector<Index> theirs = file_.read_tokens(name);
      result_.see(file_, name, record_of(reading.slots),
                  {file_.shape(name), std::vector<double>(theirs.begin(), theirs.end())});
    }
    SlotUsage usage(memory_.config().slots());
    usage.add(reading.slots, reading.weights.value());
    usage_ = {Shape{3},
              {usage.fraction(), usage.divergence_by_weight(), usage.divergence_by_count()}};
    for_each_part([](const std::string&, V&) {},
                  [&](const std::string& name, V& statistic) {
                    see(at + "buffer." + name, record_of(statistic.value()));
                  });
    if (!file_.has(at + "loss_weight")) {
      if (!file_.names(at + "grad.").empty()) file_.fail("records gradients but no loss_weight");
      return;
    }
    file_.require_shape(at + "loss_weight", reading.sum.shape());
    tape.backward(sum(reading.sum * V(file_.read(at + "loss_weight").template tensor<T, B>())));
    see(at + "grad.input", record_of(x.grad()));
    for_each_part(
        [&](const std::string& name, V& parameter) {
          const bool vanishes = training && is_before_norm(name);
          see(at + "grad." + name, record_of(parameter.grad()), vanishes ? 1 : 0);
        },
        [](const std::string&, V&) {});
  }

  GoldenCase& file_;
  std::vector<Part> parts_;
  Memory memory_;
  Recorded usage_;
  Comparison result_;
};

/// Replays a case of the kind `product_key` in scalar T on backend B. @throws infty::IoError
template <class T, class B>
Comparison replay_product_key(GoldenCase& file) {
  return ProductKeyReplay<T, B>(file).run();
}

}  // namespace infty::tests
