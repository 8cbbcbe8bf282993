// SPDX-License-Identifier: MIT
#pragma once

#include <infty/core/fwd.hpp>

namespace infty {

class Tape;

template <class T, class Backend = EigenBackend>
class Variable;
template <class T, class B>
class Unread;
template <class T, class B>
struct ReadIf;

namespace detail {

template <class T, class B>
class KeptFactor;

}  // namespace detail

}  // namespace infty
