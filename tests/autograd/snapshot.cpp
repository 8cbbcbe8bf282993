// SPDX-License-Identifier: MIT
#include <infty/autograd/snapshot.hpp>

#include "support/catch.hpp"
#include "support/types.hpp"

using infty::Tensor;
using infty::Variable;

TEMPLATE_LIST_TEST_CASE("Snapshot: holds until the elements are written or replaced", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  Variable<T, B> x(Tensor<T, B>::zeros({3}));
  auto handle = x.value();
  infty::detail::Snapshot snapshot(x);
  CHECK(snapshot.holds(x));
  CHECK(snapshot.holds(x.detach()));
  CHECK(snapshot.holds(handle));
  CHECK_FALSE(snapshot.holds(handle.slice(0, 2)));
  handle.fill(T(1));
  CHECK_FALSE(snapshot.holds(x));
  snapshot = infty::detail::Snapshot(x);
  CHECK(snapshot.holds(x));
  x.value() = Tensor<T, B>::zeros({3});
  CHECK_FALSE(snapshot.holds(x));

  // Of what is stored in bfloat16, until it is in full again.
  x.store_in_bfloat16();
  CHECK_FALSE(snapshot.holds(x));
  snapshot = infty::detail::Snapshot(x);
  CHECK(snapshot.shape() == infty::Shape{3});
  CHECK(snapshot.holds(x));
  CHECK(snapshot.holds(x.detach()));
  x.value();
  CHECK_FALSE(snapshot.holds(x));
  x.store_in_bfloat16();
  CHECK_FALSE(snapshot.holds(x));

  const infty::detail::Snapshot<T, B> none;
  CHECK_FALSE(none.holds(Tensor<T, B>()));
  CHECK_FALSE(none.holds(Variable<T, B>()));
}
