// SPDX-License-Identifier: MIT
#pragma once

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "interrupt.hpp"
#include "machine.hpp"

namespace support {

/// What `main` returns: the status of the job, that of a signal, or 1 behind a message on standard
/// error if it throws.
template <class Job>
int run_program(const char* name, Job&& job) {
  const auto out_of_memory = [name] {
    std::fprintf(stderr,
                 "%s: out of memory: these sizes need more than the %.3g GiB that there are; "
                 "smaller ones need less\n",
                 name, memory_limit() / gibibyte);
    return 1;
  };
  try {
    return job();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // a container's, for a size that no memory holds
    return out_of_memory();
  } catch (const Interrupted& interrupted) {
    std::fprintf(stderr, "%s: %s\n", name, interrupted.what());
    return interrupted.status();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace support
