// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/gpt2_files.hpp>
#include <infty/model/objective.hpp>
#include <infty/train/adam.hpp>
#include <infty/train/clip.hpp>

#include "support/golden_case.hpp"
#include "support/golden_gpt2.hpp"

namespace infty::tests {

/// What the replays of GPT-2 with the long-term memory share: the model by the names of the file,
/// and a call of it by the programs' flags.
template <class T, class B>
class Gpt2LtmReplay {
 protected:
  using V = Variable<T, B>;
  using Memory = LongTermMemory<T, GaussianDensity, GaussianBasis<T>, B>;
  using Mixer = WithMemory<CausalAttention<T, B>, Memory>;
  using Model = Gpt2<Mixer>;
  using State = typename Model::State;

  /// What the programs say of a call.
  struct Flags {
    bool new_doc = false, last_doc = false, generating = false;
  };

  explicit Gpt2LtmReplay(GoldenCase& file)
      : file_(file), model_(gpt2_case::config_of(file), config_of(file)) {
    name_parameters();
    for (const Part& part : parts_) load(part);
  }

  static typename Mixer::Config config_of(const GoldenCase& file) {
    LongTermConfig c{.bounded = false, .hold_short_writes = false, .midpoints = true};
    c.basis = file.count("basis");
    c.widths = file.numbers("sigmas");
    c.samples = file.count("samples");
    c.tau = file.number("tau");
    c.ridge = file.number("ridge");
    c.sigma0 = file.number("sigma_0");
    c.variance_floor = file.number("sigma_sq_floor");
    c.bins = file.count("bins");
    c.resampling = file.flag("sticky", false) ? Resampling::sticky : Resampling::even;
    if (file.text("memory_threshold", "none") != "none")
      c.threshold = file.count("memory_threshold");
    c.mean_term = file.flag("kl_mean_term", false);
    if (c.mean_term) c.mu0 = file.number("mu_0");
    const bool dialogue = file.text("program") == "dialogue";
    if (!dialogue && file.text("program") != "finetune")
      file.fail("program is ", file.text("program"), ": it must be finetune or dialogue");
    return {.memory = c, .normed = dialogue};
  }

  const auto& blocks() const { return std::get<1>(model_.stack().layers).layers; }
  static auto& past_of(State& state, std::size_t layer) {
    return *std::get<1>(state.body.layers).layers[layer].mixer.past;
  }

  // -- parameters

  enum class Form { plain, turned, gate, first_row, second_row };
  struct Part {
    std::string name;  ///< behind "param."
    std::vector<V> variables;
    Form form = Form::plain;
  };

  void name_parameters() {
    const auto all = infty::detail::gpt2_parameters(model_);
    auto at = all.begin();
    infty::detail::each_gpt2_tensor(model_.config(), [&](const std::string& name, const Shape&) {
      parts_.push_back({"transformer." + name, at->parts, at->turned ? Form::turned : Form::plain});
      ++at;
      return true;
    });
    if (!model_.config().tie_embedding) parts_.push_back({"lm_head.weight", {model_.head.weight}});
    for (std::size_t i = 0; i < blocks().size(); ++i) {
      const auto& memory = *blocks()[i].mixer.memory;
      const std::string prefix =
          "transformer.h." + std::to_string(i) + ".attn.long_term_attention.";
      parts_.push_back({prefix + "proj_key.weight", {memory.key.weight}});
      parts_.push_back({prefix + "proj_value.weight", {memory.value.weight}});
      parts_.push_back({prefix + "attn_out.weight", {memory.out.weight}});
      parts_.push_back({prefix + "mask_net.weight", {memory.gate_weight}, Form::gate});
      parts_.push_back({prefix + "mask_net.bias", {memory.gate_bias}});
      parts_.push_back({prefix + "mu.weight", {memory.density_weight}, Form::first_row});
      parts_.push_back({prefix + "sigma.weight", {memory.density_weight}, Form::second_row});
      // Which nothing uses.
      for (const std::string& name : file_.names(""))
        if (name.ends_with(prefix + "proj_query.weight")) file_.ignore(name);
    }
  }

