// SPDX-License-Identifier: MIT
#include <new>
#include <vector>

#include <thrust/system_error.h>

#include <infty/thrust/device_error.hpp>
#include <infty/thrust/thrust_call.hpp>

#include "support/catch.hpp"

using infty::DeviceError;
using infty::DeviceMemoryError;
using infty::gpu::detail::capability_refusal;
using infty::gpu::detail::thrust_call;

TEST_CASE("thrust_call: what Thrust throws is an error of infty's that names the call") {
  CHECK(thrust_call("sort", [] { return 3; }) == 3);
  const auto fails = [] {
    throw thrust::system_error(1, thrust::generic_category(), "no kernel image is available");
  };
  CHECK_THROWS_AS(thrust_call("sort", fails), DeviceError);
  CHECK_THROWS_WITH(thrust_call("sort", fails),
                    Catch::StartsWith("[sort] no kernel image is available"));
  CHECK_THROWS_AS(thrust_call("sort", [] { throw std::bad_alloc(); }), DeviceMemoryError);
  // Infty's own, of the pool that Thrust's temporary memory comes from, go through as they are.
  CHECK_THROWS_WITH(
      thrust_call("sort", [] { infty::raise<DeviceMemoryError>("allocate", "full"); }),
      "[allocate] full");
}

TEST_CASE("capability_refusal: GPUs before 8.0 are refused in a sentence") {
  for (const int major : {8, 9, 10, 12}) CHECK(capability_refusal("GPU", major, 0).empty());
  CHECK(capability_refusal("GPU", 8, 9).empty());
  CHECK(capability_refusal("Tesla T4", 7, 5) ==
        "Tesla T4 has compute capability 7.5: the least that infty is compiled for is 8.0");
  CHECK_FALSE(capability_refusal("Tesla V100", 7, 0).empty());
}
