// SPDX-License-Identifier: MIT

// Tries the sentence that a memory may be read for ever: so many vectors in `float`, a million
// say, go through every memory of the library, in a block with norms in front and as it is, from
// streams that wish it ill. All answers and all of the state must be finite, a state that is full
// must stay as large as it is, and a vector must take as much work at the end as at the beginning.
// States of numbers of rows that cannot be must be refused.
//
//     endurance_family [--vectors N] [--only TEXT] [--seed N] [--limits]
//
// `--only` takes the memories whose name has the text. `--limits` looks for the largest elements
// that a memory as it is withstands, by powers of a thousand. Streams are rows of one state, but
// where one fails; `--seed` draws others. Sums that grow for ever are held to the same in `double`.
// Work is counted in blocks of memory that a tenth of the stream takes; time is printed beside it,
// in microseconds a vector. Ends with 1 where something does not hold.

#include "endurance/family.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <infty/core/pool.hpp>
#include <infty/eigen/parallel.hpp>

namespace endurance {

using infty::Tensor;
using Streams = std::vector<Stream>;

/// Of what is random in the streams.
std::uint64_t seed = 11;

/// Vectors and words of one stream, one after the other.
class Source {
 public:
  Source(Stream stream, double most)
      : stream_(stream), most_(static_cast<float>(most)), random_(seed) {
    for (Vector& vector : fixed_)
      for (float& v : vector) v = static_cast<float>(random_.normal());
  }

  /// Fills in the next vectors, [length, d], and words.
  void next(Index length, float* vectors, Index* tokens) {
    for (Index i = 0; i < length; ++i, ++at_) {
      for (std::size_t j = 0; j < fixed_[0].size(); ++j) *vectors++ = element(j);
      *tokens++ = word();
    }
  }

 private:
  float element(std::size_t j) {
    const auto drawn = [&] { return static_cast<float>(random_.uniform() * 2 - 1); };
    switch (stream_) {
      case Stream::constant:
        return fixed_[0][j];
      case Stream::alternating:
        return at_ % 2 == 0 ? fixed_[0][j] : -fixed_[0][j];
      case Stream::zeros:
        return 0;
      case Stream::denormals:
        return 1e-40f * drawn();
      case Stream::jumps:
        return at_ % 509 == 0 ? most_ * drawn() : drawn();
      case Stream::large:
        return most_ * drawn();
      case Stream::stretches:
        return fixed_[stretch()][j];
      default:
        return static_cast<float>(random_.normal());
    }
  }

  Index word() {
    if (stream_ == Stream::constant || stream_ == Stream::zeros) return 1;
    if (stream_ == Stream::stretches) return static_cast<Index>(stretch());
    return stream_ == Stream::alternating ? at_ % 2 : random_.below(words);
  }
  std::size_t stretch() const { return static_cast<std::size_t>(at_ / 64) % fixed_.size(); }