  /// What `of` makes of a part's variables, as the file has it.
  template <class Of>
  static Recorded recorded(const Part& part, const Of& of) {
    Recorded all = record_of(of(part.variables.front()));
    for (std::size_t i = 1; i < part.variables.size(); ++i) {
      const auto next = record_of(of(part.variables[i]));
      all.values.insert(all.values.end(), next.values.begin(), next.values.end());
      all.shape = all.shape.with(0, all.shape[0] + next.shape[0]);
    }
    if (part.form == Form::turned) return all.swapped(0);
    if (part.form == Form::gate) return all.swapped(0).swapped(1);
    if (part.form == Form::plain) return all;
    const Index N = all.shape[1];
    const auto begin = all.values.begin() + (part.form == Form::first_row ? 0 : N);
    return {Shape{1, N}, {begin, begin + N}};
  }

  void load(const Part& part) {
    const std::string name = "param." + part.name;
    const auto zeros = recorded(part, [](const V& x) { return x.value(); });
    Recorded from = file_.read(name);
    if (from.values.size() != zeros.values.size() || !(from.shape == zeros.shape))
      file_.fail(name, " is ", from.shape, ", ", zeros.shape, " fits the rest of the case");
    if (part.form == Form::turned) from = from.swapped(0);
    if (part.form == Form::gate) from = from.swapped(1).swapped(0);
    auto values = from.values.begin();
    for (V variable : part.variables) {
      Tensor<T, B> to = variable.value();
      if (part.form == Form::first_row) to = to.slice(0, 1);
      if (part.form == Form::second_row) to = to.slice(1, 2);
      to.copy_from(Tensor<T, B>::from(to.shape(), std::vector<T>(values, values + to.size())));
      values += to.size();
    }
  }

  void see_parameters(const std::string& prefix, bool gradients) {
    for (const Part& part : parts_)
      if (file_.has(prefix + part.name))
        tokens_case::see(file_, result_, prefix + part.name, recorded(part, [&](const V& x) {
                           return !gradients     ? x.value()
                                  : x.has_grad() ? x.grad()
                                                 : Tensor<T, B>::zeros(x.shape());
                         }));
  }

  // -- calls

  /// Prepares a state as the programs find theirs, and puts back after the call what they keep.
  class Call {
   public:
    Call(const Gpt2LtmReplay& replay, State& state, Index batch, Flags flags)
        : state_(state), flags_(flags), fresh_(replay.model_.make_state(batch)) {
      for (std::size_t i = 0; i < replay.blocks().size(); ++i) {
        auto& past = past_of(state, i);
        if (flags.generating) past.leaving = past_of(fresh_, i).leaving;
        reads_ = flags.generating || past.leaving.vectors.dim(1) > 0;
        if (!reads_)  // what is there is not read without a write
          kept_.push_back(std::exchange(past.memory, past_of(fresh_, i).memory));
        else if (flags.new_doc)
          for (Index row = 0; row < batch; ++row) reset_row(past.memory, row);
      }
    }
    bool reads() const { return reads_; }
    void end() {
      for (std::size_t i = 0; i < kept_.size(); ++i) past_of(state_, i).memory = kept_[i];
      const std::size_t layers = std::get<1>(state_.body.layers).layers.size();
      for (std::size_t i = 0; i < layers && flags_.last_doc; ++i)
        past_of(state_, i).leaving = past_of(fresh_, i).leaving;
    }

   private:
    State& state_;
    Flags flags_;
    State fresh_;
    bool reads_ = false;
    std::vector<typename Memory::State> kept_;
  };

  /// The loss of a call whose pass has the divergences.
  V with_divergence(const V& loss, const Pass<T, B>& pass, Index batch, Index length) const {
    const double weight =
        weight_of_sum(file_.number("kl_weight"), batch, model_.config().heads, length);
    return regularised(loss, pass, {{"divergence", weight}});
  }

  Tensor<Index, B> tokens(const std::string& name, Index from = 0) {
    const Index rows = tokens_case::dim(file_, name, 2, 0);
    if (rows < 1 || file_.shape(name)[1] < from)
      file_.fail(name, " is ", file_.shape(name), ": there must be rows of more than ", from);
    return gpt2_case::columns<B>(file_.read_tokens(name), rows, from, file_.shape(name)[1]);
  }

  GoldenCase& file_;
  Model model_;
  std::vector<Part> parts_;
  Comparison result_;
};

/// Replays a case of the kind gpt2_ltm: calls of one model on one state, with everything that each
/// layer reads and keeps, and the gradients of each call.
template <class T, class B>
class Gpt2LtmCalls : Gpt2LtmReplay<T, B> {
  using Base = Gpt2LtmReplay<T, B>;
  using Base::blocks, Base::file_, Base::model_, Base::result_;
  using typename Base::Call;
  using typename Base::Flags;
  using typename Base::State;
  using typename Base::V;

