// SPDX-License-Identifier: MIT
// A library that tests preload into a program: once the file `no-memory-PID` is there, in the
// folder that the process works in, its main thread gets no more memory from `operator new`, which
// throws std::bad_alloc as if there were none.
#include <cstdio>
#include <cstdlib>
#include <new>

#include <unistd.h>

namespace {

void* ask(std::size_t size, std::size_t alignment) {
  char name[32];
  std::snprintf(name, sizeof name, "no-memory-%d", static_cast<int>(::getpid()));
  if (::gettid() == ::getpid() && ::access(name, F_OK) == 0) throw std::bad_alloc();
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, size > 0 ? size : 1) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return ask(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return ask(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
