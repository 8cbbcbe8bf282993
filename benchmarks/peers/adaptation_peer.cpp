// SPDX-License-Identifier: MIT
// infty's side of adaptation.py: `adaptation_peer CASE.safetensors` makes a classifier of the
// case's weights, says "ready" and answers every line on standard input with one line:
//
//   adapt STEPS RATE LAMBDA PART    adapts a copy to the neighbours of each question, one question
//                                   behind the other, and answers it: seconds by the wall's clock,
//                                   and of processors' time. PART is in the names of what adapts
//   losses STEPS RATE LAMBDA PART   the same, and -log p of each question's class behind it

#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <infty/eigen/parallel.hpp>
#include <infty/io/safetensors.hpp>
#include <infty/lifelong/local_adaptation.hpp>
#include <infty/lifelong/predictor.hpp>
#include <infty/model/blocks.hpp>
#include <infty/nn/positioned_embedding.hpp>
#include <infty/nn/self_attention.hpp>

namespace {

using infty::Example, infty::Index;
using Model = infty::Predictor<infty::PositionedEmbedding<float>,
                               infty::Layers<infty::Block<infty::SelfAttention<float>>>,
                               infty::ClassHead<float>>;

/// A case: a model, questions, and so many neighbours of each.
struct Case {
  Model model;
  std::vector<Example> questions;
  std::vector<std::vector<Example>> neighbours;
};

std::vector<Example> examples_of(const infty::SafetensorsFile& file, const std::string& name) {
  const auto tokens = file.read<Index>(name), labels = file.read<Index>(name + ".labels");
  const auto length = static_cast<std::ptrdiff_t>(tokens.size() / labels.size());
  std::vector<Example> out;
  for (auto at = tokens.begin(); at != tokens.end(); at += length)
    out.push_back({{at, at + length}, {labels[out.size()]}});
  return out;
}

Case read(const std::string& path) {
  const infty::SafetensorsFile file(path);
  const auto size = [&](const char* name) { return Index{std::stoll(file.metadata(name))}; };
  const infty::Random random(1);
  const infty::TransformerConfig config{.vocabulary = size("vocabulary"),
                                        .model_dim = size("width"),
                                        .layers = size("layers"),
                                        .heads = size("heads"),
                                        .feed_forward = size("feed_forward")};
  Case out{{{config.vocabulary, size("length"), config.model_dim, random},
            infty::blocks<infty::SelfAttention<float>>(config, {}, random),
            {config.model_dim, size("classes"), random}},
           examples_of(file, "questions"),
           {}};
  for (auto& [name, variable] : infty::named_parameters<float>(out.model)) {
    const auto values = file.read<float>("parameter." + name);
    auto handle = variable;
    handle.value().copy_from(infty::Tensor<float>::from(handle.shape(), values));
  }
  const auto all = examples_of(file, "neighbours");
  const Index k = std::ssize(all) / std::ssize(out.questions);
  for (auto at = all.begin(); at != all.end(); at += k) out.neighbours.emplace_back(at, at + k);
  return out;
}

double processor_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::string answer(const Case& given, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  infty::LocalAdaptationConfig config;
  words >> command >> config.steps >> config.learning_rate >> config.lambda >> config.part;
  if (config.part == "all") config.part.clear();
  config.neighbours = std::ssize(given.neighbours.front());
  std::string losses;
  Index right = 0;
  const double used = processor_seconds();
  const auto begin = std::chrono::steady_clock::now();
  infty::LocalAdaptation local(given.model, config);
  for (std::size_t i = 0; i < given.questions.size(); ++i) {
    const std::span<const Example> question(&given.questions[i], 1);
    const Model& adapted = local.adapt(given.neighbours[i]);
    if (command == "losses")
      losses += ' ' + std::to_string(adapted.losses(question).front());
    else
      right += adapted.answers(question).front() == question.front().labels ? 1 : 0;
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  if (command == "losses") return losses;
  return std::to_string(wall.count()) + ' ' + std::to_string(processor_seconds() - used) + ' ' +
         std::to_string(right);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("adaptation_peer CASE.safetensors");
    infty::set_num_threads(1);
    const Case given = read(argv[1]);
    std::printf("ready\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      std::printf("%s\n", answer(given, line).c_str());
      std::fflush(stdout);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "adaptation_peer: %s\n", error.what());
    return 1;
  }
}
