// SPDX-License-Identifier: MIT
#include <ostream>
#include <string>
#include <type_traits>

#include <infty/core/error.hpp>

#include "support/catch.hpp"

static_assert(std::is_base_of_v<std::runtime_error, infty::Error>);
static_assert(std::is_base_of_v<infty::Error, infty::ShapeError>);
static_assert(std::is_base_of_v<infty::Error, infty::ValueError>);
static_assert(std::is_base_of_v<infty::Error, infty::IoError>);
static_assert(std::is_base_of_v<infty::Error, infty::NonFiniteError>);

namespace {

struct CountsPrints {
  int* prints;
  friend std::ostream& operator<<(std::ostream& out, const CountsPrints& c) {
    ++*c.prints;
    return out << "printed";
  }
};

}  // namespace

TEST_CASE("raise: the operation stands in brackets, the parts follow as they stream") {
  CHECK_THROWS_WITH(infty::raise<infty::IoError>("load", "line ", 3, ": ", 0.5, '!'),
                    "[load] line 3: 0.5!");
  CHECK_THROWS_AS(infty::raise<infty::IoError>("load", "x"), infty::IoError);
}

TEST_CASE("require: throws the error it was asked for, ValueError by default") {
  CHECK_NOTHROW(infty::require(true, "f", "x"));
  CHECK_THROWS_AS(infty::require(false, "f", "x"), infty::ValueError);
  CHECK_THROWS_AS(infty::require<infty::ShapeError>(false, "f", "x"), infty::ShapeError);
}

TEST_CASE("require: a message is put together only for a failure") {
  int prints = 0;
  infty::require(true, "f", CountsPrints{&prints});
  CHECK(prints == 0);
  CHECK_THROWS_WITH(infty::require(false, "f", CountsPrints{&prints}), "[f] printed");
  CHECK(prints == 1);
}
