// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/memory/engram.hpp>

#include "support/golden_case.hpp"

namespace infty::tests {

/// Replays a case of the kind `engram`: hashes, what is added to hidden vectors, all gradients.
template <class T, class B>
class EngramReplay {
  using V = Variable<T, B>;

 public:
  explicit EngramReplay(GoldenCase& file) : file_(file), layer_(config_of(file), width_of(file)) {
    const Index branches = layer_.config().branches;
    const auto once = [&](const std::string& name, V& parameter) {
      parts_.push_back({name, parameter, 0, parameter.dim(0)});
    };
    once("multi_head_embedding.embedding.weight", layer_.table.weight);
    once("value_proj.weight", layer_.value.weight);
    once("value_proj.bias", layer_.value.bias);
    for (Index b = 0; b < branches; ++b) {
      const auto branch = [&](const std::string& front, const std::string& back, V& parameter) {
        const Index rows = parameter.dim(0) / branches;
        parts_.push_back({front + std::to_string(b) + back, parameter, b * rows, (b + 1) * rows});
      };
      branch("key_projs.", ".weight", layer_.key.weight);
      branch("key_projs.", ".bias", layer_.key.bias);
      branch("norm1.", ".weight", layer_.key_norm);
      branch("norm2.", ".weight", layer_.hidden_norm);
      branch("short_conv.norms.", ".weight", layer_.norm);
    }
    once("short_conv.conv.weight", layer_.taps);
    for (auto& part : parts_) {
      const Recorded from = file.read("param." + part.name);
      auto to = part.variable.value().slice(part.begin, part.end);
      if (from.shape.size() != to.size())
        file.fail("param.", part.name, " is ", from.shape, ", ", to.shape(),
                  " fits the rest of the case");
      to.copy_from(Recorded{to.shape(), from.values}.template tensor<T, B>());
    }
  }

  Comparison run() {
    const EngramHash& hash = layer_.hash();
    see_numbers("tokenizer.lookup", layer_.config().lookup);
    see_numbers("hash.multipliers", hash.multipliers);
    see_numbers("hash.primes", hash.primes);
    see_numbers("hash.offsets", hash.offsets);
    const Shape& words = file_.shape("input");
    if (words.rank() != 2) file_.fail("input is ", words, ": it must be [batch, length]");
    const auto tokens = Tensor<Index, B>::from(words, file_.read_tokens("input"));
    auto state = layer_.make_state(words[0]);
    auto rows = layer_.rows(state, tokens).to_vector();
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] -= hash.offsets[i % hash.offsets.size()];
    see_numbers("hash.indices", rows);

    const auto side_by_side = [&](const std::string& name) {
      Recorded all = file_.read(name);
      all.shape = Shape{words[0], words[1], width_of(file_)};
      return all.template tensor<T, B>();
    };
    const V hidden(side_by_side("hidden"), true);
    Tape tape;
    const V output = layer_.forward(state, hidden, Pass<T, B>{.words = tokens});
    see("output", record_of(output.value()));
    const V loss = sum(multiply(output, V(side_by_side("loss_weight"))));
    see("loss", record_of(loss.value()));
    tape.backward(loss);
    see("grad.hidden", record_of(hidden.grad()));
    for (auto& part : parts_)
      see("grad." + part.name, record_of(part.variable.grad().slice(part.begin, part.end)));
    file_.require_all_seen();
    return result_;
  }

 private:
  /// Rows [begin, end) of a parameter, which the program calls by this name.
  struct Part {
    std::string name;
    V variable;
    Index begin, end;
  };

  static std::vector<Index> indices(const GoldenCase& file, std::string_view key) {
    std::vector<Index> out;
    for (const double number : file.numbers(key)) out.push_back(static_cast<Index>(number));
    return out;
  }

  static Index width_of(const GoldenCase& file) {
    const Shape& hidden = file.shape("hidden");
    if (hidden.rank() != 4) file.fail("hidden is ", hidden, ": it must be [B, L, branches, dim]");
    return hidden[2] * hidden[3];
  }

  static EngramConfig config_of(GoldenCase& file) {
    return {.lookup = file.read_tokens("tokenizer.lookup"),
            .pad = file.count("pad_id"),
            .max_ngram = file.count("max_ngram"),
            .heads = file.count("heads_per_ngram"),
            .width = file.count("embedding_per_ngram"),
            .table_sizes = indices(file, "table_sizes"),
            .layer = file.count("layer"),
            .layers = indices(file, "layer_ids"),
            .seed = file.count("seed"),
            .kernel = file.count("kernel"),
            .dilation = file.count("dilation"),
            .branches = file.count("branches"),
            .gate_root = true,
            .gate_floor = file.number("gate_floor"),
            .gate_epsilon = file.number("gate_norm_eps"),
            .epsilon = file.number("conv_norm_eps")};
  }

  void see(const std::string& name, const Recorded& ours) {
    if (file_.has(name)) result_.see(file_, name, ours, file_.read(name));
  }

  void see_numbers(const std::string& name, const std::vector<Index>& ours) {
    const auto theirs = file_.read_tokens(name);
    const auto recorded = [](const std::vector<Index>& x) {
      return Recorded{Shape{static_cast<Index>(x.size())}, std::vector<double>(x.begin(), x.end())};
    };
    result_.see(file_, name, recorded(ours), recorded(theirs));
    if (ours != theirs) file_.fail(name, " is not what is computed here");  // beyond 2^53, too
  }

  GoldenCase& file_;
  Engram<T, B> layer_;
  std::vector<Part> parts_;
  Comparison result_;
};

/// Replays a case of the kind `engram`. @throws infty::IoError
template <class T, class B>
Comparison replay_engram(GoldenCase& file) {
  return EngramReplay<T, B>(file).run();
}

}  // namespace infty::tests
