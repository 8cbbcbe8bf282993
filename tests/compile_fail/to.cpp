// SPDX-License-Identifier: MIT
// What is copied to another backend is told the backend, and no scalar.
// expect: constraints not satisfied
// expect: Backend
#include <infty/memory/long_term_memory.hpp>
#include <infty/nn/to.hpp>
#ifdef BAD
using Other = double;
#else
using Other = infty::EigenBackend;
#endif

infty::LongTermMemory<float> test(const infty::LongTermMemory<float>& memory) {
  return infty::to<Other>(memory);
}
