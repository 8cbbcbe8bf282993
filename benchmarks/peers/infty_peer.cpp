// SPDX-License-Identifier: MIT
// infty's side of compare.py: `infty_peer KIND CASE.safetensors`, of a layer, a model or a kernel
// (kernels.hpp), reads sizes, weights and inputs, says "ready" and what multiplies its matrices,
// and then answers every line on standard input with one line:
//
//   forward | backward | step | product   runs it once and says how many milliseconds it took
//   save PATH                             writes what was computed, gradients included
//   memory                                the kB that were resident before the first run, the peak

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <infty/memory/infty_memory.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/model/presets.hpp>
#include <infty/model/transformer_lm.hpp>
#include <infty/train/checkpoint.hpp>
#include <infty/train/train_step.hpp>

#include "kernels.hpp"
#include "status.hpp"

namespace {

using infty::Index, infty::Shape, infty::Tensor, infty::Variable;
using infty::peers::process_status, infty::peers::whole;

float real(const infty::SafetensorsFile& file, const char* name) {
  return std::stof(file.metadata(name));
}

/// The paper's sorting experiment, without dropout, in the sizes of the case.
infty::presets::Experiment experiment(const infty::SafetensorsFile& file) {
  auto e = infty::presets::sorting(4000);
  auto& model = e.model;
  model.model_dim = whole(file, "heads") * whole(file, "head_dim");
  model.heads = whole(file, "heads");
  model.head_dim = whole(file, "head_dim");
  model.layers = whole(file, "layers");
  model.feed_forward = whole(file, "feed_forward");
  e.memory.attention.capacity = e.segment = whole(file, "length");
  e.memory.memory->basis = whole(file, "basis");
  e.memory.memory->samples = whole(file, "samples");
  model.dropout = 0;
  e.batch = whole(file, "batch");
  return e;
}

infty::LongTermConfig long_term_of(const infty::presets::Experiment& e) {
  return e.memory.resolved_memory(e.model.attention_sizes());
}

template <class L>
void save_gradients(infty::SafetensorsWriter& to, L& layer) {
  for (const auto& [name, parameter] : infty::named_parameters<float>(layer))
    to.add("grad." + name, parameter.grad());
}

/// The long-term memory alone: a later write, a read, and the divergence from the prior.
class LayerCase {
 public:
  explicit LayerCase(const infty::SafetensorsFile& file)
      : memory_(long_term_of(experiment(file))),
        x_(file.tensor<float>("x"), true),
        queries_(file.tensor<float>("queries"), true),
        weight_(file.tensor<float>("weight")),
        kl_weight_(real(file, "kl_weight")),
        old_(memory_.make_state(x_.dim(0))) {
    infty::load_parameters(file.path(), memory_, "parameter.");
    const auto guard = infty::no_grad();
    memory_.write(old_, Variable<float>(file.tensor<float>("earlier")));
  }

  bool run(const std::string& command) {
    if (command == "forward") return pass(), true;
    if (command != "backward") return false;
    infty::zero_grad(memory_);
    x_.zero_grad();
    queries_.zero_grad();
    infty::Tape tape;
    tape.backward(pass());
    return true;
  }

  void save(infty::SafetensorsWriter& to) {
    run("backward");
    to.add("context", reading_.context.value());
    to.add("density", reading_.density.value());
    to.add("coefficients", state_.coefficients.value());
    to.add("grad.x", x_.grad());
    to.add("grad.queries", queries_.grad());
    save_gradients(to, memory_);
  }

 private:
  /// A scalar that every output has a part in.
  Variable<float> pass() {
    state_ = old_;
    memory_.write(state_, x_);
    reading_ = memory_.attend(state_, queries_);
    return sum(multiply(reading_.context, weight_)) +
           sum(memory_.divergence(reading_.density), kl_weight_);
  }

