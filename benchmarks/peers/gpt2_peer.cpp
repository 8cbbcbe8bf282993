// SPDX-License-Identifier: MIT
// infty's side of gpt2.py: `gpt2_peer FOLDER [bfloat16]` reads a GPT-2 from Hugging Face's files
// when it is asked for work, keeps its matrices in bfloat16 if it is to, says "ready" and answers
// every line on standard input with one line:
//
//   generate BATCH PROMPT TOKENS    milliseconds of the first token and of all that follow, by the
//                                   wall's clock, and the same of processors' time
//   evaluate LENGTH                 milliseconds of a block's mean loss, by both
//   step LENGTH                     milliseconds of a step of AdamW on a block, by both
//   tokens BATCH PROMPT TOKENS      what `generate` chooses, row behind row
//   losses LENGTH                   the loss of a block, and those of three steps from it
//   logits LENGTH PATH              writes them, computed in double
//   write LAYERS FOLDER             writes a GPT-2 of fresh weights, with so many layers
//   memory                          kB that were resident at the beginning, and the peak

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <infty/model/gpt2_files.hpp>
#include <infty/nn/causal_attention.hpp>
#include <infty/train/train_step.hpp>

#include "status.hpp"

namespace {

using infty::Index, infty::Shape, infty::Tensor;
using Cached = infty::Gpt2<infty::CachedAttention<float>>;
using Causal = infty::Gpt2<infty::CausalAttention<float>>;

/// Milliseconds by the wall's clock, and of processors' time in all threads.
struct Taken {
  double wall = 0, processors = 0;

  static Taken now() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    const std::chrono::duration<double, std::milli> wall =
        std::chrono::steady_clock::now().time_since_epoch();
    return {wall.count(),
            1e3 * static_cast<double>(used.tv_sec) + 1e-6 * static_cast<double>(used.tv_nsec)};
  }
  friend Taken operator-(Taken a, Taken b) {
    return {a.wall - b.wall, a.processors - b.processors};
  }
};

/// Token i of row b of a text that both sides make: any tokens, far apart.
Tensor<Index> text(Index batch, Index length, Index vocabulary) {
  std::vector<Index> all;
  for (Index b = 0; b < batch; ++b)
    for (Index i = 0; i < length; ++i) all.push_back((i * 7919 + b * 104729 + 17) % vocabulary);
  return Tensor<Index>::from(Shape{batch, length}, all);
}

class Peer {
 public:
  Peer(std::filesystem::path folder, bool bfloat16)
      : folder_(std::move(folder)), bfloat16_(bfloat16) {}

  /// The answer to a line. @throws infty::ValueError for a command that there is not
  std::string answer(const std::string& command, std::istream& in) {
    if (command == "memory") return before_ + ' ' + infty::peers::process_status("VmHWM");
    Index a = 0, b = 0, c = 0;
    in >> a;
    if (command == "evaluate") return milliseconds([&] { loss(a); });
    if (command == "step") return milliseconds([&] { step(a); });
    if (command == "losses") {
      std::string all = number(loss(a));
      for (int i = 0; i < 3; ++i) all += ' ' + number(step(a));
      return all;
    }
    if (command == "generate" || command == "tokens") {
      in >> b >> c;
      generate(a, b, c);
      if (command == "generate")
        return number(first_.wall) + ' ' + number(rest_.wall) + ' ' + number(first_.processors) +
               ' ' + number(rest_.processors);
      std::string all;
      for (const Index token : chosen_) all += std::to_string(token) + ' ';
      return all;
    }
    std::string path;
    in >> path;
    if (command == "logits") return logits(a, path), "written";
    if (command == "write") return write(a, path), "written";
    infty::raise<infty::ValueError>("gpt2_peer", "there is no command ", command);
  }

