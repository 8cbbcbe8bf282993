// SPDX-License-Identifier: MIT
#pragma once

#include <new>

#include <thrust/system_error.h>

#include <infty/thrust/device_error.hpp>

namespace infty::gpu::detail {

/// Returns f(), an algorithm of Thrust's, whose errors leave as infty's.
/// @throws infty::DeviceError that names `call`, infty::DeviceMemoryError where memory ran out
template <class F>
decltype(auto) thrust_call(const char* call, F&& f) {
  try {
    return f();
  } catch (const thrust::system_error& error) {
    raise<DeviceError>(call, error.what());
  } catch (const std::bad_alloc& error) {
    raise<DeviceMemoryError>(call, error.what());
  }
}

}  // namespace infty::gpu::detail
