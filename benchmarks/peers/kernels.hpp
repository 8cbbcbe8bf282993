// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/key_value_store.hpp>
#include <infty/memory/ops/delta_rule.hpp>
#include <infty/memory/ops/nearest.hpp>
#include <infty/memory/ops/retrieved_attention.hpp>
#include <infty/memory/product_key_memory.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/named_parameters.hpp>

// infty's side of kernels.py: the same computations of the same cases.
namespace infty::peers {

inline Index whole(const SafetensorsFile& file, const char* name) {
  return std::stoll(file.metadata(name));
}

/// Tensors by name, in order.
using Named = std::vector<std::pair<std::string, Variable<float>>>;

/// What a kernel's class is wrapped in: `Work` has `outputs()` and `wanted()`, those that take a
/// gradient.
template <class Work>
class KernelCase {
 public:
  explicit KernelCase(const SafetensorsFile& file) : work_(file) {
    for (const auto& [name, y] : work_.outputs())
      weights_.push_back(file.tensor<float>("weight." + name));
  }

  bool run(const std::string& command) {
    if (command == "forward") return found_ = work_.outputs(), true;
    if (command != "backward") return false;
    for (auto& [name, x] : work_.wanted()) x.zero_grad();
    Tape tape;
    found_ = work_.outputs();
    Variable<float> loss;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const auto part = sum(multiply(found_[i].second, Variable<float>(weights_[i])));
      loss = i == 0 ? part : loss + part;
    }
    tape.backward(loss);
    return true;
  }

  void save(SafetensorsWriter& to) {
    run("backward");
    for (const auto& [name, y] : found_) to.add(name, y.value());
    for (const auto& [name, x] : work_.wanted()) to.add("grad." + name, x.grad());
  }

 private:
  Work work_;
  std::vector<Tensor<float>> weights_;
  Named found_;
};

/// Each head's queries attend to the k of all remembered keys that they meet best.
class Retrieval {
 public:
  explicit Retrieval(const SafetensorsFile& file)
      : heads_(whole(file, "heads")),
        k_(whole(file, "k")),
        queries_(file.tensor<float>("queries"), true) {
    const auto entries = file.tensor<float>("entries");
    KeyValueStore<float, EigenBackend> store(entries.dim(0), 1, whole(file, "head_dim"));
    const Index n = entries.dim(1);
    store.append({entries, RowCounts(static_cast<std::size_t>(entries.dim(0)), n)}, n);
    stored_ = store.latest(n);
  }

  Named wanted() const { return {{"queries", queries_}}; }
  Named outputs() const {
    const auto found = nearest(queries_.value(), stored_, heads_, k_).indices;
    return {{"output", retrieved_attention(queries_, stored_, found)}};
  }

 private:
  Index heads_, k_;
  Variable<float> queries_;
  StoredEntries<float, EigenBackend> stored_;
};

/// k of n² slots a head, by two searches among n; a sum of their values by a softmax.
class ProductKeys {
 public:
  explicit ProductKeys(const SafetensorsFile& file)
      : memory_({.sub_keys = whole(file, "sub_keys"),
                 .heads = whole(file, "heads"),
                 .k = whole(file, "k"),
                 .key_dim = whole(file, "key_dim"),
                 .query_batch_norm = false},
                whole(file, "dim"), Random(1)),
        x_(file.tensor<float>("x"), true) {
    load_parameters(file.path(), memory_, "parameter.");
  }

  Named wanted() {
    Named all{{"x", x_}};
    for (const auto& [name, parameter] : named_parameters<float>(memory_))
      all.emplace_back("parameter." + name, parameter);
    return all;
  }
  Named outputs() const {
    Pass<float> pass;
    return {{"output", memory_.forward(x_, pass)}};
  }

 private:
  ProductKeyMemory<float> memory_;
  Variable<float> x_;
};

/// The gated delta rule.
class DeltaRule {
 public:
  explicit DeltaRule(const SafetensorsFile& file) : options_{.chunk = whole(file, "chunk")} {
    const auto input = [&](const char* name) {
      return Variable<float>(file.tensor<float>(name), true);
    };
    in_ = {input("query"), input("key"), input("value"), input("beta"), input("decay")};
    state_ = input("state");
  }

  Named wanted() const {
    return {{"query", in_.query}, {"key", in_.key},     {"value", in_.value},
            {"beta", in_.beta},   {"decay", in_.decay}, {"state", state_}};
  }
  Named outputs() const {
    const auto result = delta_rule(in_, state_, options_);
    return {{"output", result.output}, {"state", result.state}};
  }

 private:
  DeltaRuleOptions options_;
  DeltaRuleInputs<float> in_;
  Variable<float> state_;
};

}  // namespace infty::peers