 public:
  explicit Gpt2LtmCalls(GoldenCase& file)
      : Base(file),
        batch_(tokens_case::dim(file, "call0.input", 2, 0)),
        state_(model_.make_state(batch_)) {
    file.require_agrees("batch", batch_);
  }

  Comparison run() {
    matrices();
    const Index calls = file_.count("calls");
    if (calls == 0) file_.fail("has no calls");
    for (Index c = 0; c < calls; ++c) {
      prefix_ = "call" + std::to_string(c) + '.';
      call();
    }
    file_.require_all_seen();
    return result_;
  }

 private:
  void see(const std::string& name, const Recorded& ours) {
    tokens_case::see(file_, result_, name, ours);
  }
  /// In the recorded shape, which names the same numbers in the same order.
  void see(const std::string& name, const Tensor<T, B>& ours) {
    if (!file_.has(name)) return;
    if (file_.shape(name).size() != ours.size())
      file_.fail(name, " is ", file_.shape(name), ", but ", ours.shape(), " fits the case");
    see(name, record_of(ours));
  }

  void matrices() {
    const auto& memory = *blocks().front().mixer.memory;
    Recorded centres{Shape{memory.basis().size()}, {}}, widths = centres;
    for (Index j = 0; j < memory.basis().size(); ++j) {
      centres.values.push_back(static_cast<double>(memory.basis().centre(j)));
      widths.values.push_back(static_cast<double>(memory.basis().width(j)));
    }
    see("basis.mu", centres);
    see("basis.sigma", widths);
    for (const std::string& name : file_.names("ridge.first."))
      see(name, memory.ridge().first(file_.shape(name)[0]));
    if (!file_.has("ridge.next")) return;
    const Index rows = file_.shape("ridge.next")[0], samples = memory.config().samples;
    if (rows <= samples) file_.fail("ridge.next has ", rows, " rows, samples is ", samples);
    const auto next = memory.ridge().next(rows - samples);
    auto both = record_of(next.next_old);
    const auto behind = record_of(next.next_new);
    both.values.insert(both.values.end(), behind.values.begin(), behind.values.end());
    both.shape = both.shape.with(0, rows);
    see("ridge.next", both);
  }

  Flags flags() {
    if (!file_.has(prefix_ + "flags")) return {};
    const auto set = file_.read_tokens(prefix_ + "flags");
    if (set.size() != 3) file_.fail(prefix_, "flags are ", set.size());
    return {set[0] != 0, set[1] != 0, set[2] != 0};
  }

  void call() {
    const auto input = this->tokens(prefix_ + "input");
    const Index length = input.dim(1);
    Pass<T, B> pass;
    if (file_.has(prefix_ + "token_type")) pass.types = this->tokens(prefix_ + "token_type");
    const bool graded = !file_.names(prefix_ + "grad.").empty();
    zero_grad(model_);
    Tape tape;
    Call call(*this, state_, batch_, flags());
    for (std::size_t i = 0; i < blocks().size(); ++i) write_where_recorded(i);
    const State before = state_;
    // Layer by layer, for what goes into each.
    const auto& [places, none, norm] = model_.stack().layers;
    auto& stack = std::get<1>(state_.body.layers);
    V x = places.forward(model_.embedding.forward(input, pass), pass);
    std::vector<V> inputs;
    for (std::size_t i = 0; i < blocks().size(); ++i) {
      inputs.push_back(x);
      x = blocks()[i].forward(stack.layers[i], x, pass);
    }
    const V logits = model_.logits(norm.forward(x));
    see(prefix_ + "logits", logits.value());
    see(prefix_ + "nll",
        token_losses(narrow(logits, 0, length - 1), this->tokens(prefix_ + "input", 1)).value());
    const auto targets = this->tokens(prefix_ + "label", 1);
    const V loss = mean_loss(token_losses(narrow(logits, 0, length - 1), targets), targets);
    see(prefix_ + "loss", loss.value());
    if (graded) {
      tape.backward(call.reads() ? this->with_divergence(loss, pass, batch_, length) : loss);
      this->see_parameters(prefix_ + "grad.", true);
    }
    {
      const auto guard = no_grad();
      at_once(before, input, pass.types);
      if (call.reads()) see_reads(inputs);
    }
    call.end();
    see_kept();
    if (file_.has(prefix_ + "accumulated_norm")) accumulate();
    if (file_.has(prefix_ + "flags") && flags().last_doc) accumulated_.clear();
  }

