// SPDX-License-Identifier: MIT
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/communicator.hpp>
#include <infty/parallel/messages.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::AnyCommunicator;
using infty::SelfCommunicator;

namespace communicator_tests {

static_assert(infty::Communicator<SelfCommunicator>);
static_assert(infty::Communicator<AnyCommunicator>);

TEST_CASE("SelfCommunicator: what all do is done, and there is nobody to talk to") {
  SelfCommunicator self;
  CHECK(self.rank() == 0);
  CHECK(self.size() == 1);
  std::vector<float> values{1, 2};
  self.all_reduce(std::span<float>(values));
  CHECK(values == std::vector<float>{1, 2});
  std::vector<std::byte> bytes(3, std::byte{7});
  self.broadcast(bytes, 0);
  CHECK(bytes == std::vector<std::byte>(3, std::byte{7}));
  self.barrier();
  self.abort("nothing");
  CHECK_THROWS_WITH(self.send(0, bytes), Contains("the other rank is 0"));
  CHECK_THROWS_AS(self.receive(1, bytes), infty::ValueError);
  CHECK_THROWS_AS(self.exchange(0, bytes, 0, bytes), infty::ValueError);
  CHECK_THROWS_WITH(self.broadcast(bytes, 1), Contains("root is 1: it must lie in [0, 1)"));
}

TEST_CASE("AnyCommunicator: is alone where nothing is said") {
  AnyCommunicator any;
  CHECK(any.rank() == 0);
  CHECK(any.size() == 1);
  CHECK(infty::any_rank(any, true));
  CHECK_FALSE(infty::any_rank(any, false));
  infty::require_same(any, "nothing", std::string("whatever"));
}

TEST_CASE("AnyCommunicator: one that was moved from is the same one still") {
  AnyCommunicator first, other;
  AnyCommunicator second(std::move(first));
  other = std::move(second);
  for (AnyCommunicator* any : {&first, &second, &other}) {
    CHECK(any->size() == 1);
    CHECK(infty::any_rank(*any, true));
  }
}

}  // namespace communicator_tests
