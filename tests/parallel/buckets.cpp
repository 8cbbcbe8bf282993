// SPDX-License-Identifier: MIT
#include <cstddef>
#include <utility>
#include <vector>

#include <infty/parallel/buckets.hpp>

#include "support/catch.hpp"

using infty::detail::Buckets;
using infty::detail::Slice;

namespace buckets_tests {

using Found = std::vector<std::pair<std::size_t, std::size_t>>;

TEST_CASE("Buckets: each when its parts are complete and those before it are ready") {
  const std::vector<Slice> parts{{0, 3}, {3, 3}, {3, 10}, {10, 11}};
  Buckets buckets(11, 4);  // [0, 4), [4, 8), [8, 11)
  for (const Slice part : parts) buckets.add(part);
  Found found;
  const auto ready = [&](Slice bucket) { found.emplace_back(bucket.first, bucket.last); };
  buckets.complete(parts[3], ready);
  buckets.complete(parts[2], ready);
  buckets.complete(parts[1], ready);
  CHECK(found.empty());  // the first one waits for the first part, and the others for it
  buckets.complete(parts[0], ready);
  CHECK(found == Found{{0, 4}, {4, 8}, {8, 11}});
}

TEST_CASE("Buckets: all elements once, whatever their length") {
  for (const std::size_t length : std::vector<std::size_t>{0, 1, 2, 5, 9, 10, 11, 1000}) {
    CAPTURE(length);
    Buckets buckets(10, length);
    const std::vector<Slice> parts{{0, 2}, {2, 9}, {9, 10}};
    for (const Slice part : parts) buckets.add(part);
    std::size_t next = 0;
    for (const Slice part : parts)
      buckets.complete(part, [&](Slice bucket) {
        CHECK(bucket.first == next);
        CHECK(bucket.size() >= 1);
        CHECK((length == 0 || bucket.size() <= length));
        CHECK(bucket.last <= part.last);
        next = bucket.last;
      });
    CHECK(next == 10);
  }
  Buckets none(0, 4);
  none.add({0, 0});
  none.complete({0, 0}, [](Slice) { FAIL("there is nothing"); });
}

}  // namespace buckets_tests
