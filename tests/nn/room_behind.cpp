// SPDX-License-Identifier: MIT
#include <algorithm>
#include <vector>

#include <infty/autograd/reduce.hpp>
#include <infty/nn/room_behind.hpp>

#include "support/catch.hpp"
#include "support/tensors.hpp"
#include "support/types.hpp"

namespace room_behind_tests {

using infty::Index, infty::Shape;

/// [B, L, 2] of numbers from `first` on.
template <class T, class B>
infty::Variable<T, B> numbers(Index batch, Index length, int first) {
  std::vector<T> all(static_cast<std::size_t>(batch * length * 2));
  for (T& x : all) x = static_cast<T>(first++);
  return infty::Variable<T, B>(infty::Tensor<T, B>::from(Shape{batch, length, 2}, all));
}

}  // namespace room_behind_tests

TEMPLATE_LIST_TEST_CASE(
    "RoomBehind: appends as concat does, and a row's vectors stay where they are", "",
    infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using namespace room_behind_tests;
  using V = infty::Variable<T, B>;
  for (const Index batch : {1, 3}) {
    infty::detail::RoomBehind<T, B> room;
    V held = numbers<T, B>(batch, 5, 0), wanted = held;
    int moved = 0;
    for (int step = 0; step < 300; ++step) {
      const V added = numbers<T, B>(batch, 1 + step % 2, 100 * step);
      const T* const before = std::as_const(held).value().data();
      held = room.append(held, 0, added);
      wanted = concat(wanted, added);
      moved += std::as_const(held).value().data() != before;
      REQUIRE(held.shape() == wanted.shape());
    }
    CHECK(held.value().to_vector() == wanted.value().to_vector());
    CHECK((batch == 1 ? moved < 8 : moved == 300));
  }
}

TEMPLATE_LIST_TEST_CASE("RoomBehind: branches of one past do not write into each other", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using namespace room_behind_tests;
  using V = infty::Variable<T, B>;
  infty::detail::RoomBehind<T, B> room;
  const V past = room.append(numbers<T, B>(1, 3, 0), 0, numbers<T, B>(1, 1, 6));
  const auto as_it_was = past.value().to_vector();
  auto other_room = room;
  const V one = room.append(past, 0, numbers<T, B>(1, 2, 50)),
          other = other_room.append(past, 0, numbers<T, B>(1, 1, 70)),
          again = room.append(past, 0, numbers<T, B>(1, 1, 90));
  CHECK(past.value().to_vector() == as_it_was);
  CHECK(one.value().to_vector() == concat(past, numbers<T, B>(1, 2, 50)).value().to_vector());
  CHECK(other.value().to_vector() == concat(past, numbers<T, B>(1, 1, 70)).value().to_vector());
  CHECK(again.value().to_vector() == concat(past, numbers<T, B>(1, 1, 90)).value().to_vector());
}

TEMPLATE_LIST_TEST_CASE("RoomBehind: a window slides over the room, and empty places fall away", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using namespace room_behind_tests;
  using V = infty::Variable<T, B>;
  infty::detail::RoomBehind<T, B> room;
  V held = numbers<T, B>(1, 4, 0), wanted = held;
  for (int step = 0; step < 200; ++step) {
    const V added = numbers<T, B>(1, 1, 10 * step);
    held = room.append(held, step == 100 ? 2 : 0, added);
    wanted = concat(narrow(wanted, step == 100 ? 2 : 0, wanted.dim(1)), added);
    const Index kept = (std::min)(Index{4}, held.dim(1));
    held = room.last(held, kept);
    wanted = narrow(wanted, wanted.dim(1) - kept, wanted.dim(1));
    REQUIRE(held.value().to_vector() == wanted.value().to_vector());
  }
  CHECK(room.append(held, 4, numbers<T, B>(1, 2, 0)).value().to_vector() ==
        numbers<T, B>(1, 2, 0).value().to_vector());
}

TEMPLATE_LIST_TEST_CASE("RoomBehind: gradients flow while a tape records", "",
                        infty::tests::Types) {
  using T = typename TestType::T;
  using B = typename TestType::B;
  using namespace room_behind_tests;
  using V = infty::Variable<T, B>;
  infty::detail::RoomBehind<T, B> room;
  V past(numbers<T, B>(1, 3, 0).value(), true), added(numbers<T, B>(1, 1, 9).value(), true);
  infty::Tape tape;
  const V all = room.append(past, 1, added);
  tape.backward(sum(room.last(all, 2)));
  CHECK(past.grad().to_vector() == std::vector<T>{0, 0, 0, 0, 1, 1});
  CHECK(added.grad().to_vector() == std::vector<T>{1, 1});
}
