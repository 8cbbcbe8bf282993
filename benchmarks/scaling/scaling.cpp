// SPDX-License-Identifier: MIT
// Time and memory of a token against the length of the context: a long-term memory that takes in
// segments, a short-term memory that holds all of the context, and attention of all of the context
// to itself. Then time against N, the length of a segment, rows of the batch, and threads.
//
// Each point is one layer's attention: its maps, its scores and values, and its memory; of random
// vectors, for this shows cost and not what is remembered. Points that would take too long are left
// out, and it says so. Writes context.csv and sizes.csv; context.gp and sizes.gp draw them.

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <infty/memory/fifo.hpp>
#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/relative_attention.hpp>

#include "../../examples/support/lock.hpp"
#include "../../examples/support/need.hpp"
#include "../../examples/support/options.hpp"
#include "../../examples/support/program.hpp"
#include "../../examples/support/progress_line.hpp"
#include "../support/clock.hpp"
#include "../support/tensors.hpp"
#include "table.hpp"

namespace {

using namespace infty::bench;
using infty::Index, infty::Tensor, infty::HostPool;

struct Options {
  Index longest = 1 << 20, segment = 1024, dim = 300, heads = 6, basis = 1024, pairs = 101;
  double seconds = 10, gigabytes = 4;
  std::string out = "build/scaling";
  bool only_check = false;
};

/// Calls see(group, name, field) for what may need memory.
template <class See>
void each_setting(Options& o, See&& see) {
  see("", "segment", o.segment);
  see("", "dim", o.dim);
  see("", "basis", o.basis);
}

/// Bytes of the parameters, of a segment and of the long-term memory's writes; where the context is
/// longer, --gigabytes is the limit.
double bytes_of(const Options& o) {
  const auto L = static_cast<double>(o.segment), d = static_cast<double>(o.dim),
             N = static_cast<double>(o.basis);
  return sizeof(float) * (11 * d * d + 2 * N * d + 8 * L * d) + support::write_bytes(N, 512, L);
}

/// Throws infty::ValueError that names the option if the sizes do not fit.
void validate(const Options& o) {
  infty::require(o.dim % 2 == 0 && o.dim % o.heads == 0, "scaling", "--dim is ", o.dim,
                 ": it must be even and a multiple of --heads = ", o.heads);
  infty::require(o.basis % 2 == 0, "scaling", "--basis is ", o.basis, ": it must be even");
  infty::require(o.longest >= o.segment, "scaling", "--longest is ", o.longest,
                 ": it must be at least --segment = ", o.segment);
  support::require_memory("scaling", o, bytes_of);
}

/// One layer's attention over a segment, with or without memory.
struct Layer {
  explicit Layer(const Options& o)
      : options(o), attention({o.dim, o.heads, o.dim / o.heads}, infty::Random(1)) {
    for (auto* bias : {&attention.content_bias, &attention.position_bias})
      bias->value().copy_from(normal<float>({o.heads, o.dim / o.heads}));
  }

  Tensor<float> operator()(const Tensor<float>& segment, const Tensor<float>& context,
                           const Tensor<float>& encoding) const {
    const auto read =
        attention.read(attention.query.forward(segment), attention.key.forward(context),
                       attention.value.forward(context), attention.position.forward(encoding), {});
    return attention.out.forward(read).value();
  }

  const Options& options;
  infty::RelativeAttention<float, infty::EigenBackend> attention;
};

/// A layer with a long-term memory.
struct Recurrent {
  explicit Recurrent(const Options& o, Index batch = 1)
      : layer(o),
        memory({.model_dim = o.dim, .heads = o.heads, .basis = o.basis}, infty::Random(2)),
        x(normal<float>({batch, o.segment, o.dim})),
        encoding(infty::distance_encoding<float>(o.segment, o.dim)),
        state(memory.make_state(batch)) {
    for (int warm = 0; warm < 4; ++warm) step(state);  // solves for the matrices of writes, too
  }

