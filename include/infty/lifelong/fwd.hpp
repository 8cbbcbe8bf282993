// SPDX-License-Identifier: MIT
#pragma once

#include <infty/autograd/fwd.hpp>
#include <infty/retrieval/fwd.hpp>

namespace infty {

template <class T, class Backend = EigenBackend, class Search = ExactIndex<T, Backend>>
class EpisodicMemory;
template <class T, class Backend = EigenBackend>
struct ClassHead;
template <class T, class Backend = EigenBackend>
struct SpanHead;

}  // namespace infty
