// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>

#include "interrupt.hpp"
#include "machine.hpp"
#include "started.hpp"

namespace support {

/// What `main` returns: the status of the job, that of a signal, or 1 behind a message on standard
/// error if it throws, which names the rank where a launcher has started several.
template <class Job>
int run_program(const char* name, Job&& job) {
  const std::string who = name_among_ranks(name);
  const auto out_of_memory = [&who] {
    std::fprintf(stderr,
                 "%s: out of memory: these sizes need more than the %.3g GiB that there are; "
                 "smaller ones need less\n",
                 who.c_str(), memory_limit() / gibibyte);
    return 1;
  };
  try {
    const int status = job();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.flush()) return status;
    std::fprintf(stderr, "%s: standard output cannot be written\n", who.c_str());
    return status == 0 ? 1 : status;
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // a container's, for a size that no memory holds
    return out_of_memory();
  } catch (const Interrupted& interrupted) {
    std::fprintf(stderr, "%s: %s\n", name, interrupted.what());
    return interrupted.status();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), error.what());
    return 1;
  }
}

}  // namespace support
