// SPDX-License-Identifier: MIT
#include <stdexcept>

#include <infty/core/tensor.hpp>
#include <infty/core/verify.hpp>
#include <infty/eigen/backend.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Index;

namespace {

// A backend that answers later.
struct Later : infty::EigenBackend {
  static inline Index asked = 0;
  template <class Bad, class Report>
  static void verify(Index n, Bad, Report) {
    asked += n;
  }
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("verify: reports the largest bad index, and only if there is one", "",
                        infty::tests::Types) {
  using B = typename TestType::B;
  Index reported = -1;
  const auto report = [&](Index i) {
    reported = i;
    throw std::runtime_error("bad");
  };
  const auto check = [&](Index n, Index low, Index high) {
    const auto waited_for = infty::Tensor<Index, B>::zeros({1});
    infty::detail::verify<B>(
        n, [=] INFTY_HOST_DEVICE(Index i) { return i >= low && i < high; }, report);
    waited_for.item();  // at the latest here
  };
  CHECK_NOTHROW(check(0, 0, 10));
  CHECK_NOTHROW(check(50'000, 50'000, 60'000));
  CHECK(reported == -1);
  CHECK_THROWS_AS(check(50'000, 17, 40'000), std::runtime_error);
  CHECK(reported == 39'999);
  CHECK_THROWS_AS(check(1, 0, 1), std::runtime_error);
  CHECK(reported == 0);
}

TEST_CASE("verify: a backend may bring its own") {
  infty::detail::verify<Later>(
      7, [](Index) { return true; }, [](Index) { throw std::runtime_error("bad"); });
  CHECK(Later::asked == 7);
}
