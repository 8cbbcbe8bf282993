// SPDX-License-Identifier: MIT
// A GPT-2 with a long-term memory in its blocks, of random weights, that reads a text of random
// tokens on and on: time a token, bytes of the state and peak memory at doubling lengths of what
// was read; then pairs of a segment behind the first 1,024 tokens and one behind them all, in
// turns, and the same of single tokens, as generation reads them. Writes gpt2.csv.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <infty/memory/long_term_memory.hpp>
#include <infty/memory/with_memory.hpp>
#include <infty/model/gpt2.hpp>

#include "../../examples/support/lock.hpp"
#include "../../examples/support/options.hpp"
#include "../../examples/support/program.hpp"
#include "../../examples/support/progress_line.hpp"
#include "../support/clock.hpp"
#include "table.hpp"

namespace {

using namespace infty::bench;
using infty::Index, infty::Shape, infty::Tensor;

struct Options {
  Index longest = 1 << 20, segment = 512, dim = 128, heads = 4, layers = 2, basis = 256,
        vocabulary = 4096, pairs = 31;
  std::string out = "build/scaling";
  bool only_check = false;
};

template <class Attention>
auto model_of(const Options& o, typename Attention::Config attention) {
  using Memory = infty::LongTermMemory<float>;
  using Mixer = infty::WithMemory<Attention, Memory>;
  return infty::Gpt2<Mixer>({.vocabulary = o.vocabulary,
                             .places = o.segment,
                             .model_dim = o.dim,
                             .layers = o.layers,
                             .heads = o.heads},
                            {.attention = attention,
                             .memory = infty::LongTermConfig{.basis = o.basis, .samples = o.basis}},
                            infty::Random(1));
}

/// Random tokens [1, n].
Tensor<Index> tokens(const Options& o, Index n, infty::Random& random) {
  std::vector<Index> all(static_cast<std::size_t>(n));
  for (Index& token : all) token = random.below(o.vocabulary);
  return Tensor<Index>::from(Shape{1, n}, all);
}

/// Seconds of a segment.
template <class Model, class State>
double read(const Model& model, State& state, const Tensor<Index>& segment) {
  const auto start = Clock::now();
  const auto hidden = model.forward(state, segment);
  model.logits(narrow(hidden, segment.dim(1) - 1, segment.dim(1)));
  return seconds_since(start);
}

/// Prints the ratio of the time that a state behind much takes to that of one behind little: the
/// medians of pairs in turns, each on copies.
template <class Body, class State>
void compare(const Options& o, const char* what, Index count, Index few, Index many,
             const State& early, const State& late, const Body& body) {
  std::vector<double> first, last, ratio;
  for (Index pair = 0; pair <= o.pairs; ++pair) {
    State a = early, b = late;
    const bool turned = pair % 2 != 0;
    const double one = body(turned ? b : a), two = body(turned ? a : b);
    if (pair == 0) continue;  // solves for what writes need
    first.push_back(turned ? two : one);
    last.push_back(turned ? one : two);
    ratio.push_back(last.back() / first.back());
  }
  const double each = 1e6 / static_cast<double>(count);
  std::printf(
      "%s: %.2f us a token behind %lld tokens, %.2f behind %lld; ratio %.3f, medians of "
      "%lld pairs; minima %.2f and %.2f us\n",
      what, each * median(first), static_cast<long long>(few), each * median(last),
      static_cast<long long>(many), median(ratio), static_cast<long long>(o.pairs),
      each * *std::min_element(first.begin(), first.end()),
      each * *std::min_element(last.begin(), last.end()));
}

void run(const Options& o) {
  const std::filesystem::path folder = o.out;
  Csv csv("gpt2_scaling", folder / "gpt2.csv",
          "context,seconds,state_bytes,tensor_bytes,resident_bytes");
  const auto model = model_of<infty::CausalAttention<float>>(o, {});
  auto state = model.make_state(1), early = state;
  infty::Random random(2);
  Peak::restart();
  std::vector<double> recent;
  support::ProgressLine part("GPT-2 with a memory", o.longest / o.segment, 0);
  Index seen = 0;
  for (Index next = 1024; seen + o.segment <= o.longest;) {
    recent.push_back(read(model, state, tokens(o, o.segment, random)) /
                     static_cast<double>(o.segment));
    seen += o.segment;
    if (seen <= 1024) early = state;
    part.update(seen / o.segment, {});
    if (seen < next) continue;
    const Peak peak;
    csv.line(std::to_string(seen) + numbers({median(recent), double(bytes_of(state)),
                                             double(peak.tensors), double(peak.resident)}));
    next *= 2;
    recent.clear();
  }
  const auto segment = tokens(o, o.segment, random);
  compare(o, "segments", o.segment, 1024, seen, early, state,
          [&](auto& s) { return read(model, s, segment); });
  // The same weights for whoever generates, with a cache beside the memory.
  const auto writer = model_of<infty::CachedAttention<float>>(o, {.capacity = o.segment});
  auto later = writer.make_state(1), sooner = later;
  const Index chunk = o.segment;
  for (Index i = 0; i < seen; i += chunk) {
    read(writer, later, tokens(o, chunk, random));
    if (i + chunk <= 1024) sooner = later;
  }
  const Index count = (std::min)(Index{64}, chunk);
  const auto one = tokens(o, 1, random);
  compare(o, "tokens, one a call", count, 1024, seen, sooner, later, [&](auto& s) {
    double sum = 0;
    for (Index i = 0; i < count; ++i) sum += read(writer, s, one);
    return sum;
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Time and memory of a token of GPT-2 with a long-term memory.", "gpt2_scaling"};
  const auto add = [&](const char* name, Index& field, const char* help) {
    support::add_option(app, name, field, help, support::from(1))->capture_default_str();
  };
  add("--longest", o.longest, "tokens to read");
  add("--segment", o.segment, "tokens of a segment, and of a chunk that is cached");
  add("--dim", o.dim, "numbers of a vector, a multiple of --heads");
  add("--heads", o.heads, "of attention");
  add("--layers", o.layers, "blocks, each with a memory");
  add("--basis", o.basis, "basis functions N, even");
  add("--vocabulary", o.vocabulary, "different tokens");
  add("--pairs", o.pairs, "segments at the end and at 1,024 tokens, in turn");
  app.add_option("--out", o.out, "folder for gpt2.csv")->capture_default_str();
  app.add_flag("--check", o.only_check, "look at options and --out, and end");
  if (const auto code = support::parse(app, argc, argv)) return *code;
  return support::run_program("gpt2_scaling", [&] {
    infty::require(o.longest >= 2 * o.segment && o.longest >= 2048, "gpt2_scaling", "--longest is ",
                   o.longest, ": it must be at least 2048, and two segments of ", o.segment);
    infty::require(1024 % o.segment == 0, "gpt2_scaling", "--segment is ", o.segment,
                   ": it must divide 1024");
    infty::require(o.dim % o.heads == 0, "gpt2_scaling", "--dim is ", o.dim,
                   ": it must be a multiple of --heads = ", o.heads);
    infty::require(o.basis % 2 == 0, "gpt2_scaling", "--basis is ", o.basis, ": it must be even");
    const auto lock = support::Lock::folder(o.out);
    if (o.only_check) return 0;
    const auto guard = infty::no_grad();
    run(o);
    return 0;
  });
}
