// SPDX-License-Identifier: MIT
#include <atomic>

#include <infty/core/error.hpp>
#include <infty/thrust/once_per_device.hpp>

#include "support/catch.hpp"
#include "threads/at_once.hpp"

using infty::detail::OncePerDevice;
using infty::tests::at_once;
using infty::tests::crowd;

TEST_CASE("OncePerDevice: once for each GPU, and done before any thread goes on") {
  OncePerDevice once;
  std::atomic<int> calls[3] = {};
  std::atomic<bool> early = false;
  at_once(crowd, [&](int) {
    for (int round = 0; round < 100; ++round)
      for (const int device : {0, 2, 63}) {
        const int at = device == 63 ? 1 : device;
        once.call(device, [&] { ++calls[at]; });
        if (calls[at] != 1) early = true;
      }
  });
  CHECK_FALSE(early);
  for (const auto& count : calls) CHECK(count == 1);
}

TEST_CASE("OncePerDevice: what throws is tried again, and GPUs beyond count are not forgotten") {
  OncePerDevice once;
  CHECK_THROWS_AS(once.call(1, [] { infty::raise<infty::Error>("raise", "refused"); }),
                  infty::Error);
  int calls = 0;
  once.call(1, [&] { ++calls; });
  once.call(1, [&] { ++calls; });
  CHECK(calls == 1);
  once.call(64, [&] { ++calls; });
  once.call(100, [&] { ++calls; });
  CHECK(calls == 3);
}
