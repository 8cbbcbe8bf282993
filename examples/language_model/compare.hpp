// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/comparison.hpp"
#include "../support/interrupt.hpp"
#include "../support/language_model/results.hpp"
#include "../support/lock.hpp"
#include "../support/progress_line.hpp"
#include "../support/settings.hpp"
#include "../support/shared_runs.hpp"
#include "../support/training.hpp"

namespace language_model {

struct CompareOptions {
  std::filesystem::path out = "language-model-comparison";
  std::vector<std::string> memories = support::memory_names;
  Index seeds = 3, jobs = 2;
  support::RunShare share = {};  ///< of the runs; the first rank prints the table
  support::Saving saving = {};
  int threads = 1;
  std::string again = "";  ///< the command that goes on
};

/// One training of the comparison, done by a process of its own.
struct Run {
  std::string name;  ///< of the model
  Settings settings;
  std::filesystem::path folder;
  ::pid_t process = 0;
};

namespace detail {

inline std::string as_option(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const auto& element : value) out += (out.empty() ? "" : ",") + element.dump();
  return out;
}

/// Starts this very program once more to train; what it prints goes to a file beside the folder.
inline ::pid_t start(const Run& run, const CompareOptions& options,
                     const nlohmann::json& settings) {
  std::vector<std::string> words{"language_model",
                                 "train",
                                 "--out=" + run.folder.string(),
                                 "--threads=" + std::to_string(options.threads),
                                 "--save-every=" + std::to_string(options.saving.every),
                                 "--save-minutes=" + detail::as_option(options.saving.minutes)};
  for (const auto& [name, value] : settings.items())
    if (!(value.is_string() && value.get<std::string>().empty()))
      words.push_back("--" + name + '=' + as_option(value));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string printed = run.folder.string() + ".txt";
  const ::pid_t parent = ::getpid(), child = ::fork();
  infty::require<infty::IoError>(child >= 0, "compare", "no process can be started");
  if (child > 0) return child;
  // Nothing but system calls between here and the other program; it ends when this one is killed.
  // A signal to all of the group comes from this one, once: a second one would end it unsaved.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int file = ::open(printed.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0 && ::dup2(file, STDERR_FILENO) >= 0)
    ::execv("/proc/self/exe", arguments.data());
  ::_exit(127);
}

}  // namespace detail

/// A line on the steps of all runs together, by their logs.
class StepsOfAll {
 public:
  explicit StepsOfAll(const std::vector<Run>& runs) : runs_(runs) {
    for (const Run& run : runs) total_ += run.settings.steps;
    first_ = done_ = count();
    line_.emplace("all", total_, first_);
  }

  /// Looks once a second.
  void show() {
    const auto now = infty::Progress::Clock::now();
    if (now - looked_ < std::chrono::seconds(1)) return;
    looked_ = now;
    done_ = std::max(done_, count());  // a run that goes on cuts its log to its checkpoint
    line_->update(done_);
  }

  void clear() { line_->clear(); }

 private:
  Index count() const {
    Index steps = 0;
    for (const Run& run : runs_) {
      std::ifstream log(run.folder / "log.csv");
      const auto lines =
          static_cast<Index>(std::count(std::istreambuf_iterator<char>(log), {}, '\n'));
      steps += std::clamp<Index>(lines - 1, 0, run.settings.steps);
    }
    return steps;
  }

  std::vector<Run> runs_;
  Index total_ = 0, first_ = 0, done_ = 0;
  std::optional<support::ProgressLine> line_;
  infty::Progress::Clock::time_point looked_{};
};

/// Runs all that is not done, some at once, and returns when it is. Throws infty::Error that says
/// where to look if some of them fail, when all others are done. A signal is passed on to all,
/// which save and stop: throws support::Interrupted then.
inline void run_all(std::vector<Run> waiting, const CompareOptions& options,
                    const std::vector<nlohmann::json>& settings) {
  const support::InterruptGuard interrupt;
  std::vector<Run> running;
  std::string failed;
  std::size_t next = 0;
  bool stopping = false;
  StepsOfAll steps(waiting);
  while (next < waiting.size() || !running.empty()) {
    if (interrupt.signal() != 0 && !stopping) {
      stopping = true;
      for (const Run& run : running) ::kill(run.process, SIGTERM);
    }
    while (!stopping && next < waiting.size() && std::ssize(running) < options.jobs) {
      Run& run = waiting[next];
      run.process = detail::start(run, options, settings[next]);
      steps.clear();
      std::fprintf(stderr, "%s: started (%zu of %zu), see %s.txt\n", run.folder.filename().c_str(),
                   next + 1, waiting.size(), run.folder.c_str());
      running.push_back(run);
      ++next;
    }
    if (running.empty()) break;
    int status = 0;
    const ::pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended == 0) {
      steps.show();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    const auto run = std::find_if(running.begin(), running.end(),
                                  [&](const Run& r) { return r.process == ended; });
    if (run == running.end()) continue;
    steps.clear();
    const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::fprintf(stderr, "%s: %s\n", run->folder.filename().c_str(),
                 good       ? "done"
                 : stopping ? "stopped"
                            : "failed");
    if (!good && !stopping)
      failed += (failed.empty() ? "" : ", ") + run->folder.string() + ".txt says why";
    running.erase(run);
  }
  if (stopping) support::stop_if_interrupted(options.out, options.again);
  infty::require(failed.empty(), "compare", "runs failed: ", failed,
                 "; all others are done, and without these memories --memories makes a table");
}

/// What is measured at a level, by its name in the results.
inline std::pair<const char*, const char*> measure_of(const std::string& level) {
  if (level == "char") return {"bits_per_character", "bits per character"};
  if (level == "byte") return {"bits_per_byte", "bits per byte"};
  return {"perplexity", level == "word" ? "perplexity per word" : "perplexity per token"};
}