  /// Seconds of a segment.
  double step(infty::LongTermMemory<float>::State& s) const {
    const auto start = Clock::now();
    memory.write(s, x);
    layer(x, x, encoding);
    memory.read(s, x);
    return seconds_since(start);
  }

  Layer layer;
  infty::LongTermMemory<float> memory;
  Tensor<float> x, encoding;
  infty::LongTermMemory<float>::State state;
};

/// Streams segments until the context is the longest, then pairs of a segment behind 10,000 tokens
/// and one behind them all.
void stream(const Options& o, Csv& csv) {
  const Recurrent model(o);
  auto state = model.memory.make_state(1);
  Peak::restart();
  std::vector<double> recent;
  support::ProgressLine part("long-term memory", o.longest / o.segment, 0);
  for (Index seen = o.segment, next = o.segment; seen <= o.longest; seen += o.segment) {
    recent.push_back(model.step(state) / static_cast<double>(o.segment));
    part.update(seen / o.segment, {});
    if (seen < next) continue;
    const Peak peak;
    csv.line("LTM" +
             numbers({double(seen), median(recent), double(peak.tensors), double(peak.resident)}));
    next *= 2;
    recent.clear();
  }
  auto early = model.memory.make_state(1);
  while (early.written[0] + o.segment <= 10000) model.step(early);
  std::vector<double> ratio, first, last;
  for (Index pair = 0; pair < o.pairs; ++pair) {
    auto a = early, b = state;
    const double times[] = {model.step(pair % 2 ? b : a), model.step(pair % 2 ? a : b)};
    first.push_back(times[pair % 2]);
    last.push_back(times[1 - pair % 2]);
    ratio.push_back(last.back() / first.back());
  }
  std::printf(
      "time per token at %lld tokens of context over that at %lld: %.3f, the median of %lld"
      " pairs (%.2f and %.2f us)\n",
      static_cast<long long>(state.written[0]), static_cast<long long>(early.written[0]),
      median(ratio), static_cast<long long>(o.pairs),
      median(last) / static_cast<double>(o.segment) * 1e6,
      median(first) / static_cast<double>(o.segment) * 1e6);
}

/// Points of doubling context by `measure`, which returns seconds a token, until the next one, that
/// takes `growth` times as long and twice the memory, is too much.
void grow(const Options& o, Csv& csv, const std::string& name, double growth,
          const std::function<double(Index, double&)>& measure) {
  const auto points = static_cast<Index>(std::log2(double(o.longest) / double(o.segment))) + 1;
  support::ProgressLine part(name, points, 0);
  double expected = 0;  // seconds of the next point
  std::size_t bytes = 0;
  Index context = o.segment;
  for (Index point = 0; point < points; ++point, context *= 2) {
    if (expected > o.seconds || 2 * static_cast<double>(bytes) > o.gigabytes * (1 << 30)) {
      std::printf(
          "%s stops before %lld tokens of context: it would take %.0f s a point and %.1f GiB\n",
          name.c_str(), static_cast<long long>(context), expected,
          2 * static_cast<double>(bytes) / (1 << 30));
      return;
    }
    Peak::restart();
    double call = 0;
    const double per_token = measure(context, call);
    expected = growth * call;
    const Peak peak;
    bytes = peak.tensors;
    csv.line(name +
             numbers({double(context), per_token, double(peak.tensors), double(peak.resident)}));
    part.update(point + 1, {});
  }
}

/// Median seconds of three calls of `body`, fewer if they are long.
template <class Body>
double time_of(Body&& body) {
  std::vector<double> times;
  while (times.size() < 3 && (times.empty() || times[0] < 1)) {
    const auto start = Clock::now();
    body();
    times.push_back(seconds_since(start));
  }
  return median(times);
}

/// The next segment behind a short-term memory that holds the context: keys and values of all of it
/// are made anew for every segment, as Transformer-XL does.
void short_term(const Options& o, Csv& csv) {
  const Layer layer(o);
  grow(o, csv, "STM", 2, [&](Index context, double& call) {
    const infty::Fifo<float> memory(o.dim, context);
    auto state = memory.make_state(1);
    const auto x = normal<float>({1, o.segment, o.dim});
    const auto encoding = infty::distance_encoding<float>(context + o.segment, o.dim);
    memory.write(state, Tensor<float>::full({1, context, o.dim}, .1F));
    call = time_of([&] {
      layer(x, concat(infty::Variable<float>(state.vectors), infty::Variable<float>(x)).value(),
            encoding);
      memory.write(state, x);
    });
    return call / static_cast<double>(o.segment);
  });
}

/// All of the context at once, every token over all before it.
void full_attention(const Options& o, Csv& csv) {
  const Layer layer(o);
  grow(o, csv, "full", 4, [&](Index context, double& call) {
    const auto x = normal<float>({1, context, o.dim});
    const auto encoding = infty::distance_encoding<float>(context, o.dim);
    call = time_of([&] { layer(x, x, encoding); });
    return call / static_cast<double>(context);
  });
}

/// Seconds a token of the long-term memory and the attention over its segment, as one size changes.
void sizes(const Options& standard, Csv& csv) {
  struct Point {
    const char* axis;
    Index value;
  };
  std::vector<Point> points;
  for (const Index n : {128, 256, 512, 1024, 2048}) points.push_back({"N", n});
  for (const Index l : {64, 128, 256, 512, 1024, 2048}) points.push_back({"L", l});
  for (const Index b : {1, 2, 4, 8, 16}) points.push_back({"batch", b});
  const int most = infty::num_threads();
  for (Index t = 1; t <= most; ++t) points.push_back({"threads", t});
  support::ProgressLine part("sizes", std::ssize(points), 0);
  Index done = 0;
  for (const auto& [name, value] : points) {
    const std::string axis = name;
    Options o = standard;
    if (axis == "N") o.basis = value;
    if (axis == "L") o.segment = value;
    const Index batch = axis == "batch" ? value : 1;
    infty::set_num_threads(axis == "threads" ? static_cast<int>(value) : most);
    Recurrent model(o, batch);
    std::vector<double> times;
    for (double total = 0; total < 1; total += times.back())
      times.push_back(model.step(model.state));
    csv.line(axis +
             numbers({double(value), median(times) / static_cast<double>(batch * o.segment)}));
    part.update(++done, {});
  }
  infty::set_num_threads(most);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Time and memory of a token against the context, and against sizes.", "scaling"};
  const auto add = [&](const char* name, Index& field, const char* help) {
    support::add_option(app, name, field, help, support::from(1))->capture_default_str();
  };
  const auto add_real = [&](const char* name, double& field, const char* help) {
    support::add_option(app, name, field, help, {.least = 0, .above = true})->capture_default_str();
  };
  add("--longest", o.longest, "tokens of the longest context");
  add("--segment", o.segment, "tokens of a segment");
  add("--dim", o.dim, "numbers of a vector, a multiple of --heads");
  add("--heads", o.heads, "of attention");
  add("--basis", o.basis, "basis functions N, even");
  add("--pairs", o.pairs, "segments at the end and at 10,000 tokens, in turn");
  add_real("--seconds", o.seconds, "no point that is expected to take longer");
  add_real("--gigabytes", o.gigabytes, "no point that is expected to need more");
  app.add_option("--out", o.out, "folder for the CSV files")->capture_default_str();
  app.add_flag("--check", o.only_check, "look at options and --out, and end");
  if (const auto code = support::parse(app, argc, argv)) return *code;
  return support::run_program("scaling", [&] {
    validate(o);
    const auto lock = support::Lock::folder(o.out);
    if (o.only_check) return 0;
    const auto guard = infty::no_grad();
    const std::filesystem::path folder = o.out;
    Csv context("scaling", folder / "context.csv",
                "memory,context,seconds,tensor_bytes,resident_bytes");
    stream(o, context);
    short_term(o, context);
    full_attention(o, context);
    Csv by_size("scaling", folder / "sizes.csv", "axis,value,seconds");
    sizes(o, by_size);
    return 0;
  });
}