  /// The whole model by its own `forward`, on a copy of the state.
  void at_once(State state, const Tensor<Index, B>& input, const Tensor<Index, B>& types) {
    Pass<T, B> pass{.types = types};
    see(prefix_ + "logits", model_.logits(model_.forward(state, input, pass)).value());
  }

  /// Writes what waits where the program drew its places, if it did.
  void write_where_recorded(std::size_t layer) {
    const std::string sticky = prefix_ + "h." + std::to_string(layer) + ".sticky.";
    auto& past = Base::past_of(state_, layer);
    if (!file_.has(sticky + "location")) return;
    const auto& block = blocks()[layer];
    if (density_.contains(layer)) {
      const auto& density = density_.at(layer);
      see(sticky + "mu", density.slice(0, 1));
      auto sigma = record_of(density.slice(1, 2));
      for (double& value : sigma.values) value = std::sqrt(value);
      see(sticky + "sigma", sigma);
    }
    auto noted = record_of(past.memory.attention);
    for (Index row = 0; row < batch_; ++row) {
      const auto begin = noted.values.begin() + row * noted.shape[1], end = begin + noted.shape[1];
      double total = 0;
      for (auto p = begin; p != end; ++p) total += *p;
      for (auto p = begin; p != end; ++p) *p /= total;
    }
    see(sticky + "probability", noted);
    const V vectors(past.leaving.vectors);
    block.mixer.memory->write_at(
        past.memory, model_.memory_config().normed ? block.mixer_norm.forward(vectors) : vectors,
        past.leaving.length, file_.read(sticky + "location").template tensor<T, B>());
    past.leaving = Base::past_of(fresh(), layer).leaving;
  }

  State& fresh() {
    fresh_ = model_.make_state(batch_);
    return fresh_;
  }

  void see_reads(const std::vector<V>& inputs) {
    V total;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string own = prefix_ + "h." + std::to_string(i) + '.';
      const auto& block = blocks()[i];
      const auto& memory = *block.mixer.memory;
      auto state = Base::past_of(state_, i).memory;
      see(own + "coefficients", state.coefficients.value());
      const auto reading =
          memory.attend(state, block.mixer.queries(block.mixer_norm.forward(inputs[i])));
      see(own + "output", reading.context.value());
      see(own + "mu", reading.density.value().slice(0, 1));
      see(own + "sigma_sq", reading.density.value().slice(1, 2));
      const V divergence = memory.divergence(reading.density);
      see(own + "kl", divergence.value());
      total = i == 0 ? divergence : total + divergence;
      density_.insert_or_assign(i, reading.density.value());
    }
    see(prefix_ + "kl", total.value());
  }

  void see_kept() {
    for (std::size_t i = 0; i < blocks().size(); ++i) {
      const std::string own = prefix_ + "h." + std::to_string(i) + '.';
      auto& past = Base::past_of(state_, i);
      const V waiting(past.leaving.vectors);
      if (file_.has(own + "pending") != (waiting.dim(1) > 0))
        file_.fail(own, "pending: ", waiting.shape(), " waits to be written");
      const auto guard = no_grad();
      see(own + "pending", (model_.memory_config().normed && waiting.dim(1) > 0
                                ? blocks()[i].mixer_norm.forward(waiting)
                                : waiting)
                               .value());
      if (!file_.has(own + "count")) continue;
      Recorded counts{file_.shape(own + "count"), {}}, ours = counts;
      for (const Index count : file_.read_tokens(own + "count"))
        counts.values.push_back(static_cast<double>(count));
      // The programs count for all rows at once.
      ours.values.assign(counts.values.size(), static_cast<double>(past.memory.written.front()));
      result_.see(file_, own + "count", ours, counts);
    }
  }

  /// The gradients of a dialogue's calls so far, clipped after each of them.
  void accumulate() {
    std::size_t i = 0;
    for_each_parameter(model_, [&](const std::string&, V& parameter) {
      if (accumulated_.size() <= i) accumulated_.push_back(Tensor<T, B>::zeros(parameter.shape()));
      V sum(accumulated_[i++]);
      if (parameter.has_grad()) sum = sum + V(parameter.grad());
      parameter.grad().copy_from(sum.value());
    });
    const double norm = clip_grad_norm<T, B>(model_, file_.number("clip"));
    see(prefix_ + "accumulated_norm", Recorded{Shape{1}, {norm}});
    this->see_parameters(prefix_ + "accumulated.", true);
    i = 0;
    for_each_parameter(model_, [&](const std::string&, V& parameter) {
      accumulated_[i++].copy_from(parameter.grad());
    });
  }

