// SPDX-License-Identifier: MIT
#pragma once

#include <cstdlib>
#include <string>

#include <dlfcn.h>

extern "C" void sgemm_(...);

namespace infty::bench {

/// The file of the BLAS that this process multiplies by, and what OpenBLAS says of itself if it is
/// that: a program that is linked with a BLAS may run with another.
inline std::string blas_name() {
  ::Dl_info found{};
  std::string out = "unknown";
  if (::dladdr(reinterpret_cast<void*>(&sgemm_), &found) != 0 && found.dli_fname != nullptr) {
    char* const real = ::realpath(found.dli_fname, nullptr);
    out = real != nullptr ? real : found.dli_fname;
    std::free(real);
  }
  if (void* const config = ::dlsym(RTLD_DEFAULT, "openblas_get_config"))
    out += std::string(": ") + reinterpret_cast<const char* (*)()>(config)();
  return out;
}

}  // namespace infty::bench
