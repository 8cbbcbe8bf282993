// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

#include <infty/core/error.hpp>
#include <infty/core/pool.hpp>

namespace infty::bench {

/// Bytes of the tensors that were alive at once, and of the whole process, since `restart`.
struct Peak {
  static void restart() {
    infty::HostPool::instance().trim();
    infty::HostPool::instance().reset_peak();
    std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM starts anew from what is resident
  }
  std::size_t tensors = infty::HostPool::instance().statistics().peak_bytes_in_use;
  std::size_t resident = [] {
    std::ifstream status("/proc/self/status");
    std::size_t kilobytes = 0;
    for (std::string word; status >> word;)
      if (word == "VmHWM:") status >> kilobytes;
    return kilobytes * 1024;
  }();
};

/// A table that grows by a line at a time, so that a run that is cut short leaves what it has.
class Csv {
 public:
  Csv(std::string program, const std::filesystem::path& path, const std::string& head)
      : program_(std::move(program)), out_(path) {
    line(head);
  }
  void line(const std::string& text) {
    out_ << text << std::endl;
    infty::require<infty::IoError>(out_.good(), program_.c_str(), "cannot write the results");
  }

 private:
  std::string program_;
  std::ofstream out_;
};

/// Numbers of a line of a table, each behind a comma.
inline std::string numbers(std::initializer_list<double> values) {
  std::string text;
  for (const double value : values) {
    char number[32];
    std::snprintf(number, sizeof number, ",%.9g", value);
    text += number;
  }
  return text;
}

}  // namespace infty::bench
