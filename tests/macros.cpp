// SPDX-License-Identifier: MIT
// Compiled, and linked into nothing: the macros of well known headers do not get into infty's. What
// infty includes itself comes first, for not every standard library is safe from them.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numbers>
#include <numeric>

#include <fcntl.h>
#if defined(_OPENMP)
#include <omp.h>
#endif
#include <optional>
#include <ostream>
#include <queue>
#include <ranges>
#include <ratio>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// By name those that are objects, by call those that are functions, as these headers define them.
#undef I
#define min(a, b) (((a) < (b)) ? (a) : (b))  // windows.h
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define near
#define far
#define small char
#define interface struct
#define ERROR 0
#define NO_ERROR 0L
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define TRUE 1
#define FALSE 0
#define STRICT 1
#define DELETE 0x00010000L
#define I (1.0fi)                            // complex.h
#define major(device) gnu_dev_major(device)  // sys/sysmacros.h
#define minor(device) gnu_dev_minor(device)
#define makedev(a, b) gnu_dev_makedev(a, b)
#define B0 0000000                 // termios.h
#define PI 3.14159265358979323846  // Arduino.h
#define None 0L                    // X11/X.h
#define Bool int
#define Status int
#define Always 2

#include <infty/infty.hpp>
#include <infty/testing/gradient_check.hpp>
#include <infty/testing/memory_invariants.hpp>

static_assert(max(1, 2) == 2 && min(1, 2) == 1, "they are the user's, and stay");