 private:
  static std::string number(double x) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", x);
    return digits;
  }
  static std::string milliseconds(const std::function<void()>& body) {
    const Taken start = Taken::now();
    body();
    const Taken taken = Taken::now() - start;
    return number(taken.wall) + ' ' + number(taken.processors);
  }

  template <class Mixer>
  void open(std::optional<infty::Gpt2<Mixer>>& model) const {
    model.emplace(infty::load_gpt2<Mixer>(folder_));
    if (bfloat16_) infty::store_in_bfloat16(*model);
  }
  Causal& causal() {
    if (!causal_) open(causal_);
    return *causal_;
  }

  /// Tokens of the highest scores, `count` a row behind a prompt: `chosen_`, a row behind another.
  void generate(Index batch, Index prompt, Index count) {
    if (!cached_) open(cached_);
    const auto& model = *cached_;
    const auto guard = infty::no_grad();
    const Taken start = Taken::now();
    auto state = model.make_state(batch);
    auto next = text(batch, prompt, model.config().vocabulary);
    chosen_.assign(static_cast<std::size_t>(batch * count), 0);
    for (Index i = 0; i < count; ++i) {
      const auto hidden = model.forward(state, next);
      const auto scores = model.logits(narrow(hidden, next.dim(1) - 1, next.dim(1))).value();
      const Index wide = model.config().vocabulary;
      next = Tensor<Index>(Shape{batch, 1});
      for (Index row = 0; row < batch; ++row) {
        const float* const from = scores.data() + row * wide;
        next.data()[row] = std::max_element(from, from + wide) - from;
        chosen_[static_cast<std::size_t>(row * count + i)] = std::as_const(next).data()[row];
      }
      if (i == 0) first_ = Taken::now() - start;
    }
    rest_ = Taken::now() - start - first_;
  }

  double loss(Index length) {
    const auto guard = infty::no_grad();
    return loss_of(length).value().item();
  }
  infty::Variable<float> loss_of(Index length) {
    auto& model = causal();
    const auto all = text(1, length + 1, model.config().vocabulary).reshape(Shape{length + 1});
    auto state = model.make_state(1);
    const auto hidden = model.forward(state, all.slice(0, length).reshape(Shape{1, length}));
    return mean_loss(model.losses(hidden, all.slice(1, length + 1).reshape(Shape{1, length})),
                     all.slice(1, length + 1).reshape(Shape{1, length}));
  }
  double step(Index length) {
    if (!adam_) adam_.emplace(causal(), infty::AdamConfig{.weight_decay = .01});
    return train_step(*adam_, {.learning_rate = 1e-5}, [&] { return loss_of(length); }).loss;
  }

  void logits(Index length, const std::string& path) const {
    const auto model = infty::load_gpt2<infty::CausalAttention<double>>(folder_);
    const auto guard = infty::no_grad();
    auto state = model.make_state(1);
    const auto found = model.forward(state, text(1, length, model.config().vocabulary));
    infty::SafetensorsWriter writer;
    writer.add("logits", model.logits(found).value());
    writer.save(path);
  }

  static void write(Index layers, const std::string& folder) {
    const Causal model({.layers = layers}, {}, infty::Random(3));
    infty::save_gpt2(folder, model);
  }

  std::filesystem::path folder_;
  bool bfloat16_;
  std::string before_ = infty::peers::process_status("VmRSS");
  std::optional<Cached> cached_;
  std::optional<Causal> causal_;
  std::optional<infty::Adam<float>> adam_;
  std::vector<Index> chosen_;
  Taken first_, rest_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2 && count != 3) {
    std::fputs("gpt2_peer FOLDER [bfloat16], with config.json and model.safetensors\n", stderr);
    return 2;
  }
  try {
    Peer peer(arguments[1], count == 3);
    std::cout << "ready " << infty::detail::gemm_library<float>() << std::endl;
    for (std::string command; std::cin >> command;)
      std::cout << peer.answer(command, std::cin) << std::endl;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpt2_peer: %s\n", error.what());
    return 1;
  }
}
