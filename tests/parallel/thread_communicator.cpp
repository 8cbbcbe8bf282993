// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <infty/parallel/any_communicator.hpp>
#include <infty/parallel/messages.hpp>
#include <infty/parallel/thread_communicator.hpp>

#include "support/catch.hpp"

using Catch::Matchers::Contains;
using infty::AnyCommunicator;
using infty::on_threads;
using infty::ThreadCommunicator;

namespace thread_communicator_tests {

static_assert(infty::Communicator<ThreadCommunicator>);

// What each rank said, checked in one thread: Catch2's assertions are no business of others.
template <class T, class Job>
std::vector<T> of_ranks(int size, Job job) {
  std::vector<T> all(static_cast<std::size_t>(size));
  on_threads(size, [&](ThreadCommunicator& ranks) {
    all[static_cast<std::size_t>(ranks.rank())] = job(ranks);
  });
  return all;
}

TEST_CASE("ThreadCommunicator: messages come in their order, those of no bytes, too") {
  const auto heard = of_ranks<std::vector<int>>(3, [](ThreadCommunicator& ranks) {
    const int next = (ranks.rank() + 1) % 3, before = (ranks.rank() + 2) % 3;
    std::vector<int> got(2);
    for (int i = 0; i < 2; ++i) {
      const int own = 10 * ranks.rank() + i;
      ranks.send(next, std::as_bytes(std::span(&own, 1)));
      ranks.send(next, {});
    }
    for (int& value : got) {
      ranks.receive(before, std::as_writable_bytes(std::span(&value, 1)));
      ranks.receive(before, {});
    }
    return got;
  });
  CHECK(heard == std::vector<std::vector<int>>{{20, 21}, {0, 1}, {10, 11}});
}

TEST_CASE("ThreadCommunicator: what all take part in, on 1 to 6 ranks, through AnyCommunicator") {
  for (int size = 1; size <= 6; ++size) {
    CAPTURE(size);
    const auto sums = of_ranks<std::vector<double>>(size, [](ThreadCommunicator& own) {
      AnyCommunicator ranks(own);
      std::vector<double> values{static_cast<double>(ranks.rank()), 1};
      ranks.all_reduce(std::span<double>(values));
      std::vector<float> singles{2};
      ranks.all_reduce(std::span<float>(singles));
      values.push_back(static_cast<double>(singles.front()));
      const int root = ranks.size() - 1;
      int said = ranks.rank() + 100;
      ranks.broadcast(std::as_writable_bytes(std::span(&said, 1)), root);
      values.push_back(said);
      ranks.barrier();
      values.push_back(infty::any_rank(ranks, ranks.rank() == root) ? 1 : 0);
      values.push_back(infty::any_rank(ranks, false) ? 1 : 0);
      return values;
    });
    const double n = size;
    for (const auto& values : sums)
      CHECK(values == std::vector<double>{n * (n - 1) / 2, n, 2 * n, 99 + n, 1, 0});
    const auto gathered = of_ranks<std::vector<std::int16_t>>(size, [](ThreadCommunicator& ranks) {
      return infty::gather(ranks, static_cast<std::int16_t>(ranks.rank()));
    });
    std::vector<std::int16_t> expected(static_cast<std::size_t>(size));
    std::iota(expected.begin(), expected.end(), std::int16_t{0});
    for (const auto& values : gathered) CHECK(values == expected);
  }
}

TEST_CASE("require_same: all ranks throw the same words about the first that differs") {
  const auto words = of_ranks<std::string>(4, [](ThreadCommunicator& ranks) -> std::string {
    infty::require_same(ranks, "the text", std::string("same"));
    try {
      infty::require_same(ranks, "the text", std::string(ranks.rank() >= 2 ? "b" : "a"));
    } catch (const infty::ValueError& error) {
      return error.what();
    }
    return "nothing";
  });
  CHECK_THAT(words.front(), Contains("rank 2 of 4 has the text with the fingerprint "));
  for (const auto& word : words) CHECK(word == words.front());
}

TEST_CASE("ThreadCommunicator: an abort ends all waits, those to come, too") {
  const auto words = of_ranks<std::string>(4, [](ThreadCommunicator& ranks) -> std::string {
    try {
      if (ranks.rank() == 2) ranks.abort("out of coffee");
      ranks.barrier();
    } catch (const infty::CommunicationError&) {
      try {
        ranks.send((ranks.rank() + 1) % 4, {});
      } catch (const infty::CommunicationError& error) {
        return error.what();
      }
    }
    return "nothing";
  });
  for (const auto& word : words) CHECK(word == "[send] out of coffee");
}

TEST_CASE("on_threads: what the first rank throws that does is thrown, and none hangs") {
  CHECK_THROWS_WITH(on_threads(3,
                               [](ThreadCommunicator& ranks) {
                                 if (ranks.rank() == 1) throw std::runtime_error("of rank 1");
                                 ranks.barrier();
                               }),
                    "of rank 1");
  // A rank that ends while others wait for it.
  CHECK_THROWS_WITH(on_threads(2,
                               [](ThreadCommunicator& ranks) {
                                 if (ranks.rank() == 1) ranks.receive(0, {});
                               }),
                    Contains("rank 0 has ended, and rank 1 waits for it"));
  for (const int size : {0, 4097, 100'000})
    CHECK_THROWS_AS(on_threads(size, [](ThreadCommunicator&) {}), infty::ValueError);
}

TEST_CASE("ThreadCommunicator: refuses ranks that there are not, and lengths that differ") {
  CHECK_THROWS_WITH(on_threads(2, [](ThreadCommunicator& ranks) { ranks.send(2, {}); }),
                    Contains("the other rank is 2: it must lie in [0, 2)"));
  CHECK_THROWS_AS(on_threads(1, [](ThreadCommunicator& ranks) { ranks.receive(0, {}); }),
                  infty::ValueError);
  CHECK_THROWS_WITH(on_threads(2,
                               [](ThreadCommunicator& ranks) {
                                 std::vector<std::byte> bytes(ranks.rank() == 0 ? 3 : 4);
                                 if (ranks.rank() == 0)
                                   ranks.send(1, bytes);
                                 else
                                   ranks.receive(0, bytes);
                               }),
                    Contains("rank 0 sends 3 bytes, rank 1 waits for 4"));
}

}  // namespace thread_communicator_tests
