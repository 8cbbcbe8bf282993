// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>

namespace infty {

template <class T, class Backend = EigenBackend>
class EpisodicMemory;
template <class T, class Backend = EigenBackend>
struct ClassHead;
template <class T, class Backend = EigenBackend>
struct SpanHead;

}  // namespace infty