  Index batch_;
  State state_, fresh_;
  std::string prefix_;
  std::map<std::size_t, Tensor<T, B>> density_;  ///< of each layer's last read
  std::vector<Tensor<T, B>> accumulated_;
};

/// Replays a case of the kind gpt2_ltm_train: losses, norms and all parameters behind every step.
template <class T, class B>
class Gpt2LtmTraining : Gpt2LtmReplay<T, B> {
  using Base = Gpt2LtmReplay<T, B>;
  using Base::file_, Base::model_, Base::result_;
  using typename Base::Call;
  using typename Base::Flags;
  using typename Base::State;
  using typename Base::V;

 public:
  explicit Gpt2LtmTraining(GoldenCase& file)
      : Base(file),
        state_(model_.make_state(1)),
        adam_(model_, {.epsilon = file.number("epsilon"), .epsilon_first = true}) {
    file.require_agrees("batch", 1);
  }

  Comparison run() {
    const Index steps = file_.count("steps");
    for (Index s = 0; s < steps; ++s) step("step" + std::to_string(s) + '.', s, steps);
    file_.require_all_seen();
    return result_;
  }

 private:
  void step(const std::string& prefix, Index number, Index steps) {
    const Index chunks = tokens_case::count_of(file_, prefix + "chunk");
    if (chunks == 0) file_.fail(prefix, " has no chunks");
    const bool dialogue = file_.text("program") == "dialogue";
    Recorded losses{Shape{chunks}, {}}, divergences = losses, norms = losses;
    for (Index i = 0; i < chunks; ++i) {
      const std::string own = prefix + "chunk" + std::to_string(i) + '.';
      const auto input = this->tokens(own + "input");
      const Index length = input.dim(1);
      Pass<T, B> pass;
      if (file_.has(own + "token_type")) pass.types = this->tokens(own + "token_type");
      Tape tape;
      Call call(*this, state_, 1, {dialogue && i == 1, dialogue && i == chunks - 1});
      const V logits = model_.logits(model_.forward(state_, input, pass));
      const V loss =
          mean(token_losses(narrow(logits, 0, length - 1), this->tokens(own + "input", 1)));
      tape.backward(call.reads() ? this->with_divergence(loss, pass, 1, length) : loss);
      call.end();
      if (!call.reads()) forget_untouched();
      read_ = read_ || call.reads();
      losses.values.push_back(static_cast<double>(loss.value().item()));
      const double each = weight_of_sum(1, 1, model_.config().heads, length);
      divergences.values.push_back(
          call.reads() ? each * static_cast<double>(loss_named(pass, "divergence").value().item())
                       : 0);
      norms.values.push_back(clip_grad_norm<T, B>(model_, file_.number("clip")));
    }
    const double left = 1 - static_cast<double>(number) / static_cast<double>(steps);
    const double rate = file_.number("learning_rate") * left,
                 rate_of_memory = file_.number("learning_rate_ltm") * left;
    adam_.fix_rate("mixer.memory.", rate_of_memory);
    adam_.step(rate);
    // Not forgotten: what was reached once goes on by its moments.
    for_each_parameter(model_, [](const std::string&, V& parameter) {
      if (parameter.has_grad()) parameter.grad().fill(T(0));
    });
    tokens_case::see(file_, result_, prefix + "loss", losses);
    tokens_case::see(file_, result_, prefix + "kl", divergences);
    tokens_case::see(file_, result_, prefix + "norm", norms);
    tokens_case::see(file_, result_, prefix + "lr", {Shape{2}, {rate, rate_of_memory}});
    this->see_parameters(prefix + "param.", false);
  }

  /// A fresh memory is read as zeros here, with gradients of zero, and not at all by the programs.
  void forget_untouched() {
    if (read_) return;
    for_each_parameter(model_, [](const std::string& name, V& parameter) {
      if (name.find("mixer.memory.") != std::string::npos) parameter.zero_grad();
    });
  }

  State state_;
  Adam<T, B> adam_;
  bool read_ = false;  ///< whether the memory has been
};

/// Replays a case of GPT-2 with the long-term memory. @throws infty::IoError
template <class T, class B>
Comparison replay_gpt2_ltm(GoldenCase& file) {
  if (file.text("kind") == "gpt2_ltm_train") return Gpt2LtmTraining<T, B>(file).run();
  return Gpt2LtmCalls<T, B>(file).run();
}

}  // namespace infty::tests