  Stream stream_;
  float most_;
  Random random_;
  using Vector = std::array<float, static_cast<std::size_t>(sizes.model_dim)>;
  std::array<Vector, 4> fixed_{};
  Index at_ = 0;
};

/// Makes what decides how much is written and forgotten decide without any doubt.
void open_gates(Layer& layer) {
  infty::for_each_parameter(layer, [](const std::string& name, V& parameter) {
    for (const char* const part :
         {"gate", "beta", "decay.", "decay_bias", "rate.", "inertia", "cell"})
      if (name.find(part) != std::string::npos) {
        for (Index i = 0; i < parameter.size(); ++i) parameter.value().data()[i] *= 1e4f;
        return;
      }
  });
}

/// What became of streams.
struct Result {
  std::string broken = {};     ///< empty where all holds
  std::size_t bytes = 0;       ///< of a full state, a row
  double first = 0, last = 0;  ///< microseconds a vector, of the 2nd and last tenth
  double seconds = 0;          ///< in all
};

/// The first number of rows that no state can have and that is not refused; none, if all are, or
/// if states hold nothing.
std::string taken_rows(const Layer& layer) {
  if (bytes_of(layer.make_state(1)) == 0) return {};
  constexpr Index most = std::numeric_limits<Index>::max();
  for (const Index rows : {Index{0}, Index{-1}, -most - 1, (Index{1} << 56) + 1, most / 8, most}) {
    std::string said;
    try {
      layer.make_state(rows);
    } catch (const infty::ValueError& error) {
      said = error.what();
    }
    if (said.find("batch is " + std::to_string(rows)) == std::string::npos)
      return std::to_string(rows) + " rows are not refused, or otherwise: " + said;
  }
  return {};
}

/// Lengths of segments, 512 vectors in all: what memories collect vectors by divides that.
constexpr std::array<Index, 9> lengths{64, 64, 64, 64, 1, 63, 64, 64, 64};
constexpr Index cycle = 512;

/// Lets streams through a state of a row each, ten times so many cycles.
Result run(const Trial& trial, const Streams& rows, double most, Index cycles) {
  Layer layer = trial.make();
  if (const std::string why = taken_rows(layer); !why.empty()) return {.broken = why};
  if (rows.front() == Stream::gates) open_gates(layer);
  const Index batch = std::ssize(rows);
  auto state = layer.make_state(batch);
  std::vector<Source> sources;
  for (const Stream stream : rows) sources.emplace_back(stream, most);
  const auto& pool = infty::HostPool::instance();
  Result result;
  std::size_t work = 0;
  Index seen = 0;
  const auto stop = [&](const std::string& why) {
    result.broken = why + " behind " + std::to_string(seen) + " vectors";
    return result;
  };
  const auto segment = [&](Index length) {
    Tensor<float> x({batch, length, sizes.model_dim});
    infty::Pass<float> pass;
    pass.words = Tensor<Index>({batch, length});
    for (Index row = 0; row < batch; ++row)
      sources[static_cast<std::size_t>(row)].next(length, x.slice(row, row + 1).data(),
                                                  pass.words.data() + row * length);
    const V y = layer.forward(state, V(x), {}, pass);
    seen += length;
    return infty::detail::all_finite(y.value());
  };
  try {
    for (int tenth = 0; tenth < 10; ++tenth) {
      const std::size_t blocks = pool.statistics().blocks;
      const auto begin = std::chrono::steady_clock::now();
      for (Index i = 0; i < cycles; ++i)
        for (const Index length : lengths)
          if (!segment(length)) return stop("an answer is not finite");
      const std::size_t took = pool.statistics().blocks - blocks, bytes = bytes_of(state);
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      result.seconds += seconds;
      result.last = 1e6 * seconds / static_cast<double>(cycles * cycle * batch);
      if (!is_finite(state)) return stop("the state is not finite");
      if (tenth == 1) {
        result.bytes = bytes / static_cast<std::size_t>(batch);
        result.first = result.last;
        work = took;
      }
      if (tenth > 1 && bytes / static_cast<std::size_t>(batch) != result.bytes)
        return stop("the state grows from " + std::to_string(result.bytes) + " bytes a row to " +
                    std::to_string(bytes / static_cast<std::size_t>(batch)));
      if (tenth > 1 && (trial.falls ? took > work + work / 100 : took != work))
        return stop("a tenth takes " + std::to_string(took) + " blocks of memory, not " +
                    std::to_string(work) + ",");
    }
  } catch (const infty::Error& error) {
    return stop(error.what());
  }
  return result;
}

/// Prints for each memory as it is how large elements may be; always 0.
int find_limits(const Trials& trials, const std::string& only) {
  for (const Trial& trial : trials) {
    if (!trial.alone || trial.memory.find(only) == std::string::npos) continue;
    double withstood = 0;
    std::string why;
    for (const double most : {1., 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e24, 1e30}) {
      for (const Stream stream : {Stream::large, Stream::jumps})
        if (why.empty()) why = run(trial, {stream}, most, 2).broken;
      if (!why.empty()) break;
      withstood = most;
    }
    std::printf("%-28s %7g  %s\n", trial.memory.c_str(), withstood, why.c_str());
  }
  return 0;
}

int try_all(const Trials& trials, Index vectors, const std::string& only) {
  const Index cycles = (vectors + 10 * cycle - 1) / (10 * cycle);
  int failures = 0, tried = 0;
  for (const Trial& trial : trials) {
    if (trial.memory.find(only) == std::string::npos) continue;
    Streams held;
    for (std::size_t i = 0; i < streams.size(); ++i)
      if (std::find(trial.but.begin(), trial.but.end(), static_cast<Stream>(i)) == trial.but.end())
        held.push_back(static_cast<Stream>(i));
    const Streams gates(std::find(held.begin(), held.end(), Stream::gates), held.end());
    held.resize(held.size() - gates.size());
    Result shown = run(trial, held, trial.most, cycles);
    double seconds = shown.seconds;
    std::vector<Streams> apart;
    if (!gates.empty()) apart.push_back(gates);
    if (!shown.broken.empty())
      for (const Stream stream : held) apart.push_back({stream});
    int broken = 0;
    for (const Streams& one : apart) {
      const Result result = run(trial, one, trial.most, cycles);
      seconds += result.seconds;
      if (result.broken.empty()) continue;
      ++broken;
      std::printf("FAILED: %s, %s, %s: %s\n", trial.memory.c_str(),
                  trial.alone ? "as it is" : "in a block",
                  streams[static_cast<std::size_t>(one.front())], result.broken.c_str());
    }
    if (broken == 0 && !shown.broken.empty()) {
      ++broken;
      std::printf("FAILED: %s, all rows: %s\n", trial.memory.c_str(), shown.broken.c_str());
    }
    failures += broken;
    const int count = static_cast<int>(held.size() + gates.size());
    tried += count;
    std::printf("%-30s %-10s %d of %zu streams  up to %-6g %6zu bytes  %.2f then %.2f us  %.0f s\n",
                trial.memory.c_str(), trial.alone ? "as it is" : "in a block", count - broken,
                streams.size(), trial.most, shown.bytes, shown.first, shown.last, seconds);
  }
  if (only.empty()) failures += try_sums(vectors);
  std::printf("%d streams of %td vectors, %d failures\n", tried, 10 * cycles * cycle, failures);
  return failures == 0 && tried > 0 ? 0 : 1;
}

}  // namespace endurance

int main(int argc, char** argv) {
  using infty::Index;
  Index vectors = 10'000;
  std::string only;
  bool limits = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--limits") {
      limits = true;
    } else if (option == "--vectors" && i + 1 < argc) {
      vectors = std::atol(argv[++i]);
    } else if (option == "--seed" && i + 1 < argc) {
      endurance::seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "endurance_family: no such option: %s\n", option.c_str());
      return 2;
    }
  }
  if (vectors < 1) {
    std::fprintf(stderr, "endurance_family: --vectors is out of range\n");
    return 2;
  }
  infty::set_num_threads(1);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a failure is seen when it happens
  endurance::Trials trials;
  endurance::add_attention(trials);
  endurance::add_decorators(trials);
  endurance::add_linear(trials);
  endurance::add_titans(trials);
  return limits ? endurance::find_limits(trials, only) : endurance::try_all(trials, vectors, only);
}
