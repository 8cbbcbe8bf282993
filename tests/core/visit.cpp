// SPDX-License-Identifier: MIT
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <infty/core/state.hpp>
#include <infty/core/visit.hpp>
#include <infty/eigen/default.hpp>

#include "support/catch.hpp"

using infty::Shape;
using infty::Tensor;

namespace {

struct Inner {
  Tensor<float> sums = Tensor<float>::zeros({2, 3});
  infty::RowCounts steps = {1, 2};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("sums", sums);
    see("steps", steps);
  }
};

struct Outer {
  std::vector<Inner> parts{Inner{}};
  std::optional<Inner> other = Inner{};

  template <class Visitor>
  void visit(Visitor&& see) {
    see("parts", parts);
    see("other", other);
  }
};

template <class L>
std::vector<std::string> names_of(L& state, bool constant) {
  std::vector<std::string> names;
  infty::for_each_member(state, [&](const std::string& name, auto& member) {
    names.push_back(name);
    CHECK(std::is_const_v<std::remove_reference_t<decltype(member)>> == constant);
  });
  return names;
}

}  // namespace

TEST_CASE("visit_members: members of a const object are const") {
  Inner inner;
  const Inner& constant = inner;
  int seen = 0;
  infty::visit_members(constant, [&](std::string_view, auto& member) {
    static_assert(std::is_const_v<std::remove_reference_t<decltype(member)>>);
    ++seen;
  });
  infty::visit_members(inner, [&](std::string_view, auto& member) {
    static_assert(!std::is_const_v<std::remove_reference_t<decltype(member)>>);
    ++seen;
  });
  CHECK(seen == 4);
}

TEST_CASE("for_each_member: all the way down, const where the state is") {
  Outer state;
  const Outer& constant = state;
  const std::vector<std::string> names{"parts.0.sums", "parts.0.steps", "other.sums",
                                       "other.steps"};
  CHECK(names_of(state, false) == names);
  CHECK(names_of(constant, true) == names);
  const auto version = constant.parts[0].sums.version();
  CHECK(infty::batch_of(constant) == 2);
  CHECK(infty::bytes_of(constant) > 0);
  CHECK(infty::is_finite(constant));
  CHECK(constant.parts[0].sums.version() == version);
}