  infty::LongTermMemory<float> memory_;
  Variable<float> x_, queries_, weight_;
  float kl_weight_;
  infty::LongTermMemory<float>::State old_, state_;
  infty::Reading<float> reading_;
};

/// A whole training step: the earlier segments are observed, the last one is learned from.
class ModelCase {
 public:
  explicit ModelCase(const infty::SafetensorsFile& file)
      : experiment_(experiment(file)),
        model_(experiment_.model, experiment_.memory),
        adam_(model_),
        earlier_(file.tensor<Index>("earlier")),
        last_(file.tensor<Index>("last")),
        targets_(file.tensor<Index>("targets")) {
    infty::load_parameters(file.path(), model_, "parameter.");
  }

  bool run(const std::string& command) {
    if (command != "step") return false;
    auto state = model_.make_state(experiment_.batch);
    model_.observe(state, earlier_, experiment_.segment);
    const auto kl_weight = static_cast<float>(experiment_.kl_weight_of_sum(experiment_.segment));
    const infty::TrainStepConfig config{.learning_rate = experiment_.learning_rate,
                                        .max_norm = experiment_.max_norm};
    last_step_ = train_step(adam_, config, [&] {
      infty::Pass<float> pass;
      logits_ = model_.logits(model_.forward(state, last_, pass));
      return cross_entropy(logits_, targets_) + scale(loss_named(pass, "divergence"), kl_weight);
    });
    return true;
  }

  /// Losses and norms of three steps; logits and clipped gradients of the first.
  void save(infty::SafetensorsWriter& to) {
    std::vector<double> losses, norms;
    for (int step = 0; step < 3; ++step) {
      run("step");
      losses.push_back(last_step_.loss);
      norms.push_back(last_step_.grad_norm);
      if (step > 0) continue;
      to.add("logits", logits_.value());
      save_gradients(to, model_);
    }
    to.add("losses", Shape{3}, losses);
    to.add("norms", Shape{3}, norms);
  }

 private:
  infty::presets::Experiment experiment_;
  infty::TransformerLM<infty::InftyMemory<float>> model_;
  infty::Adam<float> adam_;
  Tensor<Index> earlier_, last_, targets_;
  Variable<float> logits_;
  infty::TrainStep last_step_;
};

/// The machine's limit: a product of two square matrices, n³ multiplications and additions.
void product(Index n) {
  static const auto a = Tensor<float>::full({n, n}, 1.5F), b = Tensor<float>::full({n, n}, 0.5F);
  static Tensor<float> c({n, n});
  infty::detail::product<infty::EigenBackend>(n, n, n, false, false, a.data(), b.data(), 0.0F,
                                              c.data());
}

template <class Case>
void serve(const infty::SafetensorsFile& file) {
  Case work(file);
  const Index product_size = whole(file, "product");
  const std::string before = process_status("VmRSS");
  std::cout << "ready " << infty::detail::gemm_library<float>() << std::endl;
  for (std::string command; std::cin >> command;) {
    if (command == "memory") {
      std::cout << before << ' ' << process_status("VmHWM") << std::endl;
    } else if (command == "save") {
      std::string path;
      std::getline(std::cin >> std::ws, path);
      infty::SafetensorsWriter writer;
      work.save(writer);
      writer.save(path);
      std::cout << "saved" << std::endl;
    } else {
      const auto start = std::chrono::steady_clock::now();
      if (command == "product")
        product(product_size);
      else if (!work.run(command))
        infty::raise<infty::ValueError>("infty_peer", "there is no command ", command);
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      std::cout << took.count() << std::endl;
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  using namespace infty::peers;
  using Serve = void (*)(const infty::SafetensorsFile&);
  const std::map<std::string, Serve> kinds{{"layer", serve<LayerCase>},
                                           {"model", serve<ModelCase>},
                                           {"retrieval", serve<KernelCase<Retrieval>>},
                                           {"product_keys", serve<KernelCase<ProductKeys>>},
                                           {"delta_rule", serve<KernelCase<DeltaRule>>}};
  const auto kind = kinds.find(count == 3 ? arguments[1] : "");
  if (kind == kinds.end()) {
    std::fputs("infty_peer KIND CASE.safetensors, of these kinds:", stderr);
    for (const auto& [name, call] : kinds) std::fprintf(stderr, " %s", name.c_str());
    std::fputs("\n", stderr);
    return 2;
  }
  try {
    kind->second(infty::SafetensorsFile(arguments[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "infty_peer: %s\n", error.what());
    return 1;
  }
}