/// The table of all memories, and what the fixed comparisons of them tell on the test text. On
/// standard output, in Markdown.
inline void print_table(const CompareOptions& options, const std::string& level,
                        const std::map<std::string, std::vector<nlohmann::json>>& results) {
  const char* const key = measure_of(level).first;
  const char* const measure = measure_of(level).second;
  const auto all = [&](const std::string& memory, const auto& get) {
    std::vector<double> values;
    for (const auto& result : results.at(memory)) values.push_back(get(result));
    return values;
  };
  const auto of_split = [&](const std::string& memory, const char* split) {
    return all(memory,
               [&](const nlohmann::json& r) { return r.at(split).at(key).template get<double>(); });
  };
  const auto& first = results.at(options.memories.front()).front();
  std::printf(
      "| memory | parameters | %s, valid | %s, test | tokens/s |\n|---|---:|---:|---:|---:|\n",
      measure, measure);
  for (const std::string& memory : options.memories) {
    const auto speed = all(
        memory, [](const nlohmann::json& r) { return r.at("tokens_per_second").get<double>(); });
    std::printf("| %s | %lld | %s | %s | %.0f |\n", memory.c_str(),
                results.at(memory).front().at("parameters").get<long long>(),
                support::mean_and_spread(of_split(memory, "valid")).c_str(),
                support::mean_and_spread(of_split(memory, "test")).c_str(),
                support::spread_of(speed).mean);
  }
  std::printf(
      "\n%s%lld seed%s, %lld steps; %lld tokens, %lld characters and %lld bytes in valid, %lld, "
      "%lld and %lld in test.\n",
      options.seeds > 1 ? "Mean and standard deviation over " : "Of ",
      static_cast<long long>(options.seeds), options.seeds > 1 ? "s" : "",
      first.at("steps").get<long long>(), first.at("valid").at("tokens").get<long long>(),
      first.at("valid").at("characters").get<long long>(),
      first.at("valid").at("bytes").get<long long>(),
      first.at("test").at("tokens").get<long long>(),
      first.at("test").at("characters").get<long long>(),
      first.at("test").at("bytes").get<long long>());
  std::vector<support::Comparison> comparisons;
  for (const auto& [memory, reference] : support::fixed_pairs(options.memories))
    comparisons.push_back(
        {"test", memory, reference, of_split(memory, "test"), of_split(reference, "test")});
  std::printf("%s", support::verdicts(comparisons, true).c_str());
}

/// What tells comparisons of other runs apart.
inline std::string list_of(const std::vector<Run>& runs) {
  std::string list;
  for (const Run& run : runs)
    list += run.folder.filename().string() + ' ' + support::to_json(run.settings).dump() + '\n';
  return list;
}

/// Waits for the runs of other ranks. Throws infty::Error where one of these has left, and
/// support::Interrupted where a signal comes.
inline void wait_for(const std::vector<Run>& runs, const CompareOptions& options,
                     support::RankMark& mark) {
  const support::InterruptGuard interrupt;
  const support::Stopping stop{"compare", options.out, options.again, mark};
  for (std::size_t i = 0; i < runs.size(); ++i)
    support::wait_until(
        [&] { return !finished_results(runs[i].folder, runs[i].settings).is_null(); },
        [&] { stop(runs[i].folder.filename().string(), options.share.owner(i)); });
}

/// Trains all memories with all seeds, at as many parameters as the largest has and as many vectors
/// of memory, and prints the table. What is finished is kept; what was interrupted goes on. Ranks
/// take every so manieth run each, and tell each other by what is in the folder.
inline void compare(Settings s, const CompareOptions& options) {
  std::optional<support::Lock> lock;
  if (options.share.first()) lock.emplace(support::Lock::folder(options.out));
  std::filesystem::create_directories(options.out);
  const Corpus corpus = load_corpus(s);
  if (s.parameters == 0)
    for (const std::string& memory : options.memories) {
      Settings of_memory = s;
      support::choose_model(of_memory, memory);
      check_training(of_memory, corpus);
      s.parameters =
          std::max(s.parameters, make_model(of_memory, corpus.tokenizer.size())->parameters());
    }
  std::vector<Run> all, waiting;
  std::vector<nlohmann::json> settings;
  for (Index seed = 1; seed <= options.seeds; ++seed)
    for (const std::string& memory : options.memories) {
      Settings asked = s;
      support::choose_model(asked, memory);
      asked.seed = static_cast<std::uint64_t>(seed);
      all.push_back(
          {memory, sized(asked, corpus), options.out / (memory + '-' + std::to_string(seed))});
      if (!options.share.has(all.size() - 1)) continue;
      if (!finished_results(all.back().folder, all.back().settings).is_null()) {
        // One that was killed behind its last file has left its lock, which goes with another.
        if (std::filesystem::exists(all.back().folder / ".lock"))
          support::Lock::folder(all.back().folder);
        continue;
      }
      waiting.push_back(all.back());
      settings.push_back(support::to_json(asked));
    }
  support::RankMark mark(options.share, options.out, list_of(all));
  run_all(waiting, options, settings);
  if (options.share.first()) wait_for(all, options, mark);
  mark.done();
  if (!options.share.first()) return;
  std::map<std::string, std::vector<nlohmann::json>> results;
  for (const Run& run : all) {
    results[run.name].push_back(finished_results(run.folder, run.settings));
    infty::require<infty::IoError>(!results[run.name].back().is_null(), "compare",
                                   run.folder.string(), " has no results.json of this run");
  }
  print_table(options, s.level, results);
}

}  // namespace language_model
