// SPDX-License-Identifier: MIT
// Runs the benchmarks of a program and prints them as a table in Markdown. The options are Google
// Benchmark's; --benchmark_out=FILE writes its own format, too.

#include <cstdio>
#include <string>

#include <benchmark/benchmark.h>

namespace {

/// A number with three digits, and its unit.
std::string with_unit(double value, const char* unit) {
  char text[64];
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, unit);
  return text;
}

std::string duration(double seconds) {
  if (seconds < 1e-6) return with_unit(seconds * 1e9, "ns");
  if (seconds < 1e-3) return with_unit(seconds * 1e6, "µs");
  if (seconds < 1) return with_unit(seconds * 1e3, "ms");
  return with_unit(seconds, "s");
}

/// A cell, padded on the left to so many characters; "µ" is one of them.
std::string padded(const std::string& text, std::size_t width) {
  std::size_t length = 0;
  for (const char c : text) length += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u;
  return std::string(length < width ? width - length : 0, ' ') + text;
}

/// Why a benchmark was left out; none if it ran. Google Benchmark 1.8 has the words elsewhere.
template <class Run>
std::string reason_of(const Run& run) {
  if constexpr (requires { run.skip_message; })
    return run.skip_message;
  else
    return run.error_message;
}

/// One line a benchmark: time, rate, the limit beside it, and the share. A benchmark without a
/// limit has a time and what else it counts; one that was left out says why.
class Table : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override {
    width_ = context.name_field_width;
    std::printf("| %-*s | %9s | %14s | %14s | %5s |\n", static_cast<int>(width_), "benchmark",
                "time", "rate", "limit", "share");
    std::printf("|:%s-|----------:|---------------:|---------------:|------:|\n",
                std::string(width_, '-').c_str());
    return true;
  }

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      std::string name = run.run_name.function_name;
      if (!run.run_name.args.empty()) name += ' ' + run.run_name.args;
      if (const std::string reason = reason_of(run); !reason.empty()) {
        std::printf("| %-*s | left out: %s | | | |\n", static_cast<int>(width_), name.c_str(),
                    reason.c_str());
        continue;
      }
      std::string rate, limit, share,
          time = duration(run.real_accumulated_time / static_cast<double>(run.iterations));
      for (const auto& [counter, value] : run.counters) {
        if (counter == "time") {
          time = duration(value);
        } else if (counter == "share") {
          share = std::to_string(static_cast<int>(100 * value + .5)) + " %";
        } else if (counter == "limit") {
          limit = with_unit(value, "");
        } else {
          rate = with_unit(value, counter.c_str());
        }
      }
      if (!limit.empty()) limit += rate.substr(rate.rfind(' ') + 1);
      std::printf("| %-*s | %s | %s | %s | %s |\n", static_cast<int>(width_), name.c_str(),
                  padded(time, 9).c_str(), padded(rate, 14).c_str(), padded(limit, 14).c_str(),
                  padded(share, 5).c_str());
      std::fflush(stdout);
    }
  }

 private:
  std::size_t width_ = 10;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Table table;
  benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::Shutdown();
}
